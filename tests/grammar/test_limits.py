"""Limits of tokens of parts, from Python: every front end, and reasoning within bounds."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ffwd

TOKENS = [bytes([byte]) for byte in range(256)] + [b"ab", b"aa", b"ba;", b"</", b"think>", b"> a"]
CONTROL = len(TOKENS)
END = CONTROL + 1
VOCABULARY = ffwd.Vocabulary([*TOKENS, None, None], eos_token_ids=[END])


def walked(grammar: ffwd.CompiledGrammar, seed: int, **options: object) -> list[int]:
    """Tokens of a whole text that were chosen at random, with rollbacks on the way."""
    choose = random.Random(seed)
    matcher = grammar.matcher(**options)  # type: ignore[arg-type]
    for _ in range(500):
        allowed = matcher.allowed_token_ids()
        assert allowed
        if matcher.num_tokens and choose.random() < 0.2:
            back = choose.randint(1, min(5, matcher.num_tokens))
            matcher.rollback(back)
            continue
        assert matcher.accept_token(choose.choice(allowed))
        if matcher.is_terminated():
            return matcher.tokens
    raise AssertionError("the text has not ended")


def text(tokens: list[int]) -> bytes:
    return b"".join(TOKENS[token] for token in tokens if token < CONTROL)


def tokens_within(tokens: list[int], start: int, end: int) -> int:
    """How many tokens have a byte of a part of the text."""
    at = count = 0
    for token in tokens:
        length = len(TOKENS[token]) if token < CONTROL else 0
        count += at < end and at + length > start
        at += length
    return count


@pytest.mark.parametrize(
    ("made", "max_tokens"),
    [
        (lambda: ffwd.limit(ffwd.regex("[ab]*"), max_tokens=3) + ";", 3),
        (lambda: ffwd.lark('start: x ";"\nx[max_tokens=3]: /[ab]+/'), 3),
        (lambda: ffwd.ebnf('root ::= x ";"\nx[max_tokens=2] ::= [ab]+'), 2),
    ],
)
def test_every_front_end_has_limits(made: Callable[[], ffwd.Grammar], max_tokens: int) -> None:
    grammar = ffwd.compile(made(), VOCABULARY)
    lengths = set()
    for seed in range(30):
        tokens = walked(grammar, seed)
        written = text(tokens)
        count = tokens_within(tokens, 0, written.index(b";"))
        lengths.add(count)
        assert count <= max_tokens
    assert max_tokens in lengths


@settings(max_examples=30)
@given(st.integers(0, 6), st.integers(0, 1000), st.booleans())
def test_reasoning_is_closed_in_time(max_tokens: int, seed: int, opened: bool) -> None:
    thought = ffwd.reasoning(ffwd.lit("yes"), max_tokens=max_tokens, opened=opened)
    tokens = walked(ffwd.compile(thought, VOCABULARY), seed)
    written = text(tokens)
    start = 0 if opened else len(b"<think>")
    assert tokens_within(tokens, start, written.index(b"</think>")) <= max_tokens
    assert written.endswith(b"yes")


def test_reasoning_that_the_prompt_has_begun_counts_from_there() -> None:
    thought = ffwd.reasoning(ffwd.lit("yes"), max_tokens=3)
    grammar = ffwd.compile(thought, VOCABULARY)
    matcher = grammar.matcher(prefill=b"<think>some thought")
    assert matcher.accept_tokens(list(b"abc"))
    assert matcher.forced_bytes() == b"</think>"
    for seed in range(10):
        tokens = walked(grammar, seed, prefill=b"<think>x")
        assert tokens_within(tokens, 0, text(tokens).index(b"</think>")) <= 3


def test_reasoning_closes_with_a_control_token_in_time() -> None:
    thought = ffwd.reasoning("yes", opened=True, close=ffwd.token(CONTROL), max_tokens=4)
    grammar = ffwd.compile(thought, VOCABULARY)
    for seed in range(20):
        tokens = walked(grammar, seed, max_tokens=10)
        assert tokens.index(CONTROL) <= 4
        assert len(tokens) <= 10
    with pytest.raises(ffwd.BudgetError) as caught:
        grammar.matcher(max_tokens=4)
    assert (caught.value.needed, caught.value.max_tokens) == (5, 4)


def test_masks_far_from_a_limit_are_those_without_one() -> None:
    free = ffwd.regex(r"[^;]*")
    bounded = ffwd.compile(ffwd.limit(free, max_tokens=3000) + ";", VOCABULARY)
    plain = ffwd.compile(free + ";", VOCABULARY)
    one, other = bounded.matcher(), plain.matcher()
    for step in range(2990):
        if step % 500 == 0:
            assert one.allowed_token_ids() == other.allowed_token_ids()
        token = 32 if step % 7 == 0 else 97
        assert one.accept_token(token)
        assert other.accept_token(token)
    assert bounded.stats()["states"] < 20


def test_a_part_that_cannot_end_is_named() -> None:
    grammar = ffwd.compile(
        ffwd.ebnf('root ::= "x" long\nlong[max_tokens=2] ::= "abcdefgh"'), VOCABULARY
    )
    calls: list[Callable[[], object]] = [grammar.matcher, grammar.shortest_completion]
    for call in calls:
        with pytest.raises(ffwd.BudgetError, match="rule `long`") as caught:
            call()
        error = caught.value
        assert (error.needed, error.max_tokens, error.line) == (7, 2, 2)  # type: ignore[attr-defined]


def test_a_limit_on_what_begins_with_itself_is_refused() -> None:
    expression = ffwd.rules(
        {"e": ffwd.limit(ffwd.rule("e") + "+" + "a" | "a", max_tokens=3)},
        start="e",
    )
    with pytest.raises(ffwd.GrammarError, match="begin with itself"):
        ffwd.compile(expression, VOCABULARY)


def test_saved_texts_know_their_limits() -> None:
    grammar = ffwd.compile(ffwd.limit(ffwd.regex("[ab]*"), max_tokens=4) + ";", VOCABULARY)
    matcher = grammar.matcher()
    assert matcher.accept_tokens(list(b"aba"))
    loaded = ffwd.Matcher.from_bytes(matcher.to_bytes(), grammar)
    assert loaded.allowed_token_ids() == matcher.allowed_token_ids()
    assert loaded.accept_token(97)
    assert loaded.allowed_token_ids() == [ord(";")]
