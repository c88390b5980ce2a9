"""Conversations as the dicts of OpenAI's and transformers' interfaces.

A message is a mapping with a `role` and, usually, a `content`: text, or a list of blocks such as
`{"type": "text", "text": "..."}`. Templates and formats read its other members (`tool_calls`,
`name`, `tool_call_id`, `reasoning_content`), so this module rejects nothing that a template may
know. Dataclasses and objects with a `model_dump` method (pydantic) work as well.
"""

import dataclasses
import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ffwd.chat.errors import ConversationError

Message = Mapping[str, Any]

# Deeper than any message, and well within Python's own limit.
_MAX_DEPTH = 100


def plain(value: Any, *, what: str = "a message", _around: tuple[int, ...] = ()) -> Any:
    """Return the value rebuilt from None, bool, int, float, str, list, tuple and dict.

    A template is a foreign program, so it never sees an object of the caller's. A value without a
    plain form (an image, an array) becomes the name of its type, `<Image>`: templates only check
    that such a value is present. Raises `ConversationError` for values that are nested too deeply,
    or contain themselves; `what` names the value there.
    """
    if value is None or type(value) in (str, int, float, bool):
        return value
    if len(_around) > _MAX_DEPTH:
        if id(value) in _around:
            raise ConversationError(f"{what} is circular: a value in it contains itself")
        raise ConversationError(f"{what} is nested more than {_MAX_DEPTH} deep")
    below = (*_around, id(value))
    if isinstance(value, (str, int, float)):
        return _base(value)
    if isinstance(value, Mapping):
        return {
            plain(key, what=what, _around=below): plain(item, what=what, _around=below)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [plain(item, what=what, _around=below) for item in value]
    if isinstance(value, tuple):
        return tuple(plain(item, what=what, _around=below) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return plain(fields, what=what, _around=below)
    if callable(dump := getattr(value, "model_dump", None)):
        return plain(dump(), what=what, _around=below)
    # NumPy's scalars, recognized by their attributes instead of an import.
    if callable(item := getattr(value, "item", None)) and getattr(value, "shape", None) == ():
        return plain(item(), what=what, _around=below)
    return f"<{type(value).__name__}>"


def _base(value: str | int | float) -> str | int | float:
    """Return the value without the additions of its class, such as an enumeration's member."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    return float.__float__(value)


def is_batch(messages: Any) -> bool:
    """Return whether this is a list of conversations rather than one conversation."""
    return (
        isinstance(messages, (list, tuple))
        and bool(messages)
        and (isinstance(messages[0], (list, tuple)) or hasattr(messages[0], "messages"))
    )


def plain_messages(messages: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the conversation as fresh dicts of plain values; the caller's are never changed.

    Raises `ConversationError` with the index of a value that is no message.
    """
    messages = getattr(messages, "messages", messages)
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise ConversationError(
            f"a conversation is a list of messages, not {type(messages).__name__}: "
            '[{"role": "user", "content": "..."}]'
        )
    found = []
    for index, message in enumerate(messages):
        try:
            made = plain(message, what=f"message {index}")
        except ConversationError as error:
            raise ConversationError(str(error), index=index) from None
        if not isinstance(made, dict):
            raise ConversationError(
                f"message {index} is {type(message).__name__}, not a dict with a role and a "
                'content: {"role": "user", "content": "..."}',
                index=index,
            )
        found.append(made)
    return found


def as_list(messages: Any) -> list[Any]:
    """Return the messages of a conversation unchanged; errors are those of `plain_messages`."""
    messages = getattr(messages, "messages", messages)
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        return plain_messages(messages)
    return list(messages)


def role_of(message: Message) -> str:
    """Return the message's role, or "" without a role that is a string."""
    role = message.get("role")
    return role.value if isinstance(role, enum.Enum) else role if isinstance(role, str) else ""


def text_of(message: Message) -> str:
    """Return the text of a message's content: all its text blocks, joined; "" without any."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        texts = [block.get("text") for block in content if isinstance(block, Mapping)]
        return "".join(text for text in texts if isinstance(text, str))
    return ""
