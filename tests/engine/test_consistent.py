"""`whitespace="consistent"`: texts are what `json.dumps` writes, each in one layout."""

import json
from collections.abc import Iterator
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from engine.cases import accepts, byte_vocabulary, mask_bits

import ffwd

LAYOUTS: list[dict[str, Any]] = [
    {"separators": (",", ":")},
    {},
    *({"indent": blanks} for blanks in range(1, 9)),
    {"indent": "\t"},
]
# What a token may span: brackets, separators and blanks, where layouts differ and where values end.
TOKENS = [
    '{"', '":', '": ', '", "', '","', '":"', '": "', "[[", "]]", "],", "], ", "}}", "},", "}, ",
    "[]", "{}", "[{", "}]", '["', '"]', '"}', ",true", ", true", "true,", "true, ", "true]", "\n  ",
    "\n    ", "\n\t", "{\n", "[\n", ",\n", ",\n  ", "]\n", "}\n", "\n]", "\n}", "\n  ]", "  ",
    "    ", "        ", '  "', '\t"', "\t\t", '"a"', '"a": ', '"a":true', '"a": true', ": [", ":[",
    ": {", ':{"', "[true", "[true,", "[true, ", "[\n  true", "null", "true\n", " true", "\n ",
    " \n", "\t ", " [", " {", ", [", ",[", "[\t", "{ ",
]  # fmt: skip


def texts_of(value: Any) -> set[str]:
    return {json.dumps(value, ensure_ascii=False, **layout) for layout in LAYOUTS}


def lists(items: list[Any], least: int, most: int) -> list[Any]:
    return [
        list(each) for length in range(least, most + 1) for each in product(items, repeat=length)
    ]


def objects(members: dict[str, list[Any]], required: set[str], any_order: bool) -> Iterator[Any]:
    choices = [[*values, *([] if name in required else [None])] for name, values in members.items()]
    absent = [name in required for name in members]
    for chosen in product(*choices):
        pairs = [
            (name, value)
            for name, value, is_required in zip(members, chosen, absent, strict=True)
            if is_required or value is not None
        ]
        for order in permutations(pairs) if any_order else [pairs]:
            yield dict(order)


def array(items: Any, least: int, most: int, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most, **more}


def closed(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
        **more,
    }


ONE = {"enum": [True, "a b"]}
SMALL = array({"const": True}, 0, 2)
INNER = closed({"c": SMALL, "d": {"const": {}}})
INNERS = list(objects({"c": lists([True], 0, 2), "d": [{}]}, set(), any_order=False))
CASES: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "scalars": ({"enum": [True, "x", None, ", : [\n  1]"]}, [True, "x", None, ", : [\n  1]"]),
    "array": (array(ONE, 0, 3), lists([True, "a b"], 0, 3)),
    "nested arrays": (
        array(array(SMALL, 0, 2), 0, 2),
        lists(lists(lists([True], 0, 2), 0, 2), 0, 2),
    ),
    "object": (
        closed({"a": ONE, "b": {"const": []}, "c": ONE}, "b"),
        list(objects({"a": [True, "a b"], "b": [[]], "c": [True, "a b"]}, {"b"}, any_order=False)),
    ),
    "objects in arrays": (array(array(INNER, 0, 1), 0, 2), lists(lists(INNERS, 0, 1), 0, 2)),
    "arrays in objects": (
        closed({"x": SMALL, "y": array(SMALL, 1, 2)}, "y"),
        list(
            objects(
                {"x": lists([True], 0, 2), "y": lists(lists([True], 0, 2), 1, 2)},
                {"y"},
                any_order=False,
            )
        ),
    ),
    "scalar or container": (
        {"anyOf": [{"const": True}, SMALL, closed({"a": SMALL})]},
        [True, *lists([True], 0, 2), *objects({"a": lists([True], 0, 2)}, set(), any_order=False)],
    ),
    "unique items": (
        array({"anyOf": [SMALL, {"const": {"a": [True]}}]}, 0, 3, uniqueItems=True),
        [
            each
            for each in lists([[], [True], [True, True], {"a": [True]}], 0, 3)
            if all(each[i] != each[j] for i in range(len(each)) for j in range(i))
        ],
    ),
    "contains": (
        array(SMALL, 0, 3, contains={"const": [True]}, maxContains=1),
        [each for each in lists([[], [True], [True, True]], 0, 3) if each.count([True]) == 1],
    ),
    "several alternatives": (
        {
            "oneOf": [
                closed({"k": {"const": True}, "v": SMALL}, "k", "v"),
                closed({"k": {"const": False}, "v": {"const": [[]]}}, "k", "v"),
            ]
        },
        [
            *({"k": True, "v": value} for value in lists([True], 0, 2)),
            {"k": False, "v": [[]]},
        ],
    ),
}
ANY_ORDER = {
    "two": (
        closed({"a": SMALL, "b": {"const": [[]]}}, "a"),
        {"a": lists([True], 0, 2), "b": [[[]]]},
        {"a"},
    ),
    "three": (
        closed({"a": {"const": True}, "b": {"const": {}}, "c": {"const": {"a": [True]}}}),
        {"a": [True], "b": [{}], "c": [{"a": [True]}]},
        set(),
    ),
}


def wide_vocabulary() -> ffwd.Vocabulary:
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += [token.encode() for token in dict.fromkeys(TOKENS)]
    return ffwd.Vocabulary([*tokens, None], eos_token_ids=[len(tokens)])


def check(schema: dict[str, Any], values: list[Any], order: Any) -> None:
    """Along every text, the mask has exactly the tokens with which some text goes on."""
    texts = {text.encode() for value in values for text in texts_of(value)}
    prefixes = {text[:end] for text in texts for end in range(len(text) + 1)}
    vocabulary = wide_vocabulary()
    size = vocabulary.vocab_size
    tokens = [vocabulary.token_bytes(token) for token in range(size)]
    ids: dict[bytes, list[int]] = {}
    for token, text in enumerate(tokens):
        ids.setdefault(text or b"", []).append(token)
    longest = max(len(text or b"") for text in tokens)
    grammar = ffwd.compile(ffwd.json_schema(schema, property_order=order), vocabulary)
    matcher = grammar.matcher()

    def visit(prefix: bytes) -> None:
        expected = np.zeros(size, dtype=np.bool_)
        going_on = by_length.get(prefix, [])
        for length in range(1, longest + 1):
            for longer in going_on:
                expected[ids.get(longer[-length:], [])] = True
            going_on = [after for longer in going_on for after in by_length.get(longer, ())]
        expected[size - 1] = prefix in texts
        found = mask_bits(matcher)
        wrong = [tokens[token] for token in np.flatnonzero(found != expected)]
        assert not wrong, (prefix, wrong)
        forced = matcher.forced_bytes()
        for byte in sorted({after[len(prefix)] for after in by_length.get(prefix, ())}):
            assert matcher.accept_token(byte)
            visit(prefix + bytes([byte]))
            matcher.rollback(1)
        assert prefix + forced in prefixes

    by_length: dict[bytes, list[bytes]] = {}
    for prefix in prefixes:
        if prefix:
            by_length.setdefault(prefix[:-1], []).append(prefix)
    visit(b"")


@pytest.mark.parametrize("name", CASES)
def test_texts_and_masks_are_those_of_json_dumps(name: str) -> None:
    schema, values = CASES[name]
    check(schema, values, "declared")


@pytest.mark.parametrize("name", ANY_ORDER)
def test_texts_in_any_order_are_those_of_json_dumps(name: str) -> None:
    schema, members, required = ANY_ORDER[name]
    check(schema, list(objects(members, required, any_order=True)), "any")


BOUNDED = {
    "tree": {
        "$defs": {
            "t": closed(
                {"n": {"enum": ["a", "b"]}, "l": array({"$ref": "#/$defs/t"}, 0, 3)}, "n", "l"
            )
        },
        "$ref": "#/$defs/t",
    },
    "matrix": array(array({"type": "boolean"}, 2, 4), 2, 4),
    "open": {
        "type": "object",
        "additionalProperties": {"type": "array", "items": {"enum": [None]}},
    },
    "unique": array(array({"type": "boolean"}, 0, 3), 4, 6, uniqueItems=True),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_random_walks_with_a_budget_end_in_one_layout(name: str) -> None:
    """Uniform ones, over tokens that span several layouts' separators."""
    vocabulary = wide_vocabulary()
    grammar = ffwd.compile(ffwd.json_schema(BOUNDED[name]), vocabulary)
    found = set()
    for seed in range(60):
        source = np.random.default_rng(seed)
        matcher = grammar.matcher(max_tokens=150)
        while not matcher.is_terminated():
            allowed = np.flatnonzero(mask_bits(matcher))
            assert matcher.accept_token(int(source.choice(allowed)))
        text = b"".join(vocabulary.token_bytes(token) or b"" for token in matcher.tokens).decode()
        layouts = [at for at, each in enumerate(LAYOUTS) if text == written(text, each)]
        assert layouts, text
        found |= set(layouts)
    assert len(found) > 5


def written(text: str, layout: dict[str, Any]) -> str:
    return json.dumps(json.loads(text), ensure_ascii=False, **layout)


def test_a_completion_keeps_the_layout_over_thousands_of_items() -> None:
    schema = array(array({"const": True}, 2, 2), 3000, 3000)
    matcher = ffwd.compile(ffwd.json_schema(schema), byte_vocabulary()).matcher()
    value = [[True, True]] * 3000
    for begun, layout in (("[[true", LAYOUTS[0]), ("[[true, ", {}), ("[\n\t", {"indent": "\t"})):
        fork = matcher.fork()
        assert fork.accept_tokens(list(begun.encode()))
        rest = bytes(fork.shortest_completion()[:-1]).decode()
        assert begun + rest == json.dumps(value, **layout)


def test_each_schema_of_a_grammar_has_its_own_whitespace() -> None:
    value: dict[str, Any] = {"a": [True, None]}
    schema = closed({"a": {"type": "array"}}, "a")
    consistent = ffwd.span("content", ffwd.json_schema(schema))
    compact = ffwd.json_schema(schema, whitespace="compact")
    grammar = ffwd.compile(
        consistent + "|" + ffwd.json_schema(schema) + "|" + compact, byte_vocabulary()
    )
    grammars = [grammar, ffwd.CompiledGrammar.from_bytes(grammar.to_bytes(), byte_vocabulary())]
    texts = [json.dumps(value, **layout) for layout in LAYOUTS]
    for each in grammars:
        for first, second, third in product(texts, texts, texts[:2]):
            text = f"{first}|{second}|{third}"
            assert accepts(each, text) == (third == texts[0]), text
        # Its values are told as they come, in any layout.
        for text in texts:
            matcher = each.matcher()
            assert matcher.accept_tokens(list(f"{text}|".encode()))
            ends = {
                (event.kind, event.pointer): text[event.start : event.end]
                for event in matcher.events()
                if event.action == "end"
            }
            assert ends["content", None] == text
            assert ends["value", "/a/0"] == "true"
            assert ends["value", "/a/1"] == "null"


def test_two_readings_that_share_their_values_are_both_read() -> None:
    """What follows tells two schemas apart; until then a scalar belongs to both."""
    one = closed({"a": True}, "a")
    two = closed({"a": True, "b": True}, "a")
    for whitespace in ("consistent", "flexible", "compact"):
        schemas = [ffwd.json_schema(each, whitespace=whitespace) for each in (one, two)]  # type: ignore[arg-type]
        grammar = ffwd.compile(schemas[0] + "x" | schemas[1] + "y", byte_vocabulary())
        for value in ("1", '"s"', "null", "[1]", '{"c":[2]}'):
            assert accepts(grammar, '{"a":' + value + "}x")
            assert accepts(grammar, '{"a":' + value + "}y")
            assert accepts(grammar, '{"a":' + value + ',"b":' + value + "}y")
            assert not accepts(grammar, '{"a":' + value + ',"b":' + value + "}x")
