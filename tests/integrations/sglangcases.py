"""Requests with grammars, and who says whether their outputs are what was asked for."""

import json
import re
from typing import Any

import jsonschema_rs

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Z][a-z]{1,6}$"},
        "colour": {"type": "array", "items": {"enum": ["red", "green"]}, "maxItems": 3},
        "count": {"type": "integer", "minimum": 0, "maximum": 99},
        "done": {"type": "boolean"},
    },
    "required": ["name", "colour", "done"],
    "additionalProperties": False,
}
CHOICE: dict[str, Any] = {"anyOf": [{"const": None}, {"type": "string", "maxLength": 6}]}
ARRAY: dict[str, Any] = {
    "type": "array",
    "prefixItems": [{"enum": [1, "one"]}, {"type": "boolean"}],
    "items": False,
    "minItems": 2,
}
DATE = r"(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
NAME = r"[A-Z][a-z]{2,5}( [A-Z]\.)?"
SUM = 'root ::= num (" + " num){1,3}\nnum ::= [1-9] [0-9]?'
SUM_PATTERN = r"[1-9][0-9]?( \+ [1-9][0-9]?){1,3}"
LARK_SUM = 'start: NUM (" + " NUM)~1..3\nNUM: /[1-9][0-9]?/'
NEW_TAG: dict[str, Any] = {
    "type": "structural_tag",
    "format": {
        "type": "tag",
        "begin": "<tool_call>",
        "content": {"type": "json_schema", "json_schema": PERSON},
        "end": "</tool_call>",
    },
}

# Texts of strangers that must fail alone, and a part of what the client is told.
HOSTILE = [
    ({"json_schema": '{"type": "zahl"}'}, "at /type"),
    ({"json_schema": '{"type": "object"'}, "not JSON"),
    ({"json_schema": '{"type": "integer", "minimum": 3, "maximum": 1}'}, "no"),
    ({"json_schema": "[" * 5000}, "recursion"),
    ({"json_schema": '{"pattern": "(", "type": "string"}'}, "/pattern"),
    ({"json_schema": '{"$ref": "#/nowhere"}'}, "nowhere"),
    ({"regex": "(a"}, "line 1, column 1"),
    ({"regex": "(" * 4000 + ")" * 4000}, ""),
    ({"regex": r"(a)\1"}, "backreference"),
    ({"ebnf": "root ::= missing"}, "missing"),
    ({"ebnf": 'root ::= "a" ('}, "line 1"),
    ({"ebnf": "root ::= root"}, "root"),
    ({"ebnf": 'start: "a" nowhere'}, "nowhere"),
    ({"structural_tag": '{"type": "structural_tag"}'}, ""),
    ({"structural_tag": '{"structures": [{"begin": "<f>"}], "triggers": []}'}, ""),
    ({"structural_tag": '{"format": {"type": "song"}}'}, "song"),
    ({"json_schema": '{"const": "a\\u0000b"}'}, "NUL"),
]


def is_json(schema: Any, text: str) -> bool:
    return jsonschema_rs.is_valid(schema, json.loads(text))


def is_new_tag(text: str) -> bool:
    inner = re.fullmatch(r"<tool_call>(.*)</tool_call>", text, flags=re.DOTALL)
    return inner is not None and is_json(PERSON, inner[1])


# What a request asks for, and who says whether it got it.
KINDS = [
    ({"json_schema": json.dumps(PERSON)}, lambda text: is_json(PERSON, text)),
    ({"json_schema": json.dumps(CHOICE)}, lambda text: is_json(CHOICE, text)),
    ({"json_schema": json.dumps(ARRAY)}, lambda text: is_json(ARRAY, text)),
    ({"regex": DATE}, lambda text: re.fullmatch(DATE, text)),
    ({"regex": NAME}, lambda text: re.fullmatch(NAME, text)),
    ({"ebnf": SUM}, lambda text: re.fullmatch(SUM_PATTERN, text)),
    ({"ebnf": LARK_SUM}, lambda text: re.fullmatch(SUM_PATTERN, text)),
    ({"structural_tag": json.dumps(NEW_TAG)}, is_new_tag),
]
