"""The state of a page as objects: the grammar of its text, and the text in bytes and UTF-16."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffwd.grammar import Grammar, JsonSchema, Regex, Writing
from ffwd.play.errors import PlayError
from ffwd.play.schema import GIVEN, STATE, check
from ffwd.sources import SourceText, read_source
from ffwd.tokenizer.errors import lone_surrogate


@dataclass(frozen=True, kw_only=True)
class State:
    """A checked state; see `ffwd.play.schema.STATE`."""

    grammar: dict[str, Any]
    tokenizer: str
    text: str
    cursor: int
    tokens: dict[str, Any] | None = None
    prompt: str = ""
    max_tokens: int = 256
    temperature: float = 0.0
    seed: int = 0

    @staticmethod
    def read(value: Any) -> State:
        """Return the state of JSON; the cursor is at the end of the text by default.

        Raises:
            PlayError: It is no state, with the `pointer` to what is wrong.

        """
        check(value, STATE)
        return State(
            **{"cursor": len(value["text"].encode("utf-16-le", "surrogatepass")) // 2, **value}
        )

    def data(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return dict(vars(self))


def source_of(grammar: dict[str, Any], given: Grammar | None) -> SourceText:
    """Return the grammar of a state.

    `given`: the grammar that was made in Python, if the page has one.

    Raises:
        PlayError: An option without sense, or a grammar of Python that the page does not have.
        GrammarError, InvalidSchemaError: The text has a lone surrogate, or a flag is unknown.

    """
    if grammar["language"] == GIVEN:
        if given is None:
            raise PlayError(
                "the grammar was made in Python, and only `ffwd.view.explore` can show it: save "
                "the state of a grammar in a notation",
                "/grammar/language",
            )
        return SourceText(language=GIVEN, text=str(given), grammar=given)
    options = dict(grammar.get("options", {}))
    if options.get("separators") is not None:
        options["separators"] = tuple(options["separators"])
    try:
        writing = Writing(**options)
    except (TypeError, ValueError) as error:
        raise PlayError(str(error), "/grammar/options") from error
    return read_source(
        grammar["language"],
        grammar["text"],
        writing=writing,
        root=grammar.get("root", "root"),
        dialect=grammar.get("dialect", "rust"),
        flags=grammar.get("flags", ""),
        registry=[(uri, text) for uri, text in grammar.get("registry", [])],
    )


def grammar_of(grammar: Grammar) -> dict[str, Any]:
    """Return the grammar of a state for one that was made in Python."""
    if isinstance(grammar, JsonSchema):
        options: dict[str, Any] = dict(grammar.given())
        if options.get("separators") is not None:
            options["separators"] = list(options["separators"])
        return {
            "language": "json-schema",
            "text": grammar.schema,
            "options": options,
            "registry": [list(pair) for pair in grammar.registry],
        }
    if isinstance(grammar, Regex) and not grammar.search:
        return {
            "language": "regex",
            # A final line end is not part of the pattern, unless there are two.
            "text": grammar.pattern + ("\n" if grammar.pattern.endswith("\n") else ""),
            "dialect": grammar.dialect,
            "flags": grammar.flags,
        }
    # The front ends are named as the notations.
    language = type(grammar).__name__.lower()
    if language in ("lark", "gbnf", "ebnf"):
        text: str = grammar.text  # type: ignore[attr-defined]
        root = {} if language == "lark" else {"root": grammar.root}  # type: ignore[attr-defined]
        return {"language": language, "text": text, **root}
    return {"language": GIVEN, "text": str(grammar)}


class Units:
    """A text in bytes, and between offsets in bytes and in UTF-16 units, which browsers count.

    Raises:
        TextError: The text has a lone surrogate.

    """

    def __init__(self, text: str) -> None:
        try:
            self.data = text.encode()
        except UnicodeEncodeError as error:
            raise lone_surrogate(text, error.start) from error
        given = np.frombuffer(self.data, dtype=np.uint8)
        # A character counts at its first byte; those of four bytes are two units.
        widths = ((given & 0xC0) != 0x80).astype(np.int64) + (given >= 0xF0)
        self._before: NDArray[np.int64] = np.concatenate([[0], np.cumsum(widths)])

    def of_bytes(self, offset: int) -> int:
        """Return the units of the characters that begin before an offset in bytes."""
        return int(self._before[offset])

    def to_bytes(self, units: int) -> int:
        """Return the offset in bytes of a number of units, at most the end of the text."""
        found = int(np.searchsorted(self._before, units, side="left"))
        found = min(found, len(self.data))
        # Not inside a character.
        while found < len(self.data) and self.data[found] & 0xC0 == 0x80:
            found += 1
        return found
