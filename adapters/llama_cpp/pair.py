"""Masks of a `Llama`'s logits and drafts of its forced tokens, request by request."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
from llama_cpp import LogitsProcessorList, llama_model_is_hybrid, llama_model_is_recurrent
from llama_cpp.llama_speculative import LlamaDraftModel
from numpy.typing import NDArray

from ffwd import FfwdError
from ffwd.adapters.llama_cpp.request import Request
from ffwd.adapters.shared.sequence import GrammarOrStart

_LOGGER = logging.getLogger(__name__)

Processor = Callable[[NDArray[np.intc], NDArray[np.single]], NDArray[np.single]]
"""What llama-cpp-python calls for every token: ids so far and scores [width] to scores."""


class UnsupportedLlamaError(FfwdError):
    """A `Llama` that was made without what drafts need.

    Attributes:
        option: The option of `Llama`.

    """

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(f"drafts need {option}: {reason}")
        self.option = option


@dataclass(frozen=True)
class PairStats:
    """The counters of one request.

    Attributes:
        masks: Tokens that were sampled under a mask.
        drafted: Forced tokens that were proposed.
        confirmed: Of these, those that were sampled, too; each saved an evaluation. The rest were
            cut off by a limit or by the end of the context, or refused.

    """

    masks: int
    drafted: int
    confirmed: int


class GrammarPair:
    """A logits processor and a draft model that work together.

    `pair.constrain(grammar)` gives the processors of one request, `pair.draft_model` is for
    `Llama(draft_model=...)` or `attach`. Without the draft model every token is evaluated
    separately, and the text is the same: forced text has the tokenizer's own tokens. One pair
    serves one `Llama` with sequential requests; requests without a grammar are unchanged.

    Args:
        grammar: What `pair.processor` follows: a `CompiledGrammar`, or the `Start` of a prompt of
            `ffwd.chat`, whose `prompt_ids` are then the prompt.
        max_draft_tokens: At most so many forced tokens at a time. It has to be smaller than the
            `n_batch` of `Llama`, for llama.cpp keeps the logits of one batch only.
        canonical: Leave only tokens with which the text so far, from the prompt on, is one that
            the tokenizer itself would have cut so; see `CompiledGrammar.matcher`.

    Raises:
        ValueError: `max_draft_tokens` is not positive.

    """

    def __init__(
        self,
        grammar: GrammarOrStart | None = None,
        *,
        max_draft_tokens: int = 64,
        canonical: bool = False,
    ) -> None:
        if max_draft_tokens < 1:
            raise ValueError(f"max_draft_tokens is {max_draft_tokens}, must be positive")
        self.max_draft_tokens = max_draft_tokens
        self._canonical = canonical
        self._drafts = 0
        self._current: GrammarProcessors | None = None
        self._own: GrammarProcessors | None = None
        if grammar is not None:
            request = Request(grammar, canonical=canonical, max_tokens=None, only=False)
            self._own = GrammarProcessors(self, request)
        self._draft_model = _ForcedTokens(self)

    def __repr__(self) -> str:
        return f"GrammarPair(max_draft_tokens={self.max_draft_tokens}, canonical={self._canonical})"

    @property
    def draft_model(self) -> LlamaDraftModel:
        """Proposes forced tokens; for `Llama(draft_model=pair.draft_model, logits_all=True)`."""
        return self._draft_model

    @property
    def processor(self) -> Processor:
        """A processor that follows the pair's own grammar, in sequential requests.

        A prompt that does not continue the ids of the previous call is a new request. One that
        consists of the old prompt and exactly its output counts as its continuation; call `reset`
        to avoid this. The drafts of another draft model would count as a new prompt: use
        `constrain` with one.

        Raises:
            ValueError: The pair has no grammar of its own.

        """
        if self._own is None:
            raise ValueError("the pair has no grammar: GrammarPair(grammar), or constrain(grammar)")
        own: Processor = self._own[0]
        return own

    def constrain(
        self,
        grammar: GrammarOrStart,
        *,
        max_tokens: int | None = None,
        canonical: bool | None = None,
    ) -> "GrammarProcessors":
        """Return the processors for one request: `create_completion(logits_processor=...)`.

        Args:
            grammar: A `CompiledGrammar`, or the `Start` of a prompt of `ffwd.chat`.
            max_tokens: Leave only tokens after which the text can still end within so many, the end
                token included. Give what `create_completion` is given, and no text is cut off.
            canonical: As for the pair.

        Raises:
            BudgetError: No text of the grammar ends within `max_tokens`.
            VocabularyError: `canonical`, and the vocabulary has no exact `Bpe`.

        """
        chosen = self._canonical if canonical is None else canonical
        request = Request(grammar, canonical=chosen, max_tokens=max_tokens, only=True)
        return GrammarProcessors(self, request)

    def attach(self, llama: Any) -> None:
        """Attach the pair's draft model to a `Llama` that was made with `logits_all=True`.

        Raises:
            UnsupportedLlamaError: It was made without, its `n_batch` is too small, or the model
                cannot take back tokens.

        """
        _check_llama(llama, self.max_draft_tokens)
        llama.draft_model = self._draft_model

    def reset(self) -> None:
        """Take the next ids for a new request."""
        self._current = None
        if self._own is not None:
            self._own.reset()

    def _process(
        self, processors: "GrammarProcessors", ids: NDArray[np.intc], scores: NDArray[np.single]
    ) -> NDArray[np.single]:
        drafts = self._drafts if self._current is processors else 0
        self._current = processors
        return processors.step(ids, scores, drafts)

    def _forced(self, ids: NDArray[np.intc]) -> list[int]:
        self._drafts = 0
        if self._current is None:
            return []
        tokens = self._current.drafts(ids, self.max_draft_tokens)
        self._drafts = len(tokens)
        return tokens


class GrammarProcessors(LogitsProcessorList):  # type: ignore[misc]
    """The processors of a request, for `logits_processor=`; also a context.

    llama.cpp calls processors where Python's errors are lost. So after an error the text ends with
    the next token, `error` has the reason, and the end of the context raises it::

        with pair.constrain(grammar) as processors:
            llama.create_completion(prompt, logits_processor=processors)

    Attributes:
        error: What ended the text before its time.

    """

    def __init__(self, pair: GrammarPair, request: Request) -> None:
        def processor(ids: NDArray[np.intc], scores: NDArray[np.single]) -> NDArray[np.single]:
            return pair._process(self, ids, scores)

        super().__init__([processor])
        self._request = request
        self.error: Exception | None = None

    def __repr__(self) -> str:
        return f"GrammarProcessors({self.stats}, error={self.error!r})"

    @property
    def stats(self) -> PairStats:
        """Counters of the request, or of the last one."""
        request = self._request
        return PairStats(request.masks, request.drafted, request.confirmed)

    def extend(self, others: Any) -> "GrammarProcessors":
        """Add processors, and return the list.

        With `logit_bias`, llama-cpp-python uses the result of `extend`; a plain list returns None,
        which would drop every processor.
        """
        super().extend(others)
        return self

    def reset(self) -> None:
        """Take the next ids for a new request."""
        self._request.restart()
        self.error = None

    def step(
        self, ids: NDArray[np.intc], scores: NDArray[np.single], drafts: int
    ) -> NDArray[np.single]:
        """Mask the scores at the next position. `drafts` may follow the sampled token."""
        try:
            if self.error is not None and self._request.begins(ids):
                return self._request.only_ends(scores)
            if self._request.goes_on(ids, drafts):
                self._request.advance(ids)
            else:
                self.error = None
                self._request.begin(ids)
            return self._request.mask(scores)
        # An exception here would be printed and dropped, and the scores would stay unmasked.
        except Exception as error:
            _LOGGER.error("the text ends here: %s", error)
            self.error = error
        return self._request.only_ends(scores)

    def drafts(self, ids: NDArray[np.intc], limit: int) -> list[int]:
        """Return the forced tokens after `ids`, if these are the request's."""
        return [] if self.error is not None else self._request.drafts(ids, limit)

    def check(self) -> None:
        """Raise `error` if there is one."""
        if self.error is not None:
            raise self.error

    def __enter__(self) -> "GrammarProcessors":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.check()


class _ForcedTokens(LlamaDraftModel):  # type: ignore[misc]
    """The draft model of a pair."""

    def __init__(self, pair: GrammarPair) -> None:
        self._pair = pair

    def __call__(self, input_ids: NDArray[np.intc], /, **kwargs: Any) -> NDArray[np.intc]:
        return np.array(self._pair._forced(input_ids), dtype=np.intc)


def _check_llama(llama: Any, drafts: int) -> None:
    # Only the pickled state of `Llama` has this option.
    if not llama.__getstate__()["logits_all"] or llama.scores.shape[0] < llama.n_ctx():
        raise UnsupportedLlamaError(
            "logits_all=True", "a draft is confirmed by the logits of each of its places"
        )
    if drafts >= llama.n_batch:
        raise UnsupportedLlamaError(
            "n_batch above max_draft_tokens",
            f"n_batch is {llama.n_batch}, max_draft_tokens {drafts}, and llama.cpp keeps the"
            " logits of one batch only",
        )
    if llama_model_is_recurrent(llama.model) or llama_model_is_hybrid(llama.model):
        raise UnsupportedLlamaError(
            "a model with attention only", "a recurrent one cannot take back a refused draft"
        )
