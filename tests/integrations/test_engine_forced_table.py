"""What is forced after each token that may be sampled, against asking after every token."""

import random
from typing import Any

import numpy as np
import pytest
from slow_request import SlowRequest, row_bits
from test_engine_forcing import GRAMMARS
from tiny_engine_model import train_tokenizer

import ffwd
from ffwd.engine import EngineRequest, forced_table
from ffwd.tokenizer import from_huggingface

SEED = 20261124
WIDTH = 512
WORDS = WIDTH // 32
FEW = 64
RUN = 5
Entries = dict[tuple[int, int, int], list[int]]


@pytest.fixture(scope="module")
def compiled() -> list[ffwd.CompiledGrammar]:
    vocabulary = from_huggingface(train_tokenizer(seed=1), vocab_size=WIDTH)
    return [ffwd.compile(grammar, vocabulary) for grammar in GRAMMARS.values()]


def entries(table: Any) -> Entries:
    """The table as a dictionary; no two entries are for the same sample."""
    assert table.dtype == np.int64
    found = {}
    for owner, row, token, *run in table.tolist():
        count = next((at for at, cell in enumerate(run) if cell < 0), len(run))
        assert count > 0
        assert all(cell == -1 for cell in run[count:])
        assert (owner, row, token) not in found
        found[owner, row, token] = run[:count]
    return found


class Twin:
    """A request, and what the slow one says of every token."""

    def __init__(self, grammar: Any, stops: list[int], narrow: bool) -> None:
        self.fast = EngineRequest(grammar, stops, narrow=narrow)
        self.slow = SlowRequest(grammar, stops, narrow=narrow)
        self.stops = set(stops)
        self.ends = set(grammar.vocabulary.eos_token_ids)
        self.bounds = (0, 0)

    def allowed(self) -> list[int]:
        rows = np.zeros((1, WORDS), np.int32)
        self.slow.fill_bitmask(rows, 0)
        return sorted(row_bits(rows[0]))

    def plan(self, rng: random.Random, count: int) -> list[int]:
        """Drafts, most of them right, and where the grammar begins to hold among them."""
        drafts: list[int] = []
        while len(drafts) < count and not self.slow.is_terminated():
            drafts.append(rng.choice(self.allowed()))
            self.slow.accept_tokens("", drafts[-1:])
        self.slow.rollback(len(drafts))
        for at in range(len(drafts)):
            if rng.random() < 0.1:
                drafts[at] = rng.choice([-1, rng.randrange(WIDTH)])
        start = rng.choice([0, 0, 0, rng.randrange(count + 2)])
        self.bounds = (start, start + rng.randrange(2) if start else 0)
        return drafts

    def after_all(self, drafts: list[int], held: bool) -> tuple[Entries, set[tuple[int, int]]]:
        """What is forced after every sample; and the samples that the table may leave out."""
        found: Entries = {}
        optional: set[tuple[int, int]] = set()
        taken = 0
        for row in range(len(drafts) + 1):
            draft = drafts[row] if row < len(drafts) else None
            if row >= self.bounds[1] and not self.slow.is_terminated():
                allowed = self.allowed()
                # A stop token is allowed where nothing else is, and has no entry.
                for token in set(allowed) - self.stops:
                    self.slow.accept_tokens("", [token])
                    run = self.slow.forced(RUN)
                    self.slow.rollback(1)
                    while held and self.ends & set(run):
                        run.pop()
                    if run and token != draft:
                        found[0, row, token] = run
                        if len(allowed) > FEW:
                            optional.add((row, token))
            if draft in (None, -1):
                break
            if row >= self.bounds[0]:
                if self.slow.is_terminated() or not self.slow.accept_tokens("", [draft]):
                    break
                taken += 1
        self.slow.rollback(taken)
        return found, optional


@pytest.mark.parametrize("drafts", [0, 3])
@pytest.mark.parametrize("narrow", [False, True])
def test_the_table_is_what_every_token_forces(
    compiled: list[Any], narrow: bool, drafts: int
) -> None:
    """All of it where masks are small, and never anything else."""
    print("seed", SEED)
    rng = random.Random(SEED)
    checked = missing = 0
    for _ in range(30):
        stops = rng.sample(range(WIDTH), rng.choice([0, 0, 0, 2]))
        twin = Twin(rng.choice(compiled), stops, narrow)
        while not twin.slow.is_terminated() and twin.fast.num_tokens < 40:
            planned, held = twin.plan(rng, drafts), rng.random() < 0.2
            bounds = [(0, *twin.bounds, [])] if any(twin.bounds) else []
            table = forced_table([twin.fast], RUN, [planned], bounds, [0] if held else [])
            right, optional = twin.after_all(planned, held)
            found = entries(table)
            for key, run in found.items():
                assert run == right.get(key), (key, planned, twin.bounds)
            left_out = {(row, token) for _, row, token in right.keys() - found.keys()}
            bounded = twin.fast.matcher().tokens_left is not None
            # Without narrow masks, the end of a text is left out.
            assert bounded or not narrow or left_out <= optional, (left_out, planned)
            checked += len(found)
            missing += len(left_out)
            token = rng.choice(twin.allowed())
            assert twin.fast.accept_tokens("", [token])
            assert twin.slow.accept_tokens("", [token])
    assert checked > 100, (checked, missing)


def test_requests_are_told_apart_and_unchanged(compiled: list[Any]) -> None:
    requests = [EngineRequest(grammar, narrow=True) for grammar in compiled]
    alone = [entries(forced_table([request], RUN)) for request in requests]
    together = entries(forced_table(requests, RUN))
    assert together == {
        (at, row, token): run
        for at, found in enumerate(alone)
        for (_, row, token), run in found.items()
    }
    assert {request.num_tokens for request in requests} == {0}
    assert forced_table([], RUN).shape == (0, 3 + RUN)
    shorter = entries(forced_table(requests, 2))
    assert shorter == {key: run[:2] for key, run in together.items()}


def test_bad_arguments_are_errors(compiled: list[Any]) -> None:
    requests = [EngineRequest(compiled[0])]
    with pytest.raises(ffwd.BitmaskError, match="at most 32"):
        forced_table(requests, 33)
    with pytest.raises(ffwd.BitmaskError, match="1 requests have the drafts of 2"):
        forced_table(requests, 4, [[], []])
    with pytest.raises(ffwd.BitmaskError, match="no request 1"):
        forced_table(requests, 4, held_back=[1])
    with pytest.raises(TypeError):
        forced_table([object()], 4)
