"""Biases and penalties: changes to the logits of one text, before its mask.

The mask comes after them, so they never allow a token that the grammar forbids. They leave finite
logits finite, so they never forbid the last token that it allows.
"""

from collections.abc import Mapping, Sequence

import torch

from ffwd.adapters.logits import to_device
from ffwd.adapters.server.errors import bad
from ffwd.adapters.server.protocol import Request

_MOST = 1024
"""The number of tokens in a `logit_bias`."""


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
        self._state: _State | None = None

    @property
    def changes(self) -> bool:
        """Whether they change anything."""
        return bool(self._bias or self._presence or self._frequency or self._repetition != 1)

    @torch.inference_mode()
    def apply(self, logits: torch.Tensor, ids: Sequence[int], num_prompt: int) -> None:
        """Change the logits after `ids` in place; the first `num_prompt` of them are the prompt."""
        if self._state is None:
            self._state = _State(logits, self._bias, ids[:num_prompt])
        state = self._state
        state.count(ids)
        # In double precision: a tiny divisor would be 0 in single precision.
        changed = logits.double() + state.bias
        scaled = torch.where(changed > 0, changed / self._repetition, changed * self._repetition)
        changed = torch.where(state.seen, scaled, changed)
        changed -= self._frequency * state.counts + self._presence * (state.counts > 0)
        largest = torch.finfo(logits.dtype).max
        changed = changed.clamp(-largest, largest).to(logits.dtype)
        logits.copy_(torch.where(torch.isfinite(logits), changed, logits))


class _State:
    """The tokens that one text has had, as rows beside its logits, on their device.

    Args:
        logits: A row of them.
        bias: By token, what is added.
        prompt: The ids of the prompt.

    """

    def __init__(
        self, logits: torch.Tensor, bias: Mapping[int, float], prompt: Sequence[int]
    ) -> None:
        self.counts = torch.zeros_like(logits)
        self.seen = torch.zeros_like(logits, dtype=torch.bool)
        self.bias = torch.zeros_like(logits)
        self._read = len(prompt)
        self.seen[self._there(prompt)] = True
        if bias:
            values = torch.tensor(list(bias.values()), dtype=logits.dtype)
            self.bias[self._there(list(bias))] = to_device(values, logits.device)

    def count(self, ids: Sequence[int]) -> None:
        """Count those of the ids that are not counted yet."""
        if self._read < len(ids):
            there = self._there(ids[self._read :])
            self.counts.index_add_(0, there, torch.ones_like(there, dtype=self.counts.dtype))
            self.seen[there] = True
            self._read = len(ids)

    def _there(self, ids: Sequence[int]) -> torch.Tensor:
        return to_device(torch.tensor(ids, dtype=torch.long), self.counts.device)


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
    if len(given) > _MOST:
        raise bad(
            f"`logit_bias` has {len(given)} tokens; this server takes {_MOST}: give a grammar to "
            "exclude many tokens",
            param="logit_bias",
        )
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
