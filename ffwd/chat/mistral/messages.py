"""Conversations for Mistral's models: read from dicts, then joined into turns.

Parsing and joining follow mistral-common. Each piece of text keeps the index of its message.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ffwd.chat.errors import ConversationError
from ffwd.chat.messages import plain, plain_messages

NO_CALL_ID = "null"
"""What a tool call without an id has."""

SEPARATOR = "\n\n"
"""Between messages of a role, and behind a system prompt that is part of a user's turn."""

_Wrong = Callable[[str], ConversationError]

_ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True)
class Piece:
    """Text, and the index of its message; None for text between messages."""

    text: str
    message: int | None


@dataclass(frozen=True)
class JoinedText:
    """Text of one or more messages, joined."""

    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True)
class Thinking:
    """A section of reasoning; the model continues an open one."""

    text: str
    message: int
    closed: bool


Chunk = JoinedText | Thinking


@dataclass(frozen=True)
class ToolCall:
    """A call; `arguments` is JSON, or other text."""

    call_id: str
    name: str
    arguments: str
    message: int


@dataclass(frozen=True)
class Turn:
    """One message, or several of one role that are written as one.

    `content` is None where an assistant's message has none at all.
    """

    role: str
    content: tuple[Chunk, ...] | None
    messages: tuple[int, ...]
    tool_calls: tuple[ToolCall, ...] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    prefix: bool = False

    @property
    def thinks(self) -> bool:
        """Whether there is reasoning in it."""
        return any(isinstance(chunk, Thinking) for chunk in self.content or ())

    @property
    def text(self) -> str:
        """All of the text, without reasoning."""
        return "".join(chunk.text for chunk in self.content or () if isinstance(chunk, JoinedText))


# -------------------------------------------------------------------------------------- reading


def read(messages: Iterable[Any], *, continue_final_message: bool) -> list[Turn]:
    """Return each message as a separate turn.

    `content` is text, or a list of `{"type": "text", "text": ...}` and
    `{"type": "thinking", "thinking": ..., "closed": ...}`. `reasoning_content` and `reasoning` of
    an assistant are a thinking chunk before the content. Only results have a `name`; the role
    "function" is the older name of "tool". Other keys that a message may have are
    not read. Raises `ConversationError` with index and role.
    """
    turns = [_message(message, index) for index, message in enumerate(plain_messages(messages))]
    if not continue_final_message:
        return turns
    if not turns or turns[-1].role != "assistant":
        last = turns[-1].role if turns else None
        raise ConversationError(
            "continue_final_message needs an assistant's message at the end",
            index=len(turns) - 1 if turns else None,
            role=last,
        )
    return [*turns[:-1], replace(turns[-1], prefix=True)]


def _message(message: dict[str, Any], index: int) -> Turn:
    role = message.get("role")
    if role == "developer":
        role = "system"
    elif role == "function":
        # The older name of a tool's result.
        role = "tool"
    if not isinstance(role, str) or role not in _ROLES:
        raise ConversationError(
            f"message {index} has the role {role!r}: there are {', '.join(_ROLES)}", index=index
        )

    def wrong(what: str) -> ConversationError:
        return ConversationError(f"message {index} ({role}): {what}", index=index, role=role)

    if role != "tool" and message.get("name") is not None:
        raise wrong(
            f"it has the name {message['name']!r}, and the format has no place for names: leave it "
            "out, or write it into the text"
        )
    content = message.get("content")
    if content is None and role != "assistant":
        raise wrong("there is no content")
    if role == "assistant":
        chunks = _assistant_content(message, index, wrong)
        prefix = message.get("prefix", False)
        if not isinstance(prefix, bool):
            raise wrong(f"prefix is {prefix!r}, not true or false")
        calls = message.get("tool_calls")
        if calls is not None and not isinstance(calls, (list, tuple)):
            raise wrong("tool_calls is no list")
        return Turn(
            role=role,
            content=chunks,
            messages=(index,),
            tool_calls=None if calls is None else tuple(_call(c, index, wrong) for c in calls),
            prefix=prefix,
        )
    call_id, name = (message.get(key) for key in ("tool_call_id", "name"))
    if role != "tool":
        call_id = None
    for key, value in (("tool_call_id", call_id), ("name", name)):
        if value is not None and not isinstance(value, str):
            raise wrong(f"{key} is {value!r}, not text")
    return Turn(
        role=role,
        content=_content(content, index, wrong),
        messages=(index,),
        tool_call_id=call_id,
        name=name,
    )


def _content(content: Any, index: int, wrong: _Wrong) -> tuple[Chunk, ...]:
    """Return the chunks of a message; text is one chunk, and empty text none."""
    if isinstance(content, str):
        return (JoinedText((Piece(content, index),)),) if content else ()
    if not isinstance(content, (list, tuple)):
        raise wrong(f"the content is {type(content).__name__}, not text or a list of chunks")
    chunks: list[Chunk] = []
    for chunk in content:
        kind = chunk.get("type") if isinstance(chunk, dict) else None
        if kind not in ("text", "thinking"):
            raise wrong(f"a chunk of type {kind!r}: only text and thinking can be written")
        text = chunk.get("text" if kind == "text" else "thinking")
        closed = chunk.get("closed", True)
        if not isinstance(text, str) or not isinstance(closed, bool):
            raise wrong(f"a chunk of type {kind!r} that has no text")
        chunks.append(
            JoinedText((Piece(text, index),)) if kind == "text" else Thinking(text, index, closed)
        )
    return tuple(chunks)


def _assistant_content(
    message: dict[str, Any], index: int, wrong: _Wrong
) -> tuple[Chunk, ...] | None:
    content = message.get("content")
    chunks = None if content is None else _content(content, index, wrong)
    given = [message.get(key) for key in ("reasoning_content", "reasoning")]
    reasoning = [text for text in given if text is not None]
    if not reasoning:
        return chunks
    if not all(isinstance(text, str) for text in reasoning) or len(set(reasoning)) > 1:
        raise wrong("reasoning_content and reasoning are not one text")
    if any(isinstance(chunk, Thinking) for chunk in chunks or ()):
        raise wrong("there is reasoning beside the content and in it")
    return (Thinking(reasoning[0], index, True), *(chunks or ()))


def _call(call: Any, index: int, wrong: _Wrong) -> ToolCall:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or call.get("type", "function") != "function":
        raise wrong("a tool call is no call of a function")
    if "arguments" not in function:
        raise wrong("a tool call has no arguments")
    arguments = function["arguments"]
    if isinstance(arguments, dict):
        arguments = _dumps(arguments, wrong)
    elif arguments is None:
        arguments = "{}"
    name, call_id = function.get("name"), call.get("id", NO_CALL_ID)
    if not (isinstance(name, str) and isinstance(call_id, str) and isinstance(arguments, str)):
        raise wrong("a tool call whose name, id or arguments are not text")
    return ToolCall(call_id, name, arguments, index)


def read_tools(tools: Iterable[Any] | None) -> list[dict[str, Any]]:
    """Return the tools in their written form: name, description, parameters, in this order.

    Raises `ConversationError` for what is no function.
    """
    found: list[dict[str, Any]] = []
    if isinstance(tools, (str, bytes, Mapping)) or not isinstance(tools, Iterable | None):
        raise ConversationError(f"tools are a list, not {type(tools).__name__}")
    for index, tool in enumerate(tools or ()):
        made = plain(tool, what=f"tool {index}")
        function = made.get("function") if isinstance(made, dict) else None
        if not isinstance(function, dict) or made.get("type", "function") != "function":
            raise ConversationError(
                f'tool {index} is not {{"type": "function", "function": {{"name": ..., '
                '"parameters": ...}}'
            )
        name, description = function.get("name"), function.get("description")
        description = "" if description is None else description
        parameters = function.get("parameters")
        parameters = {} if parameters is None else parameters
        if not isinstance(name, str) or not isinstance(description, str):
            raise ConversationError(f"tool {index}: name and description are not both text")
        if not isinstance(parameters, dict):
            raise ConversationError(f"tool {index}: the parameters are no JSON Schema")
        shown = {"name": name, "description": description, "parameters": parameters}
        found.append({"type": "function", "function": shown})
    return found


def read_settings(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the settings of the model that are given."""
    if settings is not None and not isinstance(settings, Mapping):
        raise ConversationError(f"the settings are {type(settings).__name__}, not a dict")
    made = plain(dict(settings or {}), what="the settings")
    return {key: value for key, value in made.items() if value is not None}


# ----------------------------------------------------------------------------------------- JSON


def parsed(text: str, turn: int) -> Any:
    """Return the JSON of a text, or the text if it is not JSON."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
    except (RecursionError, ValueError) as error:
        raise ConversationError(
            f"message {turn}: the JSON in it cannot be read: {error}", index=turn
        ) from None


def normalized(text: str, turn: int) -> str:
    """Return JSON in its prompt form; other text unchanged, and None as `{}`."""
    if not text:
        return "{}"
    value = parsed(text, turn)
    return text if value is text else json.dumps(value, ensure_ascii=False)


def _dumps(value: Any, wrong: _Wrong) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError) as error:
        raise wrong(f"the arguments cannot be written as JSON: {error}") from None


# -------------------------------------------------------------------------------------- joining


def joined(contents: Sequence[tuple[Chunk, ...]], within: str) -> tuple[Chunk, ...]:
    """Return the contents of several messages as one: texts joined, empty ones dropped.

    Messages are joined by `SEPARATOR`, the chunks of one by `within`. Without reasoning the result
    is one text, which may be empty.
    """
    found: list[Chunk] = []
    text: list[Piece] = []

    def flush() -> None:
        if text:
            found.append(JoinedText(tuple(text)))
            text.clear()

    for chunks in contents:
        first = True
        for chunk in chunks:
            if isinstance(chunk, Thinking):
                flush()
                found.append(chunk)
                continue
            if not chunk.text:
                continue
            if text:
                text.append(Piece(SEPARATOR if first else within, None))
            text.extend(chunk.pieces)
            first = False
    flush()
    return tuple(found) or (JoinedText(()),)
