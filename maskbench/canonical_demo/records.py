"""What the model learns: a sentence about an order, and the JSON record that says the same.

Two places of the record make forced text end in the middle of a word. Its first key is `orderId`
or `orderName`, so `order` is forced, and its state is one of three words that begin with `re`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

STATES = {
    "refused": ("nobody took it", "it was not accepted"),
    "refunded": ("the money went back", "it was paid back"),
    "returned": ("the parcel came back", "it was sent back"),
}
PRIORITIES = {"high": ("urgent", "at once"), "low": ("no hurry", "some day")}
NAMES = ("Ada", "Bo", "Cleo", "Dana", "Eli", "Fay", "Gus", "Hana", "Ivo", "Jun", "Kai", "Lea")


@dataclass(frozen=True)
class Record:
    """A record, its sentence and its text as JSON."""

    value: dict[str, Any]
    sentence: str

    @property
    def text(self) -> str:
        """Compact JSON."""
        return json.dumps(self.value, separators=(",", ":"))


def draw_record(source: random.Random) -> Record:
    """A record, each kind of it being equally likely."""
    state = source.choice(list(STATES))
    priority = source.choice(list(PRIORITIES))
    key: dict[str, Any]
    if source.random() < 0.5:
        number = source.randrange(10, 100)
        key, words = {"orderId": number}, f"number {number}"
    else:
        name = source.choice(NAMES)
        key, words = {"orderName": name}, f"called {name}"
    parts = [words, source.choice(STATES[state]), source.choice(PRIORITIES[priority])]
    source.shuffle(parts)
    value = key | {"state": state, "priority": priority, "source": "desk"}
    return Record(value, "; ".join(parts) + "\n")


def schema() -> dict[str, Any]:
    """The schema of all records."""

    def record(name: str, reference: dict[str, Any]) -> dict[str, Any]:
        properties = {
            name: reference,
            "state": {"enum": list(STATES)},
            "priority": {"enum": list(PRIORITIES)},
            "source": {"const": "desk"},
        }
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    number = {"type": "integer", "minimum": 10, "maximum": 99}
    return {
        "anyOf": [
            record("orderId", number),
            record("orderName", {"type": "string", "minLength": 1, "maxLength": 12}),
        ]
    }


# How often words come in what the tokenizer is trained on, which is not what the model is trained
# on: as in life, a tokenizer knows common identifiers as one token, and puts others together.
# There is no `orderName` in it.
_FREQUENCIES = {
    "order": 60, "orderId": 40, "orderDate": 10, "userId": 30, "userName": 30, "fileName": 20,
    "Name": 20, "Id": 10, "state": 40, "priority": 20, "source": 20, "desk": 10, "high": 20,
    "low": 20, "refused": 6, "refunded": 4, "returned": 20, "return": 30, "re": 20, "used": 20,
    "number": 20, "called": 15,
}  # fmt: skip


def tokenizer_texts(source: random.Random) -> Iterator[str]:
    """Texts to train a tokenizer on: objects and lists of common words, and sentences."""
    words, weights = list(_FREQUENCIES), list(_FREQUENCIES.values())
    for _ in range(1000):
        chosen = source.choices(words, weights, k=4)
        numbers = [source.randrange(10, 100) for _ in range(2)]
        yield json.dumps(
            {chosen[0]: chosen[1], chosen[2]: numbers[0], "low": chosen[3:]}, separators=(",", ":")
        )
        yield json.dumps({chosen[2]: chosen[0], "high": numbers}, separators=(",", ":"))
        yield " ".join(chosen)
        yield draw_record(source).sentence
