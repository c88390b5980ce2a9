"""A matcher over single bytes with the text that it has accepted."""

from __future__ import annotations

import functools
import json

from ffwd._explain import Expected
from ffwd._native import CompiledGrammar, Vocabulary

END = 256
"""The end token of `byte_vocabulary`; every other token is the byte of its id."""


@functools.cache
def byte_vocabulary() -> Vocabulary:
    """Return a vocabulary of one token per byte, and an end token."""
    return Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[END])


class Cursor:
    """The end of a text that is being written, of at most `max_bytes` bytes.

    The masks keep to the budget, so from every position some text ends in time.

    Raises:
        BudgetError: No text of the grammar has at most `max_bytes` bytes.
        LimitExceededError: A call of the matcher exceeds a limit; so do all methods.

    """

    def __init__(self, grammar: CompiledGrammar, max_bytes: int) -> None:
        self._matcher = grammar.matcher(max_tokens=max_bytes + 1)
        # Trying texts costs less without the budget, which looks for the end of each.
        self._scout = grammar.matcher()
        self._allowed: list[int] | None = None
        self.text = bytearray()

    def allowed(self) -> list[int]:
        """Return the allowed next bytes in ascending order, and `END` if the text may end."""
        if self._allowed is None:
            self._allowed = self._matcher.allowed_token_ids()
        return self._allowed

    def put(self, data: bytes) -> None:
        """Append bytes, all of which must be allowed."""
        tokens = list(data)
        if not (self._matcher.accept_tokens(tokens) and self._scout.accept_tokens(tokens)):
            raise AssertionError(f"{data!r} is not allowed after {bytes(self.text)!r}")
        self.text += data
        self._allowed = None

    def fits(self, data: bytes) -> bool:
        """Return whether these bytes are allowed next."""
        return self._matcher.validate_tokens(list(data)) == len(data)

    def fits_without_budget(self, data: bytes) -> bool:
        """Return whether these bytes could come next in a longer text."""
        return self._scout.validate_tokens(list(data)) == len(data)

    def back_to(self, length: int) -> None:
        """Remove everything after the first `length` bytes."""
        if length < len(self.text):
            self._matcher.rollback(len(self.text) - length)
            self._scout.rollback(len(self.text) - length)
            del self.text[length:]
            self._allowed = None

    def completion(self) -> bytes:
        """Return bytes with which the text can end, few of them."""
        return bytes(token for token in self._matcher.shortest_completion() if token != END)

    def expected(self, after: bytes = b"") -> tuple[Expected, ...]:
        """Return what is allowed next, or after more bytes, as `Matcher.explain` describes it."""
        self._scout.accept_tokens(list(after))
        found = self._scout.explain().expected
        self._scout.rollback(len(after))
        return found


def quoted(text: str) -> bytes:
    """Return a text as a JSON string, with the fewest escapes."""
    return json.dumps(text, ensure_ascii=False).encode()
