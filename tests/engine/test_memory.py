"""What is held in memory, and that letting go of it changes nothing that a caller sees."""

import os
import random
import subprocess
import sys
import threading

import numpy as np
import pytest
from cases import CASES, byte_vocabulary, mask_bits, real_vocabulary
from realtokenizers import load

import ffwd

ENDLESS = ffwd.json_schema(
    {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
    whitespace="compact",
)


def view(matcher: ffwd.Matcher) -> tuple[object, ...]:
    return (
        matcher.tokens,
        matcher.is_accepting(),
        matcher.is_terminated(),
        matcher.allowed_token_ids(),
        mask_bits(matcher).tobytes(),
        matcher.forced_bytes(),
    )


def walk_both(
    rng: random.Random, one: ffwd.Matcher, other: ffwd.Matcher, steps: int
) -> ffwd.Matcher:
    """A random walk of two matchers, back and forth, which must always look the same."""
    for _ in range(steps):
        seen = view(one)
        assert view(other) == seen
        allowed = one.allowed_token_ids()
        if not allowed or rng.random() < 0.15:
            count = rng.randint(0, one.num_tokens)
            one.rollback(count)
            other.rollback(count)
            continue
        draft = rng.choices(allowed, k=3)
        assert one.validate_tokens(draft) == other.validate_tokens(draft)
        if rng.random() < 0.1:
            fork = other.fork()
            other.accept_token(draft[0])
            other = fork
        assert one.accept_token(draft[0])
        assert other.accept_token(draft[0])
    return other


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_budget_of_nothing_changes_nothing(name: str) -> None:
    vocabulary = byte_vocabulary()
    grammar = ffwd.json_schema(CASES[name].schema)
    enough = ffwd.compile(grammar, vocabulary)
    little = ffwd.compile(grammar, vocabulary, limits=ffwd.Limits(memory_bytes=0))
    rng = random.Random(name)
    for _ in range(3):
        walk_both(rng, enough.matcher(), little.matcher(), 40)
    assert enough.stats()["evictions"] == 0


@pytest.mark.parametrize("canonical", [False, True])
def test_little_memory_with_a_tokenizer(canonical: bool) -> None:
    """Forced tokens and canonical masks are the same too."""
    vocabulary = real_vocabulary("gpt2")
    evictions = moves = 0
    for grammar in (ffwd.json_schema(CASES["nested"].schema), ENDLESS):
        enough = ffwd.compile(grammar, vocabulary)
        little = ffwd.compile(grammar, vocabulary, limits=ffwd.Limits(memory_bytes=1))
        rng = random.Random(5)
        for _ in range(5):
            one, other = (g.matcher(canonical=canonical) for g in (enough, little))
            for _ in range(25):
                assert one.fast_forward_tokens() == other.fast_forward_tokens()
                other = walk_both(rng, one, other, 2)
        stats = little.stats()
        evictions += stats["evictions"]
        moves += stats["matcher_moves"]
    assert evictions > 0
    assert moves > 0


def test_memory_stays_below_the_budget() -> None:
    """However many keys come that no other text has."""
    vocabulary = byte_vocabulary()
    budget = 500_000
    grammar = ffwd.compile(ENDLESS, vocabulary, limits=ffwd.Limits(memory_bytes=budget))
    free = ffwd.compile(ENDLESS, vocabulary)
    bits = ffwd.allocate_bitmask(1, vocabulary.vocab_size)
    most = 0
    for number in range(400):
        text = f'{{"key {number}":["a","{number}"],"{number * number}":[]}}'.encode()
        for compiled in (free, grammar):
            matcher = compiled.matcher()
            for token in text:
                matcher.fill_bitmask(bits)
                assert matcher.accept_token(token)
            assert matcher.is_accepting()
        most = max(most, grammar.stats()["memory_bytes"])
    assert free.stats()["memory_bytes"] > 4 * budget
    assert most < 1.2 * budget
    assert grammar.stats()["evictions"] > 3


def test_bytes_by_kind_add_up() -> None:
    stats = ffwd.compile(ENDLESS, byte_vocabulary()).stats()
    kinds = ("state", "stack", "frame", "key", "schema", "lexeme", "mask", "transition", "forced")
    assert stats["memory_bytes"] == sum(stats[f"{kind}_bytes"] for kind in kinds)
    assert stats["state_bytes"] > 0
    assert stats["lexeme_bytes"] > 0


def test_threads_that_share_too_little_memory() -> None:
    vocabulary = byte_vocabulary()
    little = ffwd.compile(ENDLESS, vocabulary, limits=ffwd.Limits(memory_bytes=100_000))
    enough = ffwd.compile(ENDLESS, vocabulary)
    problems: list[BaseException] = []

    def walk(seed: int) -> None:
        try:
            rng = random.Random(seed)
            for _ in range(4):
                walk_both(rng, enough.matcher(), little.matcher(), 60)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=walk, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert little.stats()["evictions"] > 0


def test_rows_of_grammars_with_little_memory() -> None:
    vocabulary = byte_vocabulary()
    grammars = [
        ffwd.compile(ENDLESS, vocabulary, limits=ffwd.Limits(memory_bytes=size))
        for size in (0, 1 << 28)
    ]
    rng = random.Random(1)
    little, enough = ([grammar.matcher() for _ in range(40)] for grammar in grammars)
    rows = [ffwd.allocate_bitmask(40, vocabulary.vocab_size) for _ in range(2)]
    for _ in range(30):
        for one, other in zip(little, enough, strict=True):
            token = rng.choice(other.allowed_token_ids())
            assert one.accept_token(token)
            assert other.accept_token(token)
            if one.is_terminated():
                one.rollback(3)
                other.rollback(3)
        ffwd.fill_bitmasks(little, rows[0], threads=3)
        ffwd.fill_bitmasks(enough, rows[1], threads=1)
        assert np.array_equal(*rows)


@pytest.mark.parametrize("canonical", [False, True])
def test_ten_thousand_tokens_take_less_than_50_kb(canonical: bool) -> None:
    vocabulary = real_vocabulary("gpt2")
    line = '{"name": "Ada Lovelace", "born": 1815, "tags": ["mathematics", "poetry"]},\n '
    tokens = load("gpt2").tokenizer.encode("[" + line * 500).ids[:10_000]
    assert len(tokens) == 10_000
    grammar = ffwd.json_schema(True, whitespace="flexible")
    matcher = ffwd.compile(grammar, vocabulary).matcher(canonical=canonical)
    bits = ffwd.allocate_bitmask(1, vocabulary.vocab_size)
    for token in tokens:
        if canonical:
            matcher.fill_bitmask(bits)
        assert matcher.accept_token(token)
    assert matcher.memory_bytes <= 50_000
    matcher.rollback(9_000)
    assert matcher.tokens == tokens[:1000]


def test_shared_lexemes_keep_to_their_budget() -> None:
    vocabulary = byte_vocabulary()
    before = vocabulary.memory_bytes
    budget = 1_000_000
    vocabulary.limit_memory(lexeme_bytes=budget, lexeme_mask_bytes=budget)
    for number in range(300):
        pattern = f"[a-c]{{3}}x{number}(?:y|{number}z)*"
        matcher = ffwd.compile(ffwd.regex(pattern), vocabulary).matcher()
        mask_bits(matcher)
    assert vocabulary.memory_bytes < before + 2.5 * budget
    vocabulary.limit_memory(lexeme_bytes=0, lexeme_mask_bytes=0)
    assert vocabulary.memory_bytes <= before


def test_budgets_must_be_sizes() -> None:
    with pytest.raises(ValueError, match="memory_bytes"):
        ffwd.Limits(memory_bytes=-1)
    with pytest.raises(OverflowError):
        byte_vocabulary().limit_memory(lexeme_bytes=-1)


_FORK = """
import os, ffwd
vocabulary = ffwd.Vocabulary([bytes([b]) for b in range(256)] + [None], eos_token_ids=[256])
grammar = lambda n: ffwd.compile(ffwd.json_schema({"const": n}), vocabulary)
bits = ffwd.allocate_bitmask(40, 257)
fill = lambda first: ffwd.fill_bitmasks(
    [grammar(first + n).matcher() for n in range(40)], bits, threads=4
)
fill(0)
child = os.fork()
fill(100)
if child == 0:
    fill(200)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_a_forked_process_has_threads_of_its_own() -> None:
    """The threads that fill rows stay behind in the process that was forked."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", _FORK], check=True, timeout=600)
