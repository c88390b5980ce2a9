"""From turns to parts: the input of Mistral's models, token by token.

Every text is encoded separately, and the ids are concatenated. With a SentencePiece vocabulary each
such text begins with a space, which belongs to the template here.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ffwd.chat.errors import ConversationError
from ffwd.chat.mistral.builder import Builder
from ffwd.chat.mistral.join import Conversation
from ffwd.chat.mistral.messages import (
    NO_CALL_ID,
    SEPARATOR,
    JoinedText,
    Piece,
    Thinking,
    ToolCall,
    Turn,
    parsed,
)


def write_conversation(
    builder: Builder,
    made: Conversation,
    tools: Sequence[dict[str, Any]],
    settings: Mapping[str, Any],
) -> int:
    """Write the turns; return the number of parts before those of the last turn.

    Raises `ConversationError` for turns that cannot be written in the version.
    """
    builder.control("<s>")
    number = builder.version.number
    block_at = made.first_user if number >= 13 else made.last_user
    start = 0
    if number == 2:
        _check_single_results(made)
    for index, turn in enumerate(made.turns):
        start = len(builder.parts)
        history = index < made.last_user
        if turn.role == "user":
            if index == block_at and number >= 2:
                _tools_and_settings(builder, tools, settings)
            _user(builder, turn, made.system if index == made.system_at else ())
        elif turn.role == "system":
            builder.control("[SYSTEM_PROMPT]")
            _chunks(builder, turn)
            builder.control("[/SYSTEM_PROMPT]")
        elif turn.role == "assistant":
            _assistant(builder, turn, history=history)
        elif not history or number != 2:
            # V2 leaves out the calls before the user's last turn, and their results.
            _result(builder, turn)
    return start


def write_infilling(builder: Builder, prefix: str, suffix: str | None) -> None:
    """Write the texts around the text to generate."""
    builder.control("<s>")
    builder.control("[SUFFIX]")
    if suffix:
        # A marker before the suffix absorbs the space that SentencePiece adds before a text; its
        # two tokens are then removed.
        ids = builder.tokenize([Piece("☺" + suffix, 1)])[2:]
        builder.encoded([Piece(suffix, 1)], ids)
    builder.control("[PREFIX]")
    builder.text([Piece(prefix, 0)])


def is_open(made: Conversation) -> bool:
    """Return whether the last turn ends within reasoning."""
    last = made.turns[-1]
    if not last.content or not last.prefix or last.tool_calls:
        return False
    chunk = last.content[-1]
    return isinstance(chunk, Thinking) and not chunk.closed


def _error(turn: Turn, what: str) -> ConversationError:
    index = turn.messages[0] if turn.messages else None
    return ConversationError(f"message {index} ({turn.role}): {what}", index=index, role=turn.role)


def _tools_and_settings(
    builder: Builder, tools: Sequence[dict[str, Any]], settings: Mapping[str, Any]
) -> None:
    if tools:
        builder.control("[AVAILABLE_TOOLS]")
        _json(builder, tools, None)
        builder.control("[/AVAILABLE_TOOLS]")
    if settings:
        builder.control("[MODEL_SETTINGS]")
        _json(builder, {key: settings[key] for key in sorted(settings)}, None)
        builder.control("[/MODEL_SETTINGS]")


def _json(builder: Builder, value: Any, message: int | None) -> None:
    """Return a value as JSON, which is encoded as one text."""
    builder.text([Piece(json.dumps(value, ensure_ascii=False), message)])


def _pieces(turn: Turn) -> list[Piece]:
    """Return the text of a turn without reasoning."""
    texts = [chunk for chunk in turn.content or () if isinstance(chunk, JoinedText)]
    return [piece for text in texts for piece in text.pieces]


def _user(builder: Builder, turn: Turn, system: Sequence[Piece]) -> None:
    pieces = _pieces(turn)
    if system:
        pieces = [*system, Piece(SEPARATOR, None), *pieces]
    if builder.version.number == 1:
        builder.text([Piece("[INST] ", None), *pieces, Piece(" [/INST]", None)])
        return
    builder.control("[INST]")
    builder.text(pieces)
    builder.control("[/INST]")


def _chunks(builder: Builder, turn: Turn) -> None:
    """Chunk by chunk, each text encoded separately."""
    for chunk in turn.content or ():
        if isinstance(chunk, JoinedText):
            builder.text(chunk.pieces)
            continue
        builder.require(("[THINK]", "[/THINK]"))
        builder.control("[THINK]")
        builder.text([Piece(chunk.text, chunk.message)])
        if chunk.closed:
            builder.control("[/THINK]")


def _assistant(builder: Builder, turn: Turn, *, history: bool) -> None:
    number = builder.version.number
    has_content = bool(turn.text) or turn.thinks
    if turn.tool_calls and number == 1:
        raise _error(turn, "v1 has no tools")
    if turn.tool_calls and has_content and number < 7:
        raise _error(turn, "there is either text or a call of tools, and not both")
    if not turn.tool_calls and not has_content:
        raise _error(turn, "there is neither text nor a call of tools")
    if turn.tool_calls and number == 2 and history:
        return
    if turn.thinks:
        _chunks(builder, turn)
    elif has_content:
        builder.text(_pieces(turn) if number == 1 else _stripped(_pieces(turn)))
    if turn.tool_calls:
        _calls(builder, turn.tool_calls)
    if not turn.prefix:
        builder.control("</s>")


def _stripped(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the text without spaces at the end."""
    found = list(pieces)
    while found:
        last = found.pop()
        if text := last.text.rstrip(" "):
            return [*found, Piece(text, last.message)]
    return []


def _calls(builder: Builder, calls: Sequence[ToolCall]) -> None:
    number = builder.version.number
    if number < 11:
        values = []
        for call in calls:
            value = {"name": call.name, "arguments": parsed(call.arguments, call.message)}
            if number >= 3 and call.call_id and call.call_id != NO_CALL_ID:
                value["id"] = call.call_id
            values.append(value)
        builder.control("[TOOL_CALLS]")
        _json(builder, values, calls[0].message)
        return
    for call in calls:
        builder.control("[TOOL_CALLS]")
        builder.text([Piece(call.name, call.message)])
        if number < 13:
            builder.control("[CALL_ID]")
            builder.text([Piece(call.call_id, call.message)])
        builder.control("[ARGS]")
        _json(builder, parsed(call.arguments, call.message), call.message)


def _result(builder: Builder, turn: Turn) -> None:
    number = builder.version.number
    message = turn.messages[0]
    if number == 1:
        raise _error(turn, "v1 has no tools")
    builder.control("[TOOL_RESULTS]")
    if number == 2:
        value = {"name": turn.name, "content": parsed(turn.text, message)}
        _json(builder, [value], message)
    elif number == 3:
        value = {"content": parsed(turn.text, message), "call_id": turn.tool_call_id}
        _json(builder, value, message)
    else:
        if number < 13:
            builder.text([Piece(turn.tool_call_id or "", message)])
            builder.control("[TOOL_CONTENT]")
        _chunks(builder, turn)
    builder.control("[/TOOL_RESULTS]")


def _check_single_results(made: Conversation) -> None:
    """Check that V2 has one tool result for each assistant's turn."""
    called, results = False, 0
    for index, turn in enumerate(made.turns):
        if index < made.last_user:
            continue
        if turn.role == "assistant":
            called, results = bool(turn.tool_calls), 0
        elif turn.role == "tool":
            results += called
            if results > 1:
                raise _error(turn, "v2 has one result for an assistant's call of tools")
        else:
            called, results = False, 0
