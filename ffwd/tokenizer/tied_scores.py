"""An order of pieces with equal scores that merges as SentencePiece does.

SentencePiece merges, of all pairs with the best score, the leftmost. The native tokenizer gives
each piece a rank of its own. Both agree if, of two tied pieces whose merges can compete for one
symbol, the left one has the better rank.
"""

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from ffwd.tokenizer.errors import UnsupportedTokenizerError


def order_of_ties(scores: Mapping[str, float]) -> dict[str, int]:
    """Return the positions of pieces among those with the same score.

    Raises `UnsupportedTokenizerError`, naming two pieces, if their order depends on the text.
    """
    tied: dict[float, list[str]] = {}
    for piece, score in scores.items():
        tied.setdefault(score, []).append(piece)
    order: dict[str, int] = {}
    urgent: dict[str, str] | None = None
    for pieces in tied.values():
        if len(pieces) == 1:
            continue
        merged = {piece: parts for piece in pieces if (parts := _splits(piece, scores))}
        if len({frozenset(piece) for piece in merged}) > 1:
            urgent = _most_urgent(scores) if urgent is None else urgent
            _check_apart(merged, scores, urgent)
        order |= _order(merged)
    return order


def _most_urgent(scores: Mapping[str, float]) -> dict[str, str]:
    """Return, for each part of a piece, the piece with the best score that contains it."""
    best: dict[str, str] = {}
    for piece, score in scores.items():
        for pair in _splits(piece, scores):
            for part in pair:
                if part not in best or scores[best[part]] < score:
                    best[part] = piece
    return best


def _splits(piece: str, known: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return the pairs of symbols, which are pieces or characters, that merge into a piece."""
    size = len(piece)
    return [
        (piece[:cut], piece[cut:])
        for cut in range(1, size)
        if (cut == 1 or piece[:cut] in known) and (cut == size - 1 or piece[cut:] in known)
    ]


def _order(splits: Mapping[str, Sequence[tuple[str, str]]]) -> dict[str, int]:
    """Return the positions of pieces of one score, given the ways to merge into them."""
    beginning: dict[str, list[str]] = {}
    for piece, parts in splits.items():
        for left, _ in parts:
            beginning.setdefault(left, []).append(piece)
    graph: TopologicalSorter[str] = TopologicalSorter()
    for piece, parts in splits.items():
        graph.add(piece)
        for contender in {other for _, right in parts for other in beginning.get(right, ())}:
            if not _same_run(piece, contender):
                graph.add(contender, piece)
            # In a run of one character the leftmost merge comes first, and then all merges that
            # extend its result, as if the longer ones had the better score.
            elif len(piece) != len(contender):
                shorter, longer = sorted((piece, contender), key=len)
                graph.add(shorter, longer)
    try:
        return {piece: place for place, piece in enumerate(graph.static_order())}
    except CycleError as error:
        raise _refused(error.args[1][:2]) from error


def _check_apart(
    splits: Mapping[str, Sequence[tuple[str, str]]],
    scores: Mapping[str, float],
    urgent: Mapping[str, str],
) -> None:
    """Check that no merge of tied pieces enables another one at the same time or before."""
    for piece, parts in splits.items():
        for part in {part for pair in parts for part in pair}:
            if part in splits and not _same_run(piece, part):
                raise _refused((part, piece))
        next_piece = urgent.get(piece)
        if next_piece is not None and scores[next_piece] > scores[piece]:
            raise _refused((piece, next_piece))


def _same_run(first: str, second: str) -> bool:
    return len({*first, *second}) == 1


def _refused(pieces: Iterable[str]) -> UnsupportedTokenizerError:
    first, second = pieces
    return UnsupportedTokenizerError(
        f"the SentencePiece model's pieces {first!r} and {second!r} have scores by which the order "
        "of their merges depends on the text"
    )
