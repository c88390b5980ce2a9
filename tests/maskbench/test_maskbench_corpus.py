"""The built-in corpus: what the script writes, and what jsonschema-rs says."""

import pytest

from maskbench.data import parse_case, read_sources
from maskbench.documents import Whitespace, write_instance
from maskbench.make_corpus import CORPUS_FILE, disagreements, make_cases, write_lines
from maskbench.shapes import all_shapes
from maskbench.shapes.shape import DROP, edit


def test_committed_file_is_what_the_script_writes():
    assert CORPUS_FILE.read_text(encoding="utf-8") == write_lines(make_cases())


def test_corpus_is_large_enough_and_every_case_has_both_labels():
    cases = [parse_case(source) for source in read_sources(CORPUS_FILE)]
    assert len(cases) >= 60
    assert len({case.id for case in cases}) == len(cases)
    for case in cases:
        assert {test.valid for test in case.tests} == {True, False}, case.id
        for test in case.tests:
            write_instance(test.data, Whitespace.COMPACT)


def test_labels_agree_with_jsonschema_rs():
    pytest.importorskip("jsonschema_rs")
    cases = make_cases()
    assert list(disagreements(cases)) == []
    test = cases[0]["tests"][0]
    test["valid"] = not test["valid"]
    assert len(list(disagreements(cases))) == 1


def test_shapes_cover_the_keywords():
    keywords = set()

    def visit(value):
        if isinstance(value, dict):
            keywords.update(value)
            for child in value.values():
                visit(child)
        elif isinstance(value, list):
            for child in value:
                visit(child)

    for shape in all_shapes():
        visit(shape.schema)
    assert keywords >= {
        "type", "properties", "required", "additionalProperties", "patternProperties", "items",
        "prefixItems", "minItems", "maxItems", "enum", "const", "anyOf", "oneOf", "allOf", "not",
        "$ref", "$defs", "minLength", "maxLength", "pattern", "format", "minimum", "maximum",
        "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "if", "then", "else", "contains",
        "uniqueItems", "propertyNames", "minProperties", "maxProperties", "dependentRequired",
    }  # fmt: skip


def test_edits():
    data = {"a": [1, {"b": 2}], "0": 3}
    edit(data, "a/1/b", 4)
    edit(data, "a/+", 5)
    edit(data, "a/0", DROP)
    edit(data, "0", DROP)
    assert data == {"a": [{"b": 4}, 5]}
    assert edit(data, "", None) is None
    shared = [[]]
    for target in ({}, {}):
        edit(target, "x", shared)["x"][0].append(1)
    assert shared == [[]]
