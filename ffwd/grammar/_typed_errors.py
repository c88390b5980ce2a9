"""What can go wrong with types as schemas, and with texts as their values."""

from typing import Any

from ffwd._native import FfwdError


class UnsupportedTypeError(FfwdError):
    """A Python type that has no JSON Schema: a callable, a class of one's own, a type without end.

    Attributes:
        place: Where in the type it is: `Order.items[].on_click`.
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
        problems: What is wrong: pairs of the place in the value (`items.0.price`, empty for the
            value itself) and what is wrong there.

    """

    def __init__(
        self, message: str, *, text: str, problems: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(message)
        self.text = text
        self.problems = problems


class TruncatedError(ParseError):
    """A text that ends before its value does: generation was stopped within it."""

    @classmethod
    def of(cls, text: str) -> "TruncatedError":
        """The error about a text that was cut off."""
        tail = text if len(text) <= 60 else "…" + text[-60:]
        return cls(
            f"the text was cut off before its end ({tail!r}): raise max_new_tokens, or give "
            "complete=True, with which the text ends within max_new_tokens whatever is chosen; "
            "`text` has what there is",
            text=text,
        )
