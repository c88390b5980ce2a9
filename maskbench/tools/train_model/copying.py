"""Initial weights with which the model copies before it has learned anything.

To continue a name, a model finds the earlier position of its last token, and takes the token after
that one. Transformers learn this by themselves ("induction heads"; Olsson et al., "In-context
Learning and Induction Heads", 2022), but the training here is too short for it. Half of the heads
of the first two layers therefore start with it, and training continues from there.

In the first layer two heads attend to the previous position, and add its token. In the second layer
two heads attend to a position whose predecessor has the current token, and copy the position's
token.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

ROPE_THETA = 1e6
_HEADS = 2
# Pairs of a head's dimensions by how fast rotary embeddings turn them: fast ones tell the place
# before from the others, slow ones are the same over the whole text.
_FAST, _SLOW = 4, 5
_EMBEDDING = 0.1
_CONSTANT = 0.35


@torch.no_grad()
def _orthogonal(size: int) -> Tensor:
    matrix = torch.empty(size, size)
    torch.nn.init.orthogonal_(matrix)
    # Without what is the same for all tokens.
    matrix[:, 0] = 0
    return matrix


@torch.no_grad()
def begin_with_copying(model: Any) -> None:
    """Set the weights of embeddings and of the heads that copy; others stay, a little larger."""
    config = model.config
    width, size = config.hidden_size, config.hidden_size // config.num_attention_heads
    half = size // 2
    embedding = model.model.embed_tokens.weight
    torch.nn.init.normal_(embedding, std=_EMBEDDING)
    # The same for all tokens, for what does not depend on the token.
    embedding[:, 0] = _CONSTANT
    level = _CONSTANT / ((_EMBEDDING**2 * (width - 1) + _CONSTANT**2) / width) ** 0.5
    for layer in model.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        torch.nn.init.orthogonal_(attention.q_proj.weight)
        attention.k_proj.weight.copy_(attention.q_proj.weight)
        torch.nn.init.orthogonal_(attention.v_proj.weight)
        attention.o_proj.weight.copy_(0.02 * attention.v_proj.weight.T)
        for name in ("gate_proj", "up_proj"):
            torch.nn.init.normal_(getattr(mlp, name).weight, std=0.06)
        torch.nn.init.normal_(mlp.down_proj.weight, std=0.004)

    turns = ROPE_THETA ** (-torch.arange(half) / half)
    slow = torch.cat([torch.arange(_SLOW, half), torch.arange(half + _SLOW, size)])
    before, after = model.model.layers[0].self_attn, model.model.layers[1].self_attn
    read, write, copy = _orthogonal(width), _orthogonal(width), _orthogonal(width)
    for head in range(_HEADS):
        rows = slice(head * size, (head + 1) * size)
        query, key = torch.zeros(size, width), torch.zeros(size, width)
        query[:_FAST, 0] = 7 / level
        # Turned by one place: the score is highest one place back.
        key[:_FAST, 0] = 7 / level * torch.cos(turns[:_FAST])
        key[half : half + _FAST, 0] = 7 / level * torch.sin(turns[:_FAST])
        before.q_proj.weight[rows], before.k_proj.weight[rows] = query, key
        before.v_proj.weight[rows] = read[rows]
        before.o_proj.weight[:, rows] = 0.1 * write[rows].T

        query, key = torch.zeros(size, width), torch.zeros(size, width)
        query[slow], key[slow] = 4 * read[rows][slow], 4 * write[rows][slow]
        after.q_proj.weight[rows], after.k_proj.weight[rows] = query, key
        after.v_proj.weight[rows] = copy[rows]
        after.o_proj.weight[:, rows] = 0.6 * copy[rows].T
