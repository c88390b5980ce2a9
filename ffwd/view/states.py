"""`state_graph`: the states that a text visits, and what later visits find there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ffwd._bitmask import allocate_bitmask
from ffwd._native import CompiledGrammar
from ffwd.tokenizer.errors import lone_surrogate
from ffwd.view.page import piece_of

MOST_TOKENS = 2000
"""The most tokens of a graph."""


@dataclass(frozen=True, slots=True)
class GraphState:
    """A state of the automaton.

    Attributes:
        allowed: The number of tokens in its mask.
        accepting: Whether the text may end here.
        visits: How often the text is here.
        computed: Whether the first visit computed the mask. Otherwise it was copied, since the
            compiled grammar had it already.

    """

    allowed: int
    accepting: bool
    visits: int
    computed: bool


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """The tokens that lead from one state to another.

    Attributes:
        source: The index of the state before.
        target: The index of the state after.
        tokens: Distinct tokens, in the order of the text.
        count: How often the text takes the edge.

    """

    source: int
    target: int
    tokens: tuple[int, ...]
    count: int


@dataclass(frozen=True, kw_only=True)
class StateGraph:
    """The states of a text, in the order of their first visits. Made by `state_graph`.

    Attributes:
        title: The title.
        vocab_size: The number of tokens of the vocabulary.
        states: The states; the text begins in the first one.
        edges: The edges, in the order in which the text first takes them.
        path: The indices of the states that the text visits, one more than it has tokens.
        labels: The text of each token on an edge.
        refused: The bytes from the rejected token on; empty if the text is accepted.

    """

    title: str
    vocab_size: int
    states: tuple[GraphState, ...]
    edges: tuple[GraphEdge, ...]
    path: tuple[int, ...]
    labels: dict[int, str]
    refused: bytes = b""

    @property
    def shared(self) -> int:
        """The number of visits that found their state, and its mask, from an earlier visit."""
        return len(self.path) - len(self.states)

    def svg(self) -> str:
        """Return the picture as an SVG document, which needs no other file and has no script."""
        from ffwd.view.drawing import drawn

        return drawn(self)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the picture to a file, and return its path.

        Raises:
            OSError: The file cannot be written.

        """
        target = Path(path)
        target.write_text(self.svg(), encoding="utf-8")
        return target

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        visits = f"{len(self.path)} visits of {len(self.states)} states"
        return f"StateGraph({self.title!r}: {visits})"


def state_graph(
    grammar: CompiledGrammar, text: str | bytes | Sequence[int], *, title: str = ""
) -> StateGraph:
    """Return the states of the automaton that a text visits.

        ffwd.view.state_graph(grammar, "[1,23]").save("states.svg")

    Equal states have equal masks, so a text that returns to a state finds its mask there. If the
    grammar rejects the text, the graph ends there.

    Args:
        grammar: Compiled for the tokenizer. Masks that it has already are copied.
        text: The text, which the tokenizer tokenizes, or token ids.
        title: The title of the picture.

    Raises:
        ValueError: The text has more than 2,000 tokens, or states were evicted meanwhile.
        TextError: The text has a lone surrogate.
        VocabularyError: The grammar's vocabulary cannot encode texts.
        TokenError: An id outside the vocabulary.

    """
    vocabulary = grammar.vocabulary
    if isinstance(text, str):
        characters = text
        try:
            text = characters.encode()
        except UnicodeEncodeError as error:
            raise lone_surrogate(characters, error.start) from error
    ids = list(vocabulary.encode(text) if isinstance(text, bytes) else text)
    if len(ids) > MOST_TOKENS:
        raise ValueError(f"the text has {len(ids):,} tokens, and a graph at most {MOST_TOKENS:,}")
    matcher = grammar.matcher()
    evictions = grammar.stats()["evictions"]
    bitmask = allocate_bitmask(1, vocabulary.vocab_size)
    places: dict[int, int] = {}
    states: list[GraphState] = []
    edges: dict[tuple[int, int], list[int]] = {}
    path: list[int] = []

    def visit() -> None:
        number = matcher.state_id
        before = grammar.stats()["masks_computed"]
        matcher.fill_bitmask(bitmask, 0)
        place = places.setdefault(number, len(states))
        if place == len(states):
            allowed = int.from_bytes(bitmask[0].tobytes(), "little").bit_count()
            computed = grammar.stats()["masks_computed"] > before
            states.append(GraphState(allowed, matcher.is_accepting(), 0, computed))
        path.append(place)

    visit()
    for token in ids:
        if matcher.is_terminated() or not matcher.accept_token(token):
            break
        if matcher.is_terminated():
            # An end token leads to no state.
            path.append(path[-1])
            break
        visit()
        edges.setdefault((path[-2], path[-1]), []).append(token)
    if grammar.stats()["evictions"] != evictions:
        raise ValueError("states were evicted meanwhile: compile with a larger memory_bytes")
    rest = ids[matcher.num_tokens :]
    spelled = vocabulary.token_bytes
    used = dict.fromkeys(token for tokens in edges.values() for token in tokens)
    names = {token: name for name, token in vocabulary.token_names.items()}
    return StateGraph(
        title=title,
        vocab_size=vocabulary.vocab_size,
        states=tuple(
            GraphState(one.allowed, one.accepting, path.count(place), one.computed)
            for place, one in enumerate(states)
        ),
        edges=tuple(
            GraphEdge(source, target, tuple(dict.fromkeys(tokens)), len(tokens))
            for (source, target), tokens in edges.items()
        ),
        path=tuple(path),
        labels={
            token: piece_of(spelled(token), names.get(token, f"token {token}"))[0] for token in used
        },
        refused=b"".join(spelled(token) or b"" for token in rest),
    )
