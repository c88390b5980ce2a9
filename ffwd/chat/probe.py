"""The start and the end of a template's answer, found by rendering the template."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ffwd.chat.control import ControlTokens
from ffwd.chat.errors import ChatError
from ffwd.chat.prompt import ControlPart, Part, PromptTokenizer, TextPart, ThinkingSection
from ffwd.tokenizer.table import TokenKind


@dataclass(frozen=True)
class Terminators:
    """The tokens and texts that end an answer in a template's format."""

    token_ids: tuple[int, ...]
    stop: tuple[str, ...]
    """Texts, where no token does."""


Examples = Callable[[Sequence[Any], Sequence[Any] | None, bool], tuple[Part, ...]]
"""Renders messages, tools and add_generation_prompt; raises `ChatError` where that cannot be."""

_USER = {"role": "user", "content": "u"}
_ANSWER = {"role": "assistant", "content": "x"}
_CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {
            "id": "abcdefghi",
            "type": "function",
            "function": {"name": "f", "arguments": {"a": "x"}},
        }
    ],
}
_TOOL = {
    "type": "function",
    "function": {
        "name": "f",
        "description": "f",
        "parameters": {"type": "object", "properties": {"a": {"type": "string"}}},
    },
}


def find_terminators(
    render: Examples,
    control: ControlTokens,
) -> Terminators:
    """Return the tokens or the text that follow an assistant's message.

    1. The control token after its text, and the last of the prompt, unless the template begins the
       next message with it.
    2. Without one, the token after it when another message follows (GLM's `<|user|>`).
    3. The special token at the end of a message with tool calls (gpt-oss's `<|call|>`).
    4. Without any token, the text that begins the next message.

    `render` returns the parts for messages, tools and add_generation_prompt; nothing is found if
    the template rejects these.
    """

    def parts_of(
        messages: Sequence[Any], tools: Sequence[Any] | None = None, begin: bool = False
    ) -> tuple[Part, ...]:
        try:
            return render(messages, tools, begin)
        except ChatError:
            return ()

    found: list[int] = []
    stop: tuple[str, ...] = ()
    alone = _behind(parts_of([_USER, _ANSWER]), 1)
    begins_anyway = alone == _behind(parts_of([_USER, _ANSWER], begin=True), 1)
    found += [part.token_id for part in _edges(alone)[: 1 if begins_anyway else 2]]
    if not found:
        followed = _behind(parts_of([_USER, _ANSWER, _USER]), 1)
        between = followed[: _first_of_message(followed, 2)]
        if between and isinstance(first := _skip_space(between), ControlPart):
            found.append(first.token_id)
        elif between:
            text = "".join(part.text for part in between if isinstance(part, TextPart))
            stop = (text.rstrip(" "),) if text.strip() else ()
    calls = _behind(parts_of([_USER, _CALL], [_TOOL]), 1)
    last = _skip_space(calls[::-1])
    if isinstance(last, ControlPart) and not begins_anyway:
        # A token without the special flag, such as `</tool_call>`, may be within an answer.
        found += [last.token_id] * (control.kinds[last.content] is not TokenKind.CONTROL)
    return Terminators(tuple(dict.fromkeys(found)), stop)


def _behind(parts: Sequence[Part], message: int) -> Sequence[Part]:
    """Return the parts after a message's own text."""
    own = [i for i, p in enumerate(parts) if isinstance(p, TextPart) and p.message == message]
    return parts[own[-1] + 1 :] if own else ()


def _first_of_message(parts: Sequence[Part], message: int) -> int:
    own = (i for i, p in enumerate(parts) if isinstance(p, TextPart) and p.message == message)
    return next(own, len(parts))


def _skip_space(parts: Sequence[Part]) -> Part | None:
    return next((p for p in parts if isinstance(p, ControlPart) or p.text.strip()), None)


def _edges(parts: Sequence[Part]) -> list[ControlPart]:
    """Return the first and the last control token, if only space is outside them."""
    ends = (_skip_space(parts), _skip_space(parts[::-1]))
    return [part for part in ends if isinstance(part, ControlPart)]


# The opening and closing of a thinking section.
_SECTIONS: tuple[tuple[str, str], ...] = (
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|think|>", "<|end|>"),
    ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    ("<|channel>thought", "<channel|>"),
    ("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"),
)
_TAG = re.compile(r"<((?:[a-z]+:)?think(?:ing)?(?::[a-z]+)?)>")
# Templates whose answer is a separate message or channel after the reasoning, and their other
# markers.
_CHANNELS = (
    ("<|start|>assistant", "<|channel|>final<|message|>", ("<|start|>", "<|end|>")),
    ("<|begin|>assistant", "<|content|>", ("<|begin|>", "<|end|>", "<|think|>")),
)


def find_thinking(
    tail: str, *, source: str, control: ControlTokens, tokenizer: PromptTokenizer
) -> ThinkingSection | None:
    """Return the section that is open at the end of `tail`, the part after the last message.

    If the template (`source`) has channels, as gpt-oss's, the model writes the name of the channel
    itself: its answer begins after `<|channel|>final<|message|>`, whatever comes before.
    """
    sections = [*_SECTIONS, *((f"<{n}>", f"</{n}>") for n in dict.fromkeys(_TAG.findall(tail)))]
    opened = [
        (tail.rindex(begin), begin, end)
        for begin, end in sections
        if begin in tail and tail.rfind(end) < tail.rindex(begin)
    ]
    within: tuple[int, ...] = ()
    if opened:
        _, begin, end = max(opened)
    else:
        channels = [found for found in _CHANNELS if tail.endswith(found[0]) and found[1] in source]
        if not channels:
            return None
        begin, end, others = channels[0]
        within = tuple(control.ids[name] for name in others if name in control.ids)
    return ThinkingSection(
        begin,
        end,
        control.ids.get(end),
        _ids(end, control, tokenizer),
        control_token_ids=within,
    )


_REASONED = {
    "role": "assistant",
    "reasoning_content": "reasoned",
    "reasoning": "reasoned",
    "thinking": "reasoned",
    "content": "answered",
}


def find_answer_prefix(
    thinking: ThinkingSection,
    render: Examples,
) -> str:
    """Return the white space between the close of the reasoning and the answer in a template.

    Empty if the template does not write the reasoning of a message, or if other text stands there.
    """
    try:
        parts = render([_USER, _REASONED], None, False)
    except ChatError:
        return ""
    text = "".join(part.text if isinstance(part, TextPart) else part.content for part in parts)
    before, answered, _ = text.rpartition("answered")
    _, closed, between = before.rpartition(thinking.closed_by)
    return between if answered and closed and not between.strip() else ""


def _ids(text: str, control: ControlTokens, tokenizer: PromptTokenizer) -> tuple[int, ...]:
    pieces: list[str | int] = []
    at = 0
    for start, end, name in control.find(text):
        pieces += [text[at:start], control.ids[name]]
        at = end
    if at < len(text):
        if not at:
            return ()  # the tokens of text alone depend on what is before it
        pieces.append(text[at:])
    return tuple(tokenizer.encode_parts([piece for piece in pieces if piece != ""]))
