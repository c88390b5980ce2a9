"""Requests and steps of engines, against the same in Python, a row at a time."""

import json
import random
from typing import Any

import numpy as np
import pytest
from slow_request import SlowRequest, row_bits, slow_rows
from test_engine_forcing import GRAMMARS
from tiny_engine_model import train_tokenizer

import ffwd
from ffwd.engine import EngineRequest, StepRows
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
    for _ in range(120):
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
