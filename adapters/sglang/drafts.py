"""SGLang's n-gram worker with forced tokens among its drafts: see `speculation`."""

from typing import Any

import numpy as np
from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarObject
from sglang.srt.speculative.ngram_worker import NGRAMWorker

from ffwd.adapters.sglang.grammar import FfwdGrammar


class ForcedDraftsWorker(NGRAMWorker):  # type: ignore[misc]
    """SGLang's n-gram worker, whose trees begin with what the grammars force."""

    def _prepare_draft_tokens(self, batch: Any) -> tuple[Any, Any]:
        drafts, mask = super()._prepare_draft_tokens(batch)
        return with_forced(batch.reqs, drafts, mask, self.draft_token_num)


def with_forced(reqs: list[Any], drafts: Any, mask: Any, nodes: int) -> tuple[Any, Any]:
    """Put what each request's grammar forces before its other drafts.

    Args:
        reqs: SGLang's requests.
        drafts: The tokens of their trees, one tree behind the other. The first of each is the last
            accepted token.
        mask: For each node of each tree which nodes are on the way to it, itself included.
        nodes: The number of nodes of a tree.

    """
    tokens, ways = drafts.reshape(-1, nodes), mask.reshape(-1, nodes, nodes)
    for at, req in enumerate(reqs):
        grammar = _constraining(req.grammar)
        forced = [] if grammar is None else grammar.forced(nodes - 1)
        if forced:
            tokens[at], ways[at] = _grafted(tokens[at], ways[at], forced)
    return tokens.reshape(drafts.shape), ways.reshape(mask.shape)


def _constraining(grammar: Any) -> FfwdGrammar | None:
    """Return the grammar whose masks a request has now; None if there is none, or another one."""
    if type(grammar) is ReasonerGrammarObject:
        # Before the end of the reasoning nothing is constrained.
        grammar = grammar.grammar if grammar._is_generation() else None
    return grammar if type(grammar) is FfwdGrammar else None


def _grafted(tokens: Any, ways: Any, forced: list[int]) -> tuple[Any, Any]:
    """Return a tree that begins with the forced tokens, and goes on as the other one does."""
    count = len(tokens)
    new_tokens = [int(tokens[0]), *forced]
    parents = [-1, *range(len(forced))]
    # Where the nodes of the other tree are in this one, if they agree with what is forced.
    places = {0: 0}
    for node in range(1, count):
        # The last node on the way before this one.
        parent = int(np.flatnonzero(ways[node, :node])[-1])
        place = places.get(parent)
        if place is None:
            continue
        if place < len(forced):
            if int(tokens[node]) == forced[place]:
                places[node] = place + 1
        elif len(new_tokens) < count:
            places[node] = len(new_tokens)
            new_tokens.append(int(tokens[node]))
            parents.append(place)
    # SGLang fills a tree up with children of the root, whose tokens nobody asks for.
    missing = count - len(new_tokens)
    parents += [0] * missing
    grafted = np.eye(count, dtype=ways.dtype)
    for node, parent in enumerate(parents[1:], start=1):
        grafted[node] |= grafted[parent]
    return np.array([*new_tokens, *[0] * missing], tokens.dtype), grafted
