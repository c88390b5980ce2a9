"""Threads that share grammars see what one thread alone sees: every mask, at every step."""

import contextlib
import hashlib
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from cases import CASES, real_vocabulary

import ffwd
import ffwd.tokenizer
from ffwd import CompiledGrammar, Grammar, Vocabulary

THREADS = 8
SCRIPTS = 3
STEPS = 40

LARK = r"""
start: statement+
statement: NAME "=" sum ";"
sum: atom (("+"|"-") atom)*
atom: NUMBER | NAME | "(" sum ")" | %json {"items": {"type": "integer"}}
NAME: /[a-z_][a-z0-9_]{0,9}/
NUMBER: /[0-9]+/
%ignore /[ \t\n]+/
"""

GRAMMARS: dict[str, Grammar] = {
    "schema": ffwd.json_schema(CASES["nested"].schema),
    "schema in any order": ffwd.json_schema(
        {
            "type": "object",
            "properties": {key: {"type": ["string", "integer"]} for key in ("a", "b", "c")},
            "additionalProperties": {"type": "array", "items": {"type": "string"}},
        },
        property_order="any",
    ),
    "regex": ffwd.regex(r"([a-f]{2,9}x[0-9]{1,5}[,;] ?)*(end|END|\.)"),
    "lark": ffwd.lark(LARK),
    "composed": ffwd.seq(
        "Answer: ",
        ffwd.choice(["yes", "no", ffwd.json_schema({"type": "array"})]),
        ffwd.repeat(ffwd.seq(" because ", ffwd.regex("[a-z ]{3,20}")), min=0, max=3),
    ),
}


def write(
    seed: int, grammar: CompiledGrammar, canonical: bool, meddle: Callable[[random.Random], None]
) -> str:
    """The hash of all masks, and of what else is to be seen, of a text that is written at random.

    What is done depends on the seed and on what is seen, and not on what `meddle` does.
    """
    rng, other = random.Random(seed), random.Random(-seed)
    size = grammar.vocabulary.vocab_size
    rows = ffwd.allocate_bitmask(2, size)
    seen = hashlib.sha256()
    matcher = grammar.matcher(canonical=canonical)
    for _ in range(STEPS):
        if rng.random() < 0.2:
            fork = matcher.fork()
            ffwd.fill_bitmasks([matcher, fork], rows, threads=2)
            assert np.array_equal(rows[0], rows[1])
        else:
            matcher.fill_bitmask(rows, 0)
        seen.update(rows[0].tobytes())
        seen.update(bytes([matcher.is_accepting(), matcher.is_terminated()]))
        meddle(other)
        if matcher.is_terminated() or rng.random() < 0.15:
            matcher.rollback(rng.randint(0, matcher.num_tokens))
            continue
        if rng.random() < 0.15:
            forced = matcher.fast_forward_tokens()
            seen.update(repr(forced).encode())
            assert matcher.accept_tokens(forced)
            continue
        allowed = np.flatnonzero(np.unpackbits(rows[0].view(np.uint8), bitorder="little"))
        draft = [int(allowed[rng.randrange(len(allowed))]) for _ in range(3)]
        seen.update(bytes([matcher.validate_tokens(draft)]))
        if rng.random() < 0.1:
            # The copy goes on from where it was, whatever the original does.
            fork = matcher.fork()
            assert matcher.accept_token(draft[0])
            matcher = fork
        assert matcher.accept_token(draft[0])
    return seen.hexdigest()


def in_threads(work: Callable[[int], object]) -> None:
    """Runs `work(0)`, `work(1)`, … at the same time."""
    problems: list[BaseException] = []
    barrier = threading.Barrier(THREADS)

    def run(number: int) -> None:
        try:
            barrier.wait()
            work(number)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=600)
        assert not thread.is_alive()
    if problems:
        raise problems[0]


def own_vocabulary() -> Vocabulary:
    """GPT-2's, with memory that no other test's vocabulary shares."""
    return real_vocabulary.__wrapped__("gpt2")


@pytest.mark.parametrize("canonical", [False, True])
def test_eight_threads_see_what_one_sees(canonical: bool) -> None:
    """They compile, fill, accept, take back, fork, and let go of what the others use."""
    alone = own_vocabulary()
    expected: dict[tuple[str, int], str] = {}
    for name, grammar in GRAMMARS.items():
        compiled = ffwd.compile(grammar, alone)
        for seed in range(SCRIPTS):
            expected[name, seed] = write(seed, compiled, canonical, lambda _: None)
        assert compiled.stats()["evictions"] == 0
    assert len(set(expected.values())) > SCRIPTS * len(GRAMMARS) / 2

    vocabulary = own_vocabulary()
    vocabulary.limit_memory(lexeme_bytes=100_000, lexeme_mask_bytes=100_000)
    little = {
        name: ffwd.compile(g, vocabulary, limits=ffwd.Limits(memory_bytes=1))
        for name, g in GRAMMARS.items()
    }
    enough = {name: ffwd.compile(g, vocabulary) for name, g in GRAMMARS.items()}

    def meddle(rng: random.Random) -> None:
        if rng.random() < 0.02:
            vocabulary.clear_memos()
        if rng.random() < 0.05:
            vocabulary.limit_memory(lexeme_bytes=rng.randint(0, 1_000_000))

    def work(thread: int) -> None:
        scripts = [(name, seed) for name in GRAMMARS for seed in range(SCRIPTS)]
        random.Random(thread).shuffle(scripts)
        for number, (name, seed) in enumerate(scripts):
            shared = (little, enough)[number % 2][name]
            if number % 5 == 4:
                shared = ffwd.compile(
                    GRAMMARS[name], vocabulary, limits=ffwd.Limits(memory_bytes=50_000)
                )
            assert write(seed, shared, canonical, meddle) == expected[name, seed], (name, seed)

    in_threads(work)
    assert sum(grammar.stats()["evictions"] for grammar in little.values()) > 0
    assert sum(grammar.stats()["matcher_moves"] for grammar in little.values()) > 0


def test_a_matcher_that_two_threads_use_at_once_says_so() -> None:
    """It belongs to one request: an error rather than a wrong text."""
    vocabulary = real_vocabulary("gpt2")
    grammar = ffwd.compile(ffwd.json_schema(True), vocabulary)
    matcher = grammar.matcher()
    brace = next(t for t in range(vocabulary.vocab_size) if vocabulary.token_bytes(t) == b"[")

    def use(number: int, rows: npt.NDArray[np.int32]) -> None:
        if number % 2:
            matcher.fill_bitmask(rows)
        elif matcher.accept_token(brace):
            # Another thread may have taken it back.
            with contextlib.suppress(IndexError):
                matcher.rollback(1)

    def work(number: int) -> None:
        rows = ffwd.allocate_bitmask(1, vocabulary.vocab_size)
        for _ in range(200):
            with contextlib.suppress(RuntimeError):
                use(number, rows)

    in_threads(work)
    matcher.reset()
    assert matcher.tokens == []
    assert matcher.accept_token(brace)


@pytest.mark.parametrize("options", [{}, {"max_tokens": 60}, {"canonical": True}])
@pytest.mark.parametrize("as_given", [np.asarray, torch.from_numpy], ids=["numpy", "torch"])
def test_threads_fill_rows_of_one_bitmask(
    options: dict[str, Any], as_given: Callable[[npt.NDArray[np.int32]], Any]
) -> None:
    """Each its own, while the others compute theirs and write them."""
    vocabulary = real_vocabulary("gpt2")

    def masks(
        grammar: ffwd.CompiledGrammar, seed: int, rows: npt.NDArray[np.int32], row: int
    ) -> list[bytes]:
        rng, seen = random.Random(seed), []
        given = as_given(rows)
        matcher = grammar.matcher(**options)
        while not matcher.is_terminated() and matcher.num_tokens < STEPS:
            matcher.fill_bitmask(given, row)
            seen.append(rows[row].tobytes())
            bits = np.unpackbits(rows[row].view(np.uint8), bitorder="little")
            assert matcher.accept_token(int(rng.choice(np.flatnonzero(bits).tolist())))
        return seen

    alone = ffwd.allocate_bitmask(1, vocabulary.vocab_size)
    compiled = ffwd.compile(GRAMMARS["schema"], vocabulary)
    expected = [masks(compiled, seed, alone, 0) for seed in range(THREADS)]
    shared = ffwd.compile(GRAMMARS["schema"], vocabulary)
    rows = ffwd.allocate_bitmask(THREADS, vocabulary.vocab_size)

    def work(number: int) -> None:
        for _ in range(3):
            assert masks(shared, number, rows, number) == expected[number]

    in_threads(work)


# The first array that is borrowed in a process looks for flags that all extension modules share in
# this module of NumPy, where it meets the other thread.
_FIRST_BORROWS = """
import sys, threading
import numpy as np
import ffwd

vocabulary = ffwd.Vocabulary([bytes([b]) for b in range(256)] + [None], eos_token_ids=[256])
grammar = ffwd.compile(ffwd.regex("[a-z]{3,9}"), vocabulary)
rows = [ffwd.allocate_bitmask(1, 257) for _ in range(2)]
inside = threading.Event()

class Tensor:
    def numpy(self):
        inside.set()
        return rows[1]

other = threading.Thread(target=grammar.matcher().fill_bitmask, args=(Tensor(), 0))

def first_borrow(name):
    # The other thread runs until it lets go of the interpreter lock by itself.
    sys.setswitchinterval(1000)
    other.start()
    inside.wait()
    raise AttributeError(name)

core = np._core if hasattr(np, "_core") else np.core
core.multiarray.__getattr__ = first_borrow
ffwd.fill_bitmasks([grammar.matcher()], rows[0])
other.join()
assert inside.is_set() and (rows[0] == rows[1]).all()
"""


def test_the_first_borrows_of_a_process_do_not_wait_for_each_other() -> None:
    """A thread that has the interpreter lock waits for no thread that wants it."""
    subprocess.run([sys.executable, "-c", _FIRST_BORROWS], check=True, timeout=600)
