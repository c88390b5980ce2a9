"""A call may be ended at any of its charges: whatever it has built by then is right or is gone.

`ffwd._native.inject_fault(n)` ends a call of this thread at the n-th charge from then on. After it
the same objects, asked again, answer as if nothing had happened.
`ffwd/native/crates/engine/tests/faults.rs` does the same within the core.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest
from cases import bits_of, byte_vocabulary, mask_bits

import ffwd
from ffwd._native import inject_fault

Answer = TypeVar("Answer")

CASES: dict[str, tuple[ffwd.GrammarLike, bytes]] = {
    "object": (
        ffwd.json_schema(
            {
                "type": "object",
                "properties": {"a": {"pattern": "^a+b{2,9}$"}, "b": {"minimum": 3}},
                "required": ["b"],
                "not": {"required": ["c", "a"]},
                "patternProperties": {"^c": {"enum": [1, 12, None]}},
            }
        ),
        b'{"a":"aabb","b":12}',
    ),
    "array": (
        ffwd.json_schema(
            {
                "items": {
                    "oneOf": [
                        {"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2},
                        {"type": "integer"},
                        {"type": "number", "minimum": 7},
                    ]
                },
                "type": "array",
                "uniqueItems": True,
                "contains": {"const": 2},
                "minItems": 4,
            }
        ),
        b"[[1],[1,2],3,2]",
    ),
    "recursive": (
        ffwd.json_schema(
            {
                "$ref": "#/$defs/t",
                "$defs": {
                    "t": {
                        "anyOf": [
                            {"properties": {"a": {"$ref": "#/$defs/t"}}, "required": ["a"]},
                            {"type": "string", "maxLength": 3, "pattern": "a.*b"},
                            {"type": "null"},
                        ]
                    }
                },
            }
        ),
        b'{"a":{"a":"aab"}}',
    ),
    "conditions": (
        ffwd.json_schema(
            {
                "type": "object",
                "allOf": [
                    {
                        "if": {"properties": {f"k{n}": True}, "required": [f"k{n}"]},
                        "then": {"properties": {f"t{n}": {"type": "integer"}}},
                    }
                    for n in range(3)
                ],
                "unevaluatedProperties": False,
                "minProperties": 1,
            }
        ),
        b'{"k0":null,"t0":1',
    ),
    "lookaround": (ffwd.regex(r"(?=.*b)(?!aaa)\w{2,7}\b.*(?<!c)", dialect="python"), b"aab cb"),
    "complement": (ffwd.complement(ffwd.regex("(?s:.*(a.{3}|b{2}).*)")), b"abacab"),
    "longest": (
        ffwd.lark(
            'start: (word | block)+\nword: NAME | KEY\nblock: "a" BODY "b"\nNAME: /[a-z]+/\n'
            'KEY: "ab" | "ba"\nBODY: /[ab]*bab/\n%ignore /[ \\n]+/'
        ),
        b"ab aab\nbab ba",
    ),
    "dead ends": (
        ffwd.lark('start: A B "c"\nA: /a[bc]*/\nB: /b+/\n%ignore " "'),
        b"ab bc",
    ),
    "palindromes": (
        ffwd.gbnf('root ::= "a" root "a" | "b" root "b" | "a" | "b" | root root'),
        b"aabaaab",
    ),
    "left recursion": (
        ffwd.gbnf('root ::= (x | y){2,40} "12"\nx ::= "a"? "b"*\ny ::= [ab]{1,3} | y "null"'),
        b"abbaaab12",
    ),
    "limited": (
        ffwd.seq(
            ffwd.limit(ffwd.regex("[ab]*"), max_tokens=3), ffwd.capture("c", ffwd.regex("c+|ca"))
        ),
        b"abacc",
    ),
}


@pytest.fixture(autouse=True)
def no_fault_left() -> Iterator[None]:
    yield
    inject_fault(None)


def until_done(call: Callable[[], Answer], ended: list[ffwd.FfwdError]) -> Answer:
    try:
        return call()
    except ffwd.DeadlineExceededError as error:
        ended.append(error)
    # A fault comes once.
    return call()


def answers(
    grammar: ffwd.GrammarLike, text: bytes, ended: list[ffwd.FfwdError]
) -> Iterator[tuple[object, ...]]:
    """All that is asked of one text, each answer with what it answers.

    The vocabulary is new: what other grammars leave in its store changes the number of charges.
    """
    vocabulary = byte_vocabulary.__wrapped__()
    compiled = until_done(lambda: ffwd.compile(grammar, vocabulary), ended)
    matcher = until_done(compiled.matcher, ended)
    for at, token in enumerate(text):
        rest = list(text[at:])
        yield at, "mask", until_done(lambda: mask_bits(matcher), ended).tobytes()
        yield at, "forced", until_done(matcher.forced_bytes, ended)
        yield at, "valid", until_done(lambda r=rest: matcher.validate_tokens(r), ended)
        for other in b'1a"}c':
            answer = until_done(lambda t=other: matcher.validate_tokens([t, t]), ended)
            yield at, "valid", other, answer
        if at % 3 == 0:
            yield at, "completion", until_done(matcher.shortest_completion, ended)
            yield at, "events", len(until_done(matcher.fork().events, ended))
        before = matcher.tokens

        def twice(token: int = token, before: list[int] = before) -> bool:
            assert matcher.tokens == before, "what has failed has changed nothing"
            return matcher.accept_tokens([token, token])

        if until_done(twice, ended):
            until_done(lambda: matcher.rollback(2), ended)
        yield at, "accepted", until_done(lambda t=token: matcher.accept_token(t), ended)


def places(charges: int, each: int, growth: float) -> Iterator[int]:
    """Each of the first charges, and after that fewer the later they come."""
    yield from range(1, min(charges, each) + 1)
    place, step = float(each), 1.0
    while (place := place + step) <= charges:
        yield int(place)
        step *= growth


@pytest.mark.parametrize("name", CASES)
def test_a_fault_at_any_charge_changes_no_answer(name: str) -> None:
    grammar, text = CASES[name]
    expected = list(answers(grammar, text, []))
    assert any(answer[-1] is True for answer in expected)
    most = 1 << 40
    inject_fault(most)
    assert list(answers(grammar, text, [])) == expected, "counting is no fault"
    left = inject_fault(None)
    assert left is not None
    charges = most - left
    assert charges > 30
    for place in places(charges, 40, 1.15):
        inject_fault(place)
        ended: list[ffwd.FfwdError] = []
        found = list(answers(grammar, text, ended))
        assert len(ended) == 1, f"the fault at charge {place} of {charges} was swallowed"
        assert found == expected, f"after a fault at charge {place} of {charges}"


def test_a_fault_in_a_batch_of_masks() -> None:
    grammar, text = CASES["array"]
    vocabulary = byte_vocabulary()
    matcher = ffwd.compile(grammar, vocabulary).matcher()
    other = ffwd.compile(grammar, byte_vocabulary()).matcher()
    bitmask = ffwd.allocate_bitmask(1, vocabulary.vocab_size)
    failed = 0
    for token in text:
        inject_fault(1)
        try:
            ffwd.fill_bitmasks([matcher], bitmask)
        except ffwd.DeadlineExceededError:
            failed += 1
            ffwd.fill_bitmasks([matcher], bitmask)
        inject_fault(None)
        assert (bits_of(bitmask[0], vocabulary.vocab_size) == mask_bits(other)).all()
        assert matcher.accept_token(token)
        assert other.accept_token(token)
    assert failed
