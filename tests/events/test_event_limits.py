"""Captures of parts whose lexemes a limit of tokens ends, beside a simulation."""

import random

import pytest
from following import END, byte_vocabulary

import ffwd

LONGER = [b"ab", b"ba", b"bc", b"cb", b"aab", b"cc", b"</think>", b"hm", b"m."]
SETS = ["ab", "bc", "abc"]


@pytest.fixture(scope="module")
def vocabulary() -> ffwd.Vocabulary:
    tokens = [bytes([byte]) for byte in range(256)] + LONGER
    return ffwd.Vocabulary([*tokens, None], eos_token_ids=[len(tokens)])


def ended(matcher: ffwd.Matcher) -> list[tuple[str, int, int]]:
    """The captures that have ended with the last tokens."""
    events = matcher.events()
    assert all(event.action in ("begin", "delta", "end") for event in events)
    return [(event.name or "", event.start, event.end) for event in events if event.action == "end"]


def test_a_thought_that_only_its_limit_ends_is_captured(vocabulary: ffwd.Vocabulary) -> None:
    text = 'start: "<think>" r "</think>" "ok"\nr[max_tokens=4, capture="t"]: /(\\n|.)*/\n'
    matcher = ffwd.compile(ffwd.lark(text), vocabulary).matcher()
    assert matcher.accept_tokens(list(b"<think>"))
    found = []
    for token in [256 + LONGER.index(b"hm"), *b"m.!", 256 + LONGER.index(b"</think>"), *b"ok"]:
        assert matcher.accept_token(token)
        found += ended(matcher)
    assert found == [("t", 7, 12)]
    assert matcher.captures() == {"t": "hmm.!"}
    matcher.rollback(4)
    assert matcher.events()[0].num_retracted == 2
    assert matcher.captures() == {}


class Simulation:
    """Parts one after the other, each of some characters and as long as it can be."""

    def __init__(self, parts: list[tuple[str, int | None]]) -> None:
        self.parts = parts
        self.ended: list[tuple[str, int, int]] = []
        self.begun: int | None = None
        self.tokens = 0
        self.at = 0

    def read(self, token: bytes) -> None:
        self.tokens += 1
        for byte in token:
            characters, _ = self.parts[len(self.ended)]
            if self.begun is not None and chr(byte) not in characters:
                self.end()
            if self.begun is None:
                self.begun, self.tokens = self.at, 1
            self.at += 1
        most = self.parts[len(self.ended)][1]
        if most is not None and self.tokens == most:
            self.end()

    def end(self) -> None:
        assert self.begun is not None
        self.ended.append((f"p{len(self.ended)}", self.begun, self.at))
        self.begun = None


def draw(rng: random.Random) -> tuple[str, list[tuple[str, int | None]]]:
    """A grammar of parts, and what these are."""
    count = rng.randint(2, 5)
    parts = [(rng.choice(SETS), rng.choice([None, 1, 2, 3, 5])) for _ in range(count)]
    rules = [f"start: {' '.join(f'p{number}' for number in range(count))}"]
    for number, (characters, most) in enumerate(parts):
        capture, limit = f'capture="p{number}"', f"max_tokens={most}"
        text = f"/[{characters}]+/"
        if most is None:
            rules.append(f"p{number}[{capture}]: {text}")
        elif rng.random() < 0.5:
            rules.append(f"p{number}[{capture}, {limit}]: {text}")
        elif rng.random() < 0.5:
            # The limit around the capture, or within it.
            rules += [f"p{number}[{limit}]: q{number}", f"q{number}[{capture}]: {text}"]
        else:
            rules += [f"p{number}[{capture}]: q{number}", f"q{number}[{limit}]: {text}"]
    return "\n".join(rules), parts


def test_captures_end_where_limits_end_them(vocabulary: ffwd.Vocabulary) -> None:
    compiled = 0
    for seed in range(100):
        rng = random.Random(seed)
        rules, parts = draw(rng)
        try:
            grammar = ffwd.compile(ffwd.lark(rules), vocabulary)
        except ffwd.GrammarError:
            # A part without a limit before one of the same characters takes all of them.
            continue
        compiled += 1
        walk(grammar, parts, rng, rules)
    assert compiled > 50


def walk(
    grammar: ffwd.CompiledGrammar,
    parts: list[tuple[str, int | None]],
    rng: random.Random,
    rules: str,
) -> None:
    for _ in range(4):
        matcher = grammar.matcher()
        simulation = Simulation(parts)
        found: list[tuple[str, int, int]] = []
        for _ in range(24):
            token = rng.choice(matcher.allowed_token_ids())
            assert matcher.accept_token(token)
            found += ended(matcher)
            if matcher.is_terminated():
                break
            simulation.read(grammar.vocabulary.token_bytes(token) or b"")
            assert found == simulation.ended, (rules, found, simulation.ended)
            if rng.random() < 0.1:
                # The same after tokens were taken back and read again.
                matcher.rollback(1)
                matcher.events()
                assert matcher.accept_token(token)
                matcher.events()


def test_every_byte_is_a_token_too() -> None:
    vocabulary = byte_vocabulary()
    matcher = ffwd.compile(
        ffwd.lark('start: x y\nx[capture="x", max_tokens=2]: /[a-z]+/\ny[capture="y"]: /[a-z]*/'),
        vocabulary,
    ).matcher()
    assert matcher.accept_tokens([*b"abcd", END])
    matcher.events()
    assert matcher.captures() == {"x": "ab", "y": "cd"}
