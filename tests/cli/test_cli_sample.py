"""`ffwd sample` and `ffwd fuzz-schema`: lines, seeds, models, and what is wrong with a grammar."""

import json
import re

import jsonschema_rs
import pytest
from climodels import SCHEMA, as_json, ffwd


def lines(done):
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout.splitlines()


@pytest.mark.parametrize("command", ["sample", "fuzz-schema"])
def test_each_line_is_a_valid_document(schema, command):
    written = lines(ffwd(command, schema, "--count", 8))
    assert len(written) == 8
    for line in written:
        jsonschema_rs.validate(SCHEMA, json.loads(line))
    assert written == lines(ffwd(command, schema, "--count", 8))
    assert as_json(command, schema, "--count", 8)["documents"] == written
    assert lines(ffwd(command, schema, "--count", 3)) == written[:3]
    assert lines(ffwd(command, schema, "--count", 0)) == []


def test_a_seed_gives_other_documents(schema):
    assert lines(ffwd("sample", schema)) == lines(ffwd("sample", schema, "--seed", 0))
    assert lines(ffwd("sample", schema)) != lines(ffwd("sample", schema, "--seed", 1))
    assert as_json("sample", schema, "--seed", 3, "-n", 0) == {"seed": 3, "documents": []}


def test_edges_have_no_repetition(schema):
    written = lines(ffwd("fuzz-schema", schema, "--count", 1000))
    assert len(set(written)) == len(written) < 1000
    statuses = {json.loads(line)["status"] for line in written}
    assert statuses == set(SCHEMA["properties"]["status"]["enum"])


def test_texts_of_other_grammars_are_json_strings(tmp_path):
    path = tmp_path / "lines.regex"
    path.write_text('[a-z]\\n["é]\n', encoding="utf-8")
    written = lines(ffwd("sample", path, "--count", 20))
    assert len(written) == 20
    assert all(re.fullmatch('[a-z]\n["é]', json.loads(line)) for line in written)
    done = ffwd("fuzz-schema", path)
    assert done.exit_code == 2
    assert "must be a JSON Schema" in done.stderr


@pytest.mark.parametrize("option", ["--whitespace=flexible", "--any-order", "--any-escapes"])
def test_no_option_breaks_the_lines(schema, option):
    for command in ("sample", "fuzz-schema"):
        for line in lines(ffwd(command, schema, "--count", 10, option)):
            jsonschema_rs.validate(SCHEMA, json.loads(line))


@pytest.mark.parametrize("command", ["sample", "fuzz-schema"])
def test_what_is_wrong_has_a_place_and_a_status(schema, tmp_path, command):
    done = ffwd(command, schema, "--max-bytes", 20)
    assert done.exit_code == 3
    assert "no document has at most 20 bytes: give a --max-bytes of 28 or more" in done.stderr
    error = as_json(command, schema, "--max-bytes", 20, code=3)["error"]
    assert error["type"] == "BudgetError"
    path = tmp_path / "bad.json"
    path.write_text('{"items": {"type": "objct"}}')
    done = ffwd(command, path)
    assert done.exit_code == 1
    assert f"{path}:1:20: " in done.stderr
    error = as_json(command, path, code=1)["error"]
    assert (error["type"], error["pointer"]) == ("InvalidSchemaError", "/items/type")
    assert ffwd(command, tmp_path / "nowhere.json").exit_code == 2


def test_a_model_chooses_under_the_masks(schema, model):
    options = ["--model", model, "--count", 3, "--max-tokens", 60]
    written = lines(ffwd("sample", schema, *options))
    assert len(written) == 3
    for line in written:
        jsonschema_rs.validate(SCHEMA, json.loads(line))
    assert len(set(written)) > 1
    assert lines(ffwd("sample", schema, *options)) == written
    done = ffwd("sample", schema, "--model", model, "--max-tokens", 5)
    assert done.exit_code == 3
    assert "give a larger --max-tokens" in done.stderr
    assert ffwd("sample", schema, "--model", model / "nowhere").exit_code == 5
