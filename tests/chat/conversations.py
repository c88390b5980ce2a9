"""Conversations that templates are rendered with, by name."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """One conversation and how it is rendered."""

    name: str
    messages: list[dict[str, Any]]
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


SYSTEM = {"role": "system", "content": "You are terse.\nAnswer in one line."}
HELLO = {"role": "user", "content": 'Hello, Zoë! \U0001f600 <b>&amp;</b> "quoted" it\'s'}
HI = {"role": "assistant", "content": "Hi! How can I help?"}
WEATHER = {"role": "user", "content": "  What is the weather in Zürich?\n\nAnd in Rome? "}

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather at a place, é & <b>.",
            "parameters": {
                "type": "object",
                "properties": {
                    "place": {"type": "string", "description": "Where it is"},
                    "days": {"type": "integer", "description": "How many", "default": 1},
                    "unit": {"type": "string", "enum": ["C", "F"], "description": "Which"},
                    "tags": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "Anything",
                    },
                },
                "required": ["place"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "stop",
            "description": "Stop",
            "parameters": {"type": "object", "properties": {}, "required": []},
        },
    },
]


def call(arguments: Any, *, name: str = "get_weather", number: int = 1) -> dict[str, Any]:
    """One tool call, as OpenAI writes it."""
    return {
        "id": f"call{number:05d}",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def calling(*calls: dict[str, Any], content: str | None = "") -> dict[str, Any]:
    """An assistant's message with tool calls."""
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def result(content: Any, *, number: int = 1) -> dict[str, Any]:
    """A tool's message."""
    return {
        "role": "tool",
        "name": "get_weather",
        "tool_call_id": f"call{number:05d}",
        "content": content,
    }


ARGUMENTS = {"place": 'Zürich "x" <y>', "days": 2, "tags": ["a", "b"]}
ARGUMENTS_TEXT = '{"place": "Zürich", "days": 2}'
DOCUMENTS = [
    {"title": "Weather, é", "text": "It rains in <Zürich>."},
    {"title": "Rome", "text": "Sun.\nHeat.", "source": 3},
]
REASONING = {"role": "assistant", "content": "Rain.", "reasoning_content": "It is\nautumn."}
THOUGHT = {"role": "assistant", "content": "<think>\nHm, well.\n</think>\n\nRain. "}
BLOCKS = {
    "role": "user",
    "content": [{"type": "text", "text": "Look: "}, {"type": "text", "text": "this"}],
}
IMAGE = {
    "role": "user",
    "content": [{"type": "image", "image": "x.png"}, {"type": "text", "text": "What is this?"}],
}

CONVERSATIONS: dict[str, list[dict[str, Any]]] = {
    "user": [HELLO],
    "system": [SYSTEM, HELLO],
    "turns": [HELLO, HI, WEATHER],
    "system-turns": [SYSTEM, HELLO, HI, WEATHER, {"role": "assistant", "content": " Rain. \n"}],
    "two-users": [HELLO, WEATHER],
    "assistant-first": [HI, HELLO],
    "late-system": [HELLO, HI, SYSTEM, WEATHER],
    "developer": [{"role": "developer", "content": "Be kind."}, HELLO],
    "strange-role": [HELLO, {"role": "narrator", "content": "It rained."}],
    "no-role": [{"content": "Hello"}],
    "no-content": [{"role": "user"}],
    "content-none": [HELLO, {"role": "assistant", "content": None}, HELLO],
    "empty-texts": [{"role": "system", "content": ""}, {"role": "user", "content": ""}],
    "reasoning": [HELLO, REASONING, WEATHER],
    "reasoning-last": [HELLO, REASONING],
    "thought": [HELLO, THOUGHT, WEATHER],
    "blocks": [SYSTEM, BLOCKS],
    "image": [IMAGE],
    "call": [WEATHER, calling(call(ARGUMENTS))],
    "call-text-arguments": [WEATHER, calling(call(ARGUMENTS_TEXT))],
    "call-no-content": [WEATHER, calling(call(ARGUMENTS), content=None)],
    "result": [SYSTEM, WEATHER, calling(call(ARGUMENTS)), result("Rain, 7°"), HI],
    "result-open": [WEATHER, calling(call(ARGUMENTS)), result('{"temp": 7}')],
    "result-object": [WEATHER, calling(call(ARGUMENTS)), result({"temp": 7, "sky": "grau"})],
    "result-text-arguments": [WEATHER, calling(call(ARGUMENTS_TEXT)), result("Rain")],
    "two-calls": [
        WEATHER,
        calling(call(ARGUMENTS), call({"place": "Rome"}, number=2), content="Looking."),
        result("Rain"),
        result("Sun", number=2),
        HI,
        HELLO,
    ],
    "result-without-call": [HELLO, result("7")],
}

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "prompt": {"add_generation_prompt": True},
    "tools": {"tools": TOOLS},
    "tools-prompt": {"tools": TOOLS, "add_generation_prompt": True},
    "no-tools": {"tools": []},
    "documents": {"documents": DOCUMENTS, "add_generation_prompt": True},
    "thinking": {"enable_thinking": True, "thinking": True, "add_generation_prompt": True},
    "no-thinking": {"enable_thinking": False, "thinking": False, "add_generation_prompt": True},
    "effort": {"reasoning_effort": "low", "add_generation_prompt": True},
    "keep": {"preserve_thinking": True, "keep_reasoning": True, "clear_thinking": False},
    "date": {"date_string": "01 Jan 2001", "custom_tools": TOOLS},
    "functions": {"functions": "[]", "datetime": "2026-03-07", "add_generation_prompt": True},
    "bos": {"bos_token": "<other>", "add_generation_prompt": True},
}

CONTINUED: dict[str, tuple[list[dict[str, Any]], bool | str]] = {
    "continue": ([HELLO, {"role": "assistant", "content": 'Sure: {"name": '}], True),
    "continue-trimmed": ([HELLO, {"role": "assistant", "content": "  Sure, \n"}], True),
    "continue-system": ([SYSTEM, HELLO, HI, WEATHER, {"role": "assistant", "content": "R"}], True),
    "continue-blocks": (
        [HELLO, {"role": "assistant", "content": [{"type": "text", "text": "Sure "}]}],
        True,
    ),
    "continue-user": ([HELLO], True),
    "continue-thought": ([HELLO, {"role": "assistant", "content": "<think>\nHm, "}], True),
    "continue-reasoning": (
        [HELLO, {"role": "assistant", "content": "", "reasoning_content": "Well, "}],
        "reasoning_content",
    ),
    "continue-thinking": (
        [HELLO, {"role": "assistant", "content": "", "thinking": "Well, "}],
        "thinking",
    ),
    "continue-nothing": ([HELLO, {"role": "assistant", "content": ""}], True),
    "continue-call": ([HELLO, calling(call(ARGUMENTS), content="So ")], True),
    "continue-missing": ([HELLO, {"role": "assistant"}], True),
}

# These with every option, the others with the first few.
CORE = {"system-turns", "turns", "reasoning", "thought", "two-calls", "result", "call", "image"}
FIRST = ("plain", "prompt", "tools-prompt", "thinking")

CASES = [
    Case(f"{name}/{option}", messages, options)
    for name, messages in CONVERSATIONS.items()
    for option, options in OPTIONS.items()
    if name in CORE or option in FIRST or option == "functions"
] + [
    Case(name, messages, {"continue_final_message": field, **extra})
    for name, (messages, field) in CONTINUED.items()
    for extra in ({}, {"tools": TOOLS})
]
