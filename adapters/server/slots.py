"""A KV cache with a slot for each sequence, and forward passes over different lengths.

The keys and values of a sequence are adjacent from column 0 of its slot on, so column and position
are the same. Sequences join and leave at any time without moving others, and chunks of different
lengths leave no holes. A mask shows each query the columns up to its position. Slots 0 to n - 1 are
in use. A pass over adjacent slots reads a view of the cache; one over others reads a copy.
"""

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from ffwd.adapters.logits import to_device
from ffwd.adapters.transformers import ModelError

_COLUMNS = 256
_SLOTS = 8
# On a processor each token costs; an accelerator reads the weights once for any number of tokens.
_PASS_TOKENS_CPU = 16
_PASS_TOKENS = 512


class UnsupportedModelError(ModelError):
    """The server cannot run a model; the message says why."""


class _Pass:
    """The part of the cache that a forward pass writes and reads, the same in all layers."""

    def __init__(self) -> None:
        self.read: slice | torch.Tensor = slice(0)
        """The slot of each row."""
        self.last = 0
        """Behind the last of them."""
        self.columns = 0
        """How many columns of the slots are read."""
        self.slots = torch.empty(0, dtype=torch.long)
        """Of each new token its slot."""
        self.rows = torch.empty(0, dtype=torch.long)
        """Its row of the pass."""
        self.places = torch.empty(0, dtype=torch.long)
        """Its place in the chunk."""
        self.positions = torch.empty(0, dtype=torch.long)
        """Its column."""


class _SlotLayer(CacheLayerMixin):
    """Keys and values of one layer: [slots, heads, columns, size]."""

    is_sliding = False

    def __init__(self, this_pass: _Pass) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._pass = this_pass

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.keys = key_states.new_empty((0, key_states.shape[1], 0, key_states.shape[3]))
        self.values = value_states.new_empty((0, value_states.shape[1], 0, value_states.shape[3]))
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        now = self._pass
        self.keys = _grown(self.keys, now.last, now.columns)
        self.values = _grown(self.values, now.last, now.columns)
        self.keys[now.slots, :, now.positions] = key_states[now.rows, :, now.places]
        self.values[now.slots, :, now.positions] = value_states[now.rows, :, now.places]
        return (
            self.keys[:, :, : now.columns][now.read],
            self.values[:, :, : now.columns][now.read],
        )

    def move(self, source: int, target: int, length: int) -> None:
        """Copy the first columns of a slot to another one."""
        if self.is_initialized and self.keys is not None and self.values is not None:
            self.keys[target, :, :length] = self.keys[source, :, :length]
            self.values[target, :, :length] = self.values[source, :, :length]

    def release(self) -> None:
        """Free the memory."""
        self.keys = self.values = None
        self.is_initialized = False

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._pass.columns, 0

    def get_seq_length(self) -> int:
        return max(self._pass.columns - 1, 0)

    def get_max_length(self) -> int:
        return -1


def _grown(held: Any, slots: int, columns: int) -> torch.Tensor:
    """Return the cache with at least this many slots and columns."""
    tensor: torch.Tensor = held
    if slots <= tensor.shape[0] and columns <= tensor.shape[2]:
        return tensor
    # Zeros, because masked values are still multiplied by 0 and must be numbers.
    larger = tensor.new_zeros(
        (
            tensor.shape[0] if slots <= tensor.shape[0] else _step(slots, _SLOTS),
            tensor.shape[1],
            tensor.shape[2] if columns <= tensor.shape[2] else _step(columns, _COLUMNS),
            tensor.shape[3],
        )
    )
    larger[: tensor.shape[0], :, : tensor.shape[2]] = tensor
    return larger


def _step(needed: int, unit: int) -> int:
    """Return a sufficient size, in steps that grow with it."""
    size = unit
    while size < needed:
        size += max(unit, size // 4)
    return size


class SlotModel:
    """A decoder-only model that writes several texts at a time.

    Args:
        model: Of transformers, in evaluation mode.

    Raises:
        UnsupportedModelError: Its layers, or what its forward pass takes, do not allow it.

    """

    def __init__(self, model: Any) -> None:
        config = model.config.get_text_config(decoder=True)
        kinds = set(getattr(config, "layer_types", None) or ())
        others = sorted(kinds - {"full_attention", "sliding_attention"})
        if model.config.is_encoder_decoder or others:
            what = ", ".join(others) or "an encoder"
            raise UnsupportedModelError(
                f"{type(model).__name__} has {what}; the server runs decoder-only models whose "
                "layers are full_attention or sliding_attention"
            )
        parameters = inspect.signature(model.forward).parameters
        # transformers renames it in 5.24.
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"
        missing = {"position_ids", self._cache_name, "attention_mask"} - set(parameters)
        if missing:
            raise UnsupportedModelError(
                f"{type(model).__name__} takes no {', '.join(sorted(missing))}, which texts of "
                "different lengths need"
            )
        self._model = model
        self._kinds = kinds
        self._window: int | None = getattr(config, "sliding_window", None)
        if getattr(config, "use_sliding_window", True) is False:
            self._window = None
        self._last_only = "logits_to_keep" in parameters
        self._pass = _Pass()
        self._layers = [_SlotLayer(self._pass) for _ in range(config.num_hidden_layers)]
        self._cache = Cache(layers=list(self._layers))
        self.device = model.device
        self.pass_tokens = _PASS_TOKENS_CPU if self.device.type == "cpu" else _PASS_TOKENS
        """What a pass costs beside its tokens, as a number of tokens."""
        self.forward_passes = 0

    @torch.inference_mode()
    def logits(
        self, slots: Sequence[int], held: Sequence[int], chunks: Sequence[list[int]]
    ) -> torch.Tensor:
        """Continue slots, and return the logits after the last token of each, in float32.

        `slots` are in order, `held` is how many tokens each holds, `chunks` what follows there.
        """
        last: torch.Tensor = self.last_logits(slots, held, chunks, 1)[:, -1].float()
        return last

    @torch.inference_mode()
    def last_logits(
        self, slots: Sequence[int], held: Sequence[int], chunks: Sequence[list[int]], keep: int
    ) -> torch.Tensor:
        """Continue slots, and return the logits after the last `keep` tokens of each.

        They are [slots, keep, vocabulary], in the model's type. A chunk of fewer tokens has others
        before them.
        """
        rows, width = len(chunks), max(map(len, chunks))
        ids = torch.zeros((rows, width), dtype=torch.long)
        positions = torch.zeros((rows, width), dtype=torch.long)
        for row, (chunk, start) in enumerate(zip(chunks, held, strict=True)):
            # Right-aligned, so that the last column is the last token of every slot.
            ids[row, width - len(chunk) :] = torch.tensor(chunk)
            positions[row, width - len(chunk) :] = torch.arange(start, start + len(chunk))
        lengths = torch.tensor([len(chunk) for chunk in chunks])
        real = torch.arange(width) >= (width - lengths).unsqueeze(1)
        found = real.nonzero()
        now = self._pass
        now.last = slots[-1] + 1
        adjacent = now.last - slots[0] == rows
        named = torch.tensor(slots)
        now.columns = max(start + len(chunk) for start, chunk in zip(held, chunks, strict=True))
        # One copy, which nothing waits for.
        parts = [named, named[found[:, 0]], found[:, 0], found[:, 1], positions[real]]
        parts += [ids.flatten(), positions.flatten()]
        there = to_device(torch.cat(parts), self.device)
        named, now.slots, now.rows, now.places, now.positions, ids, positions = there.split(
            [len(part) for part in parts]
        )
        ids, positions = ids.view(rows, width), positions.view(rows, width)
        now.read = slice(slots[0], now.last) if adjacent else named
        options = {"logits_to_keep": keep} if self._last_only else {}
        outputs = self._model(
            input_ids=ids,
            attention_mask=self._masks(positions, now.columns),
            position_ids=positions,
            use_cache=True,
            return_dict=True,
            **{self._cache_name: self._cache},
            **options,
        )
        self.forward_passes += 1
        last: torch.Tensor = outputs.logits[:, -keep:]
        return last

    @torch.inference_mode()
    def move(self, source: int, target: int, length: int) -> None:
        """Copy the first tokens of a slot's text to another slot."""
        # A slot without tokens may not exist yet.
        if length:
            for layer in self._layers:
                layer.move(source, target, length)

    def release(self) -> None:
        """Free the cache's memory; all slots are empty then."""
        for layer in self._layers:
            layer.release()

    def _masks(self, positions: torch.Tensor, columns: int) -> Any:
        column = torch.arange(columns, device=self.device)
        behind = positions.unsqueeze(-1) - column
        full = self._additive(behind >= 0)
        window = self._window
        if window is None or (self._kinds and "sliding_attention" not in self._kinds):
            return full
        sliding = self._additive((behind >= 0) & (behind < window))
        if not self._kinds:
            return sliding
        return {"full_attention": full, "sliding_attention": sliding}

    def _additive(self, seen: torch.Tensor) -> torch.Tensor:
        dtype = self._model.dtype
        mask = torch.zeros(seen.shape, dtype=dtype, device=self.device)
        return mask.masked_fill_(~seen, torch.finfo(dtype).min).unsqueeze(1)


def check_against_itself(model: Any, slots: SlotModel, *, vocab_size: int) -> None:
    """Compare ragged passes over slots with the model's own passes over whole texts.

    Raises:
        UnsupportedModelError: They differ, so that batches would change what is written.

    """
    generator = torch.Generator().manual_seed(0)
    texts = [
        torch.randint(0, vocab_size, (length,), generator=generator).tolist() for length in (9, 4)
    ]
    with torch.inference_mode():
        expected = [
            model(input_ids=torch.tensor([text], device=slots.device)).logits[0, -1].float()
            for text in texts
        ]
    # The slot between them holds nothing.
    slots.logits([0, 2], [0, 0], [texts[0][:3], texts[1][:1]])
    slots.logits([0], [3], [texts[0][3:8]])
    found = slots.logits([0, 2], [8, 1], [texts[0][8:], texts[1][1:]])
    slots.release()
    rough = torch.finfo(model.dtype).eps
    for own, ragged in zip(expected, found, strict=True):
        scale = own.abs().max().item()
        worst = (own - ragged).abs().max().item()
        if not worst <= max(16 * rough, 1e-4) * max(scale, 1.0):
            raise UnsupportedModelError(
                f"{type(model).__name__} gives other logits for texts of different lengths in one "
                f"batch than for each alone (by {worst:.3g}, of {scale:.3g}); its attention cannot "
                "be told what each text sees"
            )
