"""`ffwd check`: verdicts, places, warnings and exit statuses."""

import json

import pytest
from climodels import SCHEMA, as_json, ffwd

from ffwd.sources import caret, locate

MISSPELT = """{
  "type": "object",
  "propertees": {"a": {}},
  "properties": {
    "a/b": {"type": "string", "maxLenght": 3},
    "c": [{"x": 1}]
  }
}"""


def write(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_good_schema_is_reported_with_its_size(schema):
    done = ffwd("check", schema)
    assert done.exit_code == 0
    assert done.stdout.startswith(f"{schema}: ok: JSON Schema, ")
    assert "keywords: " in done.stdout
    assert "\x1b" not in done.stdout
    data = as_json("check", schema)
    assert data["ok"]
    assert data["bytes"] == schema.stat().st_size
    assert data["problems"] == []
    assert data["counts"] == {"enforced": len(data["keywords"])}
    assert data["compiled"]["states"] >= 1
    assert 0 < data["compile_ms"] < 60_000
    assert "/properties/name/pattern" in {line["pointer"] for line in data["keywords"]}
    every = ffwd("check", schema, "--all").stdout
    assert "enforced /properties/name/pattern" in every


def test_misspelt_keywords_are_warned_of_and_strict_refuses_them(tmp_path):
    path = write(tmp_path, "a.json", MISSPELT.replace(',\n    "c": [{"x": 1}]', ""))
    data = as_json("check", path)
    assert data["ok"]
    assert [(p["severity"], p["pointer"], p["line"], p["column"]) for p in data["problems"]] == [
        ("warning", "/propertees", 3, 17),
        ("warning", "/properties/a~1b/maxLenght", 5, 44),
    ]
    text = ffwd("check", path).stdout
    assert f"{path}:5:44: warning: " in text
    assert "did you mean `maxLength`?" in text
    assert '    "a/b": {"type": "string", "maxLenght": 3}'[10:40] in text
    strict = ffwd("check", path, "--strict")
    assert strict.exit_code == 1
    assert ": bad: " in strict.stdout


def test_refused_keywords_have_pointers_and_places(tmp_path):
    text = json.dumps({"properties": {"a": {"pattern": "(a)\\1"}, "b": {"$ref": "http://x/y"}}})
    path = write(tmp_path, "a.json", text)
    data = as_json("check", path, code=1)
    assert not data["ok"]
    assert data["counts"]["refused"] == 2
    assert [(p["pointer"], p["severity"]) for p in data["problems"]] == [
        ("/properties/a/pattern", "error"),
        ("/properties/b/$ref", "error"),
    ]
    # Left out on demand, and said so.
    lenient = as_json("check", path, "--lenient")
    assert {p["severity"] for p in lenient["problems"]} == {"warning"}
    assert lenient["counts"]["widened"] == 2
    assert "compiled" in lenient


@pytest.mark.parametrize(
    ("name", "text", "place", "said"),
    [
        ("a.json", '{"type":\n "objct"}', "2:2", "is not a type"),
        ("a.json", '{"type": "object",\n "a": }', "2:7", "not JSON"),
        ("a.json", '{"const": 1, "not": {}}', None, "`not` excludes every value"),
        ("a.lark", 'start: a\na: "x', "2:4", "not closed"),
        ("a.gbnf", 'root ::= "a" | foo', "1:16", "not defined"),
        ("a.ebnf", 'root ::= "a" | foo', "1:16", "not defined"),
        ("a.regex", "a(b\n", "1:2", "unclosed group"),
    ],
)
def test_errors_have_line_column_and_a_caret(tmp_path, name, text, place, said):
    path = write(tmp_path, name, text)
    done = ffwd("check", path)
    assert done.exit_code == 1
    assert said in done.stdout
    if place is not None:
        assert f"{path}:{place}: error: " in done.stdout
        assert done.stdout.rstrip("\n").endswith("^")
        (problem,) = as_json("check", path, code=1)["problems"]
        assert f"{problem['line']}:{problem['column']}" == place


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("a.lark", [], 'start: "x"'),
        ("a.gbnf", [], 'root ::= "x"'),
        ("a.ebnf", ["--root", "top"], 'top ::= "x"'),
        # The line end that editors write is not meant.
        ("a.re", ["--dialect", "python"], "(?P<year>[0-9]{4})\n"),
        ("a.txt", ["--lark"], 'start: "x"'),
        ("a.json", ["--regex"], "abc"),
        ("bom.json", [], "\ufeff{}"),
    ],
)
def test_the_name_or_an_option_says_the_language(tmp_path, name, options, text):
    done = ffwd("check", write(tmp_path, name, text), *options)
    assert done.exit_code == 0, done.output


def test_standard_input_is_a_schema_unless_told_otherwise():
    assert as_json("check", "-", input=json.dumps(SCHEMA))["language"] == "json-schema"
    assert as_json("check", "-", "--regex", input="[0-9]+")["language"] == "regex"


def test_unused_rules_are_warned_of(tmp_path):
    path = write(tmp_path, "a.lark", 'start: "x"\nother: "y"\n')
    (problem,) = as_json("check", path)["problems"]
    assert (problem["line"], problem["column"]) == (2, 1)
    assert "`other`" in problem["message"]
    assert ffwd("check", path, "--strict").exit_code == 1


def test_a_tokenizer_can_be_given(schema, model, tmp_path):
    assert as_json("check", schema, "-t", model)["tokenizer"] == str(model)
    done = ffwd("check", schema, "-t", tmp_path / "nowhere")
    assert done.exit_code == 5
    assert "no such file" in done.stderr
    assert done.stdout == ""
    error = as_json("check", schema, "-t", tmp_path / "nowhere", code=5)["error"]
    assert error["type"] == "TokenizerNotFoundError"


def test_usage_errors(tmp_path):
    assert ffwd("check", tmp_path / "nowhere.json").exit_code == 2
    done = ffwd("check", write(tmp_path, "grammar.txt", "a"))
    assert done.exit_code == 2
    assert "--json-schema, --lark, --gbnf, --ebnf, --regex" in done.stderr
    path = tmp_path / "bad.json"
    path.write_bytes(b'{"a": "\xff"}')
    done = ffwd("check", path)
    assert done.exit_code == 2
    assert "is not UTF-8: byte 7 is 0xff" in done.stderr


def test_hostile_names_cannot_order_a_terminal(tmp_path):
    path = write(tmp_path, "a.json", json.dumps({"maxLenght\u001b[31m": 1, "\u001b]0;x": 2}))
    done = ffwd("check", path, "--all", color=True)
    assert done.exit_code == 0
    assert "\x1b]0" not in done.stdout
    assert "\x1b[31m" not in done.stdout.replace("\x1b[31m\x1b[1m", "")


# ----------------------------------------------------------------------------------------- places


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("", "{\n"),
        ("/type", '"object"'),
        ("/properties/a~1b", '{"type": "string"'),
        ("/properties/a~1b/maxLenght", "3}"),
        ("/properties/c/0/x", "1}"),
        ("/properties/c/1", None),
        ("/properties/c/x", None),
        ("/nothing", None),
        ("/type/deeper", None),
        ("http://x/y#/a", None),
    ],
)
def test_pointers_lead_to_places(pointer, found):
    place = locate(MISSPELT, pointer)
    if found is None:
        assert place is None
        return
    assert place is not None
    line, column = place
    rest = "\n".join(MISSPELT.split("\n")[line - 1 :])[column - 1 :]
    assert rest.startswith(found)


def test_odd_texts_have_places_too():
    assert locate('{"a": 1, "a": 2}', "/a") == (1, 15)
    assert locate('{"\\u0061~/": [ [], {} ]}', "/a~0~1/1") == (1, 20)
    assert locate("{", "/a") is None
    assert locate("[" * 100_000, "/1") is None
    assert locate("[]", "/0") is None
    assert locate("{}", "/0") is None
    assert caret("\tab", 1, 3) == "  \tab\n  \t ^"
    assert caret("x" * 500, 1, 300).split("\n")[1].index("^") == 40
