"""One request of llama-cpp-python: the new tokens of a context, and the allowed next ones."""

import numpy as np
from numpy.typing import NDArray

import ffwd
from ffwd import Matcher, Vocabulary, VocabularyError
from ffwd.adapters.shared.sequence import (
    RECENT_TOKENS,
    GrammarOrStart,
    NoTokenLeftError,
    RefusedTokenError,
)
from ffwd.chat import Start


class Request:
    """The matcher of a request, synchronized with the ids that llama-cpp-python shows.

    A processor is called once for every sampled token, so each call is one token further than the
    call before. Its argument is the evaluated ids: drafts may follow the sampled ones, and the next
    calls process them one by one as long as they are confirmed.

    Forced tokens are those of the tokenizer, and the only allowed ones. A draft of them is
    confirmed, and a text with drafts equals one without.

    Args:
        grammar: The grammar of the request.
        canonical: Allow only tokens that keep the output a tokenization of the tokenizer.
        max_tokens: The most tokens of the output.
        only: Whether there is a single prompt. Then ids that start with the known ones continue
            them, whatever drafts they have. Otherwise they may be a new prompt, and only the pair's
            drafts are known.
    """

    def __init__(
        self, grammar: GrammarOrStart, *, canonical: bool, max_tokens: int | None, only: bool
    ) -> None:
        self._grammar = grammar
        self._vocabulary = grammar.vocabulary
        self._canonical = canonical
        self._only = only
        self._max_tokens = max_tokens
        self._bits = ffwd.allocate_bitmask(1, self._vocabulary.vocab_size)
        # Raises errors of the options at once.
        self._matcher: Matcher = self._new_matcher([])
        self._forces = _encodes(self._vocabulary)
        self._ids: NDArray[np.intc] = np.empty(0, dtype=np.intc)
        self._prompt_length = 0
        self._shown = 0
        # Whether a request for drafts has already accepted the last sampled token.
        self._taken = False
        self._forced: list[int] = []
        self._unconfirmed = 0
        self.drafted = 0
        self.confirmed = 0
        self.masks = 0

    @property
    def begun(self) -> bool:
        """Whether the prompt has been seen."""
        return self._prompt_length > 0

    def restart(self) -> None:
        """Take the next ids for a prompt."""
        self._prompt_length = 0

    def begins(self, input_ids: NDArray[np.intc]) -> bool:
        """Return whether the ids begin with those that the request has taken."""
        known = len(self._ids)
        return (
            self.begun and len(input_ids) >= known and np.array_equal(input_ids[:known], self._ids)
        )

    def goes_on(self, input_ids: NDArray[np.intc], drafts: int) -> bool:
        """Return whether these ids are the same request's, one token further than at the last call.

        `drafts` is how many drafts may follow that token.
        """
        known, count = len(self._ids), len(input_ids)
        if not self.begins(input_ids):
            return False
        if self._only:
            return True
        if self._taken:
            return count <= known + drafts
        # One more sampled token; or drafts are processed, or the same position is sampled again.
        return count in (known + 1, self._shown, known)

    def begin(self, prompt: NDArray[np.intc]) -> None:
        """Take a prompt.

        Raises:
            ValueError: A `Start` is not one after this prompt.

        """
        ids = prompt.tolist()
        if isinstance(self._grammar, Start):
            expected = list(self._grammar.prompt_ids)
            if ids[-len(expected) :] != expected:
                raise ValueError("the prompt is not that of its Start: give its prompt_ids")
        self._matcher = self._new_matcher(ids[-RECENT_TOKENS:])
        self._ids = prompt.copy()
        self._prompt_length = self._shown = len(ids)
        self._taken = False
        self._forced = []
        self._unconfirmed = 0
        self.drafted = self.confirmed = self.masks = 0

    def advance(self, input_ids: NDArray[np.intc]) -> None:
        """Move to the position in `input_ids` whose mask is requested.

        Raises:
            RefusedTokenError: The grammar refuses the token before it.

        """
        if not self._taken and len(input_ids) > len(self._ids):
            self._accept(input_ids)
            self._confirm(len(input_ids) == self._shown)
        self._taken = False
        self._shown = len(input_ids)

    def _confirm(self, draft: bool) -> None:
        if draft and self._unconfirmed:
            self.confirmed += 1
            self._unconfirmed -= 1
        else:
            self._unconfirmed = 0

    def mask(self, scores: NDArray[np.single]) -> NDArray[np.single]:
        """Return a copy of the scores with -inf for every token that is not allowed.

        Raises:
            NoTokenLeftError: All are -inf then.
            VocabularyError: There are more tokens than scores.

        """
        if self._vocabulary.vocab_size > len(scores):
            raise VocabularyError(
                f"the vocabulary has {self._vocabulary.vocab_size} tokens, the model's logits only"
                f" {len(scores)}: it is another model's"
            )
        self.masks += 1
        forced = self._forced_here()
        if forced and scores[forced[0]] != -np.inf:
            masked = np.full(len(scores), -np.inf, dtype=np.single)
            masked[forced[0]] = scores[forced[0]]
            return masked
        # The argument has the logits among ids and probabilities, with gaps between them.
        masked = np.array(scores, dtype=np.single)
        self._matcher.fill_bitmask(self._bits, 0)
        starved = ffwd.apply_token_bitmask_inplace(
            masked, self._bits[0], vocab_size=self._vocabulary.vocab_size
        )
        if starved:
            raise NoTokenLeftError
        return masked

    def drafts(self, input_ids: NDArray[np.intc], limit: int) -> list[int]:
        """Return the forced tokens after `input_ids`, which end with a sampled token."""
        known = len(self._ids)
        if self._taken or len(input_ids) != known + 1 or not self.begins(input_ids):
            return []
        try:
            self._accept(input_ids)
        except RefusedTokenError:
            return []  # The processor comes upon it, too.
        self._taken = True
        tokens = self._forced_here()[:limit]
        self._unconfirmed = len(tokens)
        self.drafted += len(tokens)
        return tokens

    def only_ends(self, scores: NDArray[np.single]) -> NDArray[np.single]:
        """Return scores that allow only the end."""
        ended = np.full(len(scores), -np.inf, dtype=np.single)
        ends = [token for token in self._vocabulary.eos_token_ids if token < len(scores)]
        ended[ends] = 0.0
        return ended

    def _accept(self, input_ids: NDArray[np.intc]) -> None:
        """Take the next one of the ids."""
        place = len(self._ids)
        token = int(input_ids[place])
        known = 0 <= token < self._vocabulary.vocab_size
        # Tokens after the end have no meaning.
        if not self._matcher.is_terminated() and not (known and self._matcher.accept_token(token)):
            raise RefusedTokenError(
                token=token,
                position=place - self._prompt_length,
                text=self._vocabulary.token_bytes(token) if known else None,
                cause="a logits processor or a GBNF grammar that comes after it chose it",
            )
        self._ids = input_ids[: place + 1].copy()
        # Computed again once they are used up, or after a different token.
        self._forced = self._forced[1:] if self._forced[:1] == [token] else []

    def _forced_here(self) -> list[int]:
        if not self._forced and self._forces and not self._matcher.is_terminated():
            self._forced = self._matcher.fast_forward_tokens()
        return self._forced

    def _new_matcher(self, recent: list[int]) -> Matcher:
        if isinstance(self._grammar, Start):
            return self._grammar.matcher(
                canonical=self._canonical or None, max_tokens=self._max_tokens
            )
        return self._grammar.matcher(
            canonical=self._canonical, recent_tokens=recent, max_tokens=self._max_tokens
        )


def _encodes(vocabulary: Vocabulary) -> bool:
    """Return whether forced text can be tokenized."""
    try:
        vocabulary.encode(b"")
    except VocabularyError:
        return False
    return True
