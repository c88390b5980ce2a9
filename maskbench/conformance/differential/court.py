"""Two validators as the court of a case about a schema."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from functools import cache
from typing import Any

import jsonschema_rs

from maskbench.conformance.gates.judges import Judges, parse
from maskbench.conformance.gates.walks import INVALID, Ending, Walk, judged

# Formats that ffwd's docs list as narrower than validity.
NARROWER_FORMATS = frozenset(("hostname", "email", "idn-hostname", "idn-email", "regex"))
# Those that it asserts in every dialect, and a text that has none of them.
FORMATS = NARROWER_FORMATS | {
    *("date", "date-time", "duration", "ipv4", "ipv6", "iri", "iri-reference", "json-pointer"),
    *("relative-json-pointer", "time", "uri", "uri-reference", "uri-template", "uuid"),
}
NO_FORMAT = " {("


@dataclass(frozen=True)
class Judgement:
    """The judgement on a document."""

    valid: bool | None
    """None if the validators differ or cannot be asked."""

    ending: Ending
    keywords: str
    """Which refuse it, as far as jsonschema says."""

    detail: str


class Court:
    """For one schema. Raises `ValueError` if a validator does not take it."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self.judges = Judges(schema)
        self._without_formats: Any = None

    def judge(self, text: bytes) -> Judgement:
        """Return the verdict on a document."""
        walk = judged(Walk(Ending.VALID, text), self.judges)
        ending = walk.ending
        if ending is Ending.INVALID_RUST and self._is_about_formats(text):
            # jsonschema-rs decides formats, because jsonschema supports only a few.
            ending = Ending.INVALID
        valid = True if ending is Ending.VALID else None
        if ending in INVALID:
            valid = False
        keywords = ""
        if ending is Ending.INVALID:
            instance = parse(text.decode(), exactly=self.judges.exactly)
            keywords = ", ".join(self.judges.refusing_keywords(instance)) or "format"
        return Judgement(valid, ending, keywords, walk.detail)

    def _is_about_formats(self, text: bytes) -> bool:
        if self._without_formats is None:
            self._without_formats = jsonschema_rs.validator_for(
                self._schema, validate_formats=False
            )
        instance = parse(text.decode(), exactly=self.judges.exactly)
        return bool(self._without_formats.is_valid(instance))


@cache
def unasserted_formats(dialect: str | None) -> frozenset[str]:
    """Return the formats that ffwd asserts in a dialect, and jsonschema-rs does not."""
    schema = {} if dialect is None else {"$schema": dialect}
    return frozenset(
        name
        for name in FORMATS
        if jsonschema_rs.validator_for(
            {**schema, "type": "string", "format": name}, validate_formats=True
        ).is_valid(NO_FORMAT)
    )


def without_unasserted_formats(schema: Any) -> Any:
    """Return the schema without the formats that its dialect does not have."""
    dialect = schema.get("$schema") if isinstance(schema, dict) else None
    return _without(schema, unasserted_formats(dialect))


def without_narrower_formats(schema: Any) -> Any:
    """Return the schema without the formats that ffwd restricts more than validity does."""
    return _without(schema, NARROWER_FORMATS)


def _without(schema: Any, formats: Container[str]) -> Any:
    if isinstance(schema, list):
        return [_without(item, formats) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without(value, formats)
        for key, value in schema.items()
        if not (key == "format" and isinstance(value, str) and value in formats)
    }
