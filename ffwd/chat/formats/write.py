"""Writes a conversation in a format: first segments with their origin, then control tokens."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ffwd.chat.formats.conversation import SpokenMessage
from ffwd.chat.prompt import ControlPart, Part, TextPart

if TYPE_CHECKING:
    from ffwd.chat.formats import ChatFormat


@dataclass(frozen=True)
class Segment:
    """Text, and the index of its message; None for the format's own."""

    text: str
    message: int | None = None
    own: bool = False
    """Whether it is a message's text or name, also a text that the format itself brings."""


def write(
    fields: "ChatFormat",
    messages: Sequence[SpokenMessage],
    *,
    generation_prompt: bool,
    continue_final_message: bool,
) -> list[Segment]:
    """Return the segments of a prompt, in order; none is empty."""
    system = messages[0] if messages[0].role == "system" else None
    folded = system is not None and fields.system_placement != "own"
    users = [index for index, message in enumerate(messages) if message.role == "user"]
    at = (users[0] if fields.system_placement == "first" else users[-1]) if folded else -1

    def segments() -> Iterator[Segment]:
        if not fields.bos_every_turn:
            yield Segment(fields.bos)
        for index, message in enumerate(messages):
            if folded and message is system:
                continue
            if fields.bos_every_turn and message.role == "user":
                yield Segment(fields.bos)
            if index == at and system is not None:
                yield from _prefix(fields, fields.user_prefix, message)
                yield from _message(fields, system)
                yield Segment(message.text, message.index, own=True)
                yield Segment(fields.user_suffix)
            elif continue_final_message and message is messages[-1]:
                yield from _prefix(fields, fields.assistant_prefix, message)
                yield Segment(message.text, message.index, own=True)
                return
            else:
                yield from _message(fields, message)
            if message.role == "assistant":
                yield Segment(fields.eos)
            yield Segment(fields.separator)
        if generation_prompt:
            given = fields.generation_prompt
            yield Segment(fields.assistant_prefix if given is None else given)

    return [segment for segment in segments() if segment.text]


def _message(fields: "ChatFormat", message: SpokenMessage) -> Iterator[Segment]:
    around = {
        "system": (fields.system_prefix, fields.system_suffix),
        "user": (fields.user_prefix, fields.user_suffix),
        "assistant": (fields.assistant_prefix, fields.assistant_suffix),
    }
    prefix, suffix = around[message.role]
    yield from _prefix(fields, prefix, message)
    yield Segment(message.text, message.index, own=True)
    yield Segment(suffix)


def _prefix(fields: "ChatFormat", prefix: str, message: SpokenMessage) -> Iterator[Segment]:
    """Return the text before a message, with its name at the end of the first line."""
    if message.name is None or fields.name_prefix is None:
        yield Segment(prefix)
        return
    line, end, rest = prefix.partition("\n")
    yield Segment(line)
    yield Segment(fields.name_prefix)
    # The user's text, which is not searched for control tokens.
    yield Segment(message.name, own=True)
    yield Segment(end + rest)


def control_parts(segments: Sequence[Segment], controls: Mapping[str, int]) -> list[Part]:
    """Return the segments as parts: control tokens are found in the format's text only."""
    names = sorted(controls, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, names)) or r"(?!)")
    parts: list[Part] = []
    for segment in segments:
        if segment.own:
            parts.append(TextPart(segment.text, segment.message))
            continue
        at = 0
        for found in pattern.finditer(segment.text):
            if found.start() > at:
                parts.append(TextPart(segment.text[at : found.start()]))
            parts.append(ControlPart(controls[found.group()], found.group()))
            at = found.end()
        if at < len(segment.text):
            parts.append(TextPart(segment.text[at:]))
    return parts
