"""The options of `json_schema` are declared once, and what takes them takes all of them."""

import dataclasses
import inspect
import json
from collections.abc import Callable
from typing import Any, get_type_hints

import click
import pytest
from click.testing import CliRunner

import ffwd
from ffwd.adapters.server.asking import Asked, Reader
from ffwd.adapters.server.protocol import StructuredOutputs
from ffwd.adapters.shared.requests import GrammarRequest, grammar_of
from ffwd.adapters.transformers.chat_options import ChatOptions
from ffwd.cli.grammars import takes_writing
from ffwd.grammar import Writing, WritingOptions
from ffwd.tokenizer import mock

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
# One value of each option that is not its default, and a text that only this value allows.
OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "whitespace": ({"whitespace": "flexible"}, '{ "a":1,"b" :2}'),
    "max_whitespace": ({"whitespace": "flexible", "max_whitespace": 99}, '{"a":%s1,"b":2}'),
    "separators": ({"separators": (" , ", ":")}, '{"a":1 , "b":2}'),
    "indent": ({"indent": 12}, json.dumps({"a": 1, "b": 2}, indent=12)),
    "property_order": ({"property_order": "any"}, '{"b":2,"a":1}'),
    "numbers": ({"numbers": "any"}, '{"a":1.0,"b":2}'),
    "escapes": ({"escapes": "any"}, r'{"\u0061":1,"b":2}'),
    "policy": ({"policy": "lenient"}, ""),
}


def allows(grammar: ffwd.Grammar, text: str) -> bool:
    """Whether a text is whole by a grammar."""
    tokenizer = mock()
    vocabulary = tokenizer.vocabulary()
    matcher = ffwd.compile(grammar, vocabulary).matcher()
    tokens = [*tokenizer.encode(text), vocabulary.eos_token_ids[0]]
    return matcher.accept_tokens(tokens) and matcher.is_terminated()


def test_the_record_and_the_types_of_the_options_agree() -> None:
    declared = {each.name: each.type for each in dataclasses.fields(Writing)}
    assert declared == get_type_hints(WritingOptions)
    assert declared.keys() == OTHERS.keys()


def test_the_docstring_has_each_option() -> None:
    described = inspect.getdoc(ffwd.json_schema) or ""
    assert all(f"\n    {name}: " in described for name in OTHERS)


@pytest.mark.parametrize(
    "function",
    [
        ffwd.json_schema,
        ffwd.schema_of,
        ffwd.structural_tag,
        ffwd.openai.response_format,
        ffwd.openai.tools,
    ],
)
def test_signatures_show_each_option(function: Callable[..., Any]) -> None:
    """With the defaults that count."""
    shown = inspect.signature(function).parameters
    for each in dataclasses.fields(Writing):
        flexible = function is ffwd.structural_tag and each.name == "whitespace"
        assert shown[each.name].default == ("flexible" if flexible else each.default)
        assert shown[each.name].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize(
    "call",
    [
        lambda **given: ffwd.json_schema({}, **given),
        lambda **given: ffwd.schema_of(int, **given),
        lambda **given: ffwd.structural_tag({}, **given),
        lambda **given: ffwd.openai.response_format({"type": "text"}, **given),
        lambda **given: ffwd.openai.tools([], format="hermes", **given),
    ],
)
def test_options_are_checked_also_where_nothing_uses_them(call: Callable[..., Any]) -> None:
    """Misspelt ones, and values that there are not."""
    with pytest.raises(TypeError, match="whitespaces"):
        call(whitespaces="compact")
    with pytest.raises(ValueError, match="numbers must be one of plain, any, not 'most'"):
        call(numbers="most")


@pytest.mark.parametrize("name", OTHERS)
def test_each_option_arrives(name: str) -> None:
    """From everything that takes the options; without it, the text is refused."""
    options, text = OTHERS[name]
    text = text.replace("%s", " " * 80)
    schema: dict[str, Any] = SCHEMA
    if name == "policy":
        # Which needs a keyword that is not supported.
        text, schema = '{"a":1,"b":2}', SCHEMA | {"$ref": "http://example.com/none"}
    others = {key: value for key, value in options.items() if key != name}
    format = {"type": "json_schema", "json_schema": {"schema": schema}}
    tag = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": schema}}
    base = {"whitespace": "consistent"}
    made: list[Callable[..., ffwd.Grammar]] = [
        lambda **given: ffwd.json_schema(schema, **given),
        lambda **given: ffwd.openai.response_format(format, **given),
        lambda **given: ffwd.structural_tag(tag, **base | given),
        lambda **given: ffwd.openai.response_format(tag, **base | given),
        lambda **given: grammar_of(GrammarRequest("json", json.dumps(schema), **given)),
        lambda **given: ffwd.json_schema(schema, **Writing(**given).given()),
        lambda **given: ffwd.json_schema(schema, **ChatOptions.of(given, None).writing),
    ]
    for make in made:
        if name == "policy":
            with pytest.raises(ffwd.FfwdError):
                ffwd.compile(make(**others), mock().vocabulary())
        else:
            assert not allows(make(**others), text)
        assert allows(make(**options), text)


def test_arguments_of_tools_have_the_options() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
    call = '<tool_call>\n{"name": "f", "arguments": {"a":1.0,"b":2}}\n</tool_call>'
    for given in ({}, {"whitespace": None}, {"numbers": "any"}):
        grammar = ffwd.openai.tools([tool], "required", format="hermes", **given)
        assert allows(grammar, call) is ("numbers" in given)


def test_a_server_writes_as_it_was_told() -> None:
    """Where a request asks for compact JSON, it has that."""
    reader = Reader(None, "", Writing(numbers="any", indent=1))
    format = {"type": "json_schema", "json_schema": {"schema": SCHEMA}}
    grammar = reader(Asked(response_format=format).key(may_reason=False))
    assert allows(grammar, '{\n "a": 1.0,\n "b": 2\n}')
    asked = StructuredOutputs(json=SCHEMA, disable_any_whitespace=True)
    grammar = reader(Asked(structured=asked).key(may_reason=False))
    assert allows(grammar, '{"a":1.0,"b":2}')


def test_a_command_gets_the_record() -> None:
    """As `ffwd serve` and all commands that take a grammar do."""

    @click.command()
    @takes_writing
    def show(writing: Writing) -> None:
        click.echo(repr(writing.given()))

    given = ["--whitespace", "compact", "--any-order", "--any-numbers", "--lenient"]
    written = {"whitespace": "compact", "property_order": "any", "numbers": "any"}
    assert CliRunner().invoke(show, []).output == "{}\n"
    assert CliRunner().invoke(show, given).output == f"{written | {'policy': 'lenient'}}\n"
