"""Long outputs: a schema, and a document for it that has as many tokens as are wanted."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from maskbench.documents import Encoder, Whitespace, write_instance
from maskbench.speed.draw import Draw
from maskbench.speed.growth.schemas import Schema, name_of

_SEED = 5


@dataclass(frozen=True)
class Output:
    """A kind of long document: `first`, then pieces of text without end, then `last`."""

    name: str
    schema: Schema
    first: str
    pieces: Callable[[Draw], Iterator[str]]
    last: str

    def tokens(self, encoder: Encoder, count: int) -> array[int]:
        """Return a document of at least `count` tokens, and not many more.

        Its parts are encoded separately, so tokens at their boundaries may differ from those of the
        whole text. They have the same bytes.
        """
        tokens = array("i", encoder.encode(self.first))
        part: list[str] = []
        for piece in self.pieces(Draw(Random(_SEED))):
            part.append(piece)
            if sum(map(len, part)) > 2_000:
                tokens.extend(encoder.encode("".join(part)))
                part = []
                if len(tokens) >= count:
                    break
        tokens.extend(encoder.encode(self.last))
        return tokens


def _write(value: Any) -> str:
    return write_instance(value, Whitespace.COMPACT)


def _separated(values: Callable[[Draw], Iterator[str]]) -> Callable[[Draw], Iterator[str]]:
    def pieces(draw: Draw) -> Iterator[str]:
        for number, value in enumerate(values(draw)):
            yield f",{value}" if number else value

    return pieces


def _records(draw: Draw) -> Iterator[str]:
    while True:
        yield _write(
            {"id": draw.int(1, 10**6), "name": draw.name(), "note": draw.sentence(), "tags": ["a"]}
        )


def _sentences(draw: Draw) -> Iterator[str]:
    while True:
        yield _write(f"{draw.sentence()} ")[1:-1]


def _numbers(draw: Draw) -> Iterator[str]:
    while True:
        yield _write(draw.int(-(10**9), 10**9))


def _deep(draw: Draw) -> Iterator[str]:
    while True:
        depth = draw.int(100, 200)
        yield "[" * depth + _write(draw.int(0, 9)) + "]" * depth


def _members(draw: Draw) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f'"{name_of(number)}{number}":{draw.int(0, 10**6)}'


def _different(draw: Draw) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield _write(f"{draw.name()}{number}")


def _different_records(draw: Draw) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        kind = draw.int(0, 1)
        yield _write({"kind": "ab"[kind], "id": number, "xy"[kind]: draw.name()})


_WORDS = [f"{name_of(number)}{number}" for number in range(300)]
_MANY_WORDS = [f"{name_of(number)}{number}" for number in range(20_000)]


def _spread(count: int) -> Iterator[int]:
    """Yield the numbers below a prime, each once and in no order."""
    yield from (number * 48_271 % count for number in range(1, count))


def _integers(draw: Draw) -> Iterator[str]:
    yield from map(str, _spread(1_000_003))


def _couples() -> Iterator[tuple[str, str]]:
    # 89,989 is the largest prime below 300 times 300.
    yield from ((_WORDS[at // 300], _WORDS[at % 300]) for at in _spread(89_989))


def _pairs(draw: Draw) -> Iterator[str]:
    yield from (_write([one, other]) for one, other in _couples())


def _objects(draw: Draw) -> Iterator[str]:
    yield from (_write({"a": one, "b": other}) for one, other in _couples())


def _listed(draw: Draw) -> Iterator[str]:
    yield from (_write(_MANY_WORDS[at]) for at in _spread(19_997))


def _unique(items: Schema) -> Schema:
    return {"type": "array", "uniqueItems": True, "items": items}


_RECORD: Schema = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": "string"},
        "note": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["id", "name", "note"],
    "additionalProperties": False,
}

_KINDS: Schema = {
    "anyOf": [
        {
            "type": "object",
            "properties": {"kind": {"const": kind}, "id": {"type": "integer"}},
            "required": ["kind", "id", name],
        }
        for kind, name in ("ax", "by")
    ]
}

_TREE: Schema = {
    "$defs": {
        "tree": {
            "anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/tree"}}]
        }
    },
    "type": "array",
    "items": {"$ref": "#/$defs/tree"},
}

_MAP: Schema = {"type": "object", "additionalProperties": {"type": "integer"}}

OUTPUTS: tuple[Output, ...] = (
    Output(
        "an array of objects", {"type": "array", "items": _RECORD}, "[", _separated(_records), "]"
    ),
    Output("one string", {"type": "string"}, '"', _sentences, '"'),
    Output(
        "an array of numbers",
        {"type": "array", "items": {"type": "integer"}},
        "[",
        _separated(_numbers),
        "]",
    ),
    Output("100 to 200 levels deep, again and again", _TREE, "[", _separated(_deep), "]"),
    Output("an object with ever new keys", _MAP, "{", _separated(_members), "}"),
    Output(
        "unique strings behind one of a few",
        {
            "type": "array",
            "uniqueItems": True,
            "prefixItems": [{"enum": ["a", "b"]}],
            "items": {"type": "string"},
            "contains": {"const": "b"},
        },
        '["b",',
        _separated(_different),
        "]",
    ),
    Output(
        "unique objects of two kinds",
        {"type": "array", "uniqueItems": True, "items": _KINDS},
        "[",
        _separated(_different_records),
        "]",
    ),
    Output("unique integers", _unique({"type": "integer"}), "[", _separated(_integers), "]"),
    Output(
        "unique pairs",
        _unique(
            {
                "type": "array",
                "prefixItems": [{"enum": _WORDS}, {"enum": _WORDS}],
                "items": False,
                "minItems": 2,
            }
        ),
        "[",
        _separated(_pairs),
        "]",
    ),
    Output(
        "unique objects of two members",
        _unique(
            {
                "type": "object",
                "properties": {"a": {"enum": _WORDS}, "b": {"enum": _WORDS}},
                "required": ["a", "b"],
                "additionalProperties": False,
            }
        ),
        "[",
        _separated(_objects),
        "]",
    ),
    Output(
        "unique strings of an enumeration",
        _unique({"enum": _MANY_WORDS}),
        "[",
        _separated(_listed),
        "]",
    ),
)
