"""Arrays of distinct items: work that does not grow, and items that no enumeration has."""

import json
import random

import pytest
from cases import mask_bits

import ffwd

CHOSEN = random.Random(1)
WORDS = sorted({"".join(CHOSEN.choices("abcdefgh", k=CHOSEN.randint(2, 7))) for _ in range(2500)})
PIECES = sorted({word[:size] for word in WORDS for size in (2, 3)})
TEXTS = [
    *(bytes([byte]) for byte in range(256)),
    *(str(number).encode() for number in range(10, 1000)),
    *(piece.encode() for piece in PIECES),
    b'","',
    b'",',
    b'{"',
]
UNIQUE = {"type": "array", "uniqueItems": True}


@pytest.fixture(scope="module")
def vocabulary() -> ffwd.Vocabulary:
    return ffwd.Vocabulary([*TEXTS, None], eos_token_ids=[len(TEXTS)])


def longest_tokens(text: bytes) -> list[int]:
    """Return the tokens of a text, the longest that fits first."""
    ids = {token: at for at, token in enumerate(TEXTS)}
    found, at = [], 0
    while at < len(text):
        size = next(size for size in range(7, 0, -1) if text[at : at + size] in ids)
        found.append(ids[text[at : at + size]])
        at += size
    return found


def shuffled(values: list) -> list:
    return random.Random(2).sample(values, len(values))


def kinds() -> list:
    """Return strings, integers and objects."""
    chosen = random.Random(3)
    return [chosen.choice([word, at + 100, {"id": at}]) for at, word in enumerate(shuffled(WORDS))]


@pytest.mark.parametrize(
    ("items", "values"),
    [
        ({"enum": WORDS}, shuffled(WORDS)),
        ({"enum": list(range(1000, 3500))}, shuffled(list(range(1000, 3500)))),
        ({"type": "integer"}, shuffled(list(range(2500)))),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "object"}]}, kinds()),
    ],
    ids=["strings", "integers", "any integers", "kinds"],
)
def test_thousands_of_items_take_no_more_steps_each(
    vocabulary: ffwd.Vocabulary, items: dict, values: list
) -> None:
    """No call takes more than the steps that the first items take, however many came."""
    compiled = ffwd.json_schema({**UNIQUE, "items": items}, whitespace="compact")
    limits = ffwd.Limits(call_steps=2000)
    matcher = ffwd.compile(compiled, vocabulary, limits=limits).matcher()
    row = ffwd.allocate_bitmask(1, vocabulary.vocab_size)
    for token in longest_tokens(json.dumps(values, separators=(",", ":")).encode()):
        matcher.fill_bitmask(row, 0)
        assert matcher.accept_token(token)
    assert matcher.is_accepting()


RECORDS = [{"id": at, "n": WORDS[at % 50]} for at in range(200)]
RECORD = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "n": {"enum": WORDS[:50]}},
    "required": ["id", "n"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("indent", [None, 2, 8])
def test_layout_takes_no_steps_to_tell_records_apart(
    vocabulary: ffwd.Vocabulary, indent: int | None
) -> None:
    """Records take few steps, and as many however much white space lies between their members."""
    compiled = ffwd.json_schema({**UNIQUE, "items": RECORD}, whitespace="consistent")
    limits = ffwd.Limits(call_steps=5000)
    matcher = ffwd.compile(compiled, vocabulary, limits=limits).matcher()
    row = ffwd.allocate_bitmask(1, vocabulary.vocab_size)
    for token in longest_tokens(json.dumps(RECORDS, indent=indent).encode()):
        matcher.fill_bitmask(row, 0)
        assert matcher.accept_token(token)
    assert matcher.is_accepting()


def test_items_beside_a_long_enumeration_use_none_of_it_up(vocabulary: ffwd.Vocabulary) -> None:
    """Items that came and are in no enumeration leave all of it, however alike they are."""
    before = [f"zq{letter}" for letter in "bcdefg"]
    schema = {
        **UNIQUE,
        "prefixItems": [{"const": value} for value in before],
        "items": {"enum": [*WORDS, "zqa", "zqh"]},
    }
    grammar = ffwd.compile(ffwd.json_schema(schema, whitespace="compact"), vocabulary)
    written = json.dumps(before, separators=(",", ":"))[:-1]
    for came, left in (([], b"ah"), (["zqa"], b"h"), (["zqh"], b"a")):
        matcher = grammar.matcher()
        text = written + "".join(f',"{value}"' for value in came) + ',"zq'
        assert matcher.accept_tokens(list(text.encode()))
        allowed = mask_bits(matcher)
        assert [byte for byte in range(256) if allowed[byte]] == list(left)
