"""The corpus: grammars of every format with texts that they accept and refuse.

A file holds many cases. `NAME.lark` is Lark in llguidance's variant, `NAME.gbnf` llama.cpp's GBNF,
`NAME.ebnf` XGrammar's EBNF, `NAME.regex` a regular expression a case. A case is

    === name | tag tag
    the grammar, as it is
    accept "a text as JSON writes strings"
    reject "another"

and ends where the next one begins.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from maskbench.errors import InputError

CORPUS = Path(__file__).with_name("corpus")
KINDS = ("lark", "gbnf", "ebnf", "regex")
_HEAD = "=== "
_EXAMPLES = {"accept ": True, "reject ": False}


class CorpusError(InputError, ValueError):
    """A file of the corpus that cannot be read; the message has file and line."""


@dataclass(frozen=True)
class GrammarCase:
    """A grammar of the corpus. Its name is unique."""

    name: str
    kind: str
    text: str
    tags: frozenset[str]
    accepted: tuple[str, ...]
    rejected: tuple[str, ...]


def read_corpus(folder: Path = CORPUS) -> list[GrammarCase]:
    """Return all cases, by file and then in their order. Raises `CorpusError`."""
    found: dict[str, GrammarCase] = {}
    for file in sorted(path for path in folder.iterdir() if path.suffix[1:] in KINDS):
        for case in parse_cases(file.read_text(encoding="utf-8"), file.suffix[1:], file.name):
            if case.name in found:
                raise CorpusError(f"{file.name}: two cases are called {case.name!r}")
            found[case.name] = case
    return list(found.values())


def parse_cases(text: str, kind: str, place: str) -> Iterator[GrammarCase]:
    """Return the cases of one file. Raises `CorpusError`."""
    head: str | None = None
    lines: list[str] = []
    examples: list[tuple[bool, str]] = []
    for number, line in enumerate([*text.split("\n"), _HEAD], 1):
        if line.startswith(_HEAD):
            if head is not None:
                yield _case(head, kind, lines, examples, f"{place}:{number}")
            elif "".join(lines).strip():
                raise CorpusError(f"{place}:{number}: text before the first case")
            head, lines, examples = line[len(_HEAD) :], [], []
            continue
        word = line[:7]
        if word in _EXAMPLES and line[7:8] == '"':
            try:
                examples.append((_EXAMPLES[word], json.loads(line[7:])))
            except ValueError as error:
                raise CorpusError(f"{place}:{number}: {error}") from error
        elif not examples:
            lines.append(line)
        elif line.strip():
            raise CorpusError(f"{place}:{number}: neither an example nor the next case")


def _case(
    head: str, kind: str, lines: list[str], examples: list[tuple[bool, str]], place: str
) -> GrammarCase:
    name, _, tags = head.partition("|")
    accepted = tuple(text for good, text in examples if good)
    rejected = tuple(text for good, text in examples if not good)
    body = "\n".join(lines)
    # The one expression must not end in the line break of the file.
    grammar = body.strip("\n") if kind == "regex" else body.rstrip("\n") + "\n"
    if not name.strip() or not grammar.strip() or not accepted:
        raise CorpusError(f"{place}: a case needs a name, a grammar and an accepted text")
    return GrammarCase(name.strip(), kind, grammar, frozenset(tags.split()), accepted, rejected)
