"""A request's grammar, as SGLang's scheduler drives it."""

import dataclasses
import logging
import os
import time
from typing import Any

import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarObject,
    GrammarRow,
    GrammarStats,
)
from sglang.srt.constrained.torch_ops.token_filter_torch_ops import set_token_filter_torch
from sglang.srt.utils.common import is_pin_memory_available

import ffwd
from ffwd import CompiledGrammar, FfwdError
from ffwd.adapters.logits import apply_token_bitmask_inplace
from ffwd.adapters.shared.matcher import RequestMatcher
from ffwd.adapters.shared.metrics import mask_seconds
from ffwd.adapters.shared.requests import GrammarRequest

_logger = logging.getLogger(__name__)

_WORD_BITS = 32
# Cached, because the look-up takes longer than filling a cached mask.
_THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class RefusedTokenError(FfwdError):
    """SGLang sampled a token that the grammar refuses. `token` is its id, `position` its place."""

    def __init__(self, message: str, *, token: int, position: int) -> None:
        super().__init__(message)
        self.token = token
        self.position = position


def allocate_vocab_mask(vocab_size: int, batch_size: int, device: Any = None) -> torch.Tensor:
    """Return a bitmask that allows all: int32 [batch_size, words], in CPU memory."""
    del device  # It is filled on the processor and copied then.
    return torch.full(
        (batch_size, -(-vocab_size // _WORD_BITS)),
        -1,
        dtype=torch.int32,
        pin_memory=is_pin_memory_available(),
    )


def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
    """Copy the bitmask to the device of the logits, without waiting if memory is page-locked."""
    return vocab_mask.to(device, non_blocking=True)


def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
    """Set to -inf, in place, what the bitmask does not allow; both on one device."""
    apply_token_bitmask_inplace(logits, vocab_mask)


class FfwdGrammar(BaseGrammarObject):  # type: ignore[misc]
    """The grammar of one request and the tokens that it has accepted.

    An end token ends it. Later tokens only count for rollbacks.

    If a mask cannot be computed, the request fails with its next token; other requests do not.
    """

    def __init__(self, matcher: RequestMatcher, request: GrammarRequest, stats: Any = None) -> None:
        super().__init__()
        self.request = request
        self.grammar_stats = stats
        self._matcher = matcher
        self._after_end = 0
        self._failure: FfwdError | None = None

    @property
    def compiled(self) -> CompiledGrammar:
        """The state that all requests with this grammar share."""
        return self._matcher.compiled

    @property
    def num_tokens(self) -> int:
        """How many tokens have been accepted and not rolled back, those after the end included."""
        return self._matcher.num_tokens + self._after_end

    def accept_token(self, token: int) -> None:
        """Accept a token. Raises `ValueError` and changes nothing if the grammar refuses it."""
        if self._failure is not None:
            raise self._failure
        if self._matcher.is_terminated:
            self._after_end += 1
        elif not self._matcher.accept([token]):
            raise self._refused(token)
        # After a retracted request, this shows SGLang that its token was accepted.
        self.current_token = token

    def rollback(self, k: int) -> None:
        """Remove the last tokens; `IndexError` for more than were accepted."""
        after_end = min(k, self._after_end)
        self._matcher.rollback(k - after_end)
        self._after_end -= after_end
        self._failure = None

    def is_terminated(self) -> bool:
        """Return whether an end token has been accepted."""
        return self._matcher.is_terminated

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """Return a bitmask that allows all: int32 [batch_size, words]."""
        return allocate_vocab_mask(vocab_size, batch_size, device)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Write the allowed tokens into a row."""
        try:
            self._matcher.fill(vocab_mask, idx)
        except FfwdError as error:
            self._fail(error, vocab_mask, idx)

    @staticmethod
    def fill_vocab_mask_batched(entries: list[GrammarRow], vocab_mask: torch.Tensor) -> None:
        """Fill the rows of a batch in one call; rows of other grammars by themselves."""
        rows: list[int] = []
        matchers: list[ffwd.Matcher] = []
        for entry in entries:
            if isinstance(entry.grammar, FfwdGrammar):
                rows.append(entry.row)
                matchers.append(entry.grammar._matcher.matcher)
            else:
                entry.grammar.fill_vocab_mask(vocab_mask, entry.row)
        observed = mask_seconds()
        began = time.perf_counter()
        try:
            ffwd.fill_bitmasks(matchers, vocab_mask, rows, threads=_THREADS)
        except FfwdError:
            # One of them failed; filling each separately shows which.
            for entry in entries:
                if isinstance(entry.grammar, FfwdGrammar):
                    entry.grammar.fill_vocab_mask(vocab_mask, entry.row)
        if observed is not None:
            observed.observe(time.perf_counter() - began)

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Allow all in every row."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """Copy the bitmask to the device of the logits."""
        return move_vocab_mask(vocab_mask, device)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """Set to -inf, in place, what the bitmask does not allow."""
        apply_vocab_mask(logits, vocab_mask)

    def copy(self) -> "FfwdGrammar":
        """Return an independent copy of the sequence, which shares the compiled grammar."""
        stats = self.grammar_stats
        if isinstance(stats, GrammarStats):
            stats = dataclasses.replace(stats, is_cache_hit=True, tree_traversal_time=[])
        other = FfwdGrammar(self._matcher.fork(), self.request, stats)
        other.current_token = self.current_token
        other._after_end = self._after_end
        other._failure = self._failure
        return other

    def forced(self, max_tokens: int) -> list[int]:
        """Return the next tokens, up to `max_tokens`, as long as only one is allowed."""
        return self._matcher.forced(max_tokens)

    def __repr__(self) -> str:
        # SGLang writes it into its log for every request.
        return f"FfwdGrammar({self.request.kind}, {self.num_tokens} tokens)"

    def _refused(self, token: int) -> RefusedTokenError:
        vocabulary = self.compiled.vocabulary
        known = 0 <= token < vocabulary.vocab_size
        text = vocabulary.token_bytes(token) if known else None
        shown = "no text" if text is None else repr(text)
        return RefusedTokenError(
            f"the {self.request.kind} grammar refuses token {token} ({shown}) at position"
            f" {self.num_tokens} of the output",
            token=token,
            position=self.num_tokens,
        )

    def _fail(self, error: FfwdError, vocab_mask: torch.Tensor, row: int) -> None:
        _logger.error("the mask of %r failed: %s", self, error)
        self._failure = error
        # SGLang checks for end tokens before it asks whether a token is accepted, and a row that
        # allows nothing makes sampling undefined. So a token is allowed that is no end token and
        # that no draft is likely to have.
        vocabulary = self.compiled.vocabulary
        ends = set(vocabulary.eos_token_ids)
        token = next(
            token
            for token in reversed(range(vocabulary.vocab_size))
            if token not in ends and vocabulary.token_bytes(token)
        )
        set_token_filter_torch(vocab_mask, [token], row, is_allowed=True, reset_vocab_mask=True)
