"""Objects whose keys are few, though no pattern shows it: exact masks, and no dead ends.

All objects of the keys and values are tried, and jsonschema-rs decides which are valid.
"""

import json
import random
from itertools import combinations, product
from typing import Any, Literal

import jsonschema_rs
import pytest

import ffwd

KEYS = ("aa", "ab", "ba", "bb")
VALUES = ("x", "y")
PATTERNS = ("a", "b", "^a", "b$", "^ab$", "^(ab|ba)$", "a.*b|b.*a", "^[^b]*$", "aa|bb", "ab|bb")
FEW = {
    "type": "object",
    "propertyNames": {"allOf": [{"pattern": "^..$"}, {"pattern": "^[ab]*$"}]},
    "additionalProperties": {"enum": list(VALUES)},
}
ALL: list[dict[str, str]] = [
    dict(zip(keys, values, strict=True))
    for count in range(len(KEYS) + 1)
    for keys in combinations(KEYS, count)
    for values in product(VALUES, repeat=count)
]

tokens = [*(bytes([byte]) for byte in range(256)), None]
VOCABULARY = ffwd.Vocabulary(tokens, eos_token_ids=[256])


def has(pattern: str) -> Any:
    """Return a schema of the objects in which a key matches."""
    return {"not": {"propertyNames": {"not": {"pattern": pattern}}}}


def draw_part(source: random.Random) -> Any:
    pattern = source.choice(PATTERNS)
    value = source.choice((False, True, {"const": "x"}, {"const": "y"}))
    match source.randrange(9):
        case 0 | 1 | 2:
            return has(pattern)
        case 3:
            return {"not": {"patternProperties": {pattern: value}}}
        case 4:
            return {"patternProperties": {pattern: value}}
        case 5:
            return {"not": {"additionalProperties": value, "properties": {"ab": True}}}
        case 6:
            return {"propertyNames": {"pattern": pattern}}
        case 7:
            return {"required": [source.choice(KEYS)]}
        case _:
            return {"anyOf": [draw_part(source), draw_part(source)]}


def draw(source: random.Random) -> Any:
    """Return a schema of objects with some of the keys and values."""
    schema: dict[str, Any] = {
        **FEW,
        "allOf": [draw_part(source) for _ in range(source.randint(1, 4))],
    }
    if source.random() < 0.7:
        schema["maxProperties"] = source.randint(1, 3)
    if source.random() < 0.3:
        schema["minProperties"] = source.randint(2, 5)
    return schema


def draw_object(source: random.Random, depth: int = 0) -> dict[str, Any]:
    """Return a schema of objects with declared properties, and branches of such schemas."""

    def one_in(count: float) -> bool:
        return source.random() < 1 / count

    def inner() -> dict[str, Any]:
        return draw_object(source, depth + 1)

    def value() -> Any:
        return source.choice((False, True, {"const": "x"}, {"const": "y"}))

    schema: dict[str, Any] = {}
    if one_in(2.5):
        names = source.sample(KEYS, source.randint(1, 2))
        schema["properties"] = {name: value() or True for name in names}
    if one_in(2.5):
        schema["patternProperties"] = {source.choice(PATTERNS): value() for _ in range(2)}
    if one_in(4):
        schema["additionalProperties"] = value()
    if one_in(3):
        schema["required"] = [source.choice(KEYS)]
    if one_in(5):
        schema["minProperties"] = source.randint(1, 3)
    if one_in(5):
        schema["maxProperties"] = source.randint(0, 3)
    if depth < 2:
        if one_in(2.5):
            schema["not"] = inner()
        if one_in(4):
            schema["oneOf"] = [inner(), inner()]
        if one_in(6):
            schema |= {"if": inner(), "then": inner()}
        if one_in(4):
            schema["allOf"] = [has(source.choice(PATTERNS)) for _ in range(source.randint(1, 3))]
    return schema


def draw_wide(source: random.Random) -> Any:
    schema: dict[str, Any] = {"allOf": [FEW, draw_object(source), draw_object(source)]}
    if source.random() < 0.4:
        schema["maxProperties"] = source.randint(1, 3)
    if source.random() < 0.3:
        schema["minProperties"] = source.randint(2, 4)
    return schema


def valid_objects(schema: Any) -> list[dict[str, str]]:
    validator = jsonschema_rs.validator_for(schema)
    return [instance for instance in ALL if validator.is_valid(instance)]


def compiled(schema: Any, order: Literal["any", "declared"]) -> ffwd.CompiledGrammar:
    grammar = ffwd.json_schema(schema, property_order=order, whitespace="compact")
    return ffwd.compile(grammar, VOCABULARY)


def follows(matcher: ffwd.Matcher, text: str) -> bool:
    """Return whether a text follows, after comparing each mask on its way with accepting."""
    for byte in text.encode():
        allowed = matcher.allowed_token_ids()
        assert allowed, "an empty mask"
        assert matcher.accept_token(byte) == (byte in allowed)
        if byte not in allowed:
            return False
    return True


def compare(matcher: ffwd.Matcher, came: dict[str, str], valid: list[dict[str, str]]) -> int:
    """Compare what may follow some members with all valid objects. Returns the comparisons."""
    closing = matcher.fork()
    assert follows(closing, "}") == (came in valid), came
    compared = 1
    for key, value in product(KEYS, VALUES):
        if key in came:
            continue
        more = {**came, key: value}
        after = [instance for instance in valid if more.items() <= instance.items()]
        member = matcher.fork()
        text = f'{"," if came else ""}"{key}":"{value}"'
        assert follows(member, text) == bool(after), (came, text)
        compared += 1
        if after:
            compared += compare(member, more, after)
    return compared


def reached(matcher: ffwd.Matcher, text: bytes = b"") -> set[str]:
    """Return all objects that the masks lead to, each with its keys in order."""
    allowed = matcher.allowed_token_ids()
    assert allowed, f"an empty mask after {text!r}"
    found: set[str] = set()
    for token in allowed:
        if token == 256:
            found.add(json.dumps(json.loads(text), sort_keys=True))
            continue
        more = matcher.fork()
        assert more.accept_token(token), (text, token)
        found |= reached(more, text + bytes([token]))
    return found


@pytest.mark.parametrize("seed", range(160))
def test_masks_against_all_objects(seed: int) -> None:
    schema = draw(random.Random(seed))
    valid = valid_objects(schema)
    if not valid:
        with pytest.raises(ffwd.UnsatisfiableSchemaError):
            compiled(schema, "any")
        return
    matcher = compiled(schema, "any").matcher()
    assert follows(matcher, "{")
    assert compare(matcher, {}, valid) > len(valid)


@pytest.mark.parametrize("seed", range(240))
def test_objects_in_declared_order_are_all_objects(seed: int) -> None:
    schema = draw_wide(random.Random(seed))
    valid = valid_objects(schema)
    if not valid:
        with pytest.raises(ffwd.UnsatisfiableSchemaError):
            compiled(schema, "declared")
        return
    matcher = compiled(schema, "any").matcher()
    assert follows(matcher, "{")
    compare(matcher, {}, valid)
    found = reached(compiled(schema, "declared").matcher())
    assert found == {json.dumps(instance, sort_keys=True) for instance in valid}


def test_the_cases_are_about_something() -> None:
    for drawn, seeds in ((draw, range(160)), (draw_wide, range(240))):
        counts = [len(valid_objects(drawn(random.Random(seed)))) for seed in seeds]
        assert counts.count(0) > 10
        assert sum(count > 1 for count in counts) > 60


@pytest.mark.parametrize("order", ["any", "declared"])
def test_declared_keys_are_not_left(order: Literal["any", "declared"]) -> None:
    """Of the keys of a pattern, those that are declared are no further ones."""
    schema = {**FEW, "patternProperties": {"a": False}, "required": ["bb"], "minProperties": 2}
    with pytest.raises(ffwd.UnsatisfiableSchemaError):
        compiled(schema, order)
    pair = {"properties": {"ba": True}, "patternProperties": {"aa|bb": False}}
    schema = {"allOf": [FEW, {**pair, "required": ["ab"], "minProperties": 2}]}
    matcher = compiled(schema, order).matcher()
    assert follows(matcher.fork(), '{"ba":"x","ab":"y"}')
    assert follows(matcher.fork(), '{"ab') == (order == "any")


@pytest.mark.parametrize("seed", range(40))
def test_as_many_different_objects_as_there_are(seed: int) -> None:
    schema = draw(random.Random(1000 + seed))
    count = len(valid_objects(schema))
    array = {"type": "array", "items": schema, "uniqueItems": True}
    compiled({**array, "minItems": count}, "any")
    with pytest.raises(ffwd.UnsatisfiableSchemaError):
        compiled({**array, "minItems": count + 1}, "any")


LETTERS = [has("a"), has("b"), has("c"), has("d")]
TWO = {"type": "object", "propertyNames": {"pattern": "^..$"}, "maxProperties": 2}


@pytest.mark.parametrize("order", ["any", "declared"])
def test_two_keys_for_four_letters(order: Literal["any", "declared"]) -> None:
    """`da` would need `bc` or `cb`, which are forbidden."""
    schema = {**TWO, "patternProperties": {"(b|c){2,2}": False}, "allOf": LETTERS}
    matcher = compiled(schema, order).matcher()
    assert follows(matcher.fork(), '{"db":1,"ca":1}')
    assert follows(matcher.fork(), '{"ba":1,"dc":1}')
    assert not follows(matcher.fork(), '{"da')
    assert not follows(matcher.fork(), '{"ad')
    assert not follows(matcher.fork(), '{"xb')


@pytest.mark.parametrize("turn", range(4))
def test_one_key_for_all_exclusions(turn: int) -> None:
    """In whichever order they come, one key serves for all: `bc`."""
    parts = [has("b"), has("^.c$"), has("^b.$"), has("^(bc|dd)$")]
    schema = {**TWO, "maxProperties": 1, "allOf": parts[turn:] + parts[:turn]}
    matcher = compiled(schema, "any").matcher()
    assert follows(matcher, '{"bc":1}')


@pytest.mark.parametrize("count", [2, 3])
def test_more_members_than_keys(count: int) -> None:
    names = {"allOf": [{"pattern": "b"}, {"pattern": "c"}, {"pattern": "^..$"}]}
    schema = {"type": "object", "propertyNames": names, "minProperties": count}
    if count > 2:
        with pytest.raises(ffwd.UnsatisfiableSchemaError):
            compiled(schema, "any")
        return
    matcher = compiled(schema, "any").matcher()
    assert follows(matcher, '{"cb":"","bc":"')
    assert not follows(matcher.fork(), '",')
    assert follows(matcher, '"}')


@pytest.mark.parametrize(
    "named",
    [
        {},
        {"properties": {'a"': {"const": 1}, "a": {"const": 1}}},
        {"patternProperties": {'^"': {"const": 1}}},
    ],
)
@pytest.mark.parametrize("order", ["any", "declared"])
def test_quotes_within_keys_end_no_key(
    order: Literal["any", "declared"], named: dict[str, Any]
) -> None:
    """Tokens with escaped quotes and parts of two keys are allowed as their bytes are."""
    pieces = ('"', "\\", '\\"', "a", ":1", ",")
    joined = {"".join(parts) for count in (2, 3, 4, 5) for parts in product(pieces, repeat=count)}
    spanning = [text for text in sorted(joined) if text.count('"') > 1 and "," in text]
    spanning = random.Random(3).sample(spanning, 700)
    texts = [*(bytes([byte]) for byte in range(256)), None, *map(str.encode, spanning)]
    vocabulary = ffwd.Vocabulary(texts, eos_token_ids=[256])
    schema = {"type": "object", "additionalProperties": {"const": 1}, **named}
    grammar = ffwd.json_schema(schema, property_order=order, whitespace="compact")
    matcher = ffwd.compile(grammar, vocabulary).matcher()
    row = ffwd.allocate_bitmask(1, vocabulary.vocab_size)
    allowed = 0
    for text in ('{"a\\"":1,"\\"', '{"a":1,"a\\"a\\"', '{"\\\\a\\\\":1,"\\\\'):
        for size in range(len(text) + 1):
            assert follows(matcher, text[:size])
            matcher.fill_bitmask(row, 0)
            for token, bytes_of in enumerate(texts[257:], 257):
                fork = matcher.fork()
                assert bytes_of is not None
                expected = fork.accept_tokens(list(bytes_of))
                found = bool(row[0, token // 32] >> (token % 32) & 1)
                assert found == expected, (text[:size], bytes_of)
                allowed += found
            matcher.rollback(size)
    assert allowed > 100
