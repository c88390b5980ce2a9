"""Real grammars, each in Lark and in EBNF, with documents.

Both forms of a grammar are of one language as far as the formats allow: EBNF has no lexer, so a
keyword may be a name there, and keywords of SQL are in capitals.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from maskbench.data import builtin_cases
from maskbench.documents import Whitespace, write_instance

FOLDER = Path(__file__).with_name("real")
NAMES = ("json", "python", "sql", "c")
FORMATS = ("lark", "ebnf")
_JSON_DOCUMENTS = 24


@dataclass(frozen=True)
class RealGrammar:
    """A grammar by format, and texts that every form of it accepts."""

    name: str
    forms: dict[str, str]
    documents: tuple[tuple[str, str], ...]
    """Name and text."""


def read_real(name: str) -> RealGrammar:
    """Return one of `NAMES`."""
    forms = {
        format: (FOLDER / f"{name}.{format}").read_text(encoding="utf-8") for format in FORMATS
    }
    return RealGrammar(name, forms, tuple(_json() if name == "json" else _texts(name)))


def _texts(name: str) -> list[tuple[str, str]]:
    parts = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").split("=== ")[1:]
    found = []
    for part in parts:
        title, _, text = part.partition("\n")
        found.append((title, text.rstrip("\n") + ("\n" if name == "c" else "")))
    return found


def _json() -> list[tuple[str, str]]:
    """Return the longest valid instances of the built-in corpus, at most one per schema."""
    found = []
    for case in builtin_cases():
        texts = [
            write_instance(test.data, Whitespace.SINGLE_SPACE) for test in case.tests if test.valid
        ]
        if texts:
            found.append((case.id, max(texts, key=len)))
    found.sort(key=lambda document: (-len(document[1]), document[0]))
    return found[:_JSON_DOCUMENTS]
