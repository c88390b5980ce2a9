"""Conversion of Python values and strings to text for the native core."""

import json
import math

from ffwd._native import InvalidSchemaError, LimitExceededError

# The native core has its own, smaller, budgets for a schema document. These bound the conversion
# itself, which a value that contains itself, or one list many times over, would never leave.
MAX_SCHEMA_NESTING = 512
MAX_SCHEMA_VALUES = 1_000_000
MAX_SCHEMA_CHARACTERS = 64_000_000
# Python refuses to write longer integers, and says so only after it has tried.
MAX_INTEGER_BITS = 14_000
# The most characters of a pointer that a message repeats.
MAX_SHOWN = 160


def schema_text(schema: object) -> str:
    """Return the JSON text of a schema given as Python values; order is kept.

    Raises:
        InvalidSchemaError: A value that JSON does not have, with its place in `pointer`.
        LimitExceededError: Nested too deeply, too many values, or an integer too long.

    """
    check_json(schema)
    # The walk above has bounded the nesting, which also rules out a value that contains itself.
    return json.dumps(schema, ensure_ascii=False, allow_nan=False, check_circular=False)


def lone_surrogate(text: str) -> int | None:
    """Return the index of the first surrogate in `text`, which has no UTF-8 form, if any."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        return error.start
    return None


def invalid_schema(message: str, pointer: str) -> InvalidSchemaError:
    """Return an error about the value at `pointer`."""
    error = InvalidSchemaError(message + at_pointer(pointer))
    error.pointer = pointer
    return error


def limit_exceeded(limit: str, maximum: int, pointer: str = "") -> LimitExceededError:
    """Return an error about a limit of this module."""
    place = at_pointer(pointer)
    error = LimitExceededError(
        f"the limit on {limit} ({maximum}) was exceeded: make the schema smaller{place}"
    )
    error.limit = limit
    error.maximum = maximum
    error.pointer = pointer
    return error


def shortened(text: str) -> str:
    """Return a text for a message, without its middle if it is long."""
    half = MAX_SHOWN // 2
    return text if len(text) <= MAX_SHOWN else f"{text[:half]}…{text[-half:]}"


def at_pointer(pointer: str) -> str:
    """Return a JSON pointer for the end of a message; nothing for the root."""
    shown = shortened(pointer)
    if not shown.isprintable():
        shown = repr(shown)
    return f" (at {shown})" if pointer else ""


class _Place:
    """A position in the document, linked to its parent."""

    __slots__ = ("key", "nesting", "outer", "value")

    def __init__(self, outer: "_Place | None", key: str | int, value: object) -> None:
        self.outer = outer
        self.key = key
        self.value = value
        self.nesting: int = 0 if outer is None else outer.nesting + 1

    def pointer(self) -> str:
        """Return the JSON pointer of this position, with surrogates replaced."""
        keys: list[str] = []
        place: _Place | None = self
        while place is not None and place.outer is not None:
            keys.append(str(place.key).replace("~", "~0").replace("/", "~1"))
            place = place.outer
        text = "".join(f"/{key}" for key in reversed(keys))
        return text.encode("utf-8", "backslashreplace").decode("utf-8")

    def circle(self) -> "tuple[_Place, _Place] | None":
        """Return the first value on the way that contains itself: where, and where again."""
        way: list[_Place] = []
        place: _Place | None = self
        while place is not None:
            way.append(place)
            place = place.outer
        seen: dict[int, _Place] = {}
        for place in reversed(way):
            if isinstance(place.value, (dict, list, tuple)):
                first = seen.setdefault(id(place.value), place)
                if first is not place:
                    return first, place
        return None


def check_json(schema: object) -> None:
    """Check the whole value without recursion, so that a deep one raises no RecursionError."""
    values = 0
    characters = 0
    stack = [_Place(None, "", schema)]
    while stack:
        place = stack.pop()
        value = place.value
        if isinstance(value, str):
            strings = [value]
        elif isinstance(value, dict):
            strings = [key for key in value if isinstance(key, str)]
        else:
            strings = []
        characters += sum(map(len, strings))
        if characters > MAX_SCHEMA_CHARACTERS:
            raise _too_much("schema_characters", MAX_SCHEMA_CHARACTERS, place)
        if not isinstance(value, (dict, list, tuple)):
            _check_scalar(value, place)
            continue
        values += len(value)
        if values > MAX_SCHEMA_VALUES:
            raise _too_much("schema_values", MAX_SCHEMA_VALUES, place)
        if value and place.nesting >= MAX_SCHEMA_NESTING:
            raise _too_much("nesting", MAX_SCHEMA_NESTING, place)
        if isinstance(value, dict):
            for key in value:
                _check_key(key, place)
            inner = [_Place(place, key, child) for key, child in value.items()]
        else:
            inner = [_Place(place, index, child) for index, child in enumerate(value)]
        # Reversed, so that the first error of the document is the one reported.
        stack.extend(reversed(inner))


def _too_much(limit: str, maximum: int, place: _Place) -> InvalidSchemaError | LimitExceededError:
    """Return an error about a value that contains itself, or else about a limit."""
    circle = place.circle()
    if circle is None:
        return limit_exceeded(limit, maximum, place.pointer())
    first, again = circle
    name = shortened(first.pointer()) or "the root"
    return invalid_schema(
        f"the value is circular: {name} contains itself; a schema refers to itself by `$ref`",
        again.pointer(),
    )


def _check_key(key: object, place: _Place) -> None:
    if not isinstance(key, str):
        # json.dumps would write the key 1 as "1" and True as "true".
        raise invalid_schema(
            f"a property name must be a string, not {type(key).__name__}", place.pointer()
        )
    if lone_surrogate(key) is not None:
        raise invalid_schema(
            f"the property name {key!r} has a lone surrogate, which UTF-8 cannot represent",
            place.pointer(),
        )


def _check_scalar(value: object, place: _Place) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        index = lone_surrogate(value)
        if index is not None:
            raise invalid_schema(
                f"a string has a lone surrogate at index {index}, which UTF-8 cannot represent",
                place.pointer(),
            )
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise invalid_schema(f"JSON has no number {value!r}", place.pointer())
    elif isinstance(value, int):
        if value.bit_length() > MAX_INTEGER_BITS:
            raise limit_exceeded("integer_bits", MAX_INTEGER_BITS, place.pointer())
    else:
        raise invalid_schema(f"JSON has no value of type {type(value).__name__}", place.pointer())
