"""Errors of types as schemas, and of texts as their values."""

from typing import Any

from ffwd._native import FfwdError


class UnsupportedTypeError(FfwdError):
    """A Python type without a JSON Schema: a callable, a custom class, an infinite type.

    Attributes:
        place: Its position in the type: `Order.items[].on_click`.
        type: The part that JSON has no form for.

    """

    def __init__(self, message: str, *, place: str, type: Any) -> None:
        super().__init__(message)
        self.place = place
        self.type = type


class ParseError(FfwdError):
    """A text that is no value of a schema's type.

    Attributes:
        text: The text.
        problems: The errors: pairs of the position in the value (`items.0.price`, empty for the
            value itself) and a description.

    """

    def __init__(
        self, message: str, *, text: str, problems: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(message)
        self.text = text
        self.problems = problems


class TruncatedError(ParseError):
    """A truncated text: generation stopped before its value was complete."""

    @classmethod
    def of(cls, text: str) -> "TruncatedError":
        """Return the error about a truncated text."""
        tail = text if len(text) <= 60 else "…" + text[-60:]
        return cls(
            f"the text was cut off before its end ({tail!r}): raise max_new_tokens, or give "
            "complete=True, with which the text ends within max_new_tokens whatever is chosen; "
            "`text` has what there is",
            text=text,
        )
