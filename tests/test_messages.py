"""The texts of errors that users meet: what is wrong, where, and what to do.

The snapshot beside this file has them; those of the dialect "rust" come from a crate whose version
`Cargo.lock` fixes. After a change of words, `pytest tests/test_messages.py
--snapshot-update` writes it again; the difference is to be read like any other.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from syrupy.assertion import SnapshotAssertion

import ffwd
import ffwd.tokenizer
from ffwd.adapters.server.errors import ApiError, of_ffwd
from ffwd.adapters.server.protocol import read_chat, read_completion, read_json
from ffwd.chat import ChatTemplate
from ffwd.cli.commands import group

END = 256
TOKENS = [*(bytes([byte]) for byte in range(256)), None]
VOCABULARY = ffwd.Vocabulary(TOKENS, eos_token_ids=[END])
DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"

# What errors carry beside their text, where it is more than a default.
ATTRIBUTES = ("pointer", "keyword", "limit", "line", "column", "token", "byte", "param", "code")


def said(act: Callable[[], object]) -> str:
    """The error that a call raises, with its attributes."""
    with pytest.raises((ffwd.FfwdError, TypeError, ValueError, IndexError, ApiError)) as raised:
        act()
    error = raised.value
    found = {name: getattr(error, name, None) for name in ATTRIBUTES}
    shown = ", ".join(f"{name}={value!r}" for name, value in found.items() if value is not None)
    return f"{type(error).__name__}: {error}\n[{shown}]"


def compiled(grammar: ffwd.Grammar, **options: Any) -> ffwd.CompiledGrammar:
    return ffwd.compile(grammar, VOCABULARY, **options)


def of_object(**keywords: Any) -> dict[str, Any]:
    return {"type": "object", **keywords}


def of_array(**keywords: Any) -> dict[str, Any]:
    return {"type": "array", **keywords}


def in_itself() -> dict[str, Any]:
    value: dict[str, Any] = {"type": "object"}
    value["properties"] = {"again": value}
    return value


UNSATISFIABLE: Mapping[str, object] = {
    "false": False,
    "minimum, maximum": {"type": "number", "minimum": 5, "maximum": 3},
    "exclusive bounds": {"type": "number", "exclusiveMinimum": 3, "maximum": 3},
    "no integer between": {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2},
    "bounds of draft 4": {
        "$schema": DRAFT_4,
        "type": "number",
        "minimum": 3,
        "maximum": 3,
        "exclusiveMinimum": True,
    },
    "multipleOf": {"type": "integer", "multipleOf": 5, "minimum": 1, "maximum": 4},
    "lengths": {"type": "string", "minLength": 5, "maxLength": 2},
    "pattern, minLength": {"type": "string", "pattern": "^a$", "minLength": 3},
    "pattern, format": {"type": "string", "pattern": "^[a-z]+$", "format": "date"},
    "types": {"allOf": [{"type": "string"}, {"type": "number"}]},
    "bounds in branches": {"allOf": [{"type": "integer", "minimum": 5}, {"maximum": 3}]},
    "const, type": {"const": 3, "type": "string"},
    "const, pattern": {"const": "abc", "pattern": "^x"},
    "const, const": {"allOf": [{"const": 1}, {"const": 2}]},
    "enum, type": {"enum": [1, 2], "type": "string"},
    "enum, pattern": {"enum": ["a", "b"], "pattern": "^x"},
    "enum, type and bound": {"enum": [1, "b"], "type": "integer", "minimum": 5},
    "enum, empty": {"enum": []},
    "long enum": {"enum": list(range(100)), "minimum": 100},
    "required, false": of_object(required=["foo", "bar"], properties={"foo": False}),
    "required, within": of_object(
        properties={
            "tags": of_object(
                properties={"x": of_array(minItems=2, maxItems=1)}, required=["x"], title="tags"
            )
        },
        required=["tags"],
    ),
    "required, undeclared": of_object(required=["foo"], additionalProperties=False),
    "required, unevaluated": of_object(required=["foo"], unevaluatedProperties=False),
    "required, other schema": of_object(
        required=["foo"], additionalProperties={"type": "null", "const": 1}
    ),
    "required, propertyNames": of_object(required=["foo"], propertyNames={"pattern": "^x"}),
    "required, patternProperties": of_object(required=["foo"], patternProperties={"^f": False}),
    "required, maxProperties": of_object(required=["a", "b"], maxProperties=1),
    "required, maxProperties, many": of_object(
        required=[f"p{number}" for number in range(1000)], maxProperties=999
    ),
    "required, undeclared, many": of_object(
        properties={f"p{number}": {"type": "string"} for number in range(5000)},
        required=["p0", "foo"],
        additionalProperties=False,
    ),
    "required, types, many": {
        "allOf": [
            of_object(
                properties={f"p{number}": {"type": "string"} for number in range(5000)},
                required=[f"p{number}" for number in range(5000)],
            ),
            {"properties": {"p7": {"type": "integer"}}},
        ]
    },
    "minProperties": of_object(minProperties=2, properties={"a": {}}, additionalProperties=False),
    "dependentRequired": of_object(
        required=["a"], dependentRequired={"a": ["b"]}, properties={"b": False}
    ),
    "dependentSchemas": of_object(required=["a"], dependentSchemas={"a": False}),
    "items, counts": of_array(minItems=2, maxItems=1),
    "items, false": of_array(minItems=1, items=False),
    "items, prefix": of_array(prefixItems=[{}, {"type": "null", "const": 1}], minItems=2),
    "items, behind the prefix": of_array(prefixItems=[{}], items=False, minItems=2),
    "items of draft 7": {
        "$schema": DRAFT_7,
        "type": "array",
        "items": [{}, {"not": {}}],
        "minItems": 2,
    },
    "uniqueItems": of_array(items={"type": "boolean"}, uniqueItems=True, minItems=3),
    "contains, false": of_array(contains=False),
    "contains, items": of_array(contains={"type": "string"}, items={"type": "number"}),
    "contains, counts": of_array(contains={}, minContains=3, maxContains=1),
    "contains, maxItems": of_array(contains={}, minContains=3, maxItems=2),
    "anyOf": {
        "anyOf": [
            {"type": "string", "minLength": 3, "maxLength": 1},
            False,
            {"const": 1, "type": "null"},
            {"enum": []},
        ]
    },
    "anyOf beside type": {"type": "object", "anyOf": [{"type": "string"}, {"type": "number"}]},
    "oneOf, no branch": {"oneOf": [{"enum": []}, False]},
    "oneOf, both branches": {"oneOf": [{"type": "string"}, {"type": "string"}]},
    "not": {"not": {}},
    "not, type": {"type": "string", "not": {"type": "string"}},
    "not, enum": {"enum": ["a", "b"], "not": {"maxLength": 1}},
    "if, then": {"const": 1, "if": {"const": 1}, "then": False},
    "recursion": of_object(properties={"next": {"$ref": "#"}}, required=["next"]),
    "recursion of items": of_array(minItems=1, items={"$ref": "#"}),
    "reference": {
        "$ref": "#/$defs/age",
        "maximum": 3,
        "$defs": {"age": {"type": "integer", "minimum": 5}},
    },
    "pointer with escapes": of_object(
        required=["a/b"], properties={"a/b": {"type": "string", "const": 1}}
    ),
}


@pytest.mark.parametrize("name", UNSATISFIABLE)
def test_unsatisfiable_schemas(name: str, snapshot: SnapshotAssertion) -> None:
    """The keywords that contradict each other, or the property without a value."""
    schema = UNSATISFIABLE[name]
    assert said(lambda: compiled(ffwd.json_schema(schema))) == snapshot


SCHEMAS: Mapping[str, object] = {
    "not JSON": '{"type": "object",}',
    "open string": '{"type": "obj',
    "repeated key": '{"type": "object", "type": "array"}',
    "no schema": [],
    "a subschema": {"properties": {"a": 3}},
    "unknown type": {"properties": {"a": {"type": "int"}}},
    "minLength": {"minLength": -1},
    "required": {"required": "a"},
    "enum": {"enum": 3},
    "pattern": {"properties": {"a": {"pattern": "(a"}}},
    "reference to nothing": {"$ref": "#/$defs/nope"},
    "reference to a document": {"$ref": "https://example.com/other.json"},
    "circle through not": {"not": {"$ref": "#"}},
    "circular value": in_itself(),
    "no JSON value": {"const": {1, 2}},
    "key that is no string": {"properties": {1: {}}},
    "not a number": {"minimum": float("nan")},
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas(name: str, snapshot: SnapshotAssertion) -> None:
    schema: Any = SCHEMAS[name]
    assert said(lambda: compiled(ffwd.json_schema(schema))) == snapshot


REGEXES = {
    "open group": "a(b",
    "nothing to repeat": "a|*b",
    "counts": "a{3,2}",
    "open class": "x[a-",
    "range": "[z-a]",
    "escape": "\\q",
    "backreference": "(a)\\1",
    "no such property": "\\p{Nope}",
    "second line": "a\n(b",
    "matches nothing": "[^\\s\\S]",
}


@pytest.mark.parametrize("dialect", ["rust", "ecma", "python"])
@pytest.mark.parametrize("name", ["open group", "counts", "backreference", "second line"])
def test_dialects(dialect: Any, name: str, snapshot: SnapshotAssertion) -> None:
    assert said(lambda: compiled(ffwd.regex(REGEXES[name], dialect=dialect))) == snapshot


@pytest.mark.parametrize("name", REGEXES)
def test_regexes(name: str, snapshot: SnapshotAssertion) -> None:
    assert said(lambda: compiled(ffwd.regex(REGEXES[name]))) == snapshot


LARK = {
    "no start": 'a: "x"',
    "unknown rule": "start: a b\na: /x/",
    "unknown terminal": "start: NAME",
    "repeated rule": 'start: "a"\nstart: "b"',
    "open string": 'start: "a',
    "open bracket": 'start: ("a"',
    "no text": "start: start",
    "unknown directive": '%grammar_option {}\nstart: "a"',
    "directive in a rule": 'start: %grammar_options {"no_forcing": true}',
    "unknown option": '%grammar_options {"nope": true}\nstart: "a"',
    "options are no object": '%grammar_options 3\nstart: "a"',
    "%override": '%override x: "a"\nstart: "b"',
    "%import": "%import common.NOPE\nstart: NOPE",
    "schema": 'start: "x" %json {"type": "array", "minItems": 2, "maxItems": 1}',
    "pattern": "start: A\nA: /(a/",
    "dead end": "start: A B\nA: /a+/\nB: /a/",
    "dead end in the middle": "start: B? B A B\nA: /[ab]+/\nB: /ab/",
    "dead end of two alike": "start: A B C\nA: /a+/\nB: /a+/\nC: /c/",
    "dead end of a pattern": "start: /[^!]+/ END\nEND: /end/",
}


@pytest.mark.parametrize("name", LARK)
def test_lark(name: str, snapshot: SnapshotAssertion) -> None:
    assert said(lambda: compiled(ffwd.lark(LARK[name]))) == snapshot


GBNF = {
    "no root": 'a ::= "x"',
    "unknown rule": "root ::= a",
    "repeated rule": 'root ::= "a"\nroot ::= "b"',
    "open string": 'root ::= "a',
    "open bracket": 'root ::= ("a"',
    "open class": "root ::= [a-",
    "counts": 'root ::= "a"{3,2}',
    "escape": 'root ::= "\\q"',
    "no text": 'root ::= "a" root',
}


@pytest.mark.parametrize("notation", [ffwd.gbnf, ffwd.ebnf], ids=["gbnf", "ebnf"])
@pytest.mark.parametrize("name", GBNF)
def test_gbnf(
    notation: Callable[[str], ffwd.Grammar], name: str, snapshot: SnapshotAssertion
) -> None:
    assert said(lambda: compiled(notation(GBNF[name]))) == snapshot


EBNF = {
    "unknown macro": "root ::= Nope()",
    "dispatch without a rule": 'root ::= TagDispatch(("a", b))',
    "no such regex": 'root ::= Regex("(a")',
}


@pytest.mark.parametrize("name", EBNF)
def test_ebnf(name: str, snapshot: SnapshotAssertion) -> None:
    assert said(lambda: compiled(ffwd.ebnf(EBNF[name]))) == snapshot


def tag(format: object) -> dict[str, Any]:
    return {"type": "structural_tag", "format": format}


TAGS: Mapping[str, Any] = {
    "no tag": {"type": "nope"},
    "no format": {"type": "structural_tag"},
    "unknown format": tag({"type": "nope"}),
    "unknown field": tag({"type": "const_string", "value": "a", "extra": 1}),
    "missing field": tag({"type": "const_string"}),
    "wrong type": tag({"type": "sequence", "elements": 3}),
    "schema": tag({"type": "json_schema", "json_schema": {"type": "nope"}}),
    "unsatisfiable": tag({"type": "json_schema", "json_schema": {"enum": []}}),
    "circular": tag({"type": "json_schema", "json_schema": in_itself()}),
}


@pytest.mark.parametrize("name", TAGS)
def test_structural_tags(name: str, snapshot: SnapshotAssertion) -> None:
    assert said(lambda: compiled(ffwd.structural_tag(TAGS[name]))) == snapshot


def rendered(source: str, messages: Any, **options: Any) -> str:
    return ChatTemplate(source).render_text(messages, **options)


USER = {"role": "user", "content": "Hello"}
CHATS: Mapping[str, Callable[[], object]] = {
    "a text": lambda: rendered("", "Hello"),
    "no message": lambda: rendered("", [USER, 3]),
    "circular": lambda: rendered("", [USER], tools=[in_itself()]),
    "refused": lambda: rendered("{{ raise_exception('Roles must alternate!') }}", [USER]),
    "no such template": lambda: ChatTemplate({"default": "", "rag": ""}, name="other"),
    "two choices": lambda: rendered(
        "", [USER], add_generation_prompt=True, continue_final_message=True
    ),
    "document": lambda: rendered("", [USER], documents=[3]),
}


@pytest.mark.parametrize("name", CHATS)
def test_chats(name: str, snapshot: SnapshotAssertion) -> None:
    assert said(CHATS[name]) == snapshot


# By name, the file and its text; none for a folder or for nothing.
TOKENIZERS: Mapping[str, tuple[str, str | None]] = {
    "no model": ("tokenizer.json", "{}"),
    "other JSON": ("tokenizer.json", '{"model": {"type": "Nope"}}'),
    "cut off": ("model.gguf", "GGUF"),
    "no pattern": ("ranks.tiktoken", "YQ== 0\n"),
    "unknown format": ("none.txt", "nothing"),
    "empty folder": ("folder", None),
    "no file": ("gone", None),
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_tokenizers(name: str, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    file, text = TOKENIZERS[name]
    path = tmp_path / file
    if text is not None:
        path.write_text(text, encoding="utf-8")
    elif file == "folder":
        path.mkdir()
    message = said(lambda: ffwd.tokenizer.load(path))
    assert message.replace(str(tmp_path), "FOLDER") == snapshot


ASKED = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
REQUESTS: Mapping[str, Callable[[], object]] = {
    "not an object": lambda: read_json(b"[]"),
    "not a number": lambda: read_json(b'{"temperature": NaN}'),
    "unknown field": lambda: read_chat({**ASKED, "temprature": 1}),
    "missing field": lambda: read_chat({"model": "m"}),
    "modalities": lambda: read_chat({**ASKED, "modalities": ["audio"]}),
    "logprobs": lambda: read_chat({**ASKED, "top_logprobs": 2}),
    "two ways": lambda: read_chat(
        {**ASKED, "guided_regex": "a", "structured_outputs": {"regex": "b"}}
    ),
    "several prompts": lambda: read_completion({"model": "m", "prompt": ["a", 3]}),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_requests(name: str, snapshot: SnapshotAssertion) -> None:
    assert said(REQUESTS[name]) == snapshot


@pytest.mark.parametrize("name", ["required, within", "anyOf"])
def test_answers_of_the_server(name: str, snapshot: SnapshotAssertion) -> None:
    schema: Any = UNSATISFIABLE[name]
    with pytest.raises(ffwd.FfwdError) as raised:
        compiled(ffwd.json_schema(schema))
    assert of_ffwd(raised.value, "response_format").body() == snapshot


FILES = {
    "bad.json": '{"type": "array",\n "minItems": 2,\n "maxItems": 1}',
    "typo.json": '{"type": "strin"}',
    "open.lark": 'start: ("a"',
    "bad.gbnf": "root ::= a",
}


@pytest.mark.parametrize("name", FILES)
def test_commands(
    name: str, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(FILES[name], encoding="utf-8")
    done = CliRunner().invoke(group, ["check", "--strict", name])
    assert (done.exit_code, done.output) == snapshot


DEEP: dict[str, Any] = {}
for _ in range(600):
    DEEP = {"items": DEEP}


def limited(grammar: ffwd.Grammar, **limits: int) -> ffwd.CompiledGrammar:
    """With a vocabulary of its own, for which nothing has been compiled."""
    vocabulary = ffwd.Vocabulary(TOKENS, eos_token_ids=[END])
    return ffwd.compile(grammar, vocabulary, limits=ffwd.Limits(**limits))


def of_required(schema: object) -> ffwd.Grammar:
    """An object with one property."""
    return ffwd.json_schema(of_object(properties={"a": schema}, required=["a"]))


LIMITS: Mapping[str, Callable[[], object]] = {
    "source_bytes": lambda: limited(ffwd.json_schema({"const": "a" * 99}), source_bytes=50),
    "nesting of a schema": lambda: limited(
        ffwd.json_schema('{"items": ' * 4 + "{}" + "}" * 4), nesting=3
    ),
    "nesting of a Python value": lambda: ffwd.json_schema(DEEP),
    "nesting of a grammar": lambda: limited(ffwd.gbnf('root ::= (((("a"))))'), nesting=3),
    "expression_nodes of a schema": lambda: (
        limited(of_required({"pattern": "^(a|b)*a(a|bc){9,40}d$"}), expression_nodes=60)
        .matcher()
        .accept_tokens(list(b'{"a":"a'))
    ),
    "expression_nodes of a rule": lambda: limited(
        ffwd.lark("start: name\nname: A\nA: /a{50}b{50}/"), expression_nodes=9
    ),
    "compile_steps": lambda: limited(
        ffwd.json_schema({"items": {"pattern": "^a{3}[b-d]*$"}}), compile_steps=10
    ),
    "alternatives": lambda: limited(
        of_required(
            {"allOf": [{"anyOf": [{"pattern": f"{n}{m}"} for m in range(17)]} for n in "abc"]}
        )
    ),
    "number_exponent": lambda: limited(ffwd.json_schema('{"items": {"minimum": 1e99999}}')),
    "pattern_nesting": lambda: limited(ffwd.regex("(" * 300 + "a" + ")" * 300)),
    "repetition_count": lambda: limited(ffwd.gbnf('root ::= "a"{99999999999}')),
    "call_steps": lambda: (
        limited(ffwd.json_schema(True), call_steps=0)
        .matcher()
        .fill_bitmask(ffwd.allocate_bitmask(1, 257))
    ),
    "cancellation": lambda: _cancelled(),
}


def _cancelled() -> None:
    flag = ffwd.Cancellation()
    flag.cancel()
    compiled(ffwd.json_schema(True), cancellation=flag)


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name: str, snapshot: SnapshotAssertion) -> None:
    """Named by an identifier, with the place where it was met."""
    message = said(LIMITS[name])
    assert message == snapshot


CALLS: Mapping[str, Callable[[], object]] = {
    "empty vocabulary": lambda: ffwd.Vocabulary([], eos_token_ids=[]),
    "no such end": lambda: ffwd.Vocabulary([b"a"], eos_token_ids=[3]),
    "token out of range": lambda: compiled(ffwd.json_schema(True)).matcher().accept_token(9_999),
    "max_tokens": lambda: compiled(ffwd.regex("abcdef")).matcher(max_tokens=3),
    "rollback": lambda: compiled(ffwd.json_schema(True)).matcher().rollback(2),
    "bitmask of floats": lambda: (
        compiled(ffwd.json_schema(True)).matcher().fill_bitmask(np.zeros((1, 9), np.float32))
    ),
    "row": lambda: (
        compiled(ffwd.json_schema(True)).matcher().fill_bitmask(ffwd.allocate_bitmask(1, 257), 3)
    ),
    "saved bytes": lambda: ffwd.CompiledGrammar.from_bytes(b"nothing", VOCABULARY),
    "limits": lambda: ffwd.Limits(states=-1),
    "empty choice": lambda: compiled(ffwd.choice([])),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str, snapshot: SnapshotAssertion) -> None:
    assert said(CALLS[name]) == snapshot
