"""docs/json_schema.md says which keywords are enforced; here are a case or more for each claim."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import ffwd

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = (ROOT / "docs/json_schema.md").read_text(encoding="utf-8")
SOURCES = ROOT / "ffwd/native/crates/json-schema/src"
DIALECTS = (SOURCES / "dialect.rs").read_text(encoding="utf-8")
FORMATS = (SOURCES / "formats/mod.rs").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def vocabulary() -> ffwd.Vocabulary:
    """Single bytes and an end token."""
    tokens = [bytes([byte]) for byte in range(256)]
    return ffwd.Vocabulary([*tokens, None], eos_token_ids=[256])


def accepts(schema: Any, text: str, vocabulary: ffwd.Vocabulary, **options: Any) -> bool:
    """Whether the compiled schema lets the whole text through."""
    matcher = ffwd.compile(
        ffwd.json_schema(schema, **{"numbers": "any", **options}), vocabulary
    ).matcher()
    return matcher.accept_tokens(list(text.encode())) and matcher.is_accepting()


def table_keywords() -> set[str]:
    """What the first column of the keyword table names."""
    table = DOCUMENT.partition("## Keywords")[2].partition("### Formats")[0]
    rows = re.findall(r"^\| (`.*?) \| enforced \|", table, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_the_table_has_every_keyword() -> None:
    """All that the engine knows, and beyond them only those that name things."""
    known = set(re.findall(r'^\s+\w+ "([^"]+)" Draft\d+ Draft\d+;$', DIALECTS, re.MULTILINE))
    assert len(known) > 40
    naming = {
        *("true", "false", "$defs", "definitions", "$id", "$anchor", "$dynamicAnchor"),
        *("$recursiveAnchor", "$schema", "$vocabulary"),
    }
    assert table_keywords() == known | naming


ENFORCED: list[tuple[Any, list[str], list[str]]] = [
    (True, ["1", '{"a":[]}'], ["", "01"]),
    ({"type": ["null", "boolean"]}, ["null", "true"], ["1"]),
    ({"type": "integer"}, ["1", "1.0", "1.000", "-3"], ["1.5", '"1"']),
    ({"enum": [1, "a", [True]]}, ["1", "1.0", '"a"', "[true]"], ["2", '"b"', "[]"]),
    ({"const": {"a": 1}}, ['{"a":1}'], ['{"a":2}', "{}"]),
    (
        {"$ref": "#/$defs/list", "$defs": {"list": {"items": {"$ref": "#/$defs/list"}}}},
        ["[[],[[]]]"],
        ["[[]"],
    ),
    ({"allOf": [{"minimum": 1}, {"maximum": 2}], "type": "number"}, ["1.5"], ["0", "3"]),
    ({"anyOf": [{"const": "a"}, {"type": "null"}]}, ['"a"', "null"], ['"b"']),
    ({"oneOf": [{"type": "string"}, {"type": "null"}]}, ['"a"', "null"], ["1"]),
    ({"oneOf": [{"minimum": 1}, {"maximum": 2}], "type": "number"}, ["0", "3"], ["1", "1.5"]),
    ({"not": {"type": "null"}}, ["1"], ["null"]),
    ({"not": {"const": [1]}, "type": "array"}, ["[]", "[2]"], ["[1]", "[1.0]"]),
    (
        {"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"maxProperties": 0}},
        ["{}", '{"a":1,"b":1}'],
        ['{"a":1}', '{"b":1}'],
    ),
    (
        {
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            "$recursiveAnchor": True,
            "items": {"$recursiveRef": "#"},
            "type": "array",
        },
        ["[[]]"],
        ["[1]"],
    ),
    (
        {"$dynamicAnchor": "x", "items": {"$dynamicRef": "#x"}, "type": "array"},
        ["[[]]"],
        ["[1]"],
    ),
    ({"type": "number", "exclusiveMinimum": 1, "maximum": 2}, ["1.1", "2"], ["1", "2.1"]),
    ({"type": "number", "minimum": 1, "exclusiveMaximum": 2}, ["1", "1.9"], ["0.9", "2"]),
    ({"type": "number", "multipleOf": 1}, ["3"], ["3.5"]),
    ({"type": "integer", "multipleOf": 0.01}, ["3"], ["3.5"]),
    ({"type": "number", "multipleOf": 2.5}, ["0", "7.5", "-10"], ["1", "2"]),
    ({"type": "string", "minLength": 1, "maxLength": 2}, ['"é"', '"ab"'], ['""', '"abc"']),
    ({"type": "string", "pattern": "b.d"}, ['"abcde"'], ['"acd"']),
    ({"type": "string", "format": "date"}, ['"2024-02-29"'], ['"2023-02-29"']),
    (
        {"properties": {"a": {"type": "null"}, "b": {}}, "required": ["c"], "type": "object"},
        ['{"a":null,"b":1,"c":2,"d":3}', '{"c":1}'],
        ['{"b":1,"a":null,"c":1}', "{}", '{"c":1,"c":2}', '{"\\u0063":1}', '{"a":1,"c":1}'],
    ),
    ({"type": "object", "additionalProperties": {"type": "null"}}, ['{"a":null}'], ['{"a":1}']),
    ({"type": "object", "patternProperties": {"^a": True}}, ['{"a":1}'], ["1"]),
    ({"type": "object", "propertyNames": True}, ['{"a":1}'], ["1"]),
    ({"type": "object", "required": ["a"], "minProperties": 1}, ['{"a":1}'], ["{}"]),
    ({"type": "object", "maxProperties": 0}, ["{}"], ['{"a":1}']),
    ({"type": "object", "unevaluatedProperties": False}, ["{}"], ['{"a":1}']),
    (
        {"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False, "type": "object"},
        ['{"a":1}', "{}"],
        ['{"b":1}'],
    ),
    ({"type": "object", "dependencies": {"a": []}}, ['{"a":1}'], ["1"]),
    ({"dependencies": {"a": ["b"], "c": False}}, ['{"a":1,"b":1}', "1"], ['{"a":1}', '{"c":1}']),
    ({"dependentRequired": {"a": ["b"]}}, ['{"a":1,"b":1}', "{}"], ['{"a":1}']),
    ({"dependentSchemas": {"a": {"minProperties": 2}}}, ['{"a":1,"b":1}', "{}"], ['{"a":1}']),
    ({"patternProperties": {"^a": {"type": "null"}}}, ['{"ab":null,"b":1}'], ['{"ab":1}']),
    ({"propertyNames": {"maxLength": 1}}, ['{"a":1}'], ['{"ab":1}']),
    ({"type": "object", "minProperties": 1}, ['{"a":1}'], ["{}"]),
    ({"type": "object", "maxProperties": 1}, ['{"a":1}'], ['{"a":1,"b":1}']),
    ({"type": "array", "items": {"type": "null"}}, ["[]", "[null]"], ["[1]"]),
    ({"type": "array", "prefixItems": [{"const": 1}], "items": False}, ["[1]"], ["[2]", "[1,1]"]),
    (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "array",
            "items": [{"const": 1}],
            "additionalItems": {"const": 2},
        },
        ["[1,2]"],
        ["[2]", "[1,1]"],
    ),
    ({"type": "array", "minItems": 1, "maxItems": 2}, ["[1]"], ["[]", "[1,1,1]"]),
    ({"type": "array", "maxItems": 1, "uniqueItems": True}, ["[1]"], ["[1,1]"]),
    ({"type": "array", "uniqueItems": True}, ["[1,2]", '["1",1]'], ["[1,1.0]", "[[],[]]"]),
    ({"type": "array", "contains": {"const": 1}}, ["[2,1]"], ["[]", "[2]"]),
    ({"contains": {"const": 1}, "maxContains": 1, "type": "array"}, ["[2,1]"], ["[1,1]"]),
    ({"type": "array", "contains": True, "minContains": 2}, ["[1,1]"], ["[1]"]),
    ({"type": "array", "contains": {"const": 1}, "minContains": 0}, ["[2]"], ["1"]),
    ({"type": "array", "unevaluatedItems": {"type": "null"}}, ["[null]"], ["[1]"]),
    (
        {"allOf": [{"prefixItems": [{}]}], "unevaluatedItems": False, "type": "array"},
        ["[]", "[1]"],
        ["[1,2]"],
    ),
    ({"if": {"const": 1}, "then": {}, "title": "no effect"}, ["1", "2"], ["x"]),
    ({"type": "integer", "uniqueItems": True}, ["1"], ["[]"]),
    ({"type": "string", "format": "no such format"}, ['"x"'], ["1"]),
    ({"properties": {"a": False}, "type": "object"}, ["{}", '{"b":1}'], ['{"a":1}']),
]


@pytest.mark.parametrize(
    ("schema", "good", "bad"), ENFORCED, ids=[json.dumps(case[0])[:60] for case in ENFORCED]
)
def test_what_is_enforced(
    schema: Any, good: list[str], bad: list[str], vocabulary: ffwd.Vocabulary
) -> None:
    """Texts that are let through, and texts that are not."""
    for text in good:
        assert accepts(schema, text, vocabulary), text
    for text in bad:
        assert not accepts(schema, text, vocabulary), text


def test_every_keyword_has_a_case() -> None:
    """Of what is enforced, but for what only names places."""
    used = {key for schema, _, _ in ENFORCED for key in members(schema)}
    naming = {"true", "false", "definitions", "$id", "$anchor", "$vocabulary"}
    assert table_keywords() - naming <= used


def members(value: Any) -> set[str]:
    """All keys in a value, at any depth."""
    if isinstance(value, dict):
        return set(value).union(*map(members, value.values()))
    return set().union(*map(members, value)) if isinstance(value, list) else set()


REFUSED: list[tuple[str, Any, str]] = [
    ("$ref", {"$ref": "other.json"}, "/$ref"),
    ("$dynamicRef", {"$dynamicRef": "other.json#a"}, "/$dynamicRef"),
    ("pattern", {"pattern": "(a)\\1"}, "/pattern"),
    ("pattern", {"pattern": "(?<=a(?=b))b"}, "/pattern"),
    ("patternProperties", {"patternProperties": {"(a)\\1": {}}}, "/patternProperties/(a)\\1"),
]


@pytest.mark.parametrize(
    ("keyword", "schema", "pointer"), REFUSED, ids=[json.dumps(case[1])[:60] for case in REFUSED]
)
def test_what_is_refused(
    keyword: str, schema: Any, pointer: str, vocabulary: ffwd.Vocabulary
) -> None:
    """By name and place, also where it stands deeper."""
    with pytest.raises(ffwd.UnsupportedSchemaError) as caught:
        ffwd.compile(ffwd.json_schema(schema), vocabulary)
    assert (caught.value.keyword, caught.value.pointer) == (keyword, pointer)
    if "$schema" not in schema:
        with pytest.raises(ffwd.UnsupportedSchemaError) as caught:
            ffwd.compile(ffwd.json_schema({"properties": {"x/y": schema}}), vocabulary)
        assert caught.value.pointer == "/properties/x~1y" + pointer


def test_every_format_is_as_described(vocabulary: ffwd.Vocabulary) -> None:
    """The document lists those of the engine; each has its example, and not a text of none."""
    section = DOCUMENT.partition("### Formats")[2].partition("\n- ")[0]
    listed = re.findall(r"`([a-z0-9-]+)`", section)
    table = FORMATS.partition("const FORMATS")[2].partition("];")[0]
    examples = dict(re.findall(r'(?:exact|narrow)\(\s*"([^"]+)",\s*"([^"]*)",', table))
    assert len(examples) > 15
    assert listed == list(examples)
    for name, example in examples.items():
        schema = {"type": "string", "format": name}
        assert accepts(schema, f'"{example}"', vocabulary), name
        assert not accepts(schema, '"{ :"', vocabulary), name


@pytest.mark.parametrize(
    ("whitespace", "good", "bad"),
    [
        ("compact", ['{"a":[1,2]}'], ['{"a": [1,2]}', ' {"a":[1,2]}']),
        ("single-space", ['{"a": [1, 2]}'], ['{"a":[1,2]}', '{"a":  [1, 2]}']),
        (
            "consistent",
            ['{"a":[1,2]}', '{"a": [1, 2]}', '{\n\t"a": [\n\t\t1,\n\t\t2\n\t]\n}'],
            ['{"a":[1, 2]}', '{"a": [1,2]}', '{\n"a": []\n}', ' {"a":[1,2]}', '{"a":[1,2]} '],
        ),
        (
            "flexible",
            ['{"a":[1,2]}', '{\n "a" :\t[ 1,\r\n2 ] }', '{"a":' + 64 * " " + "[1,2]}"],
            ['{"a":' + 65 * " " + "[1,2]}", ' {"a":[1,2]}', '{"a":[1,2]} '],
        ),
    ],
)
def test_whitespace_is_as_described(
    whitespace: str, good: list[str], bad: list[str], vocabulary: ffwd.Vocabulary
) -> None:
    """Each mode, and the default bound on runs."""
    for text in good:
        assert accepts(True, text, vocabulary, whitespace=whitespace), text
    for text in bad:
        assert not accepts(True, text, vocabulary, whitespace=whitespace), text


def test_strings_have_one_spelling(vocabulary: ffwd.Vocabulary) -> None:
    """Short escapes, lower-case escapes for other control characters, else the character."""
    schema = {"type": "string"}
    for text in ('"/"', '"\\n"', '"\\u0001"', '"\\u001f"', '"é"', '"\x7f"'):
        assert accepts(schema, text, vocabulary), text
    for text in ('"\\/"', '"\\u000a"', '"\\u001F"', '"\\u00e9"', '"\\ud800"'):
        assert not accepts(schema, text, vocabulary), text


def test_the_other_errors(vocabulary: ffwd.Vocabulary) -> None:
    """One case for each row of the table of errors."""
    cases: list[tuple[Any, type[ffwd.FfwdError], str, Any]] = [
        ("{", ffwd.InvalidSchemaError, "pointer", ""),
        ({"items": {"type": "text"}}, ffwd.InvalidSchemaError, "pointer", "/items/type"),
        ({"$ref": "#/nowhere"}, ffwd.InvalidSchemaError, "pointer", "/$ref"),
        (False, ffwd.UnsatisfiableSchemaError, "pointer", ""),
        ("[" * 600 + "]" * 600, ffwd.LimitExceededError, "maximum", 512),
    ]
    for schema, error, name, expected in cases:
        with pytest.raises(error) as caught:
            ffwd.compile(ffwd.json_schema(schema), vocabulary)
        assert getattr(caught.value, name) == expected
