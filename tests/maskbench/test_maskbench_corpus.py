"""The built-in corpus: what it covers, and what two validators say of its labels."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import ffwd
from maskbench.data import builtin_cases
from maskbench.documents import Whitespace, write_instance

ROOT = Path(__file__).resolve().parents[2]
CASES = builtin_cases()
SCHEMAS = {case.id: case.schema for case in CASES}


def documented_formats() -> set[str]:
    documented = (ROOT / "docs" / "json_schema.md").read_text(encoding="utf-8")
    (formats,) = re.findall(r"as jsonschema-rs decides them:\n((?:`.*\n)+)", documented)
    return set(re.findall(r"`([a-z0-9-]+)`", formats))


def test_corpus_is_large_enough_and_every_case_has_both_labels():
    assert len(CASES) >= 300
    assert len(SCHEMAS) == len(CASES)
    for case in CASES:
        assert {test.valid for test in case.tests} == {True, False}, case.id
        for test in case.tests:
            write_instance(test.data, Whitespace.COMPACT)


def by_jsonschema_rs(schema):
    jsonschema_rs = pytest.importorskip("jsonschema_rs")
    return jsonschema_rs.validator_for(schema, validate_formats=True).is_valid


def by_jsonschema(schema):
    """Of the formats it has few itself; each is asked of jsonschema-rs, and all else is its own."""
    jsonschema = pytest.importorskip("jsonschema")
    checker = jsonschema.FormatChecker(())
    for name in documented_formats():
        checker.checks(name)(by_jsonschema_rs({"format": name}))
    dialect = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    return dialect(schema, format_checker=checker).is_valid


def wrong_labels(case, validator):
    """The tests that the validator decides otherwise; None where it cannot read a pattern."""
    is_valid = validator(case.schema)
    try:
        return [number for number, t in enumerate(case.tests) if is_valid(t.data) != t.valid]
    except re.error:
        return None


@pytest.mark.parametrize(
    ("validator", "unreadable"),
    [
        (by_jsonschema_rs, {}),
        # Python's expressions have no properties of characters.
        (by_jsonschema, {"builtin_kw_pattern_property", "builtin_kw_pattern_script"}),
    ],
)
def test_labels_are_confirmed_by_a_validator(validator, unreadable):
    expected = {case.id: None if case.id in unreadable else [] for case in CASES}
    assert {case.id: wrong_labels(case, validator) for case in CASES} == expected
    first = CASES[0].tests[0]
    turned = replace(CASES[0], tests=(replace(first, valid=not first.valid),))
    assert wrong_labels(turned, validator) == [0]


def keywords_in(value, *, names=False):
    """The keywords of a schema, and the formats as `format NAME`; names of members are none."""
    found = set()
    if isinstance(value, list):
        for item in value:
            found |= keywords_in(item)
    elif isinstance(value, dict):
        for key, member in value.items():
            if not names:
                found.add(key)
                if key == "format":
                    found.add(f"format {member}")
                if key in ("const", "enum", "default", "examples"):
                    continue
            inside = not names and key in MAPS and isinstance(member, dict)
            found |= keywords_in(member, names=inside)
    return found


MAPS = {
    "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies",
    "dependentRequired",
}  # fmt: skip
# What names and describes things has no line in the table of keywords that constrain.
STRUCTURE = {
    "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$defs", "definitions",
    "$comment", "title", "description", "default", "examples", "deprecated", "readOnly",
    "writeOnly", "contentEncoding", "contentMediaType", "contentSchema",
}  # fmt: skip
NATIVE = ROOT / "ffwd/native/crates/json-schema/src"


def test_corpus_covers_every_keyword_and_format():
    """Those that ffwd knows, by its own tables."""
    table = (NATIVE / "dialect.rs").read_text(encoding="utf-8")
    keywords = set(re.findall(r'^    \w+ "([^"]+)" Draft\d+ Draft\d+;$', table, re.MULTILINE))
    formats = documented_formats()
    assert len(keywords) >= 40
    assert len(formats) == 19
    covered = set()
    for schema in SCHEMAS.values():
        covered |= keywords_in(schema)
    assert (keywords | STRUCTURE | {f"format {name}" for name in formats}) - covered == set()


def test_corpus_has_what_is_refused_by_name():
    """A back-reference, the one form of a keyword that a schema without references can have."""
    refused = [
        case_id
        for case_id, schema in SCHEMAS.items()
        for line in ffwd.fidelity_report(ffwd.json_schema(json.dumps(schema)))
        if line.fidelity == "refused"
    ]
    assert refused == ["builtin_kw_pattern_back_reference"]


def test_corpus_has_every_dialect():
    dialects = [schema.get("$schema", "") for schema in SCHEMAS.values()]
    for name in ("draft-04", "draft-06", "draft-07", "2019-09", "2020-12"):
        assert any(name in dialect for dialect in dialects), name


def test_no_instance_comes_twice():
    for case in CASES:
        texts = [json.dumps(test.data) for test in case.tests]
        assert len(set(texts)) == len(texts), case.id
