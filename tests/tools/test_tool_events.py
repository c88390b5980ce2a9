"""Calls of tools as events: OpenAI's streaming deltas without a parser."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from samples import answer, compiled
from toolrequests import TOOLS

import ffwd

STYLES = sorted(ffwd.tools.FORMATS)
SEEDS = range(12)


class Deltas:
    """The `tool_calls` of the chunks of a streamed chat completion."""

    def __init__(self) -> None:
        self.index = -1

    def of(self, events: list[ffwd.Event]) -> Iterator[dict[str, Any]]:
        for event in events:
            if event.kind == "tool_call" and event.action == "begin":
                self.index += 1
                yield {"index": self.index, "function": {"name": event.name, "arguments": ""}}
            elif event.kind == "tool_arguments" and event.action == "delta":
                yield {"index": self.index, "function": {"arguments": event.text}}


def joined(chunks: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The calls that a client puts together."""
    calls: list[tuple[str, str]] = []
    for chunk in chunks:
        function = chunk["function"]
        if chunk["index"] == len(calls):
            calls.append((function["name"], function["arguments"]))
        else:
            assert "name" not in function
            name, arguments = calls[chunk["index"]]
            calls[chunk["index"]] = (name, arguments + function["arguments"])
    return calls


@pytest.mark.parametrize("style", STYLES)
def test_events_are_streaming_deltas(style: str) -> None:
    """Names and arguments of each of several calls, however the text is cut."""
    grammar = ffwd.openai.tools(TOOLS, "auto", format=style)
    several = 0
    for seed in SEEDS:
        drawn = answer(grammar, random.Random(seed))
        rng = random.Random(seed)
        matcher = compiled(grammar).matcher()
        stream, chunks = Deltas(), list[dict[str, Any]]()
        data = drawn.text.encode()
        content = ""
        while data:
            size = rng.randint(1, 12)
            assert matcher.accept_tokens(list(data[:size]))
            data = data[size:]
            events = matcher.events(finish=not data)
            chunks += stream.of(events)
            content += "".join(e.text or "" for e in events if e.kind == "content")
        assert joined(chunks) == drawn.calls, drawn.text
        several += len(drawn.calls) > 1
        assert drawn.text.startswith(content) or style == "harmony"
    assert several or not ffwd.tools.FORMATS[style].parallel


@pytest.mark.parametrize("style", STYLES)
def test_arguments_are_reported_before_the_call_is_over(style: str) -> None:
    """Nearly as soon as they come."""
    choice = {"type": "function", "function": {"name": TOOLS[0]["function"]["name"]}}
    grammar = ffwd.openai.tools(TOOLS, choice, format=style)
    drawn = answer(grammar, random.Random(5))
    ((name, arguments),) = drawn.calls
    start = drawn.text.index(arguments)
    matcher = compiled(grammar).matcher()
    reported, late = "", 0
    for at, byte in enumerate(drawn.text.encode()):
        matcher.accept_token(byte)
        for event in matcher.events():
            if event.kind == "tool_arguments" and event.action == "delta":
                reported += event.text or ""
        come = drawn.text.encode()[: at + 1].decode(errors="ignore")[start : start + len(arguments)]
        late = max(late, len(come) - len(reported))
    matcher.events(finish=True)
    assert late <= 40, (name, late)
