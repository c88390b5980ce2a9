"""Calls that were read are put back into the conversation.

The chat template writes what the grammar allows; it is read as the same calls, and written in the
same way again.
"""

import random
from collections.abc import Sequence
from typing import Any

import llamacpp
import pytest
from accepting import accepts
from reading import find_calls, read_arguments
from samples import answer
from toolrequests import function

import ffwd
from ffwd.chat import ChatTemplate
from ffwd.tools.derive import Probe, rendered_call

SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
# The chat template of a model of each family, and how many calls it writes at once.
TEMPLATES = {
    "hermes": ("Qwen-Qwen3-0.6B", 2),
    "qwen3-coder": ("Qwen3-Coder", 2),
    "llama3-json": ("meta-llama-Llama-3.1-8B-Instruct", 1),
    "kimi-k2": ("moonshotai-Kimi-K2", 2),
    "glm-4.5": ("GLM-4.6", 2),
    "minimax-m2": ("MiniMax-M2", 2),
    "deepseek-v3.1": ("deepseek-ai-DeepSeek-V3.1", 2),
    "mistral-v3": ("mistralai-Mistral-Nemo-Instruct-2407", 2),
}
# Values that every style writes, of the kinds that templates know.
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "pattern": "^[a-zA-Z0-9é🙂 .,:+-]{1,9}$"},
        "days": {"type": "integer", "minimum": 0, "maximum": 14},
        "unit": {"type": "string", "enum": ["C", "F", "kelvin"]},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
TOOLS = [function("get_weather", PARAMETERS), function("plan_route", PARAMETERS)]
SCHEMAS = {"get_weather": PARAMETERS, "plan_route": PARAMETERS}
SEEDS = range(12)


@pytest.fixture(autouse=True)
def schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    """`reading` knows these tools."""
    monkeypatch.setattr("reading.SCHEMAS", SCHEMAS)


def read(style: str, text: str) -> list[Probe]:
    """The calls of an answer, as they are put into a message."""
    found = []
    for place, (name, written) in enumerate(find_calls(style, text)):
        arguments = read_arguments(style, name, written)
        # JSON writes 4 as 4.0, too.
        arguments["days"] = int(arguments["days"])
        found.append(Probe(name, arguments, f"callaaaa{place}"))
    return found


def plain(calls: Sequence[Probe]) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in calls]


@pytest.mark.parametrize("style", TEMPLATES)
def test_what_a_template_writes_of_calls_is_what_was_read(style: str) -> None:
    name, most = TEMPLATES[style]
    path = llamacpp.models_folder() / "templates" / f"{name}.jinja"
    template = ChatTemplate.from_file(path, special_tokens=SPECIAL)
    grammar = ffwd.openai.tools(TOOLS, "required", format=style, parallel_tool_calls=most > 1)
    for seed in SEEDS:
        calls = read(style, answer(grammar, random.Random(seed)).text)[:most]
        assert calls
        written = rendered_call(template, calls).strip()
        again = read(style, written)
        assert plain(again) == plain(calls), written
        assert accepts(grammar, written), written
        assert rendered_call(template, again).strip() == written
