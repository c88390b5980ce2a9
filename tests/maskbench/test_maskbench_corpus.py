"""The built-in corpus: what the script writes, and what jsonschema-rs says."""

import json
import re

import pytest

import ffwd
from maskbench.data import parse_case, read_sources
from maskbench.documents import Whitespace, write_instance
from maskbench.make_corpus import CORPUS_FILE, disagreements, make_cases, write_lines
from maskbench.shapes import all_shapes
from maskbench.shapes.shape import DROP, edit


def test_committed_file_is_what_the_script_writes():
    assert CORPUS_FILE.read_text(encoding="utf-8") == write_lines(make_cases())


def test_corpus_is_large_enough_and_every_case_has_both_labels():
    cases = [parse_case(source) for source in read_sources(CORPUS_FILE)]
    assert len(cases) >= 300
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
NATIVE = CORPUS_FILE.parents[2] / "ffwd" / "native" / "src" / "json_schema"


def test_corpus_covers_every_keyword_and_format():
    """Those that ffwd knows, by its own tables."""
    table = (NATIVE / "dialect.rs").read_text(encoding="utf-8")
    keywords = set(re.findall(r'^    \w+ "([^"]+)" Draft\d+ Draft\d+;$', table, re.MULTILINE))
    documented = (CORPUS_FILE.parents[2] / "docs" / "json_schema.md").read_text(encoding="utf-8")
    (formats,) = re.findall(r"as jsonschema-rs decides them:\n((?:`.*\n)+)", documented)
    formats = set(re.findall(r"`([a-z0-9-]+)`", formats))
    assert len(keywords) >= 40
    assert len(formats) == 19
    covered = set()
    for shape in all_shapes():
        covered |= keywords_in(shape.schema)
    assert (keywords | STRUCTURE | {f"format {name}" for name in formats}) - covered == set()


def test_corpus_has_what_is_refused_by_name():
    """A back-reference, the one form of a keyword that a schema without references can have."""
    refused = []
    for shape in all_shapes():
        report = ffwd.fidelity_report(ffwd.json_schema(json.dumps(shape.schema)))
        if any(line.fidelity == "refused" for line in report):
            refused.append(shape.id)
            assert "refused by name" in shape.features
    assert refused == ["kw_pattern_back_reference"]


def test_corpus_has_every_dialect():
    dialects = [
        shape.schema.get("$schema", "") for shape in all_shapes() if isinstance(shape.schema, dict)
    ]
    for name in ("draft-04", "draft-06", "draft-07", "2019-09", "2020-12"):
        assert any(name in dialect for dialect in dialects), name


def test_no_instance_comes_twice():
    for case in make_cases():
        texts = [json.dumps(test["data"]) for test in case["tests"]]
        assert len(set(texts)) == len(texts), case["id"]


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
