"""Answers that a grammar allows, read by the parser that transformers serves models with.

It is driven by a template for each kind of model; those are transformers' own, for models that ship
none.
"""

import random
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from reading import read_arguments
from samples import answer
from toolrequests import SCHEMAS, TOOLS
from versions import needs_new_transformers

import ffwd

# The format, and the type of model whose template reads it.
FAMILIES = {"hermes": "qwen3", "qwen3-coder": "qwen3_5"}
SEEDS = range(40)

Parse = Callable[[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def parse() -> Parse:
    """The message of an answer, by format."""
    parsing = pytest.importorskip("transformers.utils.chat_parsing")
    serving = pytest.importorskip("transformers.cli.serving.utils")
    fallbacks = serving._RESPONSE_TEMPLATE_FALLBACKS
    templates = {
        style: next(template for kinds, template in fallbacks.items() if kind in kinds)
        for style, kind in FAMILIES.items()
    }

    def call(style: str, text: str) -> dict[str, Any]:
        tools = [dict(tool) for tool in TOOLS]
        message: dict[str, Any] = parsing.parse_response(
            text, templates[style], prefix="<|im_start|>assistant\n", tools=tools
        )
        return message

    return call


def meant(style: str, value: Any) -> Any:
    """Arguments without the spaces that transformers takes off strings between tags."""
    if style == "qwen3-coder":
        return {key: item.strip() if isinstance(item, str) else item for key, item in value.items()}
    return value


@pytest.mark.parametrize("choice", ["required", "auto"])
@pytest.mark.parametrize("style", FAMILIES)
def test_transformers_reads_what_was_meant(style: str, choice: str, parse: Parse) -> None:
    """The same names and arguments, of every call, and the text before them."""
    grammar = ffwd.openai.tools(TOOLS, choice, format=style)
    called = 0
    for seed in SEEDS:
        drawn = answer(grammar, random.Random(seed))
        message = parse(style, drawn.text + "<|im_end|>")
        calls = [call["function"] for call in message.get("tool_calls", [])]
        written = [(name, read_arguments(style, name, text)) for name, text in drawn.calls]
        assert [call["name"] for call in calls] == [name for name, _ in written]
        for call, (name, arguments) in zip(calls, written, strict=True):
            assert call["arguments"] == meant(style, arguments), drawn.text
            if call["arguments"] == arguments:
                jsonschema.validate(call["arguments"], SCHEMAS[name])
        if not calls:
            assert message.get("content", "").strip() == drawn.text.strip()
        called += len(calls)
    assert called > len(SEEDS) // 3


@pytest.mark.parametrize("style", FAMILIES)
def test_transformers_finds_no_call_where_none_may_come(style: str, parse: Parse) -> None:
    grammar = ffwd.openai.tools(TOOLS, "none", format=style)
    for seed in SEEDS:
        drawn = answer(grammar, random.Random(seed))
        assert "tool_calls" not in parse(style, drawn.text + "<|im_end|>")


@needs_new_transformers
def test_reasoning_before_a_call(parse: Parse) -> None:
    """What is reported as reasoning is no part of the text, and the call comes whole."""
    grammar = ffwd.reasoning(ffwd.openai.tools(TOOLS, "required", format="hermes"))
    for seed in SEEDS:
        drawn = answer(grammar, random.Random(seed))
        message = parse("hermes", drawn.text + "<|im_end|>")
        assert [call["function"]["name"] for call in message["tool_calls"]] == [
            name for name, _ in drawn.calls
        ]
        thought = drawn.text.partition("<think>")[2].partition("</think>")[0]
        assert message.get("reasoning_content", "").strip() == thought.strip()
