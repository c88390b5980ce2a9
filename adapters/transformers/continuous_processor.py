"""The processor that applies grammars in continuous batching. Needs transformers 5.

`transformers` shows a processor of continuous batching the requests of the next step before the
step, and their scores in it. The state of a request is in its own keyword arguments, so that it is
forked, restarted and freed with the request.
"""

import logging
from dataclasses import dataclass
from typing import Any

import torch
from transformers.generation.continuous_batching.cb_logits_processors import (
    ContinuousBatchingLogitsProcessor,
)

from ffwd import CompiledGrammar, FfwdError, Vocabulary, VocabularyError
from ffwd.adapters.transformers.errors import RefusedTokenError
from ffwd.adapters.transformers.mask import ScoreMask
from ffwd.adapters.transformers.rows import RECENT_TOKENS, GrammarOrStart, Row
from ffwd.chat import Start

_LOGGER = logging.getLogger(__name__)

_ROW = "_ffwd_row"


@dataclass
class _Failed:
    """A request that has an error, and may only end."""


class GrammarBatchProcessor(ContinuousBatchingLogitsProcessor):
    """Masks the scores of each request with the mask of its own grammar.

    A request that its grammar fails gets the error's text as its `error` and ends with the next
    token; the others go on.

    Args:
        vocabulary: Of all grammars.

    """

    # The type of a grammar is looked at here, where a request can be told what is wrong.
    supported_kwargs = {"grammar": object, "canonical": bool, "complete": bool}  # noqa: RUF012
    ignored_kwargs = (_ROW,)

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._mask = ScoreMask(vocabulary, 0)
        self._count = 0
        self._masked = False

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        """Fill the argument of requests that say nothing; it is not read."""
        int32_tensor.fill_(0)

    def prepare_tensor_args(self, requests_with_new_token: list[Any]) -> torch.Tensor:
        """Bring the matchers up to date and begin to fill the masks of the next step.

        On an accelerator they are filled while the model runs.

        Returns:
            An argument for each request, as transformers asks for one; it is not read.

        """
        # Where prompts are processed in parts, the model may not have asked for the last masks.
        self._mask.wait()
        count = len(requests_with_new_token)
        if count > self._mask.rows:
            self._mask = ScoreMask(self._vocabulary, max(count, 2 * self._mask.rows))
        self._count = count
        self._masked = False
        masked: list[tuple[int, Any, Row]] = []
        for index, request in enumerate(requests_with_new_token):
            state = request.state
            row = self._row(state)
            if row is None:
                self._mask.set_free(index)
                continue
            self._masked = True
            if isinstance(row, _Failed) or row.ended:
                self._mask.set_ended(index)
            else:
                masked.append((index, state, row))
        self._mask.start(
            [row.matcher for _, _, row in masked],
            [index for index, _, _ in masked],
            failed=lambda place, error: _fail(masked[place][1], error),
        )
        return torch.zeros(count, dtype=torch.int32)

    def __call__(self, scores: torch.Tensor, tensor_arg: torch.Tensor) -> torch.Tensor:
        """Mask the scores [rows, width] in place; those of requests without a grammar stay.

        There are more rows than requests with a new token where prompts are processed in parts:
        what is sampled from the rest is not looked at.
        """
        if self._masked:
            self._mask.apply(scores[: self._count], in_place=True)
        return scores

    def _row(self, state: Any) -> Row | _Failed | None:
        """Return the request's row, with all of its tokens; None without a grammar."""
        given = state.logit_processor_kwargs
        if given.get("grammar") is None:
            return None
        row: Row | _Failed | None = given.get(_ROW)
        if isinstance(row, _Failed):
            return row
        # Also for a request that was evicted from the cache, whose tokens are in its prompt.
        output = state.to_generation_output()
        try:
            if row is None:
                row = given[_ROW] = self._begin(state, output)
            tokens = output.generated_tokens
            if tokens[: len(row.tokens)] != row.tokens:
                row.move_to(tokens)
            else:
                for token in tokens[len(row.tokens) :]:
                    row.accept(token)
            if row.refused is not None:
                raise RefusedTokenError(
                    row=0,
                    token=row.refused,
                    position=len(row.tokens),
                    text=self._text(row.refused),
                )
        except (FfwdError, ValueError, TypeError) as error:
            return _fail(state, error)
        return row

    def _begin(self, state: Any, output: Any) -> Row:
        given = state.logit_processor_kwargs
        grammar = given["grammar"]
        if not isinstance(grammar, GrammarOrStart):
            raise TypeError(
                "grammar must be a CompiledGrammar or a Start of ffwd.chat, not"
                f" {type(grammar).__name__}"
            )
        theirs, ours = grammar.vocabulary, self._vocabulary
        if theirs.vocab_size != ours.vocab_size or theirs.eos_token_ids != ours.eos_token_ids:
            raise VocabularyError("the grammar was compiled for another vocabulary")
        canonical = given.get("canonical", False)
        max_tokens = None
        if given.get("complete", False) and state.max_new_tokens is not None:
            # After a restart, what has been generated is in the prompt and no longer counted.
            max_tokens = state.max_new_tokens + len(output.generated_tokens)
            max_tokens -= state.generated_len()
        prompt = output.prompt_ids
        if isinstance(grammar, CompiledGrammar):
            return Row(
                grammar.matcher(
                    canonical=canonical,
                    recent_tokens=prompt[-RECENT_TOKENS:],
                    max_tokens=max_tokens,
                )
            )
        start = _started(grammar, prompt)
        return Row(start.matcher(canonical=canonical or None, max_tokens=max_tokens))

    def _text(self, token: int) -> bytes | None:
        known = 0 <= token < self._vocabulary.vocab_size
        return self._vocabulary.token_bytes(token) if known else None


def _started(start: Start, prompt: list[int]) -> Start:
    expected = list(start.prompt_ids)
    if prompt[-len(expected) :] != expected:
        raise ValueError("the request is not the prompt of its Start: give it the prompt_ids")
    return start


def _fail(state: Any, error: Exception) -> _Failed:
    _LOGGER.warning("request %s ends early: %s", state.request_id, error)
    state.error = str(error)
    failed = state.logit_processor_kwargs[_ROW] = _Failed()
    return failed
