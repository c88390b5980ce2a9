"""A decoder-only transformer of a few hundred thousand parameters, and its training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

IGNORED = -100


@dataclass(frozen=True)
class ModelSize:
    """The shape of a model."""

    width: int = 96
    layers: int = 3
    heads: int = 4
    context: int = 160


class _Block(nn.Module):
    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        width = size.width
        self._heads = size.heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.inputs = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.feed = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor, past: Tensor | None) -> tuple[Tensor, Tensor]:
        """The block's output, and the keys and values (2, batch, heads, length, width)."""
        batch, length, width = x.shape
        parts = self.inputs(self.norms[0](x)).view(batch, length, 3, self._heads, -1)
        query, *rest = parts.permute(2, 0, 3, 1, 4)
        present = torch.stack(rest)
        if past is not None:
            present = torch.cat([past, present], dim=3)
        seen = present.shape[3]
        # Position i of what is new sees all that came before, and what is new up to itself.
        visible = torch.ones(length, seen, dtype=torch.bool).tril(seen - length)
        mixed = functional.scaled_dot_product_attention(
            query, present[0], present[1], attn_mask=visible
        )
        x = x + self.output(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed(self.norms[1](x)), present


class Transformer(nn.Module):
    """Logits of the next token at each place."""

    def __init__(self, vocab_size: int, size: ModelSize) -> None:
        super().__init__()
        self.size = size
        self.tokens = nn.Embedding(vocab_size, size.width)
        self.positions = nn.Embedding(size.context, size.width)
        self.blocks = nn.ModuleList(_Block(size) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(
        self, tokens: Tensor, past: Sequence[Tensor] | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Logits (batch, length, vocabulary) of `tokens` (batch, length) after `past`."""
        start = 0 if past is None else past[0].shape[3]
        places = torch.arange(start, start + tokens.shape[1])
        x = self.tokens(tokens) + self.positions(places)
        presents = []
        for number, block in enumerate(self.blocks):
            x, present = block(x, None if past is None else past[number])
            presents.append(present)
        return functional.linear(self.norm(x), self.tokens.weight), presents

    @property
    def parameter_count(self) -> int:
        """How many numbers it has learned."""
        return sum(parameter.numel() for parameter in self.parameters())


class Reader:
    """One text that the model reads: what it says of the next token, after what it was given."""

    def __init__(self, model: Transformer) -> None:
        self._model = model
        self._past: list[Tensor] | None = None

    @torch.inference_mode()
    def read(self, tokens: Sequence[int]) -> Tensor:
        """Reads more tokens; returns the logits after each of them (length, vocabulary)."""
        logits: Tensor
        logits, self._past = self._model(torch.tensor([list(tokens)]), self._past)
        return logits[0]


@dataclass(frozen=True)
class Example:
    """Tokens to learn, of which the first `given` are the sentence."""

    tokens: tuple[int, ...]
    given: int


def train(
    model: Transformer, examples: Sequence[Example], *, steps: int, batch: int, rate: float = 2e-3
) -> float:
    """Learns to go on after the sentence; returns the loss of the last steps in nats a token."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    order = torch.randint(len(examples), (steps, batch))
    losses = []
    model.train()
    for step in range(steps):
        tokens, targets = _batch([examples[i] for i in order[step].tolist()])
        logits, _ = model(tokens)
        loss = functional.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED
        )
        warm = min(1.0, (step + 1) / (0.05 * steps))
        for group in optimizer.param_groups:
            group["lr"] = rate * warm * (0.55 + 0.45 * math.cos(math.pi * step / steps))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    tail = losses[-20:]
    return sum(tail) / len(tail)


def _batch(examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
    length = max(len(example.tokens) for example in examples) - 1
    tokens = torch.zeros(len(examples), length, dtype=torch.long)
    targets = torch.full((len(examples), length), IGNORED, dtype=torch.long)
    for row, example in enumerate(examples):
        text = torch.tensor(example.tokens)
        tokens[row, : len(text) - 1] = text[:-1]
        targets[row, example.given - 1 : len(text) - 1] = text[example.given :]
    return tokens, targets
