"""JSON values by pointer, beside `json.loads`."""

import json
import random
import string
from typing import Any

from following import Consumer, byte_vocabulary, compiled, follow, pieces

import ffwd

NAMES = ["a", "b", "a/b", "m~n", "é", '"', "\\", "\n", "", "0", "long name"]


def value(rng: random.Random, depth: int) -> Any:
    kind = rng.choice(["null", "bool", "int", "float", "str", "list", "dict", "list", "dict"])
    if depth == 0 and kind in ("list", "dict"):
        kind = "int"
    match kind:
        case "null":
            return None
        case "bool":
            return rng.random() < 0.5
        case "int":
            return rng.randint(-1000, 1000)
        case "float":
            return rng.choice([0.5, -1.25, 1e20, 3.0])
        case "str":
            letters = string.ascii_letters + '"\\/\né🙂 {}[],:'
            return "".join(rng.choice(letters) for _ in range(rng.randint(0, 6)))
        case "list":
            return [value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    keys = rng.sample(NAMES, rng.randint(0, 3))
    return {key: value(rng, depth - 1) for key in keys}


def written(rng: random.Random, value: Any) -> str:
    return json.dumps(
        value,
        ensure_ascii=False,
        indent=rng.choice([None, None, 1]),
        separators=rng.choice([(",", ":"), (", ", ": "), (" , ", " : ")]),
    )


def all_values(value: Any, pointer: str = "") -> dict[str, Any]:
    found = {pointer: value}
    if isinstance(value, dict):
        for key, part in value.items():
            place = key.replace("~", "~0").replace("/", "~1")
            found.update(all_values(part, f"{pointer}/{place}"))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            found.update(all_values(part, f"{pointer}/{index}"))
    return found


def schema_of(rng: random.Random, value: Any) -> Any:
    """One that the value satisfies, with alternatives that share its beginning."""
    if rng.random() < 0.2:
        return {}
    match value:
        case dict():
            properties = {key: schema_of(rng, part) for key, part in value.items()}
            schema: dict[str, Any] = {"type": "object", "properties": properties}
            if rng.random() < 0.4:
                schema["required"] = list(properties)
            if rng.random() < 0.4:
                schema["additionalProperties"] = False
        case list():
            if value and rng.random() < 0.5:
                schema = {"type": "array", "items": {"anyOf": [schema_of(rng, v) for v in value]}}
            else:
                schema = {"type": "array", "prefixItems": [schema_of(rng, v) for v in value]}
            if value and len({json.dumps(item) for item in value}) == len(value):
                schema["uniqueItems"] = rng.random() < 0.2
        case bool() | None:
            schema = {"enum": [value, "other"]}
        case int():
            schema = {"type": rng.choice(["integer", "number"]), "minimum": value - 10}
        case float():
            schema = {"type": "number"}
        case _:
            schema = rng.choice([{"type": "string"}, {"enum": [value, value + "x"]}])
    if rng.random() < 0.3:
        others = [{"type": "number"}, {"type": "object", "properties": {"a": {"const": 1}}}]
        return {"anyOf": [schema, rng.choice(others), {"type": "array", "items": {"const": 7}}]}
    return schema


def check(consumer: Consumer, document: Any, data: bytes) -> None:
    """Every value once, with its text."""
    expected = all_values(document)
    spans = [span for span in consumer.spans() if span.kind == "value"]
    assert sorted(str(span.pointer) for span in spans) == sorted(expected)
    for span in spans:
        assert span.end is not None
        assert span.pointer is not None
        written = data[span.start : span.end]
        assert json.loads(written) == expected[span.pointer]
        if not isinstance(expected[span.pointer], (dict, list)):
            assert span.text == written.decode()
        else:
            assert span.text == ""


def test_values_of_random_documents() -> None:
    """Each is reported once, where it lies; also where schemas have alternatives."""
    for seed in range(120):
        rng = random.Random(seed)
        document = value(rng, 3)
        grammar = ffwd.json_schema(
            {} if seed % 4 == 0 else schema_of(rng, document),
            property_order="any",
            whitespace="flexible",
        )
        text = written(rng, document)
        for cut in (None, rng):
            check(follow(grammar, text, cut), document, text.encode())


def test_values_within_rules() -> None:
    """The pointers are those within each value."""
    for seed in range(40):
        rng = random.Random(seed)
        documents = [value(rng, 2) for _ in range(2)]
        schemas = [ffwd.json_schema({}, whitespace="flexible") for _ in range(2)]
        grammar = ffwd.seq("<", schemas[0], "|", ffwd.capture("c", schemas[1]), ">")
        one, other = (written(rng, document) for document in documents)
        text = f"<{one}|{other}>"
        consumer = follow(grammar, text, rng)
        spans = [span for span in consumer.spans() if span.kind == "value"]
        first = [span for span in spans if span.start <= len(one.encode())]
        for found, document in ((first, documents[0]), (spans[len(first) :], documents[1])):
            assert [str(s.pointer) for s in found] == list(all_values(document))
            for span, part in zip(found, all_values(document).values(), strict=True):
                assert json.loads(text.encode()[span.start : span.end]) == part
        assert compiled(grammar).matcher().captures() == {}


def test_a_value_is_reported_as_soon_as_it_is_over() -> None:
    """A string with its quote, a number with what comes after it; its text as it comes."""
    grammar = ffwd.json_schema({"type": "object"})
    matcher = compiled(grammar).matcher()
    seen = []
    for byte in b'{"a":"xy","b":12,"c":[]}':
        matcher.accept_token(byte)
        events = matcher.events()
        seen += [(chr(byte), event.action, event.pointer, event.text) for event in events]
    assert seen == [
        ("{", "begin", "", None),
        ('"', "begin", "/a", None),
        ('"', "delta", "/a", '"'),
        ("x", "delta", "/a", "x"),
        ("y", "delta", "/a", "y"),
        ('"', "delta", "/a", '"'),
        ('"', "end", "/a", None),
        ("1", "begin", "/b", None),
        ("1", "delta", "/b", "1"),
        ("2", "delta", "/b", "2"),
        (",", "end", "/b", None),
        ("[", "begin", "/c", None),
        ("]", "end", "/c", None),
        ("}", "end", "", None),
    ]


def test_values_of_every_beginning() -> None:
    """What has ended at any place is what can be read there."""
    for seed in range(25):
        rng = random.Random(seed)
        document = [value(rng, 2), value(rng, 2)]
        data = written(rng, document).encode()
        grammar = ffwd.json_schema({}, whitespace="flexible")
        matcher, consumer = compiled(grammar).matcher(), Consumer()
        expected = all_values(document)
        for piece in pieces(data, None):
            assert matcher.accept_tokens(list(piece))
            consumer.take(matcher.events())
            for span in consumer.spans():
                if span.end is not None:
                    assert span.pointer is not None
                    assert json.loads(data[span.start : span.end]) == expected[span.pointer]
        check(consumer, document, data)


def test_what_the_prompt_has_is_reported_too() -> None:
    grammar = ffwd.compile(ffwd.json_schema({"type": "object"}), byte_vocabulary())
    matcher, consumer = grammar.matcher(prefill=b'{"a": [1, '), Consumer()
    consumer.take(matcher.events())
    assert [span.pointer for span in consumer.spans()] == ["", "/a", "/a/0"]
    matcher.accept_tokens(list(b"2]}"))
    consumer.take(matcher.events())
    check(consumer, {"a": [1, 2]}, b'{"a": [1, 2]}')
