"""Random walks under masks, over real vocabularies: whole answers, which vLLM's parsers read."""

import random

import jsonschema
import pytest
from parsers import Vllm
from reading import find_calls, read_arguments
from toolrequests import SCHEMAS, TOOLS
from walking import VOCABULARIES, model

import ffwd

SEEDS = range(4)


@pytest.mark.parametrize("choice", ["required", "auto", "none"])
@pytest.mark.parametrize("style", VOCABULARIES)
def test_walks_are_read(style: str, choice: str, vllm: Vllm) -> None:
    """The same calls as are written, valid against their schemas; none where none may come."""
    written = model(VOCABULARIES[style])
    grammar = ffwd.compile(ffwd.openai.tools(TOOLS, choice, format=style), written.vocabulary)
    called = 0
    for seed in SEEDS:
        text = written.write(grammar, random.Random(f"{style} {choice} {seed}"))
        _, calls = vllm.parse(style, text, TOOLS)
        expected = [(name, read_arguments(style, name, arguments))
                    for name, arguments in find_calls(style, text)]  # fmt: skip
        assert calls == expected, text
        for called_name, arguments in calls:
            jsonschema.validate(arguments, SCHEMAS[called_name])
        assert calls or choice != "required"
        called += len(calls)
    assert called == 0 or choice != "none"
    assert called or choice != "required"
