"""Errors of structural tags, with their positions."""

from ffwd._native import GrammarError
from ffwd.grammar._text import at_pointer


class StructuralTagError(GrammarError):
    """A structural tag that cannot be read.

    `pointer` is the JSON pointer of the place, and `reason` the message without it.
    """

    pointer: str = ""
    reason: str = ""

    @classmethod
    def at(cls, pointer: str, message: str) -> "StructuralTagError":
        """Return an error about a position of the tag."""
        error = cls(message + at_pointer(pointer))
        error.pointer = pointer
        error.reason = message
        return error
