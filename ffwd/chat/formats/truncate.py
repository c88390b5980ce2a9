"""Conversations that are too long, without their oldest turns."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ffwd.chat.errors import ConversationError, PromptLengthError
from ffwd.chat.messages import as_list, plain_messages, role_of


@dataclass(frozen=True)
class Truncated:
    """The rest of a truncated conversation."""

    messages: list[Any]
    """The messages that stay, as they were given."""
    num_tokens: int
    """Of the prompt that they make."""
    dropped: tuple[int, ...]
    """Indices of the messages that do not stay."""


def truncate(
    messages: Iterable[Any], *, max_tokens: int, count: Callable[[list[Any]], int]
) -> Truncated:
    """Drop the oldest turns, as few as needed for `count` to be at most `max_tokens`.

    A turn begins with a user's message, or several that follow each other, and has all that
    follows until the next. System prompts stay wherever they are, and so does the last turn.
    `count` is called a number of times that grows with the logarithm of the number of turns.

    Raises `PromptLengthError` if the messages that must stay are too long, and the errors of
    `count`.
    """
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 0:
        raise ConversationError(f"max_tokens is {max_tokens!r}, not a number of tokens")
    given = as_list(messages)
    turn_of = _turns(given)
    turns = max([turn for turn in turn_of if turn is not None], default=0)

    def kept(first: int) -> list[Any]:
        pairs = zip(given, turn_of, strict=True)
        return [message for message, turn in pairs if turn is None or turn >= first]

    num_tokens = count(kept(0))
    if num_tokens <= max_tokens:
        return Truncated(kept(0), num_tokens, ())
    # Removing one more turn saves far more tokens than the seams can cost, so bisection finds the
    # first conversation that fits.
    low, high = 0, turns
    best = num_tokens if turns == 0 else count(kept(turns))
    if best > max_tokens:
        raise PromptLengthError(
            f"the system prompt and the last turn need {best} tokens, and there are {max_tokens}",
            num_tokens=best,
            limit=max_tokens,
        )
    while high - low > 1:
        middle = (low + high) // 2
        num_tokens = count(kept(middle))
        if num_tokens <= max_tokens:
            high, best = middle, num_tokens
        else:
            low = middle
    dropped = [i for i, turn in enumerate(turn_of) if turn is not None and turn < high]
    return Truncated(kept(high), best, tuple(dropped))


def _turns(messages: Sequence[Any]) -> list[int | None]:
    """Return for each message the number of its turn; None for system prompts."""
    found: list[int | None] = []
    turn, before = 0, ""
    for message in plain_messages(messages):
        role = role_of(message)
        if role in ("system", "developer"):
            found.append(None)
            continue
        if role == "user" and before not in ("", "user"):
            turn += 1
        found.append(turn)
        before = role
    return found
