"""The JSON options of `json_schema`, which many other functions accept as well.

The core takes a `Writing` whole and reads its attributes (ffwd/native/src/writing.rs).
CONTRIBUTING.md lists what a new option needs.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, cast, get_args, get_origin

Function = TypeVar("Function", bound=Callable[..., Any])

Whitespace: TypeAlias = Literal["consistent", "flexible", "compact", "single-space"]
"""Which whitespace may stand between the tokens of JSON; see `json_schema`."""

Policy: TypeAlias = Literal["strict", "lenient"]
"""What happens to a keyword that is not supported; see `json_schema`."""

PropertyOrder: TypeAlias = Literal["declared", "any"]
"""In which order the properties of objects come; see `json_schema`."""

Numbers: TypeAlias = Literal["plain", "any"]
"""Which spellings of numbers are written; see `json_schema`."""

Escapes: TypeAlias = Literal["canonical", "any"]
"""Which escapes stand in strings; see `json_schema`."""

MAX_WHITESPACE = 4096
# The most characters of one separator or one step of indentation.
MAX_LAYOUT = 64
JSON_WHITESPACE = " \t\n\r"

# Each schema of a grammar has its own values of these; all other options are shared.
LAYOUT = ("whitespace", "max_whitespace", "separators", "indent")


class WritingOptions(TypedDict, total=False):
    """The options of `json_schema` as keyword arguments, for type checkers."""

    whitespace: Whitespace
    max_whitespace: int
    separators: tuple[str, str] | None
    indent: int | str | None
    property_order: PropertyOrder
    numbers: Numbers
    escapes: Escapes
    policy: Policy


@dataclass(frozen=True, kw_only=True)
class Writing:
    """JSON options; `json_schema` describes each of them.

    Attributes:
        whitespace: The allowed whitespace.
        max_whitespace: The longest run of whitespace, in characters, 0 to 4096.
        separators: The texts between items, and between a key and its value.
        indent: The indentation of each level.
        property_order: The order of properties.
        numbers: The allowed forms of numbers.
        escapes: The allowed escapes in strings.
        policy: The treatment of an unsupported keyword.

    """

    whitespace: Whitespace = "consistent"
    max_whitespace: int = 64
    separators: tuple[str, str] | None = None
    indent: int | str | None = None
    property_order: PropertyOrder = "declared"
    numbers: Numbers = "plain"
    escapes: Escapes = "canonical"
    policy: Policy = "strict"

    def __post_init__(self) -> None:
        """Check that each option has a valid value."""
        for each in fields(Writing):
            values, given = get_args(each.type), getattr(self, each.name)
            if get_origin(each.type) is Literal and given not in values:
                raise ValueError(f"{each.name} must be one of {', '.join(values)}, not {given!r}")
        if not isinstance(self.max_whitespace, int) or isinstance(self.max_whitespace, bool):
            raise TypeError(
                f"max_whitespace must be an int, not {type(self.max_whitespace).__name__}"
            )
        if not 0 <= self.max_whitespace <= MAX_WHITESPACE:
            raise ValueError(
                f"max_whitespace must be from 0 to {MAX_WHITESPACE}, not {self.max_whitespace}"
            )
        if self.separators is not None:
            _check_separators(self.separators)
        if self.indent is not None:
            _check_indent(self.indent)
        if self.whitespace != "consistent" and (self.separators, self.indent) != (None, None):
            raise ValueError(
                f"whitespace={self.whitespace!r} cannot be combined with separators or indent"
            )

    def options(self) -> WritingOptions:
        """Return all options as keyword arguments."""
        return cast(WritingOptions, {name: getattr(self, name) for name in WRITING})

    def given(self) -> WritingOptions:
        """Return the options that differ from the default, for callers with other defaults."""
        plain = Writing()
        given = (name for name in WRITING if getattr(self, name) != getattr(plain, name))
        return cast(WritingOptions, {name: getattr(self, name) for name in given})


WRITING = tuple(each.name for each in fields(Writing))
"""The names of the options."""


def takes_writing(defaults: type[Writing] = Writing) -> Callable[[Function], Function]:
    """Add the options to the signature of a function with `**options`, for `help` and notebooks."""
    options = [
        inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type
        )
        for each in fields(defaults)
        if each.name in WRITING
    ]

    def shown(function: Function) -> Function:
        signature = inspect.signature(function)
        own = list(signature.parameters.values())[:-1]
        function.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
        return function

    return shown


def _check_separators(separators: tuple[str, str]) -> None:
    if (
        not isinstance(separators, tuple)
        or len(separators) != 2
        or not all(isinstance(separator, str) for separator in separators)
    ):
        raise TypeError(f"separators must be a tuple of two str, not {separators!r}")
    for separator, mark in zip(separators, (",", ":"), strict=True):
        if len(separator) > MAX_LAYOUT or separator.strip(JSON_WHITESPACE) != mark:
            raise ValueError(
                f"a separator must be {mark!r} with whitespace around it, of at most {MAX_LAYOUT} "
                f"characters, not {separator[:80]!r}"
            )


def _check_indent(indent: int | str) -> None:
    if not isinstance(indent, (int, str)) or isinstance(indent, bool):
        raise TypeError(f"indent must be an int or a str, not {type(indent).__name__}")
    if isinstance(indent, int):
        if not 0 <= indent <= MAX_LAYOUT:
            raise ValueError(f"indent must be from 0 to {MAX_LAYOUT}, not {indent}")
    elif len(indent) > MAX_LAYOUT or indent.strip(JSON_WHITESPACE):
        raise ValueError(
            f"indent must be whitespace of at most {MAX_LAYOUT} characters, not {indent[:80]!r}"
        )
