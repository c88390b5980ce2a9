"""A matcher as engines drive it: tokens in batches, drafts, rows of a shared bitmask."""

from collections.abc import Sequence
from typing import Any

from ffwd import CompiledGrammar, Matcher


class RequestMatcher:
    """The grammar state of one request.

    Differs from `ffwd.Matcher` in what engines expect: nothing is raised for a token outside of the
    vocabulary or after the end, it is refused; and tokens that are accepted count until they are
    rolled back, an end token included.

    Args:
        compiled: The request's grammar.
        canonical: As for `CompiledGrammar.matcher`: leave only tokens with which the tokenizer
            itself would have cut the text.
        max_tokens: As for `CompiledGrammar.matcher`: the text ends within so many tokens.

    """

    def __init__(
        self,
        compiled: CompiledGrammar,
        *,
        canonical: bool = False,
        max_tokens: int | None = None,
    ) -> None:
        self.compiled = compiled
        self.matcher: Matcher = compiled.matcher(canonical=canonical, max_tokens=max_tokens)
        self._vocab_size = compiled.vocabulary.vocab_size

    @property
    def num_tokens(self) -> int:
        """How many tokens have been accepted and not rolled back."""
        return self.matcher.num_tokens

    @property
    def is_terminated(self) -> bool:
        """Whether an end token has been accepted."""
        return self.matcher.is_terminated()

    def accept(self, token_ids: Sequence[int]) -> int:
        """Accept tokens up to the first that the grammar refuses; how many were accepted."""
        count = 0
        for token in token_ids:
            if not self._known(token) or self.is_terminated or not self.matcher.accept_token(token):
                break
            count += 1
        return count

    def validate(self, token_ids: Sequence[int]) -> int:
        """How many of the tokens, from the first on, would be accepted. Changes nothing."""
        if self.is_terminated:
            return 0
        known = next((i for i, t in enumerate(token_ids) if not self._known(t)), len(token_ids))
        return self.matcher.validate_tokens(list(token_ids[:known]))

    def rollback(self, num_tokens: int) -> None:
        """Take back the last tokens; `IndexError` for more than were accepted."""
        self.matcher.rollback(num_tokens)

    def reset(self) -> None:
        """Take back all tokens."""
        self.matcher.reset()

    def fill(self, bitmask: Any, row: int) -> None:
        """Write the tokens that may come next into a row: int32 [rows, words], on the CPU.

        After the end these are the end tokens.
        """
        self.matcher.fill_bitmask(bitmask, row)

    def forced(self, max_tokens: int) -> list[int]:
        """The next tokens, up to `max_tokens`, as long as there is only one that may come.

        An end token is among them where the text can do nothing but end. A sampler that follows
        the mask cannot choose otherwise, so as drafts they are always right.
        """
        tokens: list[int] = []
        try:
            while len(tokens) < max_tokens and not self.is_terminated:
                allowed = self.matcher.allowed_token_ids()
                if len(allowed) != 1 or not self.matcher.accept_token(allowed[0]):
                    break
                tokens.append(allowed[0])
        finally:
            self.matcher.rollback(len(tokens))
        return tokens

    def fork(self) -> "RequestMatcher":
        """A copy that goes its own way; the grammar is shared."""
        other = object.__new__(RequestMatcher)
        other.compiled = self.compiled
        other.matcher = self.matcher.fork()
        other._vocab_size = self._vocab_size
        return other

    def _known(self, token: int) -> bool:
        return 0 <= token < self._vocab_size
