"""One forward pass over ragged chunks, with a normal KV cache.

Rows have different numbers of input tokens. The chunk is padded on the left, so that the last
column is every row's last token. The padding stays in the cache as a hole of the attention mask.
Position ids are explicit, so that the model never counts the holes.
"""

import dataclasses
import inspect
from typing import Any

import torch
from transformers import DynamicCache
from transformers.generation.utils import GenerateDecoderOnlyOutput

from ffwd.adapters.logits import to_device
from ffwd.adapters.transformers.errors import UnsupportedGenerationError

CACHE = (
    "cache"
    if any(field.name == "cache" for field in dataclasses.fields(GenerateDecoderOnlyOutput))
    else "past_key_values"
)
"""The name of the KV cache in arguments and outputs; transformers renames it in 5.24."""


class ChunkedModel:
    """A decoder-only model, its cache, and what it has to be told about both.

    Args:
        model: A decoder-only model.
        prompt: Shape [rows, length].
        model_kwargs: As `generate()` prepares them.
        pad_token: Fills the holes.

    Raises:
        UnsupportedGenerationError: If the cache or the model's inputs cannot take chunks.

    """

    def __init__(
        self, model: Any, prompt: torch.Tensor, model_kwargs: dict[str, Any], *, pad_token: int
    ) -> None:
        rows, length = prompt.shape
        extra = dict(model_kwargs)
        self.cache = extra.pop(CACHE, None)
        attention_mask: torch.Tensor | None = extra.pop("attention_mask", None)
        position_ids: torch.Tensor | None = extra.pop("position_ids", None)
        _check_inputs(self.cache, position_ids, extra)
        self._takes_positions = "position_ids" in inspect.signature(model.forward).parameters
        if rows > 1:
            _check_batch(self.cache, self._takes_positions)
        self.cached = int(self.cache.get_seq_length())
        if self.cached >= length:
            raise UnsupportedGenerationError(
                CACHE,
                f"it holds {self.cached} tokens and the prompt has {length}; give the whole"
                " prompt, longer than the cache",
            )
        self._model = model
        self._extra = extra
        self._pad_token = pad_token
        self._device = prompt.device
        # Chunks are put together in the processor's memory and copied at once.
        self._prompt_positions = _positions(position_ids, prompt).cpu()
        self._next_positions: list[int] = (self._prompt_positions[:, -1] + 1).tolist()
        # None as long as every column of the cache is a real token of every row.
        self._cache_mask = None if attention_mask is None else attention_mask[:, : self.cached]
        self._prompt_mask = None if attention_mask is None else attention_mask.cpu()
        config = model.config.get_text_config(decoder=True)
        # Other kinds of attention, and positions by ALiBi, take masks of two axes.
        self._makes_masks = getattr(config, "_attn_implementation", None) == "sdpa" and not getattr(
            config, "alibi", False
        )
        self._ready_masks = self._makes_masks and rows > 1
        self.forward_passes = 0

    def logits(self, pending: list[torch.Tensor]) -> torch.Tensor:
        """Feed the new ids of each row; return float32 logits [rows, width] after the last ones.

        `pending` is in the processor's memory. The first call brings the prompt, without what the
        cache held, and may bring more.
        Rows without new ids get arbitrary logits.
        """
        return self.float32(self.last_logits(pending, 1)[:, -1])

    def float32(self, logits: torch.Tensor) -> torch.Tensor:
        """Return a copy of logits in float32, on the device of the prompt."""
        return logits.to(copy=True, dtype=torch.float32, device=self._device)

    def last_logits(self, pending: list[torch.Tensor], keep: int) -> torch.Tensor:
        """Feed ids as `logits` does; return those after the last `keep` ids [rows, keep, width].

        They have the model's type. Those of padding are arbitrary.
        """
        rows, width = len(pending), max(len(ids) for ids in pending)
        chunk = torch.zeros((3, rows, width), dtype=torch.long)
        ids, mask, positions = chunk
        ids.fill_(self._pad_token)
        first_call = self.forward_passes == 0
        prompt_part = self._prompt_positions.shape[1] - self.cached if first_call else 0
        for row, new in enumerate(pending):
            start = width - len(new)
            ids[row, start:] = new
            if first_call:
                stop = start + prompt_part
                positions[row, start:stop] = self._prompt_positions[row, self.cached :]
                if self._prompt_mask is None:
                    mask[row, start:stop] = 1
                else:
                    mask[row, start:stop] = self._prompt_mask[row, self.cached :]
                start = stop
            mask[row, start:] = 1
            following = self._next_positions[row] + width - start
            positions[row, start:] = torch.arange(self._next_positions[row], following)
            self._next_positions[row] = following
        holes = any(len(new) < width for new in pending)
        ids, mask, positions = to_device(chunk, self._device)
        logits = self._forward(ids, self._whole_mask(mask, holes), positions, keep)
        self.forward_passes += 1
        return logits[:, -keep:]

    def select(self, indices: list[int]) -> None:
        """Replace the rows by copies of some of them, after the first pass.

        Raises:
            UnsupportedGenerationError: The model supports one row only.

        """
        if len(indices) > 1:
            _check_batch(self.cache, self._takes_positions)
        rows = torch.tensor(indices, device=self._device)
        self.cache.batch_select_indices(rows)
        if self._cache_mask is not None:
            self._cache_mask = self._cache_mask[rows]
        self._next_positions = [self._next_positions[index] for index in indices]
        self._ready_masks = self._makes_masks and len(indices) > 1

    def _whole_mask(self, chunk: torch.Tensor, holes: bool) -> torch.Tensor | None:
        """Append the chunk's columns to the mask of the cache."""
        first_with_padding = self.forward_passes == 0 and self._prompt_mask is not None
        if self._cache_mask is None and not holes and not first_with_padding:
            return None
        if self._cache_mask is None:
            past = int(self.cache.get_seq_length())
            self._cache_mask = chunk.new_ones((chunk.shape[0], past))
        self._cache_mask = torch.cat([self._cache_mask.to(chunk.dtype), chunk], dim=1)
        if not self._ready_masks:
            return self._cache_mask
        # transformers would ask the device whether there are holes.
        width, columns = chunk.shape[1], self._cache_mask.shape[1]
        seen = torch.ones((width, columns), dtype=torch.bool, device=chunk.device)
        seen = seen.tril(columns - width)
        # Padding sees itself, because attention to nothing is no number.
        itself = seen.triu(columns - width)
        return seen & self._cache_mask.bool()[:, None, None, :] | itself

    def _forward(
        self, ids: torch.Tensor, mask: torch.Tensor | None, positions: torch.Tensor, keep: int
    ) -> torch.Tensor:
        extra = self._extra
        if "logits_to_keep" in extra:
            extra = {**extra, "logits_to_keep": keep}
        first_call = self.forward_passes == 0
        inputs = self._model.prepare_inputs_for_generation(
            ids,
            attention_mask=mask,
            position_ids=positions if self._takes_positions else None,
            is_first_iteration=first_call,
            **{CACHE: self.cache},
            **extra,
        )
        outputs = self._model(**inputs, return_dict=True)
        self.cache = getattr(outputs, CACHE)
        logits: torch.Tensor = outputs.logits
        return logits


def _positions(position_ids: torch.Tensor | None, prompt: torch.Tensor) -> torch.Tensor:
    rows, length = prompt.shape
    if position_ids is None:
        position_ids = torch.arange(length, device=prompt.device).unsqueeze(0)
    return position_ids[:, -length:].expand(rows, -1)


def _check_inputs(cache: Any, position_ids: torch.Tensor | None, extra: dict[str, Any]) -> None:
    if cache is None or not extra.get("use_cache", True):
        raise UnsupportedGenerationError("use_cache=False", "forced tokens ride on the KV cache")
    if not isinstance(cache, DynamicCache):
        raise UnsupportedGenerationError(
            "cache_implementation",
            f"{type(cache).__name__} has a fixed shape or no chunks; use the dynamic cache",
        )
    if any(cache.is_linear):
        raise UnsupportedGenerationError("models with linear attention", "no chunks in their state")
    if extra.get("inputs_embeds") is not None:
        raise UnsupportedGenerationError("inputs_embeds", "tokens are fed as ids")
    if position_ids is not None and position_ids.ndim != 2:
        raise UnsupportedGenerationError("position_ids", "they have more than one axis")
    if extra.get("token_type_ids") is not None or extra.get("mm_token_type_ids") is not None:
        raise UnsupportedGenerationError("token_type_ids", "forced tokens have no type")


def _check_batch(cache: Any, takes_positions: bool) -> None:
    if any(cache.is_sliding):
        raise UnsupportedGenerationError(
            "batches with sliding-window attention",
            "the holes between chunks would count as tokens of the window",
        )
    if not takes_positions:
        raise UnsupportedGenerationError(
            "batches with models that take no position_ids", "holes need explicit positions"
        )
