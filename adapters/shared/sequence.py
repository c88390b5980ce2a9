"""One sequence of a host that shows token ids: its matcher, its mask, its forced tokens."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ffwd
from ffwd import CompiledGrammar, FfwdError, Matcher, Vocabulary, VocabularyError
from ffwd.chat import Start

RECENT_TOKENS = 64
"""How many tokens of the prompt decide what is canonical after it."""

GrammarOrStart = CompiledGrammar | Start
"""What a sequence follows: a grammar, or the start of an answer after a prompt of `ffwd.chat`."""


class RefusedTokenError(FfwdError):
    """The host chose a token that the grammar refuses.

    Attributes:
        token: The token's id.
        position: Its position among the generated tokens, from 0.

    """

    def __init__(
        self,
        *,
        token: int,
        position: int,
        text: bytes | None,
        cause: str = "a logits processor that runs after the grammar chose it, or the ids are those"
        " of another prompt: call reset() before it",
    ) -> None:
        shown = "no text" if text is None else repr(text)
        super().__init__(
            f"the grammar refuses token {token} ({shown}) at position {position} of the generated"
            f" tokens; {cause}"
        )
        self.token = token
        self.position = position


class NoTokenLeftError(FfwdError):
    """Every token that the grammar allows has the score -inf."""

    def __init__(self) -> None:
        super().__init__(
            "every token that the grammar allows has the score -inf; another logits processor or"
            " generation option excludes what the grammar needs"
        )


class SharedProcessorError(FfwdError):
    """One processor was given to several sequences at the same time."""

    def __init__(self) -> None:
        super().__init__(
            "the processor follows two sequences in turn: give each sequence a processor of its"
            " own, or call reset() before another prompt"
        )


_LEFT = 4096
"""How many sequences a processor remembers that it left for another prompt."""


class GrammarSequence:
    """The matcher of one sequence, in step with the ids that a host shows.

    A host shows the prompt and all generated tokens at each step, of which at most one is unseen.
    It may take tokens back. Other ids are those of another prompt.

    Args:
        grammar: A `CompiledGrammar`, or the `Start` of a prompt of `ffwd.chat`.
        canonical: Allow only tokens that keep the text a tokenization of the tokenizer itself; see
            `CompiledGrammar.matcher`.
        narrow: For forced text, allow only the token with which the tokenizer encodes it.
        max_tokens: The most output tokens, the end token included; other tokens are excluded in
            time.

    Raises:
        BudgetError: No output of the grammar ends within `max_tokens`.
        TypeError: `grammar` is neither.
        VocabularyError: `canonical` or `narrow`, and the vocabulary has no exact `Bpe`.

    Attributes:
        masks: How many masks were made since the prompt.

    """

    def __init__(
        self,
        grammar: GrammarOrStart,
        *,
        canonical: bool = False,
        narrow: bool = False,
        max_tokens: int | None = None,
    ) -> None:
        if not isinstance(grammar, GrammarOrStart):
            raise TypeError(
                f"the grammar is a {type(grammar).__name__}; give a CompiledGrammar of"
                " ffwd.compile, or the Start of a prompt of ffwd.chat"
            )
        self.vocabulary: Vocabulary = grammar.vocabulary
        bpe = self.vocabulary.bpe
        if narrow and (bpe is None or not bpe.exact):
            raise VocabularyError(
                "narrow masks need a vocabulary with an exact Bpe, which says for certain which"
                " token is forced: load it by ffwd.tokenizer, or leave narrow off"
            )
        self._grammar = grammar
        self._canonical = canonical
        self._narrow = narrow
        self._max_tokens = max_tokens
        self._bits: NDArray[np.int32] = ffwd.allocate_bitmask(1, self.vocabulary.vocab_size)
        self._prompt: int | None = None
        self._seen: NDArray[np.int64] = np.empty(0, np.int64)
        self._left: dict[int, None] = {}
        self.masks = 0
        # Raises errors of the options before generation.
        self._matcher = self._new_matcher([])
        self._size = self.vocabulary.vocab_size
        self._count = 0
        self.ended: bool = self._matcher.is_terminated()

    @property
    def matcher(self) -> Matcher:
        """The matcher, after the accepted tokens."""
        return self._matcher

    def reset(self) -> None:
        """Take the next ids for a prompt."""
        self._prompt = None
        self._left.clear()

    def follow(self, ids: Any) -> None:
        """Bring the matcher to the ids [length], prompt and output.

        Raises:
            RefusedTokenError: The grammar refuses one of the tokens.
            SharedProcessorError: The ids continue those of a sequence before the last one.
            ValueError: The ids begin with another prompt than that of the `Start`.

        """
        ids = np.array(ids, dtype=np.int64)
        prompt, seen = self._prompt, self._seen
        if prompt is None:
            return self._begin(ids)
        if len(ids) < prompt:
            return self._leave(ids)
        same = min(len(seen), len(ids))
        if not np.array_equal(seen[:same], ids[:same]):
            same = int(np.argmax(seen[:same] != ids[:same]))
        if same < prompt or len(ids) > same + 1:
            return self._leave(ids)
        keep = min(same - prompt, self._count)
        if keep < self._count:
            self.take_back(self._count - keep)
        self._seen = ids[:same]
        for token in ids[same:].tolist():
            self.accept(token)
        self._seen = ids
        return None

    def begin(self, prompt: Sequence[int]) -> None:
        """Take a prompt.

        Raises:
            ValueError: It is another prompt than that of the `Start`.

        """
        self._begin(np.array(prompt, dtype=np.int64))

    def accept(self, token: int) -> None:
        """Take a token; after the end it is padding.

        Raises:
            RefusedTokenError: The grammar refuses it.

        """
        if self.ended:
            return
        known = 0 <= token < self._size
        if not (known and self._matcher.accept_token(token)):
            text = self.vocabulary.token_bytes(token) if known else None
            raise RefusedTokenError(token=token, position=self._count, text=text)
        self._count += 1
        self.ended = self._matcher.is_terminated()

    def take_back(self, count: int) -> None:
        """Take back the last accepted tokens."""
        self._matcher.rollback(count)
        self._count -= count
        self.ended = self._matcher.is_terminated()

    def forced(self, max_tokens: int | None = None) -> list[int]:
        """Return the tokens that are the beginning of every continuation."""
        return [] if self.ended else self._matcher.fast_forward_tokens(max_tokens=max_tokens)

    def mask(self) -> NDArray[np.int32]:
        """Return the bitmask [1, words] of the allowed tokens, which the next call overwrites.

        After the end these are the end tokens.
        """
        self.masks += 1
        bits = self._bits
        forced = self.forced(max_tokens=1) if self._narrow else []
        if not (self.ended or forced):
            self._matcher.fill_bitmask(bits, 0)
            return bits
        bits[:] = 0
        words = bits.view(np.uint32)[0]
        for token in forced or self.vocabulary.eos_token_ids:
            words[token >> 5] |= np.uint32(1 << (token & 31))
        return bits

    def check_width(self, width: int) -> None:
        """Raise a `VocabularyError` if the vocabulary is larger than the logits are wide."""
        if self._size > width:
            raise VocabularyError(
                f"the vocabulary has {self._size} tokens, the model's logits only {width}: it is"
                " another model's"
            )

    def apply(self, scores: NDArray[Any]) -> None:
        """Set the scores [width] of tokens that are not allowed to -inf, in place.

        Raises:
            NoTokenLeftError: All are -inf then.
            VocabularyError: The vocabulary is larger than `width`.

        """
        self.check_width(len(scores))
        if ffwd.apply_token_bitmask_inplace(scores, self.mask()[0], vocab_size=self._size):
            raise NoTokenLeftError

    def only_ends(self, scores: NDArray[Any]) -> None:
        """Leave only the end tokens, in place."""
        scores[:] = -np.inf
        scores[[token for token in self.vocabulary.eos_token_ids if token < len(scores)]] = 0

    def _leave(self, ids: NDArray[np.int64]) -> None:
        """Take another prompt; what alternates is no prompt, but another sequence's step."""
        if hash(ids[:-1].tobytes()) in self._left:
            raise SharedProcessorError
        self._left[hash(self._seen.tobytes())] = None
        if len(self._left) > _LEFT:
            del self._left[next(iter(self._left))]
        self._begin(ids)

    def _begin(self, ids: NDArray[np.int64]) -> None:
        if isinstance(self._grammar, Start):
            # With a prompt cache, hosts show the last tokens of the prompt.
            expected = list(self._grammar.prompt_ids)[-len(ids) :]
            if not len(ids) or ids[-len(expected) :].tolist() != expected:
                raise ValueError("the prompt is not that of its Start: give its prompt_ids")
        self._matcher = self._new_matcher(ids[-RECENT_TOKENS:].tolist())
        self._prompt = len(ids)
        self._seen = ids
        self._count = self.masks = 0
        self.ended = self._matcher.is_terminated()

    def _new_matcher(self, recent: list[int]) -> Matcher:
        if isinstance(self._grammar, Start):
            return self._grammar.matcher(
                canonical=self._canonical or None, max_tokens=self._max_tokens
            )
        return self._grammar.matcher(
            canonical=self._canonical, recent_tokens=recent, max_tokens=self._max_tokens
        )
