"""Biases and penalties: changes to the logits of one text, before its mask.

The mask comes after them, so they never allow a token that the grammar forbids. They leave finite
logits finite, so they never forbid the last token that it allows.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import torch

from ffwd.adapters.logits import to_device
from ffwd.adapters.server.errors import bad
from ffwd.adapters.server.protocol import Request


class Adjustments:
    """Changes the logits of one text, in vLLM's order: bias, repetition, frequency, presence.

    Args:
        bias: By token, what is added.
        presence: What is subtracted for each token that was generated.
        frequency: What is subtracted for each time that it was.
        repetition: Divides the positive logits of tokens in prompt and answer, and multiplies the
            others.

    """

    def __init__(
        self,
        *,
        bias: Mapping[int, float],
        presence: float = 0.0,
        frequency: float = 0.0,
        repetition: float = 1.0,
    ) -> None:
        self._bias = dict(bias)
        self._presence = presence
        self._frequency = frequency
        self._repetition = repetition
        self._counts: Counter[int] = Counter()
        self._prompt: frozenset[int] = frozenset()
        self._read = 0
        """How many of the ids are counted."""

    @property
    def changes(self) -> bool:
        """Whether they change anything."""
        return bool(self._bias or self._presence or self._frequency or self._repetition != 1)

    @torch.inference_mode()
    def apply(self, logits: torch.Tensor, ids: Sequence[int], num_prompt: int) -> None:
        """Change the logits after `ids` in place; the first `num_prompt` of them are the prompt."""
        if not self._read:
            self._prompt = frozenset(ids[:num_prompt])
            self._read = num_prompt
        self._counts.update(ids[self._read :])
        self._read = len(ids)
        repeated = self._prompt if self._repetition != 1 else frozenset()
        tokens = sorted(self._bias.keys() | self._counts.keys() | repeated)
        if not tokens:
            return
        place = to_device(torch.tensor(tokens), logits.device)
        counts = [self._counts[token] for token in tokens]
        less = [self._frequency * n + self._presence * (n > 0) for n in counts]
        bias = [self._bias.get(token, 0.0) for token in tokens]
        seen = [n > 0 or token in repeated for n, token in zip(counts, tokens, strict=True)]
        scale = [self._repetition if found else 1.0 for found in seen]
        numbers = to_device(torch.tensor([bias, scale, less], dtype=torch.double), logits.device)
        before = logits[place]
        after = before.double() + numbers[0]
        after = torch.where(after > 0, after / numbers[1], after * numbers[1]) - numbers[2]
        largest = torch.finfo(logits.dtype).max
        after = after.clamp(-largest, largest).to(logits.dtype)
        logits[place] = torch.where(torch.isfinite(before), after, before)


def adjustments_of(request: Request, vocab_size: int) -> Adjustments | None:
    """Return the changes that a request asks for; None for none.

    Raises:
        ApiError: The model has no such token.

    """
    made = Adjustments(
        bias=_bias(request.logit_bias or {}, vocab_size),
        presence=request.presence_penalty or 0.0,
        frequency=request.frequency_penalty or 0.0,
        repetition=1.0 if request.repetition_penalty is None else request.repetition_penalty,
    )
    return made if made.changes else None


def _bias(given: Mapping[str, float], vocab_size: int) -> dict[int, float]:
    bias: dict[int, float] = {}
    for name, value in given.items():
        # An id as JSON writes it: no other string means the same one.
        known = name.isascii() and name.isdigit() and len(name) <= len(str(vocab_size))
        if not known or int(name) >= vocab_size or name != str(int(name)):
            raise bad(
                f"`logit_bias` has the key {name[:40]!r}, which is not the id of a token: give a "
                f"number from 0 to {vocab_size - 1} as a string",
                param="logit_bias",
                code="invalid_value",
            )
        if value:
            bias[int(name)] = value
    return bias
