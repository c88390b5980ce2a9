"""How a family of models writes the calls of tools, as data."""

import re
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from ffwd.grammar import Whitespace


class Slot(Enum):
    """The content of a position in a call."""

    NAME = "name"
    ARGUMENTS = "arguments"
    TEXT = "text"
    """Free text of the answer."""


NAME = Slot.NAME
ARGUMENTS = Slot.ARGUMENTS
TEXT = Slot.TEXT


@dataclass(frozen=True)
class Pattern:
    """Text of which only a pattern is known, such as the id of a call.

    Attributes:
        pattern: A regular expression in the dialect `rust`.

    """

    pattern: str


@dataclass(frozen=True)
class OneOf:
    """One of several ways to write something.

    Attributes:
        options: Each is pieces, one after the other.

    """

    options: "tuple[tuple[Piece, ...], ...]"


Piece: TypeAlias = str | Slot | Pattern | OneOf
"""A part of a call. In a str the name of a control token of the vocabulary is that token, and text
where the vocabulary has none of that name."""


@dataclass(frozen=True, kw_only=True)
class JsonArguments:
    """The arguments are a JSON object.

    Attributes:
        whitespace: Where whitespace may stand in it, see `ffwd.json_schema`.

    """

    whitespace: Whitespace = "consistent"


@dataclass(frozen=True, kw_only=True)
class TaggedArguments:
    """Each argument stands between tags: strings as they are, all else as JSON.

    Attributes:
        before_name: What begins an argument.
        before_string: What stands between its name and a string.
        before_value: What stands between its name and any other value.
        after_value: What ends an argument.
        excluding: What does not come in a string, for it would end it.
        words: Strings that would be read as something else, such as `null`, in any case.
        trimmed: Whether whitespace around a string is taken away when it is read.

    """

    before_name: str
    before_string: str
    before_value: str
    after_value: str
    excluding: tuple[str, ...]
    words: tuple[str, ...] = ()
    trimmed: bool = False


@dataclass(frozen=True, kw_only=True)
class PythonArguments:
    """Each argument is a keyword argument, and its value a Python literal."""


@dataclass(frozen=True, kw_only=True)
class TextArguments:
    """The arguments are one free text, such as code.

    Attributes:
        excluding: What does not come in it.

    """

    excluding: tuple[str, ...] = ()


ArgumentStyle: TypeAlias = JsonArguments | TaggedArguments | PythonArguments | TextArguments


@dataclass(frozen=True, kw_only=True)
class BuiltinTool:
    """A tool that the model was trained on and that has a way of being called of its own.

    Attributes:
        type: What it is called in a list of tools, `{"type": "code_interpreter"}`.
        call: How a call is written.
        arguments: How its arguments are.
        parameters: Their JSON Schema, as pairs of a name and a type, all required.

    """

    type: str
    call: tuple[Piece, ...]
    arguments: ArgumentStyle
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class ToolFormat:
    """How a family of models writes the calls of tools.

    An answer is free text, or calls, or text and then calls::

        [before…] begin call [separator call]… end

    Attributes:
        name: What the format is called.
        source: Where it is described.
        call: One call: texts around `NAME` and `ARGUMENTS`, each of which comes once.
        arguments: How arguments are written.
        begin: What comes before the first call.
        end: What comes after the last call.
        separator: What stands between two calls; None where an answer has only one.
        excluding: What does not come in free text, for a parser would take it for a call.
        text_start: A regular expression for what free text begins with, where not everything may:
            models whose calls have no mark of their own.
        text: How an answer without a call is written, around `TEXT`.
        before: What may come before the calls. None: nothing. By default free text.
        repeat_before: Whether `before` may come several times, and before a text as well.
        names: A regular expression for the names that tools can have.
        spelled_in_json: Whether the name stands in a JSON string.
        builtin: Tools that are called in a way of their own.
        shown: How chat templates write a call, where they do so otherwise than models.

    """

    name: str
    source: str
    call: tuple[Piece, ...]
    arguments: ArgumentStyle = JsonArguments()
    begin: tuple[Piece, ...] = ()
    end: tuple[Piece, ...] = ()
    separator: tuple[Piece, ...] | None = ()
    excluding: tuple[str, ...] = ()
    text_start: str | None = None
    text: tuple[Piece, ...] = (TEXT,)
    before: tuple[Piece, ...] | None = (TEXT,)
    repeat_before: bool = False
    names: str = r"[A-Za-z0-9_.:/-]{1,256}"
    spelled_in_json: bool = False
    builtin: tuple[BuiltinTool, ...] = ()
    shown: tuple[Piece, ...] | None = None

    def __post_init__(self) -> None:
        for slot in (NAME, ARGUMENTS):
            if _count(self.call, slot) != 1:
                raise ValueError(f"a call of {self.name} must have its {slot.value} once")
        re.compile(self.names)

    @property
    def parallel(self) -> bool:
        """Whether an answer can have several calls."""
        return self.separator is not None


def _count(pieces: tuple[Piece, ...], slot: Slot) -> int:
    """Return how often a slot comes; each option of several must have it equally often."""
    total = 0
    for piece in pieces:
        if piece is slot:
            total += 1
        elif isinstance(piece, OneOf):
            counts = {_count(option, slot) for option in piece.options}
            total += counts.pop() if len(counts) == 1 else 2
    return total
