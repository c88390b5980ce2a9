"""Shortest completions and budgets within the default limits, where alternatives exclude others."""

import itertools
import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema_rs
import numpy as np
import pytest
from cases import byte_vocabulary, mask_bits

import ffwd

Schema = dict[str, Any]
ORDERS = ("declared", "any")


def integers(prefixes: str, count: int) -> Schema:
    return {f"{prefix}{n}": {"type": "integer"} for n in range(count) for prefix in prefixes}


def one_or_another(count: int) -> Schema:
    """Each name asks for one that differs if the name does not come."""
    tests = [
        {"if": {"required": [f"a{n}"]}, "then": {"required": [f"b{n}"]}, "else": one_name(f"c{n}")}
        for n in range(count)
    ]
    return {"type": "object", "properties": integers("abc", count), "allOf": tests}


def one_name(name: str) -> Schema:
    return {"required": [name]}


def by_values(count: int) -> Schema:
    """Values of required names say which other names must come, one of them for all."""
    properties = {f"a{n}": {"enum": [1, 2]} for n in range(count)}
    tests = [
        {
            "if": {"properties": {f"a{n}": {"const": 1}}},
            "then": {"required": [f"b{n}"]},
            "else": {"required": [f"c{n}", "d"]},
        }
        for n in range(count)
    ]
    return {
        "type": "object",
        "properties": {**properties, **integers("bc", count)},
        "required": list(properties),
        "allOf": tests,
    }


def by_separate_values(count: int) -> Schema:
    """The value of each required name says which of two names must come, and with which value."""
    schema = by_values(count)
    for n, test in enumerate(schema["allOf"]):
        schema["properties"][f"b{n}"] = {"enum": [5, 22]}
        schema["properties"][f"c{n}"] = {"enum": [333, 6]}
        test["then"] = {"required": [f"b{n}"], "properties": {f"b{n}": {"const": 22}}}
        test["else"] = {"required": [f"c{n}"], "properties": {f"c{n}": {"const": 333}}}
    return schema


def by_branches(count: int) -> Schema:
    """The same, said by a choice of two branches."""
    schema = by_values(count)
    branches = [
        {keyword: [value_and_name(f"a{n}", 1, f"b{n}"), value_and_name(f"a{n}", 2, f"c{n}")]}
        for n in range(count)
        for keyword in [("oneOf", "anyOf")[n % 2]]
    ]
    return {**schema, "allOf": branches}


def value_and_name(name: str, value: int, other: str) -> Schema:
    return {"properties": {name: {"const": value}}, "required": [other]}


def by_values_in_a_row(count: int) -> Schema:
    """Each value says which of two names must come; neighbours have one of these in common."""
    schema = by_values(count)
    for n, test in enumerate(schema["allOf"]):
        test["then"], test["else"] = one_name(f"b{n}"), one_name(f"b{n + 1}")
    return {**schema, "properties": {**schema["properties"], f"b{count}": {"type": "integer"}}}


def not_all_of(count: int) -> Schema:
    """Some name of each of several sets must come, and the sets share names."""
    sets = [{"not": {"properties": {f"a{n}": False, f"a{n + 1}": False}}} for n in range(count)]
    return {"type": "object", "properties": integers("a", count + 1), "allOf": sets}


SHAPES: dict[str, Callable[[int], Schema]] = {
    "one or another": one_or_another,
    "by values": by_values,
    "by separate values": by_separate_values,
    "by branches": by_branches,
    "by values in a row": by_values_in_a_row,
    "not all of": not_all_of,
}


def compiled(schema: Schema, order: str) -> ffwd.CompiledGrammar:
    source = ffwd.json_schema(schema, whitespace="compact", property_order=order)
    return ffwd.compile(source, byte_vocabulary())


def shortest_text(grammar: ffwd.CompiledGrammar) -> bytes:
    """The completion, which each mask of a matcher with just that budget allows."""
    tokens = grammar.shortest_completion()
    matcher = grammar.matcher(max_tokens=len(tokens))
    for token in tokens:
        assert mask_bits(matcher)[token]
        assert matcher.accept_token(token)
    assert matcher.is_terminated()
    return bytes(tokens[:-1])


def walk_within(grammar: ffwd.CompiledGrammar, budget: int, source: random.Random) -> bytes:
    """A random walk along the masks of a matcher with a budget."""
    matcher = grammar.matcher(max_tokens=budget)
    while not matcher.is_terminated():
        allowed = np.flatnonzero(mask_bits(matcher)).tolist()
        assert matcher.accept_token(source.choice(allowed))
    return bytes(matcher.tokens[:-1])


def objects(schema: Schema) -> Iterator[str]:
    """Objects of a few members with the shortest values."""
    properties = schema["properties"]
    names = [*properties, *(["d"] if "d" not in properties else [])]
    for count in range(len(names) + 1):
        for chosen in itertools.combinations(names, count):
            values = [properties.get(name, {}).get("enum", [0]) for name in chosen]
            for drawn in itertools.product(*values):
                members = dict(zip(chosen, drawn, strict=True))
                yield json.dumps(members, separators=(",", ":"))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("name", SHAPES)
def test_small_ones_are_as_short_as_any(name: str, count: int, order: str) -> None:
    schema = SHAPES[name](count)
    validator = jsonschema_rs.validator_for(schema)
    valid = [text for text in objects(schema) if validator.is_valid(json.loads(text))]
    text = shortest_text(compiled(schema, order))
    assert validator.is_valid(json.loads(text)), text
    assert len(text) == min(map(len, valid))


LARGE = ["one or another", "not all of", "by separate values", "by branches"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("count", [12, 30])
@pytest.mark.parametrize("name", LARGE)
def test_large_ones_have_completions(name: str, count: int, order: str) -> None:
    schema = SHAPES[name](count)
    validator = jsonschema_rs.validator_for(schema)
    text = bytes(compiled(schema, order).shortest_completion()[:-1])
    assert validator.is_valid(json.loads(text)), text


@pytest.mark.parametrize("order", ORDERS)
def test_a_hundred_values_decide_along_a_text(order: str) -> None:
    """Every prefix has a completion, and all together are as long as the shortest object."""
    schema = by_separate_values(100)
    matcher = compiled(schema, order).matcher()
    text = bytes(matcher.shortest_completion()[:-1])
    assert jsonschema_rs.validator_for(schema).is_valid(json.loads(text))
    for place, byte in enumerate(text):
        if place % 101 == 0:
            assert len(matcher.shortest_completion()[:-1]) <= len(text) - place
        assert mask_bits(matcher)[byte]
        assert matcher.accept_token(byte)
    assert matcher.is_accepting()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", LARGE)
def test_budgets_of_large_ones_meet_no_limit(name: str, order: str) -> None:
    schema = SHAPES[name](12)
    validator = jsonschema_rs.validator_for(schema)
    grammar = compiled(schema, order)
    text = shortest_text(grammar)
    walked = walk_within(grammar, len(text) + 8, random.Random(f"{name} {order}"))
    assert validator.is_valid(json.loads(walked)), walked


def multiples(source: random.Random) -> Schema:
    """Numbers whose products with each other take long to search through."""
    number: Schema = {"type": "number", "multipleOf": source.choice([2.5, 4, 7, 11, 30])}
    if source.random() < 0.5:
        number["minimum"] = source.choice([15, 100])
    return number


def lists_of_multiples(source: random.Random) -> Schema:
    """Lists within lists, of which one or another keyword tells something of numbers."""

    def inner() -> Schema:
        return {"type": "array", source.choice(["items", "contains"]): multiples(source)}

    def branch() -> Schema:
        parts = [{keyword: inner()} for keyword in ("items", "contains")]
        return {source.choice(["allOf", "anyOf"]): parts}

    return {"type": "array", "oneOf": [branch(), branch()], "minItems": source.choice([0, 1])}


def test_products_of_multiples_meet_no_limit() -> None:
    """An outcome that no number has is not searched for through all of them."""
    source = random.Random(5)
    seen = 0
    for _ in range(25):
        schema = lists_of_multiples(source)
        validator = jsonschema_rs.validator_for(schema)
        try:
            grammar = compiled(schema, "declared")
        except ffwd.SchemaError:
            continue
        text = shortest_text(grammar)
        assert validator.is_valid(json.loads(text)), (schema, text)
        walked = walk_within(grammar, len(text) + 8, source)
        assert validator.is_valid(json.loads(walked)), (schema, walked)
        seen += 1
    assert seen > 15


def patterns_together(length: int, parts: list[str]) -> Schema:
    patterns = [f"^[a-c12]{{{length}}}$", *parts]
    return {"type": "string", "allOf": [{"pattern": pattern} for pattern in patterns]}


PARTS = ["ab1", "b12", "bc1", "c12", "ca1", "a12", "[12][12]", "1.*2", "ac", "a2", "a1", "c[12]b"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("longest", [None, 200])
def test_many_patterns_that_negations_ask_for(longest: int | None, order: str) -> None:
    """What is not without a part has it: the same patterns, said by what must not be missing."""
    positive = patterns_together(60, PARTS)["allOf"]
    groups = [positive[first : first + 4] for first in range(0, len(positive), 4)]
    missing = [{"not": {"anyOf": [{"not": part} for part in group]}} for group in groups]
    schema: Schema = {"type": "string", "allOf": missing}
    if longest is not None:
        schema["maxLength"] = longest
    text = json.loads(shortest_text(compiled(schema, order)))
    assert all(re.search(part, text) for part in PARTS)
    assert len(text) == 60


@pytest.mark.parametrize("order", ORDERS)
def test_many_patterns_that_one_string_must_have(order: str) -> None:
    """All combinations of the parts that have come are as many states."""
    schema = patterns_together(60, PARTS)
    text = shortest_text(compiled(schema, order))
    assert all(re.search(part, json.loads(text)) for part in PARTS)
    assert len(json.loads(text)) == 60


def test_few_patterns_against_all_strings() -> None:
    source = random.Random(7)
    outcomes = set()
    for _ in range(60):
        length, parts = source.randint(2, 5), source.sample(PARTS, source.randint(1, 3))
        strings = map("".join, itertools.product("abc12", repeat=length))
        expected = any(all(re.search(part, text) for part in parts) for text in strings)
        try:
            text = shortest_text(compiled(patterns_together(length, parts), "declared"))
        except ffwd.SchemaError:
            outcomes.add(False)
            assert not expected, parts
        else:
            outcomes.add(True)
            assert expected, parts
            assert all(re.search(part, json.loads(text)) for part in parts), text
    assert outcomes == {False, True}


# Each key's class says which value follows, and most values are objects with such keys again.
PREFIXES = "abcdefgh"


def recursive(rng: random.Random) -> dict[str, Schema]:
    """Definitions of objects whose keys, by name or by pattern, lead to others or to `null`."""
    names = [f"d{n}" for n in range(rng.randint(1, 4))]
    definitions: dict[str, Schema] = {}
    for name in names:
        prefixes = rng.sample(PREFIXES, rng.randint(1, len(PREFIXES)))
        ends = [f"#/$defs/{rng.choice(names)}" for _ in prefixes]
        patterns: Schema = {
            f"^{prefix * rng.randint(1, 3)}[a-z]*$": {"$ref": end}
            for prefix, end in zip(prefixes, ends, strict=True)
        }
        properties: Schema = {
            f"p{n:02}": {"$ref": f"#/$defs/{rng.choice(names)}"}
            for n in range(rng.choice((0, 0, 3, 50)))
        }
        if rng.random() < 0.7:
            rng.choice([patterns, properties])[rng.choice(["^z[a-z]*$", "^zzz[a-z]*$"])] = {
                "type": "null"
            }
        definitions[name] = {
            "type": "object",
            "patternProperties": patterns,
            "properties": properties,
            "additionalProperties": False,
            "minProperties": rng.randint(0, 4) if rng.random() < 0.5 else rng.randint(1, 2),
        }
    return definitions


def least_lengths(definitions: dict[str, Schema]) -> dict[str, float]:
    """The length of a shortest value of each definition, a least fixpoint."""
    infinite = float("inf")
    lengths = dict.fromkeys(definitions, infinite)

    def of(schema: Schema) -> float:
        return lengths[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else 4

    def least(schema: Schema) -> float:
        members = [len(name) + 3 + of(value) for name, value in schema["properties"].items()]
        for pattern, value in schema["patternProperties"].items():
            # A pattern has one key that is its prefix, and 26 with one letter more.
            shortest = pattern.index("[") - 1
            members += [shortest + 3 + of(value)] + [shortest + 4 + of(value)] * 26
        count = schema["minProperties"]
        if len(members) < count:
            return infinite
        return 2 + sum(sorted(members)[:count]) + max(0, count - 1)

    for _ in range(4 * len(definitions) + 4):
        lengths = {name: least(schema) for name, schema in definitions.items()}
    return lengths


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(60))
def test_a_search_tries_keys_of_every_class(order: str, seed: int) -> None:
    definitions = recursive(random.Random(seed))
    expected = least_lengths(definitions)["d0"]
    schema = {"$ref": "#/$defs/d0", "$defs": definitions}
    if expected == float("inf"):
        with pytest.raises(ffwd.UnsatisfiableSchemaError):
            compiled(schema, order)
        return
    assert len(shortest_text(compiled(schema, order))) == expected


@pytest.mark.parametrize("order", ORDERS)
def test_a_key_that_an_exclusion_asks_for_need_not_lead_further(order: str) -> None:
    """A key with `7` needs another such object as its value; one key without `7` does not."""
    schema: Schema = {
        "type": "object",
        "allOf": [
            {"not": {"propertyNames": {"not": {"pattern": "a5b"}}}},
            {"patternProperties": {"7": {"$ref": "#"}}},
            {"propertyNames": {"pattern": r"^(\w\d)+$"}},
            {"maxProperties": 1},
        ],
    }
    text = shortest_text(compiled(schema, order))
    assert re.fullmatch(rb'\{"a5b[0-9]":[0-9]\}', text)
