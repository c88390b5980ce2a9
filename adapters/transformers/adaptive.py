"""Adaptive sampling: each text says how much of the grammar's probability lies behind its prefixes.

After a prefix the model may want nothing that the grammar allows. Masks learn of it too late, and
texts after it have little weight. So the bounds that earlier texts have found are kept in a tree,
as in adaptive sampling with approximate expected futures (arXiv 2405.21047). The next text is drawn
by the model's probabilities times these bounds. Its importance weight corrects for what they do not
know yet, so that all texts count.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from ffwd.adapters.transformers.fast_forward import ForcedRows
from ffwd.adapters.transformers.generate import choose
from ffwd.adapters.transformers.model import ChunkedModel


@dataclass(slots=True)
class Node:
    """A prefix of texts.

    Attributes:
        bound: The log of an upper bound of the probability that its continuation is in the grammar.
        log_p: The log probability of its last token after the tokens before.
        rest: The log probability of all allowed tokens that are not in `children`.
        children: By the next token.

    """

    bound: float = 0.0
    log_p: float = 0.0
    rest: float = -math.inf
    children: dict[int, Node] = field(default_factory=dict)

    def tighten(self) -> None:
        """Set the bound from those of the children."""
        known = [child.log_p + child.bound for child in self.children.values()]
        self.bound = min(_log_sum([self.rest, *known]), 0.0)


@dataclass
class Tree:
    """The prefixes of the texts so far; see `draw`."""

    root: Node = field(default_factory=Node)

    def draw(self, chunked: ChunkedModel, rows: ForcedRows, *, heat: float) -> tuple[float, float]:
        """Decode one text, learn from it, and return its log weight and its log probability.

        Args:
            chunked: The model, before the prompt.
            rows: One row, with masses.
            heat: The temperature.

        """
        assert rows.masses is not None
        masses = rows.masses.rows[0]
        log_ps: list[float] = []
        # Of sampled tokens, by their place: how probable the tokens without a node were.
        rests: dict[int, float] = {}
        weight = 0.0
        rows.advance({})
        while True:
            active, unscored = rows.active, rows.unscored()
            if not active and not any(unscored):
                break
            kept = chunked.last_logits(rows.take_pending(), 1 + len(unscored[0]))
            scored = len(masses)
            rows.masses.add_forced(kept.float() / heat, unscored)
            log_ps += masses[scored:]
            weight += math.fsum(masses[scored:])
            if not active:
                break
            tokens = rows.generated()[0]
            # In the processor's memory, since some accelerators have no float64.
            logits = chunked.float32(kept[:, -1]).cpu().double() / heat
            total = float(logits.logsumexp(dim=-1))
            rows.mask.apply(logits, in_place=True)
            node = self._find(tokens)
            known = {} if node is None else node.children
            shares = logits - total
            allowed = float(shares.logsumexp(dim=-1))
            if math.isnan(allowed):
                raise RuntimeError("the model's scores of row 0 have NaN or infinity")
            adjusted = shares.clone()
            _add(adjusted, {token: child.bound for token, child in known.items()})
            mass = float(adjusted.logsumexp(dim=-1))
            if mass == -math.inf:
                rests[len(tokens)] = -math.inf
                weight = -math.inf
                break
            (chosen,) = choose(adjusted, torch.zeros(1, dtype=torch.bool), do_sample=True)
            child = known.get(chosen)
            weight += mass - (0.0 if child is None else child.bound)
            masses.append(min(allowed, 0.0))
            log_ps.append(float(shares[0, chosen]))
            _add(shares, dict.fromkeys([*known, chosen], -math.inf))
            rests[len(tokens)] = float(shares.logsumexp(dim=-1))
            rows.advance({0: chosen})
        self._learn(rows.generated()[0], log_ps, rests)
        return weight, -math.inf if weight == -math.inf else math.fsum(log_ps)

    def _find(self, tokens: tuple[int, ...]) -> Node | None:
        node: Node | None = self.root
        for token in tokens:
            if node is None:
                return None
            node = node.children.get(token)
        return node

    def _learn(self, tokens: tuple[int, ...], log_ps: list[float], rests: dict[int, float]) -> None:
        """Add the prefixes of a text, and tighten their bounds from its end on."""
        path = [self.root]
        for token, log_p in zip(tokens, log_ps, strict=True):
            path.append(path[-1].children.setdefault(token, Node(log_p=log_p)))
        for place in range(len(path) - 1, -1, -1):
            node = path[place]
            if place in rests:
                node.rest = rests[place]
            if node.children or place in rests:
                node.tighten()


def expected_weights(
    texts: Sequence[tuple[int, ...]], weights: Sequence[float], log_ps: Sequence[float]
) -> list[float]:
    """Return log weights in which a text's repetitions count as often as they are expected.

    A text of probability p that is drawn with chance q has the weight p / q, so each draw adds p
    to its total on average. Since its first draw p is known, and stands for the later ones; so
    the total depends on luck only before. This is the Rao-Blackwell theorem.

    Args:
        texts: In the order in which they were drawn.
        weights: The log weight of each.
        log_ps: The log probability of each; -inf for one that did not end.

    Returns:
        One for each text. Those of equal texts are equal.

    """
    first: dict[tuple[int, ...], int] = {}
    for place, text in enumerate(texts):
        first.setdefault(text, place)
    totals = {}
    for text, place in first.items():
        later = len(texts) - place - 1
        known = log_ps[place] + math.log(later) if later else -math.inf
        totals[text] = _log_sum([weights[place], known])
    copies = Counter(texts)
    return [totals[text] - math.log(copies[text]) for text in texts]


def _add(scores: torch.Tensor, terms: dict[int, float]) -> None:
    """Add terms to the scores [1, width] of tokens."""
    if terms:
        scores[0, list(terms)] += torch.tensor(list(terms.values()), dtype=scores.dtype)


def _log_sum(values: list[float]) -> float:
    return float(torch.tensor(values, dtype=torch.double).logsumexp(dim=0))
