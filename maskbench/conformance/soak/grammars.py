"""Any number of different grammars of every kind, and texts for some of them."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from itertools import islice

from ffwd.adapters.shared.requests import GrammarRequest
from maskbench.data import builtin_cases
from maskbench.speed.draw import Draw
from maskbench.speed.growth.outputs import OUTPUTS

_LARK = """
start: statement+
statement: "let" NAME "=" sum ";"
sum: product (("+"|"-") product)*
product: atom (("*"|"/") atom)*
atom: NUMBER | NAME | "(" sum ")" | "call{number}(" [sum ("," sum)*] ")"
NAME: /[a-z_][a-z0-9_]{{0,{length}}}/
NUMBER: /[0-9]+/
%ignore /[ \\t\\n]+/
"""


@dataclass(frozen=True)
class SoakDocument:
    """A schema, and a document that it admits."""

    request: GrammarRequest
    document: str


def document(source: random.Random) -> SoakDocument:
    """Return a document of the built-in corpus, or one with random values."""
    if source.random() < 0.5:
        case = source.choice(_CASES)
        data = source.choice([test.data for test in case.tests if test.valid])
        request = GrammarRequest("json", json.dumps(case.schema), property_order="any")
        return SoakDocument(request, json.dumps(data, ensure_ascii=False))
    output = source.choice(OUTPUTS)
    pieces = islice(output.pieces(Draw(source)), source.randint(1, 20))
    request = GrammarRequest("json", json.dumps(output.schema), property_order="any")
    return SoakDocument(request, "".join((output.first, *pieces, output.last)))


def fixed() -> list[GrammarRequest]:
    """Return the grammars for random texts; one of each kind."""
    return [different(number) for number in range(_KINDS)]


def different(number: int) -> GrammarRequest:
    """Return a grammar that no other number has; kinds alternate."""
    source = random.Random(f"grammar {number}")
    kind = number % _KINDS
    word = f"{source.choice('abcdefgh')}{number}"
    low = source.randint(1, 40)
    if kind == 0:
        schema = dict(source.choice(_CASES).schema)
        if "properties" in schema:
            own = {word: {"type": "string", "maxLength": low}}
            schema["properties"] = schema["properties"] | own
        return GrammarRequest("json", json.dumps(schema | {"title": word}))
    if kind == 1:
        schema = {
            "type": "object",
            "properties": {
                f"{word}_{name}": {"type": "string", "pattern": f"^{name}[a-z]{{{low},{low + 9}}}$"}
                for name in ("id", "kind", "note")
            }
            | {"size": {"type": "integer", "minimum": number, "maximum": number + low}},
            "required": ["size"],
        }
        return GrammarRequest("json", json.dumps(schema), property_order="any")
    if kind == 2:
        pattern = f"({word}|[a-f]{{{low},{low + 20}}})-([0-9]{{2,{number + 2}}}|x*y{{{number}}})"
        return GrammarRequest("regex", pattern if number < 1000 else f"({word}|[a-f]{{{low},}})+")
    if kind == 3:
        options = [f"{word} {index} {source.random()}" for index in range(low)]
        return GrammarRequest("choice", json.dumps(options))
    return GrammarRequest("grammar", _LARK.format(number=number, length=low))


_CASES = builtin_cases()
_KINDS = 5
