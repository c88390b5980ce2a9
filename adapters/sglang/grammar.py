"""A request's grammar, as SGLang's scheduler drives it."""

import dataclasses
import logging
import os
import time
from collections.abc import Callable
from typing import Any

import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarObject,
    GrammarRow,
    GrammarStats,
)
from sglang.srt.utils.common import is_pin_memory_available

from ffwd import CompiledGrammar, FfwdError
from ffwd.adapters.logits import apply_token_bitmask_inplace
from ffwd.adapters.shared.metrics import mask_seconds
from ffwd.adapters.shared.requests import GrammarRequest
from ffwd.engine import EngineRequest, fill_rows

_logger = logging.getLogger(__name__)

_WORD_BITS = 32
# Cached, because the look-up takes longer than filling a cached mask.
THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


class FfwdGrammar(EngineRequest, BaseGrammarObject):  # type: ignore[misc]
    """The grammar of one request and the tokens that it has accepted.

    An end token ends it. Later tokens only count for rollbacks.

    If a mask cannot be computed, the request fails with its next token; other requests do not.

    Args:
        grammar: The request's grammar, or another request to copy.
        request: What the client asked for.
        stats: What SGLang records of it.
        narrow: As for `EngineRequest`.

    """

    def __new__(
        cls,
        grammar: CompiledGrammar | EngineRequest,
        request: GrammarRequest,
        stats: Any = None,
        *,
        narrow: bool = False,
    ) -> "FfwdGrammar":
        """Make the native part, which SGLang's class does not know."""
        del request, stats
        return super().__new__(cls, grammar, narrow=narrow)

    def __init__(
        self,
        grammar: CompiledGrammar | EngineRequest,
        request: GrammarRequest,
        stats: Any = None,
        *,
        narrow: bool = False,
    ) -> None:
        del grammar, narrow
        BaseGrammarObject.__init__(self)
        self.request = request
        self.grammar_stats = stats

    def accept_token(self, token: int) -> None:
        """Accept a token. Raises `ValueError` and changes nothing if the grammar refuses it."""
        if not self.accept(token):
            raise self._error(token)
        # After a retracted request, this shows SGLang that its token was accepted.
        self.current_token = token

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """Return a bitmask that allows all: int32 [batch_size, words]."""
        return allocate_vocab_mask(vocab_size, batch_size, device)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Write the allowed tokens into a row."""
        observe_fill([self], lambda: fill_rows([self], vocab_mask, [idx]))

    @staticmethod
    def fill_vocab_mask_batched(entries: list[GrammarRow], vocab_mask: torch.Tensor) -> None:
        """Fill the rows of a batch in one call; rows of other grammars by themselves."""
        rows: list[int] = []
        ours: list[FfwdGrammar] = []
        for entry in entries:
            if type(entry.grammar) is FfwdGrammar:
                rows.append(entry.row)
                ours.append(entry.grammar)
            else:
                entry.grammar.fill_vocab_mask(vocab_mask, entry.row)
        observe_fill(ours, lambda: fill_rows(ours, vocab_mask, rows, threads=THREADS))

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
        other = FfwdGrammar(self, self.request, stats)
        other.current_token = self.current_token
        return other

    def __repr__(self) -> str:
        # SGLang writes it into its log for every request.
        return f"FfwdGrammar({self.request.kind}, {self.num_tokens} tokens)"

    def _error(self, token: int) -> FfwdError:
        if self.refused is not None:
            return FfwdError(self.refused)
        vocabulary = self.grammar.vocabulary
        known = 0 <= token < vocabulary.vocab_size
        text = vocabulary.token_bytes(token) if known else None
        shown = "no text" if text is None else repr(text)
        return RefusedTokenError(
            f"the {self.request.kind} grammar refuses token {token} ({shown}) at position"
            f" {self.num_tokens} of the output",
            token=token,
            position=self.num_tokens,
        )


def observe_fill(grammars: list[Any], fill: Callable[[], list[int]]) -> None:
    """Time a native call that fills rows, and log which of the grammars exceeded a limit."""
    observed = mask_seconds()
    began = time.perf_counter()
    for index in fill():
        _logger.error("the mask of %r failed: %s", grammars[index], grammars[index].refused)
    if observed is not None:
        observed.observe(time.perf_counter() - began)
