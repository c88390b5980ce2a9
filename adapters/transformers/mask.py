"""Token bitmasks onto a tensor of scores, without a loop over the vocabulary."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

import ffwd
from ffwd import Matcher, Vocabulary, VocabularyError
from ffwd.adapters.logits import apply_token_bitmask_inplace
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
        self._bits: np.ndarray[Any, np.dtype[np.int32]] = ffwd.allocate_bitmask(
            rows, self._vocab_size
        )
        self._ended = np.zeros(self._bits.shape[1], dtype=np.int32)
        for token in vocabulary.eos_token_ids:
            word, bit = divmod(token, _WORD_BITS)
            self._ended.view(np.uint32)[word] |= np.uint32(1 << bit)
        self._free: set[int] = set()
        self.rows = rows
        self._starved: list[int] | None = []
        self._pinned: torch.Tensor | None = None
        self._copied: Any = None

    def fill(self, matchers: Sequence[Matcher], rows: Sequence[int]) -> None:
        """Write each matcher's mask to its row, in parallel."""
        self._wait_for_copy()
        if rows:
            ffwd.fill_bitmasks(matchers, self._bits, rows=rows)
            if self._free:
                self._free.difference_update(rows)

    def set_only(self, row: int, token: int) -> None:
        """Allow one token in a row."""
        self._wait_for_copy()
        word, bit = divmod(token, _WORD_BITS)
        self._bits[row] = 0
        self._bits[row].view(np.uint32)[word] = np.uint32(1 << bit)
        self._free.discard(row)

    def set_free(self, row: int) -> None:
        """Allow every token in a row."""
        self._wait_for_copy()
        self._bits[row] = -1
        self._free.add(row)

    def set_ended(self, row: int) -> None:
        """Allow only end tokens in a row."""
        self._wait_for_copy()
        self._bits[row] = self._ended
        self._free.discard(row)

    def count(self, row: int) -> int:
        """Return the number of tokens allowed in a row."""
        return int.from_bytes(self._bits[row].tobytes(), "little").bit_count()

    def bits(self, row: int) -> np.ndarray[Any, np.dtype[np.int32]]:
        """Return the bitmask of a row, which the next `fill` overwrites."""
        found: np.ndarray[Any, np.dtype[np.int32]] = self._bits[row]
        return found

    def only_token(self, row: int) -> int | None:
        """Return the token if a row allows exactly one."""
        words = np.flatnonzero(self._bits[row])
        if len(words) != 1:
            return None
        word = int(self._bits[row, words[0]]) & 0xFFFFFFFF
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
        bits = self._bits if scores.is_cpu else self._to_device(scores.device)
        count = scores.shape[0]
        free = sorted(row for row in self._free if row < count)
        if scores.requires_grad and torch.is_grad_enabled():
            # Not in place, so that a gradient goes through.
            blocked = blocked_columns(torch.as_tensor(bits[:count]), self._vocab_size, width)
            blocked[free] = False
            return scores.masked_fill(blocked, -torch.inf)
        # The mask of a free row allows every token, but not the columns past them.
        rows = None
        if free or count < self.rows:
            rows = [row for row in range(count) if row not in self._free]
        if not scores.is_cpu:
            masked = scores if in_place else scores.clone(memory_format=torch.contiguous_format)
            apply_token_bitmask_inplace(masked, bits, rows, vocab_size=self._vocab_size)
            return masked
        given = scores.detach()
        if in_place:
            masked, source = given, None
        else:
            source = given if given.stride(-1) == 1 else given.contiguous()
            masked = torch.empty_like(source, memory_format=torch.contiguous_format)
            if free:
                masked[free] = source[free]
        self._starved = ffwd.apply_token_bitmask_inplace(
            masked, bits, rows, source=source, vocab_size=self._vocab_size
        )
        return scores if in_place else masked

    def starved(self, masked: torch.Tensor) -> list[int]:
        """Return the rows without a token to choose, of the scores that `apply` has returned last.

        Those in which all scores that a mask allows are -inf. NaN is a score. On an accelerator
        this waits for the device.
        """
        if self._starved is None:
            lost = masked.amax(dim=-1) == -torch.inf
            self._starved = torch.nonzero(lost).flatten().tolist()
        return self._starved

    def _to_device(self, device: torch.device) -> torch.Tensor:
        if device.type != "cuda":
            return torch.from_numpy(self._bits).to(device)
        if self._pinned is None:
            # From here on the masks are filled straight into page-locked memory.
            self._pinned = torch.from_numpy(self._bits).pin_memory()
            self._bits = self._pinned.numpy()
        moved = self._pinned.to(device, non_blocking=True)
        self._copied = torch.cuda.current_stream(device).record_event()
        return moved

    def _wait_for_copy(self) -> None:
        # The copy reads page-locked memory while the host runs on: overwrite it only afterwards.
        if self._copied is not None:
            self._copied.synchronize()
            self._copied = None
