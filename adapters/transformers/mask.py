"""Token bitmasks onto a tensor of scores, without a loop over the vocabulary."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch

import ffwd
from ffwd import FfwdError, Matcher, Vocabulary, VocabularyError
from ffwd.adapters.logits import StagedBitmask
from ffwd.adapters.logits.torch_bitmask import blocked_columns

_WORD_BITS = 32


class ScoreMask:
    """Bitmasks for the rows of a batch, and their application to scores.

    Each row is in one of three states: *masked* by a matcher, *free* (every token allowed), or
    *ended* (only the vocabulary's end tokens allowed).

    Args:
        vocabulary: Of all grammars in the batch.
        rows: Number of rows.

    """

    def __init__(self, vocabulary: Vocabulary, rows: int) -> None:
        self._vocab_size = vocabulary.vocab_size
        # The scores say on which device they are.
        self._staged = StagedBitmask(rows, self._vocab_size, torch.device("cpu"))
        self._ends = vocabulary.eos_token_ids
        self._free: set[int] = set()
        self.rows = rows
        self._starved: list[int] | None = []

    @cached_property
    def _ended(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        """The mask of end tokens."""
        row: np.ndarray[Any, np.dtype[np.int32]] = np.zeros_like(self._staged.bits[0])
        for token in self._ends:
            word, bit = divmod(token, _WORD_BITS)
            row.view(np.uint32)[word] |= np.uint32(1 << bit)
        return row

    def fill(self, matchers: Sequence[Matcher], rows: Sequence[int]) -> None:
        """Write each matcher's mask to its row, in parallel."""
        if rows:
            ffwd.fill_bitmasks(matchers, self._staged.writable(), rows=rows)
            if self._free:
                self._free.difference_update(rows)

    def start(
        self,
        matchers: Sequence[Matcher],
        rows: Sequence[int],
        *,
        failed: Callable[[int, FfwdError], object] | None = None,
        filled: Callable[[], None] | None = None,
    ) -> None:
        """Fill rows as `fill` does, on an accelerator beside the forward pass.

        Args:
            matchers: Not to be used before the masks are.
            rows: One for each matcher.
            failed: Receives the place of a matcher that has no mask, and its error; the row then
                allows only end tokens. Without it the error is raised where the masks are used.
            filled: Called afterwards, in the thread that has filled them.

        """
        self._free.difference_update(rows)

        def fill(bits: np.ndarray[Any, np.dtype[np.int32]]) -> None:
            try:
                if rows:
                    ffwd.fill_bitmasks(matchers, bits, rows=rows)
            except FfwdError:
                if failed is None:
                    raise
                # One of them failed: fill each by itself, so that the others continue.
                for place, (matcher, row) in enumerate(zip(matchers, rows, strict=True)):
                    error = _error_of(matcher, bits, row)
                    if error is not None:
                        bits[row] = self._ended
                        failed(place, error)
            if filled is not None:
                filled()

        self._staged.start(fill)

    def wait(self) -> None:
        """Wait until masks that were started are filled, and raise what failed."""
        _ = self._staged.bits

    def set_only(self, row: int, token: int) -> None:
        """Allow one token in a row."""
        word, bit = divmod(token, _WORD_BITS)
        bits = self._staged.writable()[row]
        bits[:] = 0
        bits.view(np.uint32)[word] = np.uint32(1 << bit)
        self._free.discard(row)

    def set_free(self, row: int) -> None:
        """Allow every token in a row."""
        self._staged.writable()[row] = -1
        self._free.add(row)

    def set_ended(self, row: int) -> None:
        """Allow only end tokens in a row."""
        self._staged.writable()[row] = self._ended
        self._free.discard(row)

    def count(self, row: int) -> int:
        """Return the number of tokens allowed in a row."""
        return int.from_bytes(self._staged.bits[row].tobytes(), "little").bit_count()

    def bits(self, row: int) -> np.ndarray[Any, np.dtype[np.int32]]:
        """Return the bitmask of a row, which the next `fill` overwrites."""
        found: np.ndarray[Any, np.dtype[np.int32]] = self._staged.bits[row]
        return found

    def only_token(self, row: int) -> int | None:
        """Return the token if a row allows exactly one."""
        bits = self._staged.bits[row]
        words = np.flatnonzero(bits)
        if len(words) != 1:
            return None
        word = int(bits[words[0]]) & 0xFFFFFFFF
        if word & (word - 1):
            return None
        return int(words[0]) * _WORD_BITS + word.bit_length() - 1

    def apply(self, scores: torch.Tensor, *, in_place: bool = False) -> torch.Tensor:
        """Return scores with -inf where a token is not allowed.

        Args:
            scores: Shape [rows, width], any floating type and device; there may be fewer rows than
                the mask has, the first ones. Columns from the vocabulary's size on are padding of
                the model's output layer and get -inf in rows that are not free.
            in_place: Write to `scores`; otherwise they are left as they are.

        Raises:
            VocabularyError: If the vocabulary is larger than `width`.

        """
        width = scores.shape[-1]
        if self._vocab_size > width:
            raise VocabularyError(
                f"the vocabulary has {self._vocab_size} tokens, the model's logits only {width};"
                " build it with vocab_size= of this model's configuration"
            )
        self._starved = None
        if scores.device != self._staged.device:
            staged = StagedBitmask(self.rows, self._vocab_size, scores.device)
            staged.writable()[:] = self._staged.bits
            self._staged = staged
        count = scores.shape[0]
        free = sorted(row for row in self._free if row < count) if self._free else []
        if scores.requires_grad and torch.is_grad_enabled():
            # Not in place, so that a gradient goes through.
            bits = torch.from_numpy(self._staged.bits[:count]).to(scores.device)
            blocked = blocked_columns(bits, self._vocab_size, width)
            blocked[free] = False
            return scores.masked_fill(blocked, -torch.inf)
        # The mask of a free row allows every token, but not the columns past them.
        rows = [row for row in range(count) if row not in self._free] if free else None
        if not scores.is_cpu:
            masked = scores if in_place else scores.clone(memory_format=torch.contiguous_format)
            self._staged.apply(masked, rows)
            return masked
        given = scores.detach() if scores.requires_grad else scores
        if in_place:
            masked, source = given, None
        else:
            source = given if given.stride(-1) == 1 else given.contiguous()
            masked = torch.empty_like(source, memory_format=torch.contiguous_format)
            if free:
                masked[free] = source[free]
        self._starved = ffwd.apply_token_bitmask_inplace(
            masked, self._staged.bits[:count], rows, source=source, vocab_size=self._vocab_size
        )
        return scores if in_place else masked

    def starved(self, masked: torch.Tensor) -> list[int]:
        """Return the rows without a token to choose, of the scores that `apply` has returned last.

        Those in which all scores that a mask allows are -inf. NaN is a score. On an accelerator
        this waits for the device; `lost` does not.
        """
        if self._starved is None:
            self._starved = torch.nonzero(self.lost(masked)).flatten().tolist()
        return self._starved

    def lost(self, masked: torch.Tensor) -> torch.Tensor:
        """Return whether each row is `starved`, bool [rows] on the device of the scores."""
        if self._starved is None:
            return masked.amax(dim=-1) == -torch.inf
        lost = torch.zeros(len(masked), dtype=torch.bool)
        lost[self._starved] = True
        return lost


def _error_of(
    matcher: Matcher, bits: np.ndarray[Any, np.dtype[np.int32]], row: int
) -> FfwdError | None:
    """Write a matcher's mask to a row, and return what prevents it."""
    try:
        matcher.fill_bitmask(bits, row)
    except FfwdError as error:
        return error
    return None
