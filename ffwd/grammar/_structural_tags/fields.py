"""The fields of a JSON object, each read once and checked."""

from collections.abc import Iterator, Mapping
from typing import Any

from ffwd.grammar._repeat import MAX_COUNT
from ffwd.grammar._structural_tags.errors import StructuralTagError
from ffwd.grammar._text import lone_surrogate

_MISSING: Any = object()


class Fields:
    """An object of a structural tag.

    Attributes:
        pointer: Its place.
        kind: What it is, for errors.

    """

    def __init__(self, value: object, pointer: str, kind: str) -> None:
        if not isinstance(value, Mapping):
            raise StructuralTagError.at(pointer, f"{kind} must be an object, not {_type(value)}")
        self.pointer = pointer
        self.kind = kind
        self._values = value
        self._read: set[str] = set()

    def place(self, name: str) -> str:
        """Return the pointer of a field."""
        return f"{self.pointer}/{name}"

    def has(self, name: str) -> bool:
        """Return whether there is such a field, and it is not null."""
        return self._values.get(name) is not None

    def value(self, name: str, default: Any = _MISSING) -> Any:
        """Return a field unchanged."""
        self._read.add(name)
        if name in self._values:
            return self._values[name]
        if default is _MISSING:
            raise StructuralTagError.at(self.pointer, f"{self.kind} needs {name!r}")
        return default

    def text(self, name: str, default: str = _MISSING) -> str:
        """Return a string."""
        return check_text(self.value(name, default), self.place(name), f"{name!r}")

    def flag(self, name: str, default: bool) -> bool:
        """Return a boolean."""
        value = self.value(name, default)
        if not isinstance(value, bool):
            raise StructuralTagError.at(
                self.place(name), f"{name!r} must be true or false, not {_type(value)}"
            )
        return value

    def count(self, name: str, default: int | None = _MISSING, *, least: int = 0) -> int | None:
        """Return a number of times, or None."""
        value = self.value(name, default)
        if value is None and default is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            raise StructuralTagError.at(
                self.place(name), f"{name!r} must be an integer, not {_type(value)}"
            )
        if not least <= value <= MAX_COUNT:
            raise StructuralTagError.at(
                self.place(name), f"{name!r} must be from {least} to {MAX_COUNT}, not {value}"
            )
        return value

    def items(self, name: str, default: list[Any] = _MISSING) -> list[tuple[Any, str]]:
        """Return the items of a list, each with its pointer."""
        value = self.value(name, default)
        if not isinstance(value, (list, tuple)):
            raise StructuralTagError.at(
                self.place(name), f"{name!r} must be a list, not {_type(value)}"
            )
        return [(item, f"{self.place(name)}/{index}") for index, item in enumerate(value)]

    def texts(self, name: str, default: list[Any] = _MISSING) -> tuple[str, ...]:
        """Return a list of strings, none of them empty."""
        texts = []
        for item, pointer in self.items(name, default):
            texts.append(check_text(item, pointer, f"an item of {name!r}"))
            if not item:
                raise StructuralTagError.at(pointer, f"an item of {name!r} must not be empty")
        return tuple(texts)

    def tokens(self, name: str, default: list[Any] = _MISSING) -> tuple[int | str, ...]:
        """Return a list of tokens, by id or name."""
        return tuple(check_token(item, pointer) for item, pointer in self.items(name, default))

    def unread(self) -> Iterator[str]:
        """Return the names of the fields that were not read."""
        return (str(name) for name in self._values if name not in self._read)


def check_text(value: object, pointer: str, what: str) -> str:
    """Return a string that has a UTF-8 form."""
    if not isinstance(value, str):
        raise StructuralTagError.at(pointer, f"{what} must be a string, not {_type(value)}")
    index = lone_surrogate(value)
    if index is not None:
        raise StructuralTagError.at(pointer, f"{what} has a lone surrogate at index {index}")
    return value


def check_token(value: object, pointer: str) -> int | str:
    """Return a token by id or name."""
    if isinstance(value, str):
        if not check_text(value, pointer, "a token"):
            raise StructuralTagError.at(pointer, "the name of a token must not be empty")
        return value
    if not isinstance(value, int) or isinstance(value, bool):
        raise StructuralTagError.at(pointer, f"a token must be an id or a name, not {_type(value)}")
    if not 0 <= value <= MAX_COUNT:
        raise StructuralTagError.at(pointer, f"no token has the id {value}")
    return value


def _type(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    return "null" if value is None else names.get(type(value), type(value).__name__)
