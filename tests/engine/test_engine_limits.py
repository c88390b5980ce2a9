"""`ffwd.Limits`: each breach says what, how much and where, and everything works on after it."""

import dataclasses
import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import byte_vocabulary, mask_bits

import ffwd
from ffwd import Limits
from ffwd._limits import NO_LIMITS
from ffwd._native import default_limits, inject_fault

SCHEMA = ffwd.json_schema(
    {"items": {"allOf": [{"minimum": 3}, {"pattern": "^a{3}[b-d]*(e|f){2,40}$"}]}, "minItems": 2}
)
TEXT = b'["aaabbbee", 7, {"a": [1, 2'


def wide(shift: int) -> ffwd.GrammarLike:
    """Pairs of letters at distances, in 26 letters: the search for such a text takes seconds."""
    letters = [chr(0x4E00 + 24 * shift + n) for n in range(24)]
    parts = [f"(?s:.*{letters[n]}.{{{n}}}{letters[n + 12]}.*)" for n in range(12)]
    return ffwd.intersection(*map(ffwd.regex, [*parts, "(?s:.{0,26})"]))


# To find a shortest text of it takes seconds.
LOTTERY = ffwd.json_schema(
    {
        "type": "array",
        "items": {"type": "integer", "minimum": 0, "maximum": 20_000},
        "uniqueItems": True,
        "minItems": 10_000,
    }
)


def read(matcher: ffwd.Matcher, text: bytes) -> list[bytes]:
    """The mask before each byte."""
    masks = []
    for byte in text:
        masks.append(mask_bits(matcher).tobytes())
        assert matcher.accept_token(byte)
    return [*masks, mask_bits(matcher).tobytes()]


def test_the_defaults_are_those_of_the_core() -> None:
    assert dataclasses.asdict(Limits()) == default_limits()


def test_limits_are_plain_data() -> None:
    limits = Limits(states=3)
    assert limits == Limits(states=3) != Limits()
    assert hash(limits) == hash(Limits(states=3))
    with pytest.raises(dataclasses.FrozenInstanceError):
        limits.states = 4  # type: ignore[misc]
    with pytest.raises(TypeError):
        Limits(3)  # type: ignore[misc]
    assert set(dataclasses.asdict(NO_LIMITS).values()) == {None}


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"states": -1}, ValueError),
        ({"states": 1.5}, TypeError),
        ({"states": "3"}, TypeError),
        ({"states": True}, TypeError),
        ({"call_seconds": -0.5}, ValueError),
        ({"call_seconds": math.inf}, ValueError),
        ({"compile_seconds": math.nan}, ValueError),
        ({"compile_seconds": "1"}, TypeError),
    ],
    ids=str,
)
def test_what_is_no_limit(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(options))):
        Limits(**options)


def compiling(grammar: ffwd.GrammarLike, limits: Limits) -> Callable[[], object]:
    return lambda: ffwd.compile(grammar, byte_vocabulary(), limits=limits)


def reading(grammar: ffwd.GrammarLike, text: bytes, limits: Limits) -> Callable[[], object]:
    return lambda: read(ffwd.compile(grammar, byte_vocabulary(), limits=limits).matcher(), text)


DEEP = '{"items":{"not":{"items":{"not":true}}}}'
GROUPS = 'root ::= x\nx ::= "a" (("b" (("c"))))'

# What is passed; the call; where.
BREACHES: dict[str, tuple[str, float, Callable[[], object], dict[str, Any]]] = {
    "schema bytes": (
        "source_bytes",
        20,
        compiling(SCHEMA, Limits(source_bytes=20)),
        {"pointer": ""},
    ),
    "pattern bytes": (
        "source_bytes",
        5,
        compiling(ffwd.regex("abcdef"), Limits(source_bytes=5)),
        {},
    ),
    "choice bytes": (
        "source_bytes",
        5,
        compiling(ffwd.choice(["abc", "def"]), Limits(source_bytes=5)),
        {},
    ),
    "composed bytes": (
        "source_bytes",
        8,
        compiling(ffwd.seq("abc", ffwd.lark('start: "abc"')), Limits(source_bytes=8)),
        {},
    ),
    "schema nesting": (
        "nesting",
        3,
        compiling(ffwd.json_schema(DEEP), Limits(nesting=3)),
        {"pointer": "/items/not/items"},
    ),
    "grammar nesting": (
        "nesting",
        3,
        compiling(ffwd.gbnf(GROUPS), Limits(nesting=3)),
        {"line": 2, "column": 18},
    ),
    "lark nesting": (
        "nesting",
        2,
        compiling(ffwd.lark('start: a\na: "a" (("b" (("c"))))'), Limits(nesting=2)),
        {"line": 2},
    ),
    "expression nodes": (
        "expression_nodes",
        30,
        compiling(ffwd.regex("[a-y]{3}abcdefghijklmnopqrstuvwxyz"), Limits(expression_nodes=30)),
        {},
    ),
    "states": ("states", 9, reading(SCHEMA, TEXT, Limits(states=9)), {}),
    "stacks": ("stacks", 6, reading(SCHEMA, TEXT, Limits(stacks=6)), {}),
    "compile steps": ("compile_steps", 10, compiling(SCHEMA, Limits(compile_steps=10)), {}),
    "compile steps of rules": (
        "compile_steps",
        9,
        compiling(ffwd.gbnf(GROUPS), Limits(compile_steps=9)),
        {},
    ),
    "call steps": ("call_steps", 9, reading(SCHEMA, TEXT, Limits(call_steps=9)), {}),
}


@pytest.mark.parametrize("name", BREACHES)
def test_each_breach_says_which_and_where(name: str) -> None:
    limit, maximum, call, place = BREACHES[name]
    with pytest.raises(ffwd.LimitExceededError) as caught:
        call()
    error = caught.value
    assert (error.limit, error.maximum, error.is_temporary) == (limit, maximum, False)
    assert {key: getattr(error, key) for key in place} == place
    assert limit in str(error)
    assert str(int(maximum)) in str(error)
    assert "ffwd.Limits" in str(error)
    # And everything works on: also what the next call shares with this one.
    assert read(ffwd.compile(SCHEMA, byte_vocabulary()).matcher(), TEXT)


@pytest.mark.parametrize("limit", ["states", "stacks", "call_steps"])
def test_after_a_breach_the_same_matcher_goes_on_as_others_do(limit: str) -> None:
    """As far as its limits let it; what it has built until then is what it is for others, too."""
    expected = read(ffwd.compile(SCHEMA, byte_vocabulary()).matcher(), TEXT)
    vocabulary = byte_vocabulary()
    for maximum in range(1, 60, 3):
        limits = Limits(**{limit: maximum})
        try:
            matcher = ffwd.compile(SCHEMA, vocabulary, limits=limits).matcher()
        except ffwd.LimitExceededError:
            continue
        for at, byte in enumerate(TEXT):
            before = (matcher.tokens, matcher.is_accepting())
            try:
                assert mask_bits(matcher).tobytes() == expected[at]
                assert matcher.accept_token(byte)
            except ffwd.LimitExceededError:
                assert (matcher.tokens, matcher.is_accepting()) == before
                break
    # Lexemes and their masks are shared with the grammars that had too little.
    assert read(ffwd.compile(SCHEMA, vocabulary).matcher(), TEXT) == expected


def test_steps_are_of_each_call() -> None:
    """Many calls may use what one may not, and what is known takes none."""
    long = TEXT + b", [1" * 200
    limits = Limits(call_steps=300)
    matcher = ffwd.compile(SCHEMA, byte_vocabulary(), limits=limits).matcher()
    with pytest.raises(ffwd.LimitExceededError):
        matcher.accept_tokens(list(long))
    assert matcher.tokens == []
    assert read(matcher, long)
    matcher.reset()
    assert matcher.accept_tokens(list(long))


def test_a_matcher_has_limits_of_its_own() -> None:
    """It shares what is built with matchers that have others, and its forks have its limits."""
    grammar = ffwd.compile(SCHEMA, byte_vocabulary())
    tight = Limits(call_steps=1)
    with pytest.raises(ffwd.LimitExceededError, match="call_steps"):
        ffwd.compile(SCHEMA, byte_vocabulary()).matcher(max_tokens=60, limits=tight)
    matcher = grammar.matcher(limits=tight)
    for bound in (matcher, matcher.fork(), grammar.matcher().fork(limits=tight)):
        with pytest.raises(ffwd.LimitExceededError, match="call_steps"):
            bound.accept_tokens(list(TEXT))
        assert bound.tokens == []
    expected = read(ffwd.compile(SCHEMA, byte_vocabulary()).matcher(), TEXT)
    assert read(matcher.fork(limits=Limits()), TEXT) == expected
    assert read(grammar.matcher(), TEXT) == expected
    # What is built by now takes no steps.
    assert read(matcher, TEXT) == expected


def test_deadlines_and_cancellations_are_told_apart() -> None:
    assert issubclass(ffwd.DeadlineExceededError, ffwd.LimitExceededError)
    assert issubclass(ffwd.CancellationError, ffwd.LimitExceededError)
    assert not issubclass(ffwd.CancellationError, ffwd.DeadlineExceededError)
    assert ffwd.DeadlineExceededError.is_temporary is ffwd.CancellationError.is_temporary is True


LIFTED = dataclasses.replace(NO_LIMITS, compile_seconds=0.05, call_seconds=0.05)


def test_a_compilation_ends_with_its_time() -> None:
    with pytest.raises(ffwd.DeadlineExceededError) as caught:
        ffwd.compile(wide(0), byte_vocabulary(), limits=LIFTED)
    error = caught.value
    assert (error.limit, error.maximum, error.is_temporary) == ("compile_seconds", 0.05, True)
    assert "0.05 s" in str(error)


def test_a_call_ends_with_its_time() -> None:
    matcher = ffwd.compile(LOTTERY, byte_vocabulary(), limits=LIFTED).matcher()
    with pytest.raises(ffwd.DeadlineExceededError) as caught:
        matcher.shortest_completion()
    assert (caught.value.limit, caught.value.maximum) == ("call_seconds", 0.05)


def test_a_compilation_is_cancelled_from_another_thread() -> None:
    vocabulary = byte_vocabulary()
    flag = ffwd.Cancellation()
    timer = threading.Timer(0.05, flag.cancel)
    timer.start()
    with pytest.raises(ffwd.CancellationError) as caught:
        ffwd.compile(wide(0), vocabulary, limits=NO_LIMITS, cancellation=flag)
    assert caught.value.limit == "cancellation"
    assert flag.is_cancelled
    # What begins under a flag that is set does nothing.
    with pytest.raises(ffwd.CancellationError):
        ffwd.compile(SCHEMA, vocabulary, cancellation=flag)
    flag.reset()
    assert repr(flag) == "Cancellation(is_cancelled=False)"
    assert read(ffwd.compile(SCHEMA, vocabulary, cancellation=flag).matcher(), TEXT)


def test_a_call_is_cancelled_from_another_thread() -> None:
    flag = ffwd.Cancellation()
    compiled = ffwd.compile(LOTTERY, byte_vocabulary(), limits=NO_LIMITS)
    matcher = compiled.matcher(cancellation=flag)
    timer = threading.Timer(0.05, flag.cancel)
    timer.start()
    with pytest.raises(ffwd.CancellationError):
        matcher.shortest_completion()
    # It is the flag of that matcher and its forks, and of no other one of the grammar.
    with pytest.raises(ffwd.CancellationError):
        matcher.fork().shortest_completion()
    other = compiled.matcher()
    assert other.accept_token(ord("["))
    flag.reset()
    assert matcher.accept_token(ord("["))


def test_a_mask_that_is_known_needs_no_time() -> None:
    flag = ffwd.Cancellation()
    compiled = ffwd.compile(SCHEMA, byte_vocabulary())
    expected = mask_bits(compiled.matcher())
    matcher = compiled.matcher(cancellation=flag)
    flag.cancel()
    assert (mask_bits(matcher) == expected).all()
    with pytest.raises(ffwd.CancellationError):
        matcher.accept_token(TEXT[0])
    assert matcher.tokens == []
    flag.reset()
    assert matcher.accept_token(TEXT[0])


@pytest.mark.parametrize("threads", [1, 3])
def test_a_batch_says_which_rows_are_not_written(threads: int) -> None:
    vocabulary = byte_vocabulary()
    compiled = ffwd.compile(SCHEMA, vocabulary)
    expected = read(ffwd.compile(SCHEMA, byte_vocabulary()).matcher(), TEXT)
    flags = [ffwd.Cancellation() for _ in range(40)]
    matchers = [compiled.matcher(cancellation=flag) for flag in flags]
    places = [(7 * row) % 40 for row in range(40)]
    for row in (31, 3, 17):
        flags[places.index(row)].cancel()
    bitmask = ffwd.allocate_bitmask(40, vocabulary.vocab_size)
    with pytest.raises(ffwd.CancellationError) as refused:
        ffwd.fill_bitmasks(matchers, bitmask, places, threads=threads)
    assert refused.value.rows == (3, 17, 31)
    assert ffwd.CancellationError("").rows == ()
    bits = np.unpackbits(bitmask.view(np.uint8), axis=1, bitorder="little")
    for row in set(range(40)) - {3, 17, 31}:
        assert bits[row, : vocabulary.vocab_size].astype(np.bool_).tobytes() == expected[0]


def test_cancelled_rows_of_a_batch_leave_the_others() -> None:
    flag = ffwd.Cancellation()
    vocabulary = byte_vocabulary()
    compiled = ffwd.compile(SCHEMA, vocabulary)
    expected = read(ffwd.compile(SCHEMA, byte_vocabulary()).matcher(), TEXT)
    bitmask = ffwd.allocate_bitmask(2, vocabulary.vocab_size)
    cancelled, other = compiled.matcher(cancellation=flag), compiled.matcher()
    flag.cancel()
    with pytest.raises(ffwd.CancellationError) as refused:
        ffwd.fill_bitmasks([cancelled, other], bitmask)
    assert refused.value.rows == (0,)
    bits = np.unpackbits(bitmask[1].view(np.uint8), bitorder="little")
    assert bits[: vocabulary.vocab_size].astype(np.bool_).tobytes() == expected[0]


def test_loading_has_limits() -> None:
    vocabulary = byte_vocabulary()
    data = ffwd.compile(SCHEMA, vocabulary).to_bytes()
    with pytest.raises(ffwd.LimitExceededError) as caught:
        ffwd.CompiledGrammar.from_bytes(data, vocabulary, limits=Limits(compile_steps=10))
    assert caught.value.limit == "compile_steps"
    with pytest.raises(ffwd.LimitExceededError) as caught:
        ffwd.CompiledGrammar.from_bytes(data, vocabulary, limits=Limits(source_bytes=10))
    assert caught.value.limit == "source_bytes"
    loaded = ffwd.CompiledGrammar.from_bytes(data, vocabulary, limits=Limits(call_steps=5))
    with pytest.raises(ffwd.LimitExceededError):
        read(loaded.matcher(), TEXT)
    matcher = ffwd.compile(SCHEMA, vocabulary).matcher()
    matcher.accept_tokens(list(TEXT))
    flag = ffwd.Cancellation()
    flag.cancel()
    with pytest.raises(ffwd.CancellationError):
        ffwd.Matcher.from_bytes(matcher.to_bytes(), matcher.grammar, cancellation=flag)


def test_messages_of_deep_places_are_short() -> None:
    """The attribute has the whole place, the message its ends."""
    schema = '{"properties":{"some_long_name":' * 120 + '{"pattern":"(a{9}"}' + "}}" * 120
    with pytest.raises(ffwd.InvalidSchemaError) as invalid:
        ffwd.compile(ffwd.json_schema(schema), byte_vocabulary())
    nested = '{"properties":{"some_long_name":' * 300 + "{}" + "}}" * 300
    with pytest.raises(ffwd.LimitExceededError) as limit:
        ffwd.compile(ffwd.json_schema(nested), byte_vocabulary())
    for error in (invalid.value, limit.value):
        assert len(error.pointer) > 3000
        assert len(str(error)) < 400
        assert "…" in str(error)


def test_memory_is_given_back() -> None:
    """What a compilation has built that came to its limit is let go of."""
    vocabulary = byte_vocabulary()
    limits = Limits(compile_steps=40_000)
    for shift in range(3):
        with pytest.raises(ffwd.LimitExceededError):
            ffwd.compile(wide(shift), vocabulary, limits=limits)
    before = vocabulary.memory_bytes
    for shift in range(3, 30):
        with pytest.raises(ffwd.LimitExceededError):
            ffwd.compile(wide(shift), vocabulary, limits=limits)
    assert vocabulary.memory_bytes < before + (1 << 20)


@pytest.mark.parametrize("limit", ["states", "stacks"])
def test_what_is_held_in_number_is_let_go_of_when_it_is_too_much(limit: str) -> None:
    """So that a text that needs much does not leave the grammar full for all others."""
    pairs = " | ".join(f'"{letter}" root "{letter}" | "{letter}"' for letter in "abc")
    palindromes = ffwd.gbnf(f"root ::= {pairs}")
    unlimited = ffwd.compile(palindromes, byte_vocabulary()).matcher()
    expected = read(unlimited, b"abcba")
    limits = Limits(**{limit: 600})
    grammar = ffwd.compile(palindromes, byte_vocabulary(), limits=limits)
    long, short = grammar.matcher(), grammar.matcher()
    for _ in range(3):
        with pytest.raises(ffwd.LimitExceededError) as caught:
            long.validate_tokens(list(b"abcacb" * 400))
        assert caught.value.limit == limit
        assert grammar.stats()[limit] < 600
        assert read(short, b"abcba") == expected
        short.rollback(5)
    assert grammar.stats()["evictions"] >= 3


def test_texts_without_masks_hold_to_the_memory_too() -> None:
    """Accepting and validating build as much as masks do."""
    limits = Limits(memory_bytes=1 << 18)
    grammar = ffwd.compile(ffwd.json_schema({}), byte_vocabulary(), limits=limits)
    matcher = grammar.matcher()
    assert matcher.accept_token(ord("{"))
    for number in range(400):
        for end in (b"1", b"[1]"):
            member = list(b'"%d":%b' % (number, end))
            assert matcher.validate_tokens(member) == len(member)
        assert matcher.accept_tokens([*member, ord(",")])
    assert grammar.stats()["evictions"] > 0
    # Also those that validate only.
    evicted = grammar.stats()["evictions"]
    for number in range(400, 4000):
        matcher.validate_tokens(list(b'"%d":[{"%d":1}]' % (number, number)))
    assert grammar.stats()["evictions"] > evicted


def test_the_fault_of_a_thread_is_its_own() -> None:
    inject_fault(1)
    found: list[object] = []
    thread = threading.Thread(
        target=lambda: found.append(ffwd.compile(SCHEMA, byte_vocabulary()).stats()["states"])
    )
    thread.start()
    thread.join()
    assert found
    assert inject_fault(None) == 1
