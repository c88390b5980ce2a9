"""One native call for what SGLang does with grammars in every step.

SGLang asks a backend for a new bitmask in each step, and walks over the tree of each request's
drafts in Python, with an accept, a fill and a rollback for each node. If all grammars of a batch
are ffwd's, `StepRows.fill` fills its rows, in memory that is used again. `fill_trees` walks over
all trees. Both release the interpreter lock. Any other batch takes SGLang's own way.
"""

import functools
import logging
import weakref
from collections.abc import Callable
from typing import Any

import torch
from sglang.srt.constrained.base_grammar_backend import GrammarMask
from sglang.srt.constrained.grammar_manager import GrammarManager
from sglang.srt.sampling.sampling_batch_info import SamplingBatchInfo
from sglang.srt.speculative import spec_utils

from ffwd.adapters.sglang.arrivals import without_waiting
from ffwd.adapters.sglang.grammar import (
    THREADS,
    FfwdGrammar,
    allocate_vocab_mask,
    observe_fill,
)
from ffwd.adapters.sglang.surface import ARRIVALS, ROWS, TREES, changed
from ffwd.adapters.shared.surface import Symbol
from ffwd.engine import StepRows, fill_trees

_logger = logging.getLogger(__name__)


def extend_step(backend: type) -> None:
    """Replace SGLang's functions for arrivals, and for masks of a batch and its drafts, once.

    One whose source is not as it was tested stays, and a line of the log names it.

    Args:
        backend: The class of ffwd's backends.

    """
    _extend(SamplingBatchInfo, "update_regex_vocab_mask", _in_one_call, ROWS)
    _extend(spec_utils, "generate_token_bitmask", _trees_in_one_call, TREES)
    wait = without_waiting(backend)
    _extend(GrammarManager, "get_ready_grammar_requests", wait, ARRIVALS)


def _extend(
    owner: Any,
    name: str,
    wrap: Callable[[Callable[..., Any]], Callable[..., Any]],
    symbols: tuple[Symbol, ...],
) -> None:
    original = getattr(owner, name)
    if hasattr(original, "__wrapped__"):
        return
    differing = changed(symbols)
    if differing:
        _logger.warning(
            "%s stays SGLang's own, which is slower: %s is not as in the SGLang that ffwd supports",
            name,
            ", ".join(map(str, differing)),
        )
        return
    setattr(owner, name, wrap(original))


class MaskMemory:
    """Bitmasks in memory that is used again, so that only what differs is written.

    Args:
        width: The number of tokens.
        device: The device of the logits.

    """

    def __init__(self, width: int, device: str) -> None:
        self._width = width
        self._device = torch.device(device)
        self._blocks: list[_Block] = []

    def fill(self, grammars: list[Any]) -> torch.Tensor:
        """Return a row for each grammar, on the device; one for None allows every token."""
        count = len(grammars)
        block = next((each for each in self._blocks if each.is_free(count)), None)
        if block is None:
            # Smaller ones are too small for this batch, which seldom shrinks.
            self._blocks = [each for each in self._blocks if not each.is_free(0)]
            block = _Block(allocate_vocab_mask(self._width, count))
            self._blocks.append(block)
        try:
            observe_fill(grammars, lambda: block.rows.fill(grammars, threads=THREADS)[1])
        except BaseException:
            block.rows.forget()
            raise
        return block.lend(count, self._device)


class _Block:
    """A bitmask, which others read until they drop it, or until its copy is made."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        self.rows = StepRows(tensor.numpy())
        self._is_read: Callable[[], bool] = lambda: False

    def is_free(self, count: int) -> bool:
        """Return whether this number of rows can be written."""
        return count <= len(self._tensor) and not self._is_read()

    def lend(self, count: int, device: torch.device) -> torch.Tensor:
        """Return the first rows on a device."""
        rows = self._tensor[:count]
        if device.type == "cpu":
            reader = weakref.ref(rows)
            self._is_read = lambda: reader() is not None
            return rows
        copy = rows.to(device, non_blocking=True)
        done = torch.get_device_module(device).Event()
        done.record()
        self._is_read = lambda: not done.query()
        return copy


@functools.cache
def _memory(width: int, device: str) -> MaskMemory:
    return MaskMemory(width, device)


def _in_one_call(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def update_regex_vocab_mask(self: Any) -> None:
        grammars = self.grammars or ()
        used = [grammar for grammar in grammars if grammar is not None]
        if {*map(type, used)} != {FfwdGrammar} or len(grammars) != len(self.temperatures):
            original(self)
            return
        # Requests that have ended allow every token anyway.
        open_ones = [None if each is None or each.finished else each for each in grammars]
        mask = _memory(self.vocab_size, str(self.device)).fill(open_ones)
        self.grammar_mask = GrammarMask(used[0], mask)

    return update_regex_vocab_mask


def _trees_in_one_call(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def generate_token_bitmask(
        reqs: list[Any],
        retrieve_next_token_cpu: torch.Tensor,
        retrieve_next_sibling_cpu: torch.Tensor,
        draft_tokens_cpu: torch.Tensor,
        vocab_size: int,
    ) -> Any:
        trees = (draft_tokens_cpu, retrieve_next_token_cpu, retrieve_next_sibling_cpu)
        grammars = [req.grammar for req in reqs]
        used = [grammar for grammar in grammars if grammar is not None]
        if {*map(type, used)} != {FfwdGrammar}:
            return original(reqs, *trees[1:], trees[0], vocab_size)
        # SGLang copies it to the device itself, so it cannot be known when it is free again.
        mask = allocate_vocab_mask(vocab_size, draft_tokens_cpu.numel())
        arrays = [tree.to(torch.int64).contiguous().numpy() for tree in trees]
        observe_fill(grammars, lambda: fill_trees(grammars, mask, *arrays, threads=THREADS))
        return mask, used[-1]

    return generate_token_bitmask
