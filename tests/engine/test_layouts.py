"""`separators` and `indent`: exactly the text that `json.dumps` writes, and no other."""

import json
import random
import re
from typing import Any

import numpy as np
import pytest
from cases import SCHEMAS, SchemaCase, accepts, byte_vocabulary, mask_bits, real_vocabulary

import ffwd

LAYOUTS: tuple[dict[str, Any], ...] = (
    {"indent": 2},
    {"indent": 0},
    {"indent": "\t"},
    {"indent": 4, "separators": (" , ", ":")},
    {"separators": (",", " : ")},
    {"separators": (",\r\n", ":\t")},
)
WALKED = ("anything", "nested", "additional-free", "types-mixed", "any-of-objects", "enum-mixed")
STEPS = 25
MARK = "\ue000"


def written_again(text: str, layout: dict[str, Any]) -> str:
    """The value of a text as `json.dumps` lays it out, with the numbers as they were written."""
    numbers: list[str] = []

    def number(digits: str) -> str:
        numbers.append(digits)
        return f"{MARK}{len(numbers) - 1}{MARK}"

    value = json.loads(text, parse_int=number, parse_float=number)
    dumped = json.dumps(value, ensure_ascii=False, **layout)
    return re.sub(f'"{MARK}([0-9]+){MARK}"', lambda found: numbers[int(found[1])], dumped)


@pytest.mark.parametrize("case", SCHEMAS, ids=lambda case: case.name)
def test_what_json_dumps_writes_is_accepted(case: SchemaCase) -> None:
    for layout in LAYOUTS:
        grammar = ffwd.compile(ffwd.json_schema(case.schema, **layout), byte_vocabulary())
        for instance in case.valid:
            text = json.dumps(instance, ensure_ascii=False, **layout)
            assert accepts(grammar, text), text
            for other in LAYOUTS:
                differs = json.dumps(instance, ensure_ascii=False, **other)
                assert accepts(grammar, differs) == (differs == text), (layout, differs)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("case", [c for c in SCHEMAS if c.name in WALKED], ids=lambda c: c.name)
def test_walks_through_masks_write_as_json_dumps_does(
    case: SchemaCase, layout: dict[str, Any]
) -> None:
    """Any tokens that the masks allow, then the forced and closing ones."""
    vocabulary = real_vocabulary("gpt2")
    grammar = ffwd.compile(ffwd.json_schema(case.schema, **layout), vocabulary)
    (end,) = vocabulary.eos_token_ids
    for seed in range(6):
        source = random.Random(f"{case.name} {layout} {seed}")
        matcher = grammar.matcher()
        data = b""
        while not matcher.is_terminated():
            bits = mask_bits(matcher)
            allowed = np.flatnonzero(bits).tolist()
            assert allowed, data
            token = source.choice(allowed)
            if matcher.num_tokens > STEPS:
                best = min(distance(vocabulary.token_bytes(token)) for token in allowed)
                nearest = [t for t in allowed if distance(vocabulary.token_bytes(t)) == best]
                token = end if bits[end] else source.choice(nearest)
            assert matcher.accept_token(token)
            data += vocabulary.token_bytes(token) or b""
            assert matcher.num_tokens < 60 * STEPS, data
        text = data.decode()
        assert written_again(text, layout) == text


def distance(data: bytes | None) -> int:
    """How far from the end of the text a token seems to lead."""
    if data is None or data[-1:] in b'"}]' or not data.strip():
        return 0
    return 1 if b"," in data else 2


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"separators": (",",)}, TypeError),
        ({"separators": [",", ":"]}, TypeError),
        ({"separators": (",", 1)}, TypeError),
        ({"separators": (";", ":")}, ValueError),
        ({"separators": (",", "")}, ValueError),
        ({"separators": ("," + " " * 64, ":")}, ValueError),
        ({"indent": True}, TypeError),
        ({"indent": 1.0}, TypeError),
        ({"indent": -1}, ValueError),
        ({"indent": 65}, ValueError),
        ({"indent": "--"}, ValueError),
        ({"indent": 2, "whitespace": "compact"}, ValueError),
        ({"separators": (",", ":"), "whitespace": "single-space"}, ValueError),
    ],
    ids=str,
)
def test_bad_options(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=r"separator|indent"):
        ffwd.json_schema(True, **options)


def test_an_indentation_of_any_depth() -> None:
    """Lexemes are made level by level."""
    grammar = ffwd.compile(ffwd.json_schema({"type": "array"}, indent=1), byte_vocabulary())
    value: Any = []
    for _ in range(400):
        value = [value]
    assert accepts(grammar, json.dumps(value, indent=1))
