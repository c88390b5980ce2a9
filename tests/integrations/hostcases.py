"""Thirty grammars for the tests of hosts, and validators of others for the outputs.

A random model answers, so every output must end within a budget: `MAX_TOKENS`.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import lark
from tiny_engine_model import write_model

import ffwd

MAX_TOKENS = 100
PROMPTS = ["The order of the customer is", "apple banana", "status?"]


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_TEXT = {"type": "string", "maxLength": 8}
SCHEMAS: dict[str, dict[str, Any]] = {
    "flat": _object(name_of_the_customer=_TEXT, express=_object(paid={"type": "boolean"})),
    "choices": _object(status={"enum": ["pending", "shipped"]}, colour={"const": "red"}),
    "numbers": _object(a={"type": "integer", "minimum": 3, "maximum": 40}),
    "list": {"type": "array", "items": {"enum": ["apple", 1, None]}, "maxItems": 3},
    "unions": _object(value={"anyOf": [{"type": "null"}, {"type": "boolean"}, _TEXT]}),
    "pattern": _object(date={"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$"}),
    "optional": {**_object(item=_TEXT, price=_TEXT), "required": ["price"]},
    "nested": {
        "$defs": {"node": {**_object(next={"$ref": "#/$defs/node"}), "required": []}},
        "$ref": "#/$defs/node",
    },
    "format": _object(at={"type": "string", "format": "date"}),
    "tuple": {
        "type": "array",
        "prefixItems": [{"type": "boolean"}, {"enum": ["red", "blue"]}],
        "minItems": 2,
        "maxItems": 2,
    },
}
REGEXES: dict[str, str] = {
    "date": r"[0-9]{4}-[01][0-9]-[0-3][0-9]",
    "words": r"(apple|banana)( and (cherry|grape)){0,2}",
    "hex": r"0x[0-9a-fA-F]{2,6}",
    "capitals": r"[A-Z][a-z]{1,7}",
    "spaces": r"a\s{1,3}b",
    "lookahead": r"(?!status)[a-z]{3,9}",
    "unicode": r"[äöü]{1,4}",
    "mail": r"[a-z]{1,8}@[a-z]{1,8}\.(com|org)",
    "quoted": r'"[^"\\]{0,6}"',
    "flags": r"(?i:yes|no), (true|false)",
}
LARKS: dict[str, str] = {
    "sum": 'start: NUMBER ("+" NUMBER)*\nNUMBER: /[0-9]{1,3}/',
    "nested": 'start: "(" start? ")"',
    "list": 'start: "[" item ("," item)* "]"\n!item: "red" | "green" | "blue"',
    "calls": 'start: NAME "(" [NAME] ")"\nNAME: /[a-z]{1,8}/',
    "pairs": 'start: pair ~ 1..3\npair: KEY "=" VALUE ";"\nKEY: /[a-z]{1,4}/\nVALUE: /[0-9]{1,4}/',
    "alternatives": 'start: yes | no\nyes: "yes" "!"*\nno: "no" "?"*',
    "left": 'start: start "-" DIGIT | DIGIT\nDIGIT: /[0-9]/',
    "palindrome": 'start: "a" start "a" | "b" start "b" | "c"',
    "insensitive": 'start: "select"i WS NAME\nWS: " "\nNAME: /[a-z]{1,6}/',
    "terminals": "start: WORD (SPACE WORD)*\nWORD: LETTER~1..5\nLETTER: /[a-f]/\nSPACE: / /",
}


@dataclass(frozen=True)
class Case:
    """A grammar in words that each host has: a schema, an expression, or Lark."""

    kind: str
    name: str
    source: Any

    def grammar(self) -> ffwd.Grammar:
        if self.kind == "json":
            return ffwd.json_schema(self.source, whitespace="compact")
        if self.kind == "regex":
            return ffwd.regex(self.source, dialect="python")
        return ffwd.lark(self.source)

    def check(self, text: str) -> None:
        """Raise if another library rejects the text."""
        if self.kind == "json":
            validator = jsonschema.Draft202012Validator(
                self.source, format_checker=jsonschema.FormatChecker()
            )
            validator.validate(json.loads(text))
        elif self.kind == "regex":
            assert re.fullmatch(self.source, text), text
        else:
            lark.Lark(self.source, parser="earley").parse(text)


CASES = [
    Case(kind, name, source)
    for kind, group in (("json", SCHEMAS), ("regex", REGEXES), ("lark", LARKS))
    for name, source in group.items()
]
NAMES = [f"{case.kind}-{case.name}" for case in CASES]


def write_host_model(folder: Path) -> Path:
    """Write a tiny random model and its tokenizer, as `from_pretrained` reads them."""
    write_model(folder, seed=7)
    return folder
