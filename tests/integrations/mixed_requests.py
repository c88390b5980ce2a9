"""Forty requests of every kind, each with a validator that shares nothing with ffwd.

The texts are bounded, so that a model with random weights comes to their end; of an object of any
kind there is only the beginning.
"""

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jsonschema
import lark
import partial_json_parser

ORDER = {
    "type": "object",
    "properties": {
        "order_status": {"enum": ["pending", "shipped", "delivered", "cancelled"]},
        "name_of_the_customer": {"type": "string", "pattern": "^[A-Z][a-z]{1,7}$"},
        "address": {
            "type": "object",
            "properties": {
                "street_name": {"type": "string", "maxLength": 10},
                "city": {"enum": ["red", "green", "blue"]},
            },
            "required": ["street_name", "city"],
            "additionalProperties": False,
        },
        "express_delivery": {"type": "boolean"},
    },
    "required": ["order_status", "name_of_the_customer", "address", "express_delivery"],
    "additionalProperties": False,
}
WEATHER = {
    "type": "object",
    "properties": {
        "city_name": {"type": "string", "minLength": 2, "maxLength": 12},
        "temperature_unit": {"enum": ["celsius", "kelvin"]},
        "days": {"type": "array", "items": {"enum": ["today", "tomorrow"]}, "maxItems": 3},
    },
    "required": ["city_name", "temperature_unit"],
    "additionalProperties": False,
}
SCHEMAS: tuple[dict[str, Any], ...] = (
    ORDER,
    WEATHER,
    {"type": "array", "items": {"enum": ["apple", "banana"]}, "minItems": 2, "maxItems": 4},
    {"anyOf": [{"const": "please answer the question"}, {"type": "boolean"}]},
)
REGEXES = (
    r"(apple|banana|cherry)(, (apple|banana|cherry)){2}",
    r"The temperature tomorrow is -?[0-9]{1,2} celsius\.",
    r"[A-Z]{3}-[0-9]{4}",
    r"(\+49|0)[1-9][0-9]{2} [0-9]{4}",
)
CHOICES = (
    ["order pending", "order shipped", "order delivered"],
    ["red", "green", "blue"],
    ["the first question", "the first answer", "the last answer"],
)
# As much of Lark as the Python package of that name reads alike.
LARKS = (
    'start: term (op term)~1..2\nterm: leaf | "(" leaf op leaf ")"\n'
    'leaf: "a" | "b"\nop: "+" | "*"\n',
    'start: "select " name " from " name\nname: "customer" | "country" | "item"\n',
)
# In EBNF, and the same as an expression for `re`.
EBNFS = (
    (
        'root ::= greeting ", " name "!"\ngreeting ::= "please" | "answer"\n'
        "name ::= [A-Z] [a-z]{2,4}",
        r"(please|answer), [A-Z][a-z]{2,4}!",
    ),
)
TOOLS = {"get_weather": WEATHER, "place_order": ORDER}


@dataclass(frozen=True)
class MixedRequest:
    """What is asked of an engine, and who judges the answer.

    All answers end within `max_tokens`, but for the plain ones and those of `json_object`.

    `kind` is the name of a field of vLLM's `StructuredOutputsParams`, "" for plain text.
    """

    prompt: str
    kind: str
    spec: Any
    is_valid: Callable[[str], bool]
    max_tokens: int


def mixed_requests(*, seed: int) -> list[MixedRequest]:
    """40 requests, shuffled: JSON, regex, choice, grammar, structural tag, and plain ones."""
    rng = random.Random(seed)
    made: list[MixedRequest] = []
    for index in range(40):
        kind = ("json", "regex", "choice", "grammar", "structural_tag", "json_object", "", "json")[
            index % 8
        ]
        prompt = f"Question {rng.randint(0, 999)}: which {rng.choice(['order', 'city', 'item'])}?"
        made.append(_MAKERS[kind](prompt, rng))
    rng.shuffle(made)
    return made


def is_json(schema: Any) -> Callable[[str], bool]:
    """Whether a text is valid JSON against the schema."""

    def is_valid(text: str) -> bool:
        try:
            jsonschema.validate(json.loads(text), schema)
        except (ValueError, jsonschema.ValidationError):
            return False
        return True

    return is_valid


def is_tool_call(text: str) -> bool:
    """Whether a text is one call in Hermes' format, its arguments valid."""
    found = re.fullmatch(
        r'<tool_call>\n\{"name": "(\w+)", "arguments": (.*)\}\n</tool_call>', text, re.DOTALL
    )
    return found is not None and found[1] in TOOLS and is_json(TOOLS[found[1]])(found[2])


def _json(prompt: str, rng: random.Random) -> MixedRequest:
    schema = rng.choice(SCHEMAS)
    return MixedRequest(prompt, "json", schema, is_json(schema), 400)


def _json_object(prompt: str, rng: random.Random) -> MixedRequest:
    del rng

    def is_beginning(text: str) -> bool:
        try:
            return isinstance(partial_json_parser.loads(text), dict)
        except partial_json_parser.MalformedJSON:
            return False

    return MixedRequest(prompt, "json_object", True, is_beginning, 12)


def _regex(prompt: str, rng: random.Random) -> MixedRequest:
    pattern = rng.choice(REGEXES)
    return MixedRequest(
        prompt, "regex", pattern, lambda text: re.fullmatch(pattern, text) is not None, 100
    )


def _choice(prompt: str, rng: random.Random) -> MixedRequest:
    options = rng.choice(CHOICES)
    return MixedRequest(prompt, "choice", options, lambda text: text in options, 30)


def _grammar(prompt: str, rng: random.Random) -> MixedRequest:
    if rng.random() < 0.3:
        text, pattern = rng.choice(EBNFS)
        return MixedRequest(
            prompt, "grammar", text, lambda out: re.fullmatch(pattern, out) is not None, 100
        )
    text = rng.choice(LARKS)
    parser = lark.Lark(text, parser="earley", lexer="dynamic_complete")

    def is_valid(out: str) -> bool:
        try:
            parser.parse(out)
        except lark.exceptions.LarkError:
            return False
        return True

    return MixedRequest(prompt, "grammar", text, is_valid, 100)


def _structural_tag(prompt: str, rng: random.Random) -> MixedRequest:
    del rng
    tags = [
        {
            "type": "tag",
            "begin": f'<tool_call>\n{{"name": "{name}", "arguments": ',
            "content": {"type": "json_schema", "json_schema": schema},
            "end": "}\n</tool_call>",
        }
        for name, schema in TOOLS.items()
    ]
    spec = {"type": "structural_tag", "format": {"type": "or", "elements": tags}}
    return MixedRequest(prompt, "structural_tag", json.dumps(spec), is_tool_call, 500)


def _plain(prompt: str, rng: random.Random) -> MixedRequest:
    del rng
    return MixedRequest(prompt, "", None, lambda _: True, 10)


_MAKERS: dict[str, Callable[[str, random.Random], MixedRequest]] = {
    "json": _json,
    "json_object": _json_object,
    "regex": _regex,
    "choice": _choice,
    "grammar": _grammar,
    "structural_tag": _structural_tag,
    "": _plain,
}
