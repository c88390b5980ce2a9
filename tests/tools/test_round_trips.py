"""Answers that a grammar allows are read by parsers that nobody here wrote, and mean the same.

vLLM's parsers read all of the formats, and mistral-common's what are ids of Mistral's models.
"""

import random
from typing import Any

import jsonschema
import pytest
from parsers import VLLM, Vllm
from reading import read_arguments
from samples import answer
from toolrequests import SCHEMAS, TOOLS

import ffwd

SEEDS = range(25)


def check(style: str, calls: list[tuple[str, Any]], written: list[tuple[str, str]]) -> None:
    """The calls that were read are those that were written, and follow their schemas."""
    expected = [(name, read_arguments(style, name, text)) for name, text in written]
    assert calls == expected
    for name, arguments in calls:
        jsonschema.validate(arguments, SCHEMAS[name])


def test_every_format_has_a_parser() -> None:
    assert set(VLLM) == set(ffwd.tools.FORMATS)


@pytest.mark.parametrize("choice", ["required", "auto"])
@pytest.mark.parametrize("style", VLLM)
def test_vllm_reads_what_was_meant(style: str, choice: str, vllm: Vllm) -> None:
    """The same names and arguments, of every call, and the text before them."""
    grammar = ffwd.openai.tools(TOOLS, choice, format=style)
    called = 0
    for seed in SEEDS:
        drawn = answer(grammar, random.Random(seed))
        content, calls = vllm.parse(style, drawn.text, TOOLS)
        check(style, calls, drawn.calls)
        called += len(calls)
        if style != "harmony" and (not calls or ffwd.tools.FORMATS[style].before):
            assert drawn.text.startswith(content)
    assert called > len(SEEDS) // 3


@pytest.mark.parametrize("style", VLLM)
def test_vllm_finds_no_call_where_none_may_come(style: str, vllm: Vllm) -> None:
    """With `tool_choice` none."""
    grammar = ffwd.openai.tools(TOOLS, "none", format=style)
    for seed in SEEDS:
        drawn = answer(grammar, random.Random(seed))
        assert vllm.parse(style, drawn.text, TOOLS)[1] == []
