"""Work that is stopped at random points: what it leaves goes on as if nothing had happened.

A fault is a deadline that passes with the n-th look at the clock, or memory that the system refuses
to the n-th allocation, wherever in the engine that is; budgets of memory that let go of everything
at every step run beside it.
"""

import os
import random

import pytest
from cases import CASES, mask_bits, real_vocabulary

import ffwd
from ffwd import CompiledGrammar, Grammar, Matcher, Vocabulary
from ffwd._native import inject_allocation_fault, inject_fault

# More of them by hand: FFWD_FAULTS=100000.
FAULTS = int(os.environ.get("FFWD_FAULTS", "600"))

LARK = r"""
start: (NAME "=" sum ";")+
sum: atom (("+"|"-") atom)*
atom: NUMBER | NAME | "(" sum ")" | %json {"items": {"type": "integer"}}
NAME: /[a-z_][a-z0-9_]{0,9}/
NUMBER: /[0-9]+/
%ignore /[ \t\n]+/
"""

GRAMMARS: dict[str, Grammar] = {
    "schema": ffwd.json_schema(CASES["nested"].schema),
    "any order": ffwd.json_schema(
        {
            "type": "object",
            "properties": {key: {"type": ["string", "integer"]} for key in ("a", "b", "c")},
            "additionalProperties": {"type": "array", "items": {"enum": ["x", "xy", 1]}},
            "minProperties": 2,
        },
        property_order="any",
    ),
    "regex": ffwd.regex(r"([a-f]{2,9}x[0-9]{1,5}[,;] ?)*(end|END|\.)"),
    "lark": ffwd.lark(LARK),
    "composed": ffwd.seq(
        "Answer: ",
        ffwd.capture("body", ffwd.choice(["yes", "no", ffwd.json_schema({"type": "array"})])),
        ffwd.repeat(ffwd.seq(" because ", ffwd.regex("[a-z ]{3,20}")), min=0, max=3),
    ),
}


class Faulty:
    """Calls that a fault is injected into, and that are made again where it ended them."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.injected = 0

    def __call__(self, call, unchanged=lambda: None):
        """What a call gives, after up to three faults; `unchanged` is asked after each."""
        before = unchanged()
        for _ in range(3):
            # Mostly early, for most calls look few times.
            place = self.rng.choice((1, 2, 3, 5, 9, 20, 60, 200, 1000))
            inject = self.rng.choice((inject_fault, inject_allocation_fault))
            inject(place)
            try:
                done = call()
            except ffwd.LimitExceededError:
                self.injected += 1
                inject(None)
                assert unchanged() == before
            else:
                inject(None)
                return done
        return call()


@pytest.fixture(autouse=True)
def _no_fault_is_left():
    yield
    inject_fault(None)
    inject_allocation_fault(None)


def plain(matcher: Matcher) -> tuple[object, ...]:
    return (matcher.tokens, matcher.is_accepting(), matcher.is_terminated())


def walk(faulty: Faulty, one: Matcher, other: Matcher, steps: int) -> None:
    """Both must look the same at every step; only the `other` meets faults."""
    rng = faulty.rng
    for _ in range(steps):
        before = lambda: plain(other)  # noqa: E731 - what must not change
        expected = mask_bits(one)
        assert (faulty(lambda: mask_bits(other), before) == expected).all()
        assert plain(one) == plain(other)
        allowed = expected.nonzero()[0].tolist()
        choice = rng.random()
        if one.is_terminated() or choice < 0.12:
            count = rng.randint(0, one.num_tokens)
            one.rollback(count)
            faulty(lambda count=count: other.rollback(count), before)
        elif choice < 0.2:
            assert faulty(other.fast_forward_tokens, before) == one.fast_forward_tokens()
        elif choice < 0.25:
            assert faulty(other.forced_bytes, before) == one.forced_bytes()
        elif choice < 0.3:
            assert faulty(other.shortest_completion, before) == one.shortest_completion()
        elif choice < 0.35:
            data = other.to_bytes()
            copy = faulty(lambda data=data: Matcher.from_bytes(data, other.grammar))
            assert copy.tokens == one.tokens
            assert (mask_bits(copy) == expected).all()
        else:
            draft = rng.choices(allowed, k=2)
            assert faulty(lambda d=draft: other.validate_tokens(d), before) == (
                one.validate_tokens(draft)
            )
            assert one.accept_token(draft[0])
            assert faulty(lambda d=draft: other.accept_token(d[0]), before)


def compiled(
    faulty: Faulty, grammar: Grammar, vocabulary: Vocabulary, memory_bytes: int
) -> CompiledGrammar:
    return faulty(
        lambda: ffwd.compile(grammar, vocabulary, limits=ffwd.Limits(memory_bytes=memory_bytes))
    )


@pytest.mark.parametrize("options", [{}, {"canonical": True}, {"max_tokens": 60}], ids=str)
def test_faults_change_nothing(options: dict[str, object]) -> None:
    """Each kind of grammar, with memory for all of it and with none."""
    alone, vocabulary = real_vocabulary("gpt2"), real_vocabulary.__wrapped__("gpt2")
    faulty = Faulty(random.Random(str(options)))
    enough = {name: ffwd.compile(grammar, alone) for name, grammar in GRAMMARS.items()}
    while faulty.injected < FAULTS // 3:
        for name, grammar in GRAMMARS.items():
            # Compiled anew, so that faults fall into what is built for the first time.
            vocabulary.clear_memos()
            memory_bytes = faulty.rng.choice((1, 100_000, 1 << 28))
            little = compiled(faulty, grammar, vocabulary, memory_bytes)
            one = enough[name].matcher(**options)
            other = faulty(lambda g=little: g.matcher(**options))
            walk(faulty, one, other, 25)


def test_faults_in_batches() -> None:
    """The rows of other matchers are right, and after the fault all are."""
    vocabulary = real_vocabulary("gpt2")
    rng = random.Random(8)
    rows = ffwd.allocate_bitmask(12, vocabulary.vocab_size)
    expected = ffwd.allocate_bitmask(12, vocabulary.vocab_size)
    faulty = Faulty(rng)
    for _ in range(12):
        vocabulary.clear_memos()
        grammars = [ffwd.compile(grammar, vocabulary) for grammar in GRAMMARS.values()]
        matchers = [rng.choice(grammars).matcher() for _ in range(12)]
        for matcher in matchers:
            for _ in range(rng.randint(0, 6)):
                allowed = matcher.allowed_token_ids()
                if not matcher.is_terminated():
                    assert matcher.accept_token(rng.choice(allowed))
        faulty(lambda m=matchers: ffwd.fill_bitmasks(m, rows, threads=3))
        ffwd.fill_bitmasks(matchers, expected, threads=1)
        assert (rows == expected).all()
    assert faulty.injected > 3
