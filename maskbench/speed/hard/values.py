"""Hard values: patterns, lengths, enumerations, and what combines them."""

from __future__ import annotations

from random import Random

from maskbench.speed.draw import Draw
from maskbench.speed.growth.schemas import Schema, name_of
from maskbench.speed.hard.case import HardCase


def long_enum() -> HardCase:
    """Return the countries, services and categories of a catalogue."""
    lists = {
        "processor": [f"{name_of(i)} {i % 97}" for i in range(20_000)],
        "category": [f"{name_of(i)}-{name_of(i * 3)}" for i in range(7_000)],
        "region": [f"{'ABCDEFGHIJ'[i % 10]}{'KLMNOPQRST'[i // 10 % 10]}-{i}" for i in range(791)],
    }
    item: Schema = {
        "type": "object",
        "properties": {name: {"type": "string", "enum": values} for name, values in lists.items()},
        "required": list(lists),
    }
    items = [{name: values[k * 311] for name, values in lists.items()} for k in (0, 1, 2)]
    return HardCase(
        "27,791 values",
        "three enumerations, of 20,000, 7,000 and 791 strings",
        {"type": "array", "items": item},
        (items,),
        ("JsonSchemaStore---transcend-yml-schema-v4",),
    )


def counted_words(words: int, length: int | None) -> HardCase:
    """Return answers to a form, counted in words."""
    answer: Schema = {"type": "string", "pattern": rf"^(?:\S+\s+){{0,{words - 1}}}\S+$"}
    if length is not None:
        answer["maxLength"] = length
    draw = Draw(Random(words))
    text = " ".join(draw.sentence().replace("\n", " ") for _ in range(6)).split()
    short = " ".join(text[: min(words, 12)])
    long = " ".join(text[: min(words, 60)])[: length or 10_000].rstrip()
    like = {
        (30, 300): ("Github_hard---o21074", "Github_ultra---o21135"),
        (50, None): ("Github_hard---o62060",),
        (100, 500): ("Github_medium---o21142",),
        (200, None): ("Github_easy---o21053",),
    }
    return HardCase(
        f"{words} words" + (f" in {length} characters" if length is not None else ""),
        r"`^(?:\S+\s+){0," + str(words - 1) + r"}\S+$`"
        + (f" and `maxLength` {length}" if length is not None else ""),
        {"type": "object", "properties": {"answer": answer}, "required": ["answer"]},
        ({"answer": short}, {"answer": long}),
        like.get((words, length), ()),
    )  # fmt: skip


def searched_class() -> HardCase:
    """Return names in which one letter must be found somewhere."""
    name = {"type": "string", "minLength": 3, "maxLength": 255, "pattern": "[a-zA-Z0-9_.-]+"}
    schema = {
        "type": "object",
        "properties": {"TableName": name, "IndexName": name},
        "required": ["TableName"],
    }
    documents = (
        {"TableName": "orders-2024", "IndexName": "by date and customer (second try)"},
        {"TableName": "!!! äöü x " * 20},
    )
    return HardCase(
        "a class, searched, in 255 characters",
        "`[a-zA-Z0-9_.-]+`, not anchored, with `minLength` 3 and `maxLength` 255",
        schema,
        documents,
        ("Github_hard---o45482",),
    )


def instant_with_pattern() -> HardCase:
    """Return a time that an unanchored pattern describes as well."""
    instant = {
        "type": "string",
        "format": "date-time",
        "pattern": r"\d\d\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    }
    address = {"type": "string", "pattern": r"/api/v1/users/\d+/batches/\d+"}
    schema = {
        "type": "object",
        "properties": {"created_at": instant, "href": address},
        "required": ["created_at", "href"],
    }
    document = {"created_at": "2023-11-05T08:15:30Z", "href": "/api/v1/users/12/batches/7"}
    return HardCase(
        "date-time and a searched pattern",
        "`format` date-time with a pattern of digits that is not anchored",
        schema,
        (document,),
        ("Github_medium---o9517",),
    )


def lookaheads() -> HardCase:
    """Return host names by one pattern with lookaheads in it."""
    host = r"^(?!.*://)(?=.{1,255}$)((.{1,63}\.){1,127}(?![0-9]*$)[a-z0-9-]+\.?)$"
    schema = {
        "type": "object",
        "properties": {
            "hosts": {"type": "array", "items": {"type": "string", "pattern": host}},
            "label": {"type": "string", "pattern": r"^(?=.*[A-Z])(?=.*\d)(?!.*\s)[\w.-]{4,64}$"},
        },
    }
    document = {"hosts": ["example.com", "a.b-c.example.org", "12.34.xn--9"], "label": "Rack.B12-3"}
    return HardCase(
        "nested lookaheads",
        "host names of at most 255 characters, by a pattern with three lookaheads",
        schema,
        (document,),
        ("JsonSchemaStore---aerleon-definitions.schema",),
    )


def unique_items() -> HardCase:
    """Return categories that may each be chosen once, of many."""
    options = [f"{name_of(i).capitalize()} {name_of(i * 13)}" for i in range(600)]
    schema = {
        "type": "object",
        "properties": {
            "categories": {
                "type": "array",
                "uniqueItems": True,
                "items": {"anyOf": [{"enum": options}, {"type": "string"}]},
            },
            "languages": {"type": "array", "uniqueItems": True, "items": {"enum": options}},
        },
    }
    document = {"categories": [*options[5:600:60], "Other"], "languages": options[3:600:60]}
    return HardCase(
        "unique items of 600 values",
        "`uniqueItems` over an enumeration, alone and beside any string",
        schema,
        (document,),
        ("JsonSchemaStore---github-workflow-template-properties",),
    )


def unions_of_constants() -> HardCase:
    """Return icons and events that are listed one by one, each with its description."""
    texts = [{"const": f"{name_of(i)}:{name_of(i * 11)}", "title": f"Icon {i}"} for i in range(700)]
    codes = [{"const": 13 * i + 100, "description": f"Code {i}"} for i in range(300)]
    schema = {
        "type": "object",
        "properties": {
            "icon": {"anyOf": texts},
            "event": {"oneOf": texts},
            "code": {"oneOf": codes},
            "either": {"anyOf": [*texts[:200], *codes[:200], {"type": "null"}]},
        },
        "required": ["icon", "event", "code", "either"],
    }
    document = {
        "icon": texts[500]["const"],
        "event": texts[699]["const"],
        "code": codes[123]["const"],
        "either": codes[7]["const"],
    }
    return HardCase(
        "unions of constants",
        "`anyOf` and `oneOf` of 700 strings and 300 numbers, one `const` each",
        schema,
        (document,),
    )


VALUES = (
    long_enum,
    lambda: counted_words(30, 300),
    lambda: counted_words(50, None),
    lambda: counted_words(100, 500),
    lambda: counted_words(200, None),
    searched_class,
    instant_with_pattern,
    lookaheads,
    unique_items,
    unions_of_constants,
)
