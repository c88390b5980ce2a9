"""The conversations that Mistral's models accept; others are refused.

The rules are those of mistral-common's validators, one for one; docs/chat_formats.md lists them.
Each refusal is a `ConversationError` with the index and the role of the message.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

from ffwd.chat.errors import ChatError, ConversationError
from ffwd.chat.mistral.messages import NO_CALL_ID, Turn
from ffwd.chat.mistral.version import MistralVersion

Mode = Literal["test", "serving"]
"""As in mistral-common: "serving" also refuses tool calls that no result follows."""

# `$`, not `\Z`: a name may end in a newline there, so it may here.
_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
_CALL_ID = re.compile(r"^[a-zA-Z0-9]{9}$")

_FOLLOWERS = {
    "system": ("user", "assistant", "system"),
    "user": ("assistant", "system", "user"),
    "assistant": ("assistant", "user", "tool"),
    "tool": ("assistant", "tool", "user"),
}


def check(turns: Sequence[Turn], version: MistralVersion, mode: Mode) -> None:
    """Raise `ConversationError` unless this version allows the messages."""
    _check_structure(turns)
    if version.number >= 11:
        _check_calls_by_id(turns, mode)
    else:
        _check_number_of_results(turns, mode)
    for index, turn in enumerate(turns):
        _check_message(turn, version, is_last=index == len(turns) - 1)


def _error(turn: Turn, what: str) -> ConversationError:
    index = turn.messages[0]
    return ConversationError(f"message {index} ({turn.role}): {what}", index=index, role=turn.role)


def _check_structure(turns: Sequence[Turn]) -> None:
    if not turns:
        raise ConversationError("a conversation has at least one message")
    last = turns[-1]
    if len(turns) == 1 and last.role not in ("user", "system"):
        raise _error(last, "a conversation begins with a user's message or a system prompt")
    if len(turns) > 1 and last.role == "assistant" and not last.prefix:
        raise _error(
            last,
            "the last message is a user's or a tool's, or an assistant's with prefix=True, "
            "which the model continues",
        )
    for before, turn in pairwise(turns):
        if turn.role not in _FOLLOWERS[before.role]:
            raise _error(turn, f"it may not follow a message of the role {before.role}")


def _check_number_of_results(turns: Sequence[Turn], mode: Mode) -> None:
    # The first message is not counted.
    missing = 0
    for turn in turns[1:]:
        if turn.role == "tool":
            missing -= 1
        elif turn.role == "assistant":
            if missing:
                raise _error(turn, "there are not as many results of tools as calls before it")
            missing = len(turn.tool_calls or ())
    if missing and mode == "serving":
        raise _error(turns[-1], "there are not as many results of tools as calls")


def _check_calls_by_id(turns: Sequence[Turn], mode: Mode) -> None:
    called: set[str | None] = set()
    answered: set[str | None] = set()
    for turn in turns[1:]:
        if turn.role == "tool":
            if turn.tool_call_id in answered:
                raise _error(turn, f"the call {turn.tool_call_id!r} already has a result")
            if turn.tool_call_id not in called:
                raise _error(turn, f"there is no call {turn.tool_call_id!r} before it")
            answered.add(turn.tool_call_id)
        elif turn.role == "assistant":
            if len(called) != len(answered):
                raise _error(turn, "there are not as many results of tools as calls before it")
            called.clear()
            answered.clear()
            for call in turn.tool_calls or ():
                if call.call_id in called:
                    raise _error(turn, f"two calls have the id {call.call_id!r}")
                called.add(call.call_id)
    if len(called) != len(answered) and mode == "serving":
        raise _error(turns[-1], "there are not as many results of tools as calls")


def _check_message(turn: Turn, version: MistralVersion, *, is_last: bool) -> None:
    number = version.number
    if turn.thinks:
        allowed = {"system": 7 <= number < 15, "assistant": number >= 11}.get(turn.role, False)
        if not allowed:
            raise _error(turn, f"reasoning cannot be written there in {version.value}")
        if number < 13:
            raise _error(turn, f"reasoning cannot be written before v13; this is {version.value}")
    if turn.role == "tool":
        if turn.name is not None:
            _check_name(turn, turn.name)
        if number >= 3:
            _check_call_id(turn, turn.tool_call_id, number)
    elif turn.role == "assistant":
        if number < 7 and bool(turn.content) == bool(turn.tool_calls):
            raise _error(turn, "there is either text or a call of tools, and not both")
        for call in turn.tool_calls or ():
            if number >= 3:
                _check_call_id(turn, call.call_id, number)
            _check_name(turn, call.name)
        if turn.prefix and not is_last:
            raise _error(turn, "only the last message may have prefix=True")


def _check_name(turn: Turn, name: str) -> None:
    if not _NAME.match(name):
        raise _error(turn, f"the function's name {name!r} is not 1 to 64 of a-z, A-Z, 0-9, _ and -")


def _check_call_id(turn: Turn, call_id: str | None, number: int) -> None:
    if number >= 13:
        if not call_id or call_id == NO_CALL_ID:
            raise _error(turn, "a tool call and its result have an id")
    elif call_id is None or call_id == NO_CALL_ID or not _CALL_ID.match(call_id):
        raise _error(turn, f"the id of a tool call is 9 of a-z, A-Z, 0-9, not {call_id!r}")


def check_tools(tools: Sequence[dict[str, Any]]) -> None:
    """Raise `ConversationError` for an invalid name or JSON Schema (draft 7)."""
    if not tools:
        return
    try:
        import jsonschema
    except ImportError as error:
        raise ChatError(
            'the parameters of tools are checked by jsonschema: pip install "ffwd[chat]"'
        ) from error
    for index, tool in enumerate(tools):
        function = tool["function"]
        try:
            jsonschema.Draft7Validator.check_schema(function["parameters"])
        except jsonschema.exceptions.SchemaError as error:
            raise ConversationError(
                f"tool {index} ({function['name']}): the parameters are no JSON Schema of "
                f"draft 7: {error.message}"
            ) from None
        if not _NAME.match(function["name"]):
            raise ConversationError(
                f"tool {index}: the name {function['name']!r} is not 1 to 64 of a-z, A-Z, 0-9, "
                "_ and -"
            )
