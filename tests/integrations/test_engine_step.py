"""Requests and steps of engines, against the same in Python, a row at a time."""

import json
import random
from typing import Any

import numpy as np
import pytest
from slow_request import SlowRequest, row_bits, slow_rows, slow_tree
from test_engine_forcing import GRAMMARS
from tiny_engine_model import train_tokenizer

import ffwd
from ffwd.engine import EngineRequest, StepRows, fill_rows, fill_trees
from ffwd.tokenizer import from_huggingface

SEED = 20261123
WIDTH = 512
WORDS = WIDTH // 32


@pytest.fixture(scope="module")
def vocabulary() -> ffwd.Vocabulary:
    return from_huggingface(train_tokenizer(seed=1), vocab_size=WIDTH)


@pytest.fixture(scope="module")
def compiled(vocabulary: ffwd.Vocabulary) -> dict[str, ffwd.CompiledGrammar]:
    return {name: ffwd.compile(grammar, vocabulary) for name, grammar in GRAMMARS.items()}


class Pair:
    """A request and its slow twin."""

    def __init__(self, grammar: Any, stops: list[int], narrow: bool) -> None:
        self.fast = EngineRequest(grammar, stops, narrow=narrow)
        self.slow = SlowRequest(grammar, stops, narrow=narrow)
        self.drafts: list[int] = []
        self.bounds: tuple[int, int, list[int]] = (0, 0, [])

    def allowed(self) -> list[int]:
        rows = np.zeros((1, WORDS), np.int32)
        self.slow.fill_bitmask(rows, 0)
        return sorted(row_bits(rows[0]))

    def plan(self, rng: random.Random, count: int) -> None:
        """Drafts that are mostly right, perhaps with padding, perhaps after some reasoning."""
        self.drafts, taken = [], 0
        while len(self.drafts) < count and not self.slow.is_terminated():
            token = rng.choice(self.allowed())
            self.slow.accept_tokens("", [token])
            self.drafts.append(token)
            taken += 1
        self.slow.rollback(taken)
        for at in range(len(self.drafts)):
            if rng.random() < 0.15:
                self.drafts[at] = rng.choice([-1, rng.randrange(WIDTH), WIDTH + 3])
        start = rng.choice([0, 0, 0, rng.randrange(count + 2)])
        excluded = [rng.randrange(WIDTH) for _ in range(rng.randrange(3))]
        self.bounds = (start, min(start + rng.randrange(2), count + 1) if start else 0, excluded)

    def accept(self, tokens: list[int]) -> None:
        assert self.fast.accept_tokens("x", tokens) == self.slow.accept_tokens("x", tokens)
        assert self.fast.is_terminated() == self.slow.is_terminated()


@pytest.mark.parametrize("drafts", [0, 3])
@pytest.mark.parametrize("stride", [False, True])
@pytest.mark.parametrize("narrow", [False, True])
def test_random_steps(compiled: dict[str, Any], narrow: bool, stride: bool, drafts: int) -> None:
    """Every row, every accept and every draft is what the slow way says."""
    rng = random.Random(SEED)
    grammars = list(compiled.values())
    bitmask = np.zeros((24 * (1 + drafts), WORDS), np.int32)
    rows = StepRows(bitmask)

    def begin() -> Pair:
        stops = rng.sample(range(WIDTH), rng.choice([0, 0, 2, 60]))
        return Pair(rng.choice(grammars), stops, narrow)

    pairs = [begin() for _ in range(16)]
    refused = ended = 0
    for _ in range(150):
        rng.shuffle(pairs)
        running = pairs[: rng.randint(1, len(pairs))]
        for pair in running:
            pair.plan(rng, rng.randint(0, drafts))
        bounds = [(i, *pair.bounds) for i, pair in enumerate(running) if pair.bounds[1]]
        count, none, rejected = rows.fill(
            [pair.fast for pair in running],
            [pair.drafts or None for pair in running],
            bounds,
            stride=1 + drafts if stride else None,
            threads=2,
        )
        assert none == []
        refused += len(rejected)
        at = 0
        for pair in running:
            if not pair.bounds[1]:
                pair.bounds = (0, 0, [])
            wanted = slow_rows(pair.slow, pair.drafts, WORDS, pair.bounds)
            assert np.array_equal(bitmask[at : at + len(wanted)], wanted)
            at += 1 + drafts if stride else len(wanted)
            assert pair.fast.forced(5) == pair.slow.forced(5)
            assert pair.fast.validate_tokens(pair.drafts) == pair.slow.validate_tokens(pair.drafts)
        assert count == at
        if rng.random() < 0.1:
            # Somebody else writes to the rows.
            bitmask[:] = rng.randrange(2**31)
            rows.forget()
        for pair in running:
            chance = rng.random()
            if chance < 0.03:
                pair.fast.reset()
                pair.slow.reset()
            elif chance < 0.06:
                pairs[pairs.index(pair)] = begin()
            elif chance < 0.15:
                pair.accept([rng.randrange(-2, WIDTH + 2) for _ in range(rng.randint(1, 3))])
            else:
                pair.accept([rng.choice(pair.allowed())])
                if pair.fast.is_terminated():
                    ended += 1
                    if rng.random() < 0.5:
                        pairs[pairs.index(pair)] = begin()
            if rng.random() < 0.1 and pair.fast.num_tokens:
                back = rng.randint(1, pair.fast.num_tokens)
                pair.fast.rollback(back)
                pair.slow.rollback(back)
    assert ended > 20
    assert not drafts or refused > 20


def random_tree(pair: Pair, rng: random.Random, nodes: int) -> tuple[list[int], ...]:
    """Tokens, first children and next siblings: drafts that are mostly right, in any order."""
    tokens, child, sibling = [0] * nodes, [-1] * nodes, [-1] * nodes
    ways: list[list[int]] = [[]]
    # Perhaps some nodes are not linked at all.
    for node in range(1, rng.choice([nodes, rng.randint(1, nodes)])):
        parent = rng.choice([node - 1, rng.randrange(node)])
        taken = [token for token in ways[parent] if pair.slow.accept(token)]
        allowed = [] if pair.slow.is_terminated() else pair.allowed()
        pair.slow.rollback(len(taken))
        wrong = rng.random() < 0.15 or not allowed
        odd = rng.choice([-1, rng.randrange(WIDTH), WIDTH + 3, 2**40])
        tokens[node] = odd if wrong else rng.choice(allowed)
        ways.append([*ways[parent], tokens[node]])
        sibling[node], child[parent] = child[parent], node
    return tokens, child, sibling


@pytest.mark.parametrize("narrow", [False, True])
def test_random_trees(compiled: dict[str, Any], narrow: bool) -> None:
    """Every row of every node is what the slow way says, and requests stay where they are."""
    rng = random.Random(SEED)
    nodes, slots = 9, 10
    grammars = list(compiled.values())
    pairs = [Pair(rng.choice(grammars), [], narrow) for _ in range(slots)]
    ended = 0
    for _ in range(60):
        trees = [random_tree(pair, rng, nodes) for pair in pairs]
        absent = {rng.randrange(slots) for _ in range(2)}
        bitmask = np.full((slots * nodes, WORDS), 77, np.int32)
        arrays = [np.array(each, np.int64) for each in zip(*trees, strict=True)]
        requests = [None if i in absent else pair.fast for i, pair in enumerate(pairs)]
        assert fill_trees(requests, bitmask, *arrays, threads=2) == []
        for i, (pair, tree) in enumerate(zip(pairs, trees, strict=True)):
            rows = bitmask[i * nodes : (i + 1) * nodes]
            if i in absent:
                assert (rows == 77).all()
            else:
                assert np.array_equal(rows, slow_tree(pair.slow, *tree, WORDS))
                assert pair.fast.num_tokens == pair.slow.num_tokens
        single = np.full((slots, WORDS), 77, np.int32)
        order = rng.sample(range(slots), slots - 1)
        assert fill_rows([pairs[i].fast for i in order], single, order, threads=2) == []
        for i in order:
            assert np.array_equal(single[i], slow_rows(pairs[i].slow, [], WORDS)[0])
        assert (np.delete(single, order, axis=0) == 77).all()
        for i, pair in enumerate(pairs):
            if pair.slow.is_terminated():
                ended += 1
                pairs[i] = Pair(rng.choice(grammars), [], narrow)
            else:
                pair.accept([rng.choice(pair.allowed())])
    assert ended > 10


def test_what_trees_and_rows_refuse(compiled: dict[str, Any]) -> None:
    """Nothing is written then."""
    bitmask = np.zeros((4, WORDS), np.int32)
    one, two = (EngineRequest(compiled["regex"]) for _ in range(2))

    def fill(child: Any, sibling: Any, requests: Any = (one, two)) -> None:
        links = (np.array(links, np.int64) for links in (child, sibling))
        fill_trees(list(requests), bitmask, np.zeros((2, 2), np.int64), *links)

    none = [[-1, -1], [-1, -1]]
    with pytest.raises(ffwd.BitmaskError, match=r"request 1: node 0 links to 2, which is no node"):
        fill([[1, -1], [2, -1]], none)
    with pytest.raises(ffwd.BitmaskError, match=r"request 0: .* leads to node 1"):
        fill([[1, -1], [1, -1]], [[-1, 1], [-1, -1]])
    with pytest.raises(ffwd.BitmaskError, match=r"request 0: .* leads to node 0"):
        fill([[1, 0], [1, -1]], none)
    with pytest.raises(ffwd.BitmaskError, match=r"shape \[2, nodes\]"):
        fill([[1, -1]], none)
    with pytest.raises(ffwd.BitmaskError, match=r"shape \[3, nodes\]"):
        fill(none, none, [one, two, None])
    with pytest.raises(TypeError):
        fill(none, none, [one, object()])
    with pytest.raises(RuntimeError):
        fill(none, none, [one, one])
    with pytest.raises(ffwd.BitmaskError, match="row 1 is given twice"):
        fill_rows([one, two], bitmask, [1, 1])
    with pytest.raises(ffwd.BitmaskError, match="row 4 is out of range"):
        fill_rows([one, two], bitmask, [0, 4])
    with pytest.raises(ffwd.BitmaskError, match="1 rows were given for 2"):
        fill_rows([one, two], bitmask, [0])
    assert not bitmask.any()
    fill(none, none)
    assert bitmask.any()


def test_building_ahead_changes_no_mask(vocabulary: ffwd.Vocabulary) -> None:
    """And what it has built need not be computed afterwards."""
    rng = random.Random(SEED)
    later = [0, 0]
    for grammar in GRAMMARS.values():
        plain, ahead = ffwd.compile(grammar, vocabulary), ffwd.compile(grammar, vocabulary)
        request = EngineRequest(ahead, narrow=True)
        assert 0 < request.build_ahead(max_states=40, seconds=60.0) <= 40
        pair = Pair(plain, [], narrow=True)
        known = ahead.stats()["masks_computed"]
        mine, other = np.zeros((2, 1, WORDS), np.int32)
        request.fill_bitmask(mine, 0)
        assert ahead.stats()["masks_computed"] == known
        for _ in range(8):
            request.fill_bitmask(mine, 0)
            pair.fast.fill_bitmask(other, 0)
            assert np.array_equal(mine, other)
            token = rng.choice(pair.allowed())
            request.accept_tokens("", [token])
            pair.accept([token])
        later[0] += ahead.stats()["masks_computed"] - known
        later[1] += plain.stats()["masks_computed"]
    assert 2 * later[0] < later[1], later


def test_a_row_over_a_limit_ends_its_request_alone(vocabulary: ffwd.Vocabulary) -> None:
    """It allows one token, which is refused like all that follow; the other rows are right."""
    schema = json.dumps({"type": "object", "properties": {"a": {"type": "string"}}})
    limits = ffwd.Limits(call_steps=1)
    small = ffwd.compile(ffwd.regex("(a|b|c|d)*x"), vocabulary, limits=limits)
    good = ffwd.compile(ffwd.json_schema(schema), vocabulary)
    bad, pair = EngineRequest(small), Pair(good, [], narrow=True)
    bitmask = np.zeros((6, WORDS), np.int32)
    draft = pair.allowed()[0]
    count, refused, rejected = StepRows(bitmask).fill(
        [bad, pair.fast], [[7, 8], [draft]], stride=3, threads=2
    )
    assert (count, refused, rejected) == (6, [0], [])
    assert all(len(row_bits(row)) == 1 for row in bitmask[:3])
    assert np.array_equal(bitmask[3:5], slow_rows(pair.slow, [draft], WORDS))
    assert "call_steps" in (bad.refused or "")
    assert not bad.accept_tokens("x", [min(row_bits(bitmask[0]))])
    assert bad.validate_tokens([7]) == []
    assert bad.forced(3) == []
    bad.reset()
    assert bad.refused is None
    # In a tree, and alone.
    links = np.full((2, 3), -1, np.int64)
    links[:, 0] = 1
    tokens, none = np.array([[0, 7, 8], [0, draft, 8]]), np.full((2, 3), -1, np.int64)
    assert fill_trees([bad, pair.fast], bitmask, tokens, links, none, threads=2) == [0]
    assert all(len(row_bits(row)) == 1 for row in bitmask[:3])
    assert np.array_equal(
        bitmask[3:], slow_tree(pair.slow, [0, draft, 8], links[1], none[1], WORDS)
    )
    assert not bad.accept(7)
    bad.reset()
    assert fill_rows([pair.fast, bad], bitmask, [1, 4]) == [1]
    assert len(row_bits(bitmask[4])) == 1
    assert "call_steps" in (bad.refused or "")


def test_what_a_step_refuses(compiled: dict[str, Any]) -> None:
    """Nothing is written then."""
    bitmask = np.zeros((3, WORDS), np.int32)
    rows = StepRows(bitmask)
    one, two = (EngineRequest(compiled["regex"]) for _ in range(2))
    with pytest.raises(ffwd.BitmaskError, match="needs 3 rows of 16 words, and there are 2"):
        rows.fill([one, two], [[], [5, 6]])
    with pytest.raises(ffwd.BitmaskError, match="needs 2 rows of 16 words, and there are 1"):
        rows.fill([one], [[5]], stride=1)
    with pytest.raises(ffwd.BitmaskError, match="2 requests have the drafts of 1"):
        rows.fill([one, two], [[]])
    with pytest.raises(ffwd.BitmaskError, match="no request 4"):
        rows.fill([one], None, [(4, 0, 1, [])])
    with pytest.raises(TypeError):
        rows.fill([one, object()])
    with pytest.raises(RuntimeError):
        rows.fill([one, one])
    assert not bitmask.any()
    with pytest.raises(ffwd.BitmaskError, match="shape"):
        StepRows(np.zeros(4, np.int32))
