"""The fidelity report and the lenient policy."""

import re
from pathlib import Path
from typing import Any

import pytest
from cases import byte_vocabulary

import ffwd

BACK_REFERENCE = "(a)\\1"


def report(schema: Any, **options: Any) -> dict[str, str]:
    lines = ffwd.fidelity_report(ffwd.json_schema(schema, **options))
    assert len({line.pointer for line in lines}) == len(lines)
    for line in lines:
        assert line.pointer.endswith("/" + line.keyword.replace("~", "~0").replace("/", "~1"))
        assert bool(line.reason) == (line.fidelity != "enforced"), line
    return {line.pointer: line.fidelity for line in lines}


def test_annotations_and_unknown_keywords_are_ignored() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "t",
        "type": "object",
        "properties": {"a": {"format": "own", "minLength": 1, "x/y": 2}},
        "$defs": {"unused": {"type": "null"}},
    }
    assert report(schema) == {
        "/$schema": "enforced",
        "/title": "ignored",
        "/type": "enforced",
        "/properties": "enforced",
        "/properties/a/format": "ignored",
        "/properties/a/minLength": "enforced",
        "/properties/a/x~1y": "ignored",
        "/$defs": "enforced",
        "/$defs/unused/type": "ignored",
    }


def test_siblings_of_references_are_ignored_in_older_drafts() -> None:
    schema: dict[str, Any] = {
        "items": {"$ref": "#/definitions/a", "maximum": 1},
        "definitions": {"a": {}},
    }
    assert report(schema)["/items/maximum"] == "enforced"
    schema["$schema"] = "http://json-schema.org/draft-07/schema#"
    assert report(schema)["/items/maximum"] == "ignored"


def test_other_documents_are_listed_as_far_as_they_are_reached() -> None:
    registry = {"http://example.com/a": {"$defs": {"b": {"type": "null"}, "c": {"type": "null"}}}}
    schema = {"$ref": "http://example.com/a#/$defs/b"}
    assert report(schema, registry=registry) == {
        "/$ref": "enforced",
        "http://example.com/a#/$defs/b/type": "enforced",
    }


UNSUPPORTED: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "pattern": ({"pattern": BACK_REFERENCE, "minLength": 2}, "/pattern", '"xy"', '"x"'),
    "reference": (
        {"$ref": "http://example.com/none", "type": "string"},
        "/$ref",
        '"x"',
        "1",
    ),
    "key pattern": (
        {"patternProperties": {BACK_REFERENCE: {"type": "null"}}, "additionalProperties": False},
        "/patternProperties",
        '{"aa":null}',
        "{",
    ),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_policies(name: str) -> None:
    schema, pointer, accepted, refused = UNSUPPORTED[name]
    with pytest.raises(ffwd.UnsupportedSchemaError) as caught:
        ffwd.compile(ffwd.json_schema(schema), byte_vocabulary())
    assert caught.value.pointer.startswith(pointer)
    assert report(schema)[pointer] == "refused"
    lenient = ffwd.json_schema(schema, policy="lenient")
    assert report(schema, policy="lenient")[pointer] == "widened"
    for text, valid in ((accepted, True), (refused, False)):
        matcher = ffwd.compile(lenient, byte_vocabulary()).matcher()
        walked = matcher.accept_tokens(list(text.encode())) and matcher.is_accepting()
        assert walked is valid, text


def test_nothing_is_widened_when_strict() -> None:
    with_everything = {
        "allOf": [{"not": {"const": 1}}, {"oneOf": [{"type": "integer"}, {"minLength": 2}]}],
        "if": {"type": "string"},
        "then": {"format": "date"},
    }
    assert set(report(with_everything).values()) == {"enforced"}


def test_bad_input() -> None:
    with pytest.raises(ffwd.InvalidSchemaError) as caught:
        ffwd.fidelity_report(ffwd.json_schema({"items": 3}))
    assert caught.value.pointer == "/items"
    with pytest.raises(TypeError):
        ffwd.fidelity_report({"type": "string"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("propertees", "properties"),
        ("maxLenght", "maxLength"),
        ("min_length", "minLength"),
        ("MINITEMS", "minItems"),
        ("require", "required"),
        ("ref", "$ref"),
        ("oneof", "oneOf"),
        ("additionalProperty", "additionalProperties"),
        # What is meant as it is written.
        ("x-order", None),
        ("example", None),
        ("nullable", None),
        ("propertyOrdering", None),
        ("errorMessage", None),
        ("unit", None),
        ("a" * 10_000, None),
    ],
)
def test_unknown_keywords_that_are_near_to_known_ones(written: str, meant: str | None) -> None:
    grammar = ffwd.json_schema({"type": "object", "properties": {"a": {written: 1}}})
    (line,) = (line for line in ffwd.fidelity_report(grammar) if line.keyword == written)
    assert line.pointer == f"/properties/a/{written}"
    assert (line.fidelity, line.suggestion) == ("ignored", meant)


def test_only_unknown_keywords_are_asked_about() -> None:
    """Names of properties are no keywords, and known ones are spelled as they are."""
    schema = {"properties": {"propertees": {"minLength": 1, "then": {}}}, "title": "t"}
    assert not [k for k in ffwd.fidelity_report(ffwd.json_schema(schema)) if k.suggestion]


def test_what_can_be_meant_is_what_the_core_knows() -> None:
    """Of what names things it calls unknown what another dialect has."""
    from ffwd.grammar._keywords import KEYWORDS

    sources = Path(ffwd.__file__).parent / "native/crates/json-schema/src"
    if not sources.is_dir():
        pytest.skip("an installed ffwd has no Rust sources")
    table = (sources / "dialect.rs").read_text(encoding="utf-8")
    values = set(re.findall(r'^\s+\w+ "([^"]+)" Draft\d+ Draft\d+;$', table, re.MULTILINE))
    assert len(values) > 40
    assert values < KEYWORDS
    for keyword in KEYWORDS - values:
        (line,) = ffwd.fidelity_report(ffwd.json_schema({keyword: _NAMING.get(keyword, "a")}))[:1]
        assert line.keyword == keyword
        assert (line.reason == "an unknown keyword") == (keyword == "$recursiveAnchor"), line


_NAMING: dict[str, Any] = {"$defs": {}, "definitions": {}, "$vocabulary": {}}
