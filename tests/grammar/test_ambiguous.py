"""Ambiguous grammars: parts that may be empty, hidden left recursion, repeats of repeats.

Each walk keeps to the default limits, and its masks are those of llguidance.
"""

import random
from collections.abc import Sequence

import pytest
from compiled import END, byte_vocabulary
from larkpeer import Peer

import ffwd

_COUNTS = ("*", "+", "?", "{0,2}", "{2,}", "{1,3}")


def _part(source: random.Random, rules: Sequence[str], depth: int) -> str:
    if depth == 0 or source.random() < 0.25:
        return source.choice(('"a"', '"b"')) if source.random() < 0.35 else source.choice(rules)
    chance = source.random()
    if chance < 0.5:
        return f"({' '.join(_part(source, rules, depth - 1) for _ in range(2))})"
    if chance < 0.7:
        return f"({' | '.join(_part(source, rules, depth - 1) for _ in range(2))})"
    return f"({_part(source, rules, depth - 1)}){source.choice(_COUNTS)}"


def drawn(seed: int) -> str:
    """A grammar over two letters, each rule of which has a text."""
    source = random.Random(seed)
    rules = [f"r{number}" for number in range(source.randint(1, 4))]
    lines = ["start: r0"]
    for name in rules:
        ways = [_part(source, rules, 2) for _ in range(source.randint(1, 3))]
        ways.append(source.choice(('"a"', '"b"', '""')))
        lines.append(f"{name}: {' | '.join(ways)}")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def peer() -> Peer:
    return Peer()


@pytest.mark.parametrize("part", range(5))
def test_masks_are_those_of_llguidance(peer: Peer, part: int) -> None:
    compared = 0
    for seed in range(part * 30, part * 30 + 30):
        text = drawn(seed)
        matcher = ffwd.compile(ffwd.lark(text), byte_vocabulary()).matcher()
        theirs = peer.matcher(text)
        source = random.Random(seed)
        for _ in range(30):
            allowed = matcher.allowed_token_ids()
            other = theirs.deep_copy()
            if other.is_stopped():
                break
            assert (END in allowed) == other.is_accepting(), (text, matcher.tokens)
            for byte in b"ab":
                again = other.deep_copy()
                taken = again.try_consume_tokens([byte]) == 1
                if again.is_error():
                    break
                compared += 1
                assert taken == (byte in allowed), (text, matcher.tokens, byte)
            letters = [token for token in allowed if token != END]
            if not letters:
                break
            token = source.choice(letters)
            assert matcher.accept_token(token)
            if theirs.try_consume_tokens([token]) != 1 or theirs.is_error():
                # It has limits of its own on items of one text.
                break
    assert compared > 100


def test_nested_repeats_are_followed() -> None:
    for text in ('start: a\na: b*\nb: a* | "x"', 'start: a+\na: b+ | b{2,}\nb: a{0,3} | a* "x"'):
        matcher = ffwd.compile(ffwd.lark(text), byte_vocabulary()).matcher()
        for _ in range(300):
            assert matcher.allowed_token_ids() == [ord("x"), END]
            assert matcher.accept_token(ord("x"))
