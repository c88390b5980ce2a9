"""Cases as what an engine gets: the schema's text and token ids of each instance."""

from __future__ import annotations

import json
from array import array
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from maskbench.data import Case


class Whitespace(str, Enum):
    """Which whitespace the compiled schema admits and how instances are written.

    `flexible`: the schema admits whitespace where JSON does, instances are written compactly.
    `compact`: none in either. `single-space`: `", "` and `": "` in both. `consistent`: the schema
    admits the layouts of `json.dumps`, of which a text keeps to one; instances are compact.
    """

    FLEXIBLE = "flexible"
    COMPACT = "compact"
    SINGLE_SPACE = "single-space"
    CONSISTENT = "consistent"

    @property
    def separators(self) -> tuple[str, str]:
        """The item and the key separator with which instances are written."""
        return (", ", ": ") if self is Whitespace.SINGLE_SPACE else (",", ":")


SHARED_WHITESPACE = (Whitespace.FLEXIBLE, Whitespace.COMPACT, Whitespace.SINGLE_SPACE)
"""What engines beside ffwd have, too."""


class Encoder(Protocol):
    """A tokenizer's own encoding, without special tokens."""

    def encode(self, text: str) -> list[int]:
        """Return the token ids of the text."""
        ...


@dataclass(frozen=True)
class Document:
    """One instance in tokens (`array('i')`, without an end token) and its label."""

    valid: bool
    tokens: array[int]


@dataclass(frozen=True)
class Job:
    """All that an engine is given of a case. `index` identifies it within a run."""

    index: int
    id: str
    schema: str
    documents: tuple[Document, ...]


@dataclass(frozen=True)
class Prepared:
    """A job, and how many of the case's instances could not be written."""

    job: Job
    skipped_instances: int


class UnwritableSchemaError(ValueError):
    """A schema that has no JSON text (it holds an infinite or undefined number)."""


def prepare(case: Case, index: int, encoder: Encoder, whitespace: Whitespace) -> Prepared:
    """Write and tokenize a case.

    Instances that have no text (lone surrogates, infinite numbers) or that the tokenizer cannot
    encode are left out and counted. Raises `UnwritableSchemaError` if the schema has no text.
    """
    try:
        # ASCII, because an engine must get the schema even if it holds a lone surrogate.
        schema = json.dumps(case.schema, ensure_ascii=True, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise UnwritableSchemaError(str(error)) from error
    documents = []
    skipped = 0
    for test in case.tests:
        tokens = _encode(test.data, encoder, whitespace)
        if tokens is None:
            skipped += 1
        else:
            documents.append(Document(test.valid, tokens))
    return Prepared(Job(index, case.id, schema, tuple(documents)), skipped)


def write_instance(data: Any, whitespace: Whitespace) -> str:
    """Return an instance's text. Raises `ValueError` if it has none."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=whitespace.separators)
    text.encode("utf-8")  # a lone surrogate raises UnicodeEncodeError, a ValueError
    return text


def _encode(data: Any, encoder: Encoder, whitespace: Whitespace) -> array[int] | None:
    try:
        text = write_instance(data, whitespace)
    except (ValueError, RecursionError):
        return None
    tokens = encoder.encode(text)
    return array("i", tokens) if tokens else None
