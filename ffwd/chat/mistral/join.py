"""Messages to turns, as mistral-common normalizes them.

Messages of one role that follow each other become one turn, except for the results of tools and
system prompts. Up to V3 the system prompts are moved into a user's turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from ffwd.chat.errors import ConversationError
from ffwd.chat.mistral.messages import (
    SEPARATOR,
    Chunk,
    JoinedText,
    Piece,
    ToolCall,
    Turn,
    joined,
    normalized,
)
from ffwd.chat.mistral.version import MistralVersion

SystemPlacement = Literal["first", "last"] | int
"""The user's turn that a system prompt goes to: the first, the last, or any by its number from 0;
negative numbers count from the end."""


@dataclass(frozen=True)
class Conversation:
    """Turns, and up to V3 the system prompt that is written with one of them."""

    turns: tuple[Turn, ...]
    system: tuple[Piece, ...]
    """Empty where there is none, and from V7 on: there system prompts are turns."""
    system_at: int | None
    """Index of the turn that `system` is part of."""

    @property
    def first_user(self) -> int:
        """Index of the user's first turn; -1 without one."""
        return next((i for i, turn in enumerate(self.turns) if turn.role == "user"), -1)

    @property
    def last_user(self) -> int:
        """Index of the user's last turn; -1 without one."""
        return max((i for i, turn in enumerate(self.turns) if turn.role == "user"), default=-1)


def join(
    turns: Sequence[Turn], version: MistralVersion, placement: SystemPlacement | None
) -> Conversation:
    """Return the turns in their order, or raise `ConversationError` for an invalid one."""
    number = version.number
    within = "" if number >= 15 else SEPARATOR
    found: list[Turn] = []
    calls: list[str] = []
    for role, run in groupby(turns, key=lambda turn: turn.role):
        messages = list(run)
        if role == "tool":
            results = [_result(turn, number, within) for turn in messages]
            if number >= 11:
                results = _in_order_of_calls(results, calls)
            calls.clear()
            found += results
        elif role == "system":
            if number >= 7:
                found += [_with_content(turn, [turn], within) for turn in messages]
        else:
            made = _with_content(messages[0], messages, within)
            if role == "assistant":
                made = _assistant(made, messages)
                calls += [call.call_id for call in made.tool_calls or ()]
            found.append(made)
    # Up to V3 a conversation always begins with the user.
    if not found or (number < 7 and found[0].role != "user"):
        found.insert(0, Turn(role="user", content=(JoinedText(()),), messages=()))
    if number >= 7:
        if placement is not None:
            found = _moved(found, placement)
        return Conversation(tuple(found), (), None)
    system = _system_prompt(turns, within)
    if placement is None:
        placement = "first" if version is MistralVersion.V1 else "last"
    # Without a system prompt, any placement is valid.
    at = _user_turn(found, placement) if system else None
    return Conversation(tuple(found), system, at)


def _with_content(turn: Turn, messages: Sequence[Turn], within: str) -> Turn:
    contents: list[tuple[Chunk, ...]] = [message.content or () for message in messages]
    return replace(
        turn,
        content=joined(contents, within),
        messages=tuple(index for message in messages for index in message.messages),
    )


def _assistant(made: Turn, messages: Sequence[Turn]) -> Turn:
    calls = tuple(
        ToolCall(call.call_id, call.name, normalized(call.arguments, call.message), call.message)
        for message in messages
        for call in message.tool_calls or ()
    )
    return replace(made, tool_calls=calls or None, prefix=any(m.prefix for m in messages))


def _result(turn: Turn, number: int, within: str) -> Turn:
    made = _with_content(turn, [turn], within)
    if number >= 7:
        return made
    # A normalized piece still belongs to the message.
    message = turn.messages[0]
    return replace(made, content=(JoinedText((Piece(normalized(made.text, message), message),)),))


def _in_order_of_calls(results: list[Turn], calls: Sequence[str]) -> list[Turn]:
    place = {call_id: index for index, call_id in enumerate(calls)}
    given = {result.tool_call_id: index for index, result in enumerate(results)}
    return sorted(
        results,
        key=lambda result: (
            place.get(result.tool_call_id or "null", len(calls)),
            given[result.tool_call_id],
        ),
    )


def _system_prompt(turns: Sequence[Turn], within: str) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    some = False
    for turn in turns:
        if turn.role != "system" or not turn.content:
            continue
        if some:
            pieces.append(Piece(SEPARATOR, None))
        some = True
        for chunk in joined([turn.content], within):
            if isinstance(chunk, JoinedText):
                pieces.extend(chunk.pieces)
    return tuple(pieces) if any(piece.text for piece in pieces) else ()


def _user_turn(turns: Sequence[Turn], placement: SystemPlacement) -> int:
    users = [index for index, turn in enumerate(turns) if turn.role == "user"]
    place = 0 if placement == "first" else -1 if placement == "last" else placement
    if not -len(users) <= place < len(users):
        raise ConversationError(
            f"the system prompt cannot be placed at {placement!r}: there are {len(users)} turns "
            'of the user; "first", "last" or the number of one'
        )
    return users[place]


def _moved(turns: list[Turn], placement: SystemPlacement) -> list[Turn]:
    """Return all system prompts directly before one of the user's turns."""
    system = [turn for turn in turns if turn.role == "system"]
    if not system:
        return turns
    others = [turn for turn in turns if turn.role != "system"]
    at = _user_turn(others, placement)
    return [*others[:at], *system, *others[at:]]
