"""Multiples of large numbers end in as few digits as there can be, after whatever has come."""

import random
from fractions import Fraction
from typing import Any

import pytest
from cases import byte_vocabulary, mask_bits

import ffwd

DIGITS = b"0123456789"


def fewest_digits(read: int, step: int) -> int:
    """How many digits must follow `read` so that it becomes a multiple, by trying their number."""
    more = 0
    while (-read * 10**more) % step >= 10**more:
        more += 1
    return more


@pytest.mark.parametrize("step", [97, 1_000_000_007, 7 * 10**40, 10**100, 3 * 10**290 + 1])
def test_integers_end_as_soon_as_they_can(step: int) -> None:
    schema = {"type": "integer", "multipleOf": step, "minimum": 1}
    grammar = ffwd.compile(ffwd.json_schema(schema, whitespace="compact"), byte_vocabulary())
    for seed in range(8):
        source = random.Random(seed)
        matcher = grammar.matcher()
        text = ""
        for _ in range(source.randint(1, 12)):
            bits = mask_bits(matcher)
            byte = source.choice([digit for digit in DIGITS if bits[digit]])
            assert matcher.accept_token(byte)
            text += chr(byte)
            completion = matcher.shortest_completion()
            # With the token that ends the text.
            assert len(completion) == fewest_digits(int(text), step) + 1
            whole = int(text + bytes(completion[:-1]).decode())
            assert whole % step == 0


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "number", "multipleOf": 1e300, "minimum": 1, "maximum": 5e300},
        {"type": "number", "multipleOf": 1000000007.5},
        {"type": "number", "multipleOf": 1000000007, "not": {"multipleOf": 2}},
        {"type": "number", "multipleOf": 7e-30, "exclusiveMinimum": 0, "maximum": 1e-25},
        {"type": "integer", "multipleOf": 1000000007, "minimum": 10**30},
    ],
)
def test_a_budget_holds_in_a_number(schema: dict[str, Any]) -> None:
    """Random digits under a budget: the number is complete in time."""
    grammar = ffwd.compile(ffwd.json_schema(schema, whitespace="compact"), byte_vocabulary())
    least = len(grammar.shortest_completion())
    for seed in range(4):
        source = random.Random(seed)
        matcher = grammar.matcher(max_tokens=least + 14)
        written = b""
        while not matcher.is_terminated():
            bits = mask_bits(matcher)
            allowed = [byte for byte in range(256) if bits[byte]]
            token = source.choice(allowed) if allowed else 256
            assert bits[token]
            assert matcher.accept_token(token)
            written += bytes([token]) if token < 256 else b""
        assert Fraction(written.decode()) % Fraction(str(schema["multipleOf"])) == 0
