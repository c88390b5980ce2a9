"""Bitmasks on their way to an accelerator: filled beside the forward pass, copied beside it too."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

import ffwd
from ffwd.adapters.logits.apply import apply_token_bitmask_inplace, to_device


class StagedBitmask:
    """Bitmasks that the host fills, and their copy where the logits are.

    The mask of the next token is known as soon as the last token is, so a decoding loop fills it
    while the forward pass of that token runs::

        staged.start(lambda bits: ffwd.fill_bitmasks(matchers, bits))
        logits = model(...)  # the device works, and the host returns at once
        staged.apply(logits)

    On CUDA the masks are filled in page-locked memory. The copy has a stream of its own; the stream
    of the logits waits for it on the device, and no call waits on the host.

    Args:
        rows: How many masks.
        vocab_size: The number of tokens.
        device: Of the logits.

    """

    def __init__(self, rows: int, vocab_size: int, device: torch.device) -> None:
        self.rows = rows
        self.device = device
        self._vocab_size = vocab_size
        self._bits: np.ndarray[Any, np.dtype[np.int32]] = ffwd.allocate_bitmask(rows, vocab_size)
        self._filling: Future[None] | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._sent = False
        self._there: torch.Tensor | None = None
        self._stream: Any = None
        self._copied: Any = None
        self._read: Any = None
        if device.type == "cuda":
            self._pinned = torch.from_numpy(self._bits).pin_memory()
            self._bits = self._pinned.numpy()
            self._stream = torch.cuda.Stream(device)
            self._there = torch.empty_like(self._pinned, device=device)
            self._there.record_stream(self._stream)
            self._stream.wait_stream(torch.cuda.current_stream(device))

    @property
    def bits(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        """The masks [rows, words], when they are filled; to be read only."""
        self._join()
        return self._bits

    def writable(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        """Return the masks [rows, words] for writing, until the next `apply`."""
        self._join()
        self._begin()
        return self._bits

    def start(self, fill: Callable[[np.ndarray[Any, np.dtype[np.int32]]], object]) -> None:
        """Fill masks in a thread beside the host's own work, and copy them to the device.

        An error of `fill` is raised where the masks are next used. Without an accelerator they are
        filled at once, because the forward pass needs the same processor.
        """
        self._join()
        if self.device.type == "cpu":
            fill(self.writable())
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="ffwd-masks")
        self._filling = self._thread.submit(self._fill, fill)

    def apply(self, logits: torch.Tensor, indices: Any = None) -> None:
        """Set to -inf, in place, what the masks of these rows do not allow.

        Args:
            logits: [rows, width] on the device; there may be fewer rows than masks, the first ones.
            indices: The rows that are masked; by default all.

        """
        self._join()
        bits: Any = self._bits
        if self._stream is not None:
            if not self._sent:
                self._send()
            torch.cuda.current_stream(self.device).wait_event(self._copied)
            bits = self._there
        elif self.device.type != "cpu":
            bits = to_device(torch.from_numpy(self._bits), self.device)
        if indices is None:
            bits = bits[: len(logits)]
        apply_token_bitmask_inplace(logits, bits, indices, vocab_size=self._vocab_size)
        if self._stream is not None:
            self._read = torch.cuda.current_stream(self.device).record_event()

    def _join(self) -> None:
        filling, self._filling = self._filling, None
        if filling is not None:
            filling.result()

    def _fill(self, fill: Callable[[np.ndarray[Any, np.dtype[np.int32]]], object]) -> None:
        self._begin()
        fill(self._bits)
        if self._stream is not None:
            self._send()

    def _begin(self) -> None:
        """Make sure that nothing reads the masks any more. A step later, nothing does."""
        self._sent = False
        if self._copied is not None and not self._copied.query():
            self._copied.synchronize()

    def _send(self) -> None:
        with torch.cuda.stream(self._stream):
            if self._read is not None:
                self._stream.wait_event(self._read)
            assert self._there is not None
            self._there.copy_(self._pinned, non_blocking=True)
            self._copied = self._stream.record_event()
        self._sent = True
