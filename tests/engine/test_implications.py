"""Objects with hundreds of implications are followed within the default limits."""

import json
from typing import Any

import pytest
from cases import byte_vocabulary, mask_bits

import ffwd

Schema = dict[str, Any]
ORDERS = ("declared", "any")


def dependent(keyword: str, count: int) -> Schema:
    """Each of `count` names asks for another one."""
    names = [f"{prefix}{n}" for prefix in "pq" for n in range(count)]
    needed: dict[str, Any] = {}
    for n in range(count):
        schema = {"required": [f"q{n}"], "properties": {f"q{n}": {"type": "integer"}}}
        needed[f"p{n}"] = [f"q{n}"] if keyword == "dependentRequired" else schema
    schema = {"type": "object", "properties": {name: {} for name in names}, keyword: needed}
    if keyword == "dependencies":
        schema["$schema"] = "http://json-schema.org/draft-07/schema#"
    return schema


def by_kind(count: int, *, required: bool) -> Schema:
    """The value of one name says which other name must come."""
    tests = [
        {
            "if": {"properties": {"kind": {"const": f"k{n}"}}, "required": ["kind"]},
            "then": {"required": [f"x{n}"]},
        }
        for n in range(count)
    ]
    properties = {"kind": {"type": "string"}, **{f"x{n}": {} for n in range(count)}}
    schema = {"type": "object", "properties": properties, "allOf": tests}
    return {**schema, "required": ["kind"]} if required else schema


def by_names(count: int) -> Schema:
    """The value of each of many names says whether another one must come."""
    tests = [
        {
            "if": {"properties": {f"k{n}": {"const": "a"}}, "required": [f"k{n}"]},
            "then": {"required": [f"x{n}"]},
        }
        for n in range(count)
    ]
    names = [f"{prefix}{n}" for prefix in "kx" for n in range(count)]
    return {"type": "object", "properties": {name: {} for name in names}, "allOf": tests}


def written(grammar: ffwd.CompiledGrammar, text: str) -> bool:
    """Whether masks let a text through, byte by byte, and it is complete."""
    matcher = grammar.matcher()
    for byte in text.encode():
        allowed = bool(mask_bits(matcher)[byte])
        assert matcher.accept_token(byte) == allowed, text
        if not allowed:
            return False
    return matcher.is_accepting()


def check(schema: Schema, valid: list[Schema], invalid: list[Schema]) -> None:
    """The valid objects can be written and the others cannot, in both orders of properties."""
    for order in ORDERS:
        source = ffwd.json_schema(schema, whitespace="compact", property_order=order)
        grammar = ffwd.compile(source, byte_vocabulary())
        for document, expected in [*((d, True) for d in valid), *((d, False) for d in invalid)]:
            text = json.dumps(document, separators=(",", ":"))
            assert written(grammar, text) == expected, (order, text)


def by_required_names(count: int) -> Schema:
    """The value of each of many required names says which of two others must come, and how."""
    tests = [
        {
            "if": {"properties": {f"k{n}": {"const": "a"}}},
            "then": {"required": [f"x{n}"], "properties": {f"x{n}": {"const": 1}}},
            "else": {"required": [f"y{n}"]},
        }
        for n in range(count)
    ]
    properties: Schema = {f"k{n}": {"enum": ["a", "b"]} for n in range(count)}
    others: Schema = {f"{prefix}{n}": {} for prefix in "xy" for n in range(count)}
    required = list(properties)
    return {
        "type": "object",
        "properties": {**properties, **others},
        "required": required,
        "allOf": tests,
    }


@pytest.mark.parametrize("keyword", ["dependentRequired", "dependentSchemas", "dependencies"])
@pytest.mark.parametrize("count", [17, 100])
def test_names_that_ask_for_names(keyword: str, count: int) -> None:
    """Alternatives would be 2^17 and more; the last name's dependency holds as the first one's."""
    first, last = {"p0": 1}, {f"p{count - 1}": 1}
    check(
        dependent(keyword, count),
        [{}, {**first, "q0": 2}, {**first, **last, "q0": 2, f"q{count - 1}": 3}],
        [first, last, {**first, **last, "q0": 2}],
    )


@pytest.mark.parametrize("required", [False, True])
def test_the_value_of_one_name_says_what_follows(required: bool) -> None:
    """Two hundred flat `if` and `then` on one name."""
    check(
        by_kind(200, required=required),
        [{"kind": "k199", "x199": 1}, {"kind": "k"}, {"kind": "k0", "x0": 1, "x7": 2}],
        [{"kind": "k199"}, {"kind": "k0", "x199": 1}, *([{}] if required else [])],
    )


def test_the_values_of_many_names_say_what_follows() -> None:
    """Two hundred flat `if` and `then`, each on a name of its own."""
    check(
        by_names(200),
        [{}, {"k0": "a", "k3": "b", "x0": 1}, {"k198": "b", "k199": "a", "x199": 2}],
        [{"k0": "a", "x1": 1}, {"k199": "a"}],
    )


def test_the_values_of_required_names_say_what_follows() -> None:
    """A hundred `if`, `then` and `else`, each on a required name of its own."""
    count = 100
    keys = {f"k{n}": "ab"[n % 2] for n in range(count)}
    valid = {**keys, **{f"{'xy'[n % 2]}{n}": 1 for n in range(0, count, 2)}}
    valid = {**valid, **{f"y{n}": 2 for n in range(1, count, 2)}}
    names = sorted(valid, key=lambda name: ("kxy".index(name[0]), int(name[1:])))
    valid = {name: valid[name] for name in names}
    without = {name: value for name, value in valid.items() if name != "y99"}
    other = {**valid, "x98": 2}
    check(by_required_names(count), [valid], [without, other, keys])
