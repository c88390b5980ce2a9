"""The results of `Matcher.events` and `Matcher.captures`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Action = Literal["begin", "delta", "end", "retracted"]
Kind = Literal[
    "capture",
    "reasoning",
    "content",
    "tool_call",
    "tool_name",
    "tool_arguments",
    "json",
    "value",
]


@dataclass(frozen=True, slots=True)
class Event:
    """An event that became certain for the output so far.

    Attributes:
        action: A span begins, grows or ends; or earlier events are retracted, because their tokens
            were rolled back.
        kind: The kind of span: that of `ffwd.span`, or `"value"`, a JSON value. `None` for a
            retraction.
        span: The number of the span; spans are numbered in the order in which they begin.
        name: The name of a capture or a tool; parts of a tool call have the tool's name if it is
            known in advance.
        pointer: The JSON pointer of a JSON value within its outermost value.
        start: The first byte of a delta's text, or else of the span; an offset in the output.
        end: The end of a delta's text, or of a finished span; otherwise `start`.
        text: The whole characters of a delta, otherwise `None`. Tool calls, and JSON values with
            parts, have no deltas of their own.
        num_retracted: The number of latest events that a retraction withdraws; otherwise 0.
    """

    action: Action
    kind: Kind | None
    span: int
    name: str
    pointer: str | None
    start: int
    end: int
    text: str | None
    num_retracted: int = 0


_Data = tuple[Action, "Kind | None", int, str, "str | None", int, int, "str | None", int]


def events(data: Iterable[_Data]) -> list[Event]:
    """Return the events of the native module's data."""
    return [Event(*one) for one in data]


def captures(data: Iterable[tuple[str, str]]) -> dict[str, str | list[str]]:
    """Return the captures by name; a list if several have one name."""
    found: dict[str, str | list[str]] = {}
    for name, text in data:
        known = found.get(name)
        if known is None:
            found[name] = text
        elif isinstance(known, list):
            known.append(text)
        else:
            found[name] = [known, text]
    return found
