"""A matcher with the interface of engines: tokens in batches, drafts, rows of a shared bitmask."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ffwd import CompiledGrammar, Matcher, allocate_bitmask


class RequestMatcher:
    """The grammar state of one request.

    It differs from `ffwd.Matcher` as engines expect. A token outside the vocabulary or after the
    end is rejected without an error. Accepted tokens count until they are rolled back, an end token
    included.

    Args:
        compiled: The request's grammar.
        canonical: As for `CompiledGrammar.matcher`: allow only tokens that keep the output a
            tokenization of the tokenizer itself.
        max_tokens: As for `CompiledGrammar.matcher`: the most tokens of the output.
        narrow: For forced text, allow only the token with which the tokenizer encodes it, as
            `Matcher.fast_forward_tokens` finds it. The model then always sees the tokenizer's own
            tokens, and `forced` returns all of them. It has no effect unless the vocabulary's
            tokenizer is compiled exactly, because that token is otherwise uncertain.
    """

    def __init__(
        self,
        compiled: CompiledGrammar,
        *,
        canonical: bool = False,
        max_tokens: int | None = None,
        narrow: bool = False,
    ) -> None:
        self.compiled = compiled
        self.matcher: Matcher = compiled.matcher(canonical=canonical, max_tokens=max_tokens)
        self._vocab_size = compiled.vocabulary.vocab_size
        bpe = compiled.vocabulary.bpe
        self._narrow = narrow and bpe is not None and bpe.exact
        # One row, for `forced`.
        self._row: Any = None
        # The bitmask of the last `fill`, and its numbers: an engine has one, and to read a tensor
        # takes longer than to fill a row.
        self._bitmask: Any = None
        self._numbers: Any = None

    def __repr__(self) -> str:
        return f"RequestMatcher({self.compiled!r}, num_tokens={self.num_tokens})"

    @property
    def num_tokens(self) -> int:
        """How many tokens have been accepted and not rolled back."""
        return self.matcher.num_tokens

    @property
    def is_terminated(self) -> bool:
        """Whether an end token has been accepted."""
        return self.matcher.is_terminated()

    def accept(self, token_ids: Sequence[int]) -> int:
        """Accept tokens up to the first that the grammar refuses; return how many were accepted."""
        count = 0
        for token in token_ids:
            if not self._known(token) or self.is_terminated or not self.matcher.accept_token(token):
                break
            count += 1
        return count

    def validate(self, token_ids: Sequence[int]) -> int:
        """Return how many of the tokens, from the first on, would be accepted. Changes nothing."""
        if self.is_terminated:
            return 0
        known = next((i for i, t in enumerate(token_ids) if not self._known(t)), len(token_ids))
        return self.matcher.validate_tokens(list(token_ids[:known]))

    def rollback(self, num_tokens: int) -> None:
        """Remove the last tokens; `IndexError` for more than were accepted."""
        self.matcher.rollback(num_tokens)

    def reset(self) -> None:
        """Take back all tokens."""
        self.matcher.reset()

    def fill(self, bitmask: Any, row: int) -> None:
        """Write the allowed tokens into a row: int32 [rows, words], on the CPU.

        After the end these are the end tokens.
        """
        if not self.fill_forced(bitmask, row):
            self.matcher.fill_bitmask(self._numbers, row)

    def fill_forced(self, bitmask: Any, row: int) -> bool:
        """Write a row as `fill` does, but only if narrowing makes it another one.

        Whether it was written. If not, `ffwd.fill_bitmasks` can write it along with other rows.
        """
        if bitmask is not self._bitmask:
            self._numbers = bitmask.numpy() if hasattr(bitmask, "numpy") else bitmask
            self._bitmask = bitmask
        forced = self._forced_text(1) if self._narrow else []
        if forced:
            words = self._numbers[row]
            words[:] = 0
            words[forced[0] // 32] = _word(forced[0])
        return bool(forced)

    def forced(self, max_tokens: int) -> list[int]:
        """Return the next tokens, up to `max_tokens`, as long as only one is allowed.

        An end token is among them where the text can do nothing but end. A sampler that follows
        the mask cannot choose otherwise, so as drafts they are always right.
        """
        tokens = self._forced_text(max_tokens) if self._narrow else []
        accepted = 0
        try:
            for token in tokens:
                if not self.matcher.accept_token(token):
                    break
                accepted += 1
            del tokens[accepted:]
            while len(tokens) < max_tokens and not self.is_terminated:
                # Narrow masks return forced tokens; the end is no text.
                if self._narrow and not self.matcher.is_accepting():
                    break
                only = self._only_token()
                if only is None or not self.matcher.accept_token(only):
                    break
                tokens.append(only)
                accepted += 1
        finally:
            self.matcher.rollback(accepted)
        return tokens

    def fork(self) -> "RequestMatcher":
        """Return an independent copy, which shares the grammar."""
        other = object.__new__(RequestMatcher)
        other.compiled = self.compiled
        other.matcher = self.matcher.fork()
        other._vocab_size = self._vocab_size
        other._narrow = self._narrow
        other._row = other._bitmask = other._numbers = None
        return other

    def _forced_text(self, max_tokens: int) -> list[int]:
        # Without a look ahead: with it a token or two in a hundred more are forced, and finding
        # them takes several times as long where a grammar is new.
        return self.matcher.fast_forward_tokens(max_tokens=max_tokens, look_ahead=False)

    def _only_token(self) -> int | None:
        """Return the token, if the mask allows exactly one."""
        if self._row is None:
            self._row = allocate_bitmask(1, self._vocab_size)
        self.matcher.fill_bitmask(self._row, 0)
        (words,) = np.nonzero(self._row[0])
        if len(words) != 1:
            return None
        bits = int(self._row[0, words[0]]) & 0xFFFFFFFF
        return None if bits & (bits - 1) else int(words[0]) * 32 + bits.bit_length() - 1

    def _known(self, token: int) -> bool:
        return 0 <= token < self._vocab_size


def _word(token: int) -> int:
    """Return the token's word of a bitmask, as a signed number."""
    bit = 1 << token % 32
    return bit - (1 << 32) if bit >> 31 else bit
