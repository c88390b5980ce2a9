"""A draft model for `mlx_lm.stream_generate` whose drafts are what a grammar forces."""

from typing import Any

import mlx.core as mx


class ForcedDrafts:
    """A draft model without weights: the logits processor leaves it the forced token only.

        processor = GrammarLogitsProcessor(grammar, narrow=True)
        mlx_lm.generate(
            model, tokenizer, prompt, logits_processors=[processor],
            draft_model=ForcedDrafts(model), num_draft_tokens=8,
        )

    mlx-lm masks the logits of drafts as it does the model's, so under `narrow=True` forced tokens
    are drafted, and the model always confirms them. If nothing is forced, it drafts the first
    allowed tokens, which are seldom confirmed. The output is the same, and a pass of the model has
    more positions. Drafts pay if much of the text is forced.

    Args:
        model: The model that generates, or the width of its logits.

    """

    def __init__(self, model: Any) -> None:
        self._width: int = model if isinstance(model, int) else model(mx.array([[0]])).shape[-1]

    def __call__(self, inputs: mx.array, cache: Any = None, **kwargs: Any) -> mx.array:
        """Return logits that prefer nothing: zeros [rows, length, width]."""
        return mx.zeros((*inputs.shape, self._width))

    @property
    def layers(self) -> list[Any]:
        """The layers that mlx-lm counts for a prompt cache; one that keeps nothing."""
        return [None]

    def make_cache(self) -> list[Any]:
        """Return a cache that keeps nothing."""
        return [_NoCache()]


class _NoCache:
    """A trimmable cache that is empty."""

    state: tuple[mx.array, ...] = ()

    def is_trimmable(self) -> bool:
        return True

    def trim(self, count: int) -> int:
        return count
