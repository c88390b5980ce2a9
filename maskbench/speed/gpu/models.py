"""Models of real shapes with random weights, made on the spot, and their forward passes.

The cache is static, so that a pass is one CUDA graph. Rows of a pass may have different numbers of
tokens: the chunk is padded on the left, and the padding stays in the cache as holes of the mask.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

from ffwd.adapters.logits import to_device

SHAPES: dict[str, dict[str, Any]] = {
    "tiny": {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    },
    "1b": {
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
    },
    "8b": {
        "hidden_size": 4096,
        "intermediate_size": 14_336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
    },
}
"""Those of Llama 3.2 1B and Llama 3.1 8B, and one for tests; the vocabulary sets the width."""

PROMPT = 16
"""Tokens of the prompt, which no time contains."""


def pass_width(tokens: int) -> int:
    """Return the columns of a pass: a power of two, because each width has a graph of its own."""
    return 1 << (tokens - 1).bit_length()


def random_model(shape: str, vocab_size: int, device: torch.device, dtype: torch.dtype) -> Any:
    """Return a Llama with random weights on a device. Raises `torch.OutOfMemoryError`."""
    options: dict[str, Any] = {"attn_implementation": "sdpa"}
    config = LlamaConfig(
        **SHAPES[shape],
        vocab_size=vocab_size,
        max_position_embeddings=8192,
        tie_word_embeddings=shape != "8b",
        **options,
    )
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with device:
            return LlamaForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(before)


class Passes:
    """Forward passes of a batch whose rows all begin with a prompt.

    Args:
        model: From `random_model`.
        rows: Of the batch.
        columns: The most columns of the cache that passes fill, after the prompt.
        graphs: Whether to capture a CUDA graph for each width of a pass.

    """

    def __init__(self, model: Any, rows: int, columns: int, *, graphs: bool) -> None:
        self._model = model
        self._device: torch.device = model.device
        self._rows = rows
        self._columns = PROMPT + columns
        renamed = "cache" in inspect.signature(model.forward).parameters
        self._cache_name = "cache" if renamed else "past_key_values"
        # Its layers have no common type with these fields.
        self._cache: Any = StaticCache(config=model.config, max_cache_len=self._columns)
        self._seen = torch.zeros((rows, self._columns), dtype=torch.bool, device=self._device)
        self._column = torch.arange(self._columns, device=self._device)
        self._graphs: dict[int, Any] | None = {} if graphs and self._device.type == "cuda" else None
        self.no_graphs: str | None = None
        """Why there are no graphs, where they were asked for and failed."""
        self.passes = 0
        self.begin()

    @torch.inference_mode()
    def begin(self) -> None:
        """Begin again after the prompt."""
        for layer in self._cache.layers:
            if layer.is_initialized:
                layer.cumulative_length.zero_()
        self._seen.zero_()
        self._at = 0
        self._lengths = [0] * self._rows
        graphs, self._graphs = self._graphs, None
        self.logits([[1] * PROMPT] * self._rows)
        self._graphs = graphs
        self.passes = 0

    def warm(self, widths: Sequence[int]) -> None:
        """Run passes of these widths, so that kernels are compiled and graphs captured."""
        for width in sorted(set(widths)):
            self.begin()
            self.logits([[1] * width] * self._rows)
        self.begin()

    @torch.inference_mode()
    def logits(self, chunks: Sequence[Sequence[int]]) -> torch.Tensor:
        """Return float32 logits [rows, width] after the next tokens of each row."""
        width = pass_width(max(map(len, chunks)))
        # Ids, positions, and which of them are no padding, in one copy that nothing waits for.
        packed = torch.zeros((3, self._rows, width), dtype=torch.long)
        for row, chunk in enumerate(chunks):
            start, length = width - len(chunk), self._lengths[row]
            packed[0, row, start:] = torch.tensor(chunk)
            packed[1, row, start:] = torch.arange(length, length + len(chunk))
            packed[2, row, start:] = 1
            self._lengths[row] += len(chunk)
        ids, positions, real = to_device(packed, self._device)
        self._seen[:, self._at : self._at + width] = real.bool()
        query = self._column[self._at : self._at + width, None]
        visible = (self._column <= query) & self._seen[:, None, None, :]
        # Padding sees itself, because attention to nothing is no number.
        mask = visible | (self._column == query)
        self._at += width
        self.passes += 1
        if self._graphs is None:
            return self._forward(ids, positions, mask)
        if width not in self._graphs and not self._capture(width, ids, positions, mask):
            return self._forward(ids, positions, mask)
        graph, inputs, outputs = self._graphs[width]
        for static, given in zip(inputs, (ids, positions, mask), strict=True):
            static.copy_(given)
        graph.replay()
        return outputs  # type: ignore[no-any-return]

    def _forward(
        self, ids: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        outputs = self._model(
            input_ids=ids,
            position_ids=positions,
            attention_mask=mask,
            logits_to_keep=1,
            **{self._cache_name: self._cache},
        )
        logits: torch.Tensor = outputs.logits[:, -1].float()
        return logits

    def _capture(self, width: int, *given: torch.Tensor) -> bool:
        """Capture a graph for passes of a width; what fails is noted, and passes go without."""
        lengths = [layer.cumulative_length.clone() for layer in self._cache.layers]
        inputs = [tensor.clone() for tensor in given]
        try:
            side = torch.cuda.Stream(self._device)
            side.wait_stream(torch.cuda.current_stream(self._device))
            with torch.cuda.stream(side):
                self._forward(*inputs)
            torch.cuda.current_stream(self._device).wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                outputs = self._forward(*inputs)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            self.no_graphs = str(error).partition("\n")[0]
            self._graphs = None
        # A pass that only warms up has moved the end of the cache.
        for layer, length in zip(self._cache.layers, lengths, strict=True):
            layer.cumulative_length.copy_(length)
        if self._graphs is None:
            return False
        self._graphs[width] = (graph, inputs, outputs)
        return True
