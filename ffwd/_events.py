"""What `Matcher.events` and `Matcher.captures` return."""

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
    """Something that has become certain of a text in progress.

    Attributes:
        action: A span begins, more of it has come, or it has ended; or events before this one are
            about tokens that have been taken back.
        kind: What the span is: as in `ffwd.span`, or `"value"`, a JSON value. `None` where
            events are retracted.
        span: Which span of the text it is: they are numbered as they begin.
        name: The name of a capture; of a tool, also of what is in its call, where it is known
            beforehand.
        pointer: Of a JSON value: where it stands in the value around it, as a JSON pointer.
        start: Of a delta where its text begins, else where the span does; in bytes of the text.
        end: Of a delta where its text ends, of an end where the span does; else `start`.
        text: Of a delta, whole characters; else `None`. A call of a tool, and a JSON value that has
            parts, have no deltas of their own.
        num_retracted: Of a retraction: how many of the events before this one no longer hold, the
            last ones; else 0.
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
    """Events from what the native module knows of them."""
    return [Event(*one) for one in data]


def captures(data: Iterable[tuple[str, str]]) -> dict[str, str | list[str]]:
    """Captures by name; of several of one name a list."""
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
