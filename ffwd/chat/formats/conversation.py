"""Conversations of the plain kind: `[system]? (user assistant)* user`, all of it text."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ffwd.chat.errors import ConversationError
from ffwd.chat.messages import plain_messages

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ROLES = ("system", "user", "assistant")


@dataclass(frozen=True)
class SpokenMessage:
    """A message with text. `index` is its place in the conversation; None for the format's own."""

    role: str
    text: str
    index: int | None
    name: str | None = None


def read_conversation(
    messages: Iterable[Any], *, strip: bool, last: tuple[str, ...], names: bool = False
) -> list[SpokenMessage]:
    """Return the messages; `last` are the roles that the last one may have.

    `names`: whether messages may have a `name`.

    Raises `ConversationError` with index and role for an unknown role, content that is not text or
    is empty, a name that the format cannot write, and roles out of order.
    """
    found = [
        _message(message, i, strip=strip, names=names)
        for i, message in enumerate(plain_messages(messages))
    ]
    if not found:
        raise ConversationError("a conversation has at least one message")
    turns = found[1:] if found[0].role == "system" else found
    for place, message in enumerate(turns):
        expected = ("user", "assistant")[place % 2]
        if message.role != expected:
            raise _error(
                message,
                f"there must be one of the role {expected} here: a conversation is "
                "[system]? (user assistant)* user",
            )
    if not turns:
        raise _error(found[-1], "there is nothing behind the system prompt")
    if turns[-1].role not in last:
        raise _error(turns[-1], f"the last message is one of the role {' or '.join(last)}")
    return found


def _message(message: dict[str, Any], index: int, *, strip: bool, names: bool) -> SpokenMessage:
    role, text = message.get("role"), message.get("content")
    if role == "developer":
        role = "system"
    if not isinstance(role, str) or role not in _ROLES:
        raise ConversationError(
            f"message {index} has the role {role!r}: there are {', '.join(_ROLES)}",
            index=index,
            role=role if isinstance(role, str) else None,
        )
    if not isinstance(text, str):
        raise ConversationError(
            f"message {index} ({role}): the content is {type(text).__name__}, not text",
            index=index,
            role=role,
        )
    name = message.get("name")
    spoken = SpokenMessage(role, text.strip() if strip else text, index, name)
    if name is not None and not names:
        raise _error(
            spoken,
            f"it has the name {name!r}, and the format has no place for names: leave it out, or "
            "write it into the text",
        )
    if name is not None and not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise _error(spoken, f"the name {name!r} is not 1 to 64 of a-z, A-Z, 0-9, _ and -")
    if not spoken.text:
        raise _error(spoken, "there is no text")
    try:
        spoken.text.encode()
    except UnicodeEncodeError as error:
        raise _error(spoken, f"the text cannot be encoded: {error}") from None
    return spoken


def _error(message: SpokenMessage, what: str) -> ConversationError:
    return ConversationError(
        f"message {message.index} ({message.role}): {what}",
        index=message.index,
        role=message.role,
    )
