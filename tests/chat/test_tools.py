"""Python functions as tools: the schema is that of transformers."""

import enum
from collections.abc import Callable
from typing import Any, Literal, Optional, Union

import pytest
import reference
from conversations import HELLO
from llamacpp import templates
from transformers.utils.chat_template_utils import get_json_schema
from versions import needs_new_transformers

from ffwd.chat import ChatTemplate, ToolError, function_schema


class Colour(enum.Enum):
    RED = "red"
    TWO = 2


class Empty(enum.Enum):
    pass


class Odd(enum.Enum):
    PAIR = (1, 2)


def plain(x: float, y: int = 3) -> float:
    """
    Multiplies two numbers,
    as one does.

    Args:
        x: The first number
        y (int): Described again below
        y: The second number,
            which goes on
            and on
    Returns:
        The product
    """
    return x * y


def hints(
    a: str,
    b: list[int],
    c: dict[str, float],
    d: Optional[bool] = None,  # noqa: UP045
    e: Union[int, str] = 1,  # noqa: UP007
    f: int | None = None,
    g: Literal["x", 2, None] = "x",
    h: Colour = Colour.RED,
    i: tuple[int, str] = (1, ""),
    j: list[dict[str, list[str | None]]] | int = 1,
    k: Any = None,
    l: dict = {},  # noqa: B006, E741
    m: list | tuple = (),
    n: bool | list[int] | None = None,
) -> None:
    """Has every kind of argument.

    Args:
        a: A (choices: ["tea", " coffee "])
        b: B
        c: C: with a colon
        d: D
        e: E
        f: F
        g: G

        h: H
        i: I
        j: J
        k: K
        l: L
        m: M (CHOICES: [1, 2])
        n: N

    Raises:
        ValueError: never
    """


def no_arguments() -> dict[str, int]:
    """Does nothing.

    Returns:
        Nothing much, and
        in two lines.

    Raises:
        KeyError: not this either
    """
    return {}


def one_line(x: int):
    """One line. Args: these are not.

    Args:
      x: two spaces
    """


def odd_result(x: int) -> "Callable[[], int]":
    """Gives back something that has no schema.

    Args:
        x: X
    Returns: on this line
    """
    return lambda: x


class Thing:
    def method(self, x: int) -> int:
        """Method.

        Args:
            x: X
        """
        return x

    @classmethod
    def made(cls, x: int) -> int:
        """Class method.

        Args:
            x: X
        """
        return x


GOOD: list[Callable[..., Any]] = [plain, hints, no_arguments, one_line, odd_result, Thing().method]
GOOD += [Thing.made]


@needs_new_transformers
@pytest.mark.parametrize("function", GOOD, ids=lambda function: function.__name__)
def test_schemas_are_those_of_transformers(function: Callable[..., Any]) -> None:
    """Hints, docstrings, choices, results."""
    assert function_schema(function) == get_json_schema(function)


def no_docstring(x: int) -> int:
    return x


def no_hint(x) -> int:
    """Has no hint.

    Args:
        x: X
    """
    return int(x)


def undescribed(x: int, y: int) -> int:
    """Describes one.

    Args:
        x: X
    """
    return x


def custom(x: Thing) -> None:
    """Custom class.

    Args:
        x: X
    """


def empty_enumeration(x: Empty) -> None:
    """Empty.

    Args:
        x: X
    """


def odd_enumeration(x: Odd) -> None:
    """Odd.

    Args:
        x: X
    """


def short_tuple(x: tuple[int]) -> None:
    """Tuple.

    Args:
        x: X
    """


def open_tuple(x: tuple[int, ...]) -> None:
    """Tuple.

    Args:
        x: X
    """


def set_of(x: set[int]) -> None:
    """Set.

    Args:
        x: X
    """


def bad_choices(x: str) -> None:
    """Choices.

    Args:
        x: X (choices: [tea])
    """


def unresolved(x: "Nowhere") -> None:  # type: ignore[name-defined]  # noqa: F821
    """Unresolved.

    Args:
        x: X
    """


BAD: list[Callable[..., Any]] = [no_docstring, no_hint, undescribed, custom, empty_enumeration]
BAD += [odd_enumeration, short_tuple, open_tuple, set_of, bad_choices, unresolved]


@needs_new_transformers
@pytest.mark.parametrize("function", BAD, ids=lambda function: function.__name__)
def test_what_transformers_refuses_is_refused(function: Callable[..., Any]) -> None:
    """With the function's name."""
    with pytest.raises(Exception):  # noqa: B017, PT011
        get_json_schema(function)
    with pytest.raises(ToolError) as error:
        function_schema(function)
    assert error.value.function == function.__name__


@needs_new_transformers
def test_functions_in_templates() -> None:
    """The same text as transformers, and dicts beside functions."""
    path = next(path for path in templates() if path.stem == "Qwen-Qwen2.5-7B-Instruct")
    source = path.read_text(encoding="utf-8")
    tools = [plain, get_json_schema(hints), Thing().method]
    expected = reference.render(source, [HELLO], tools=tools)
    template = ChatTemplate(source, special_tokens=reference.SPECIAL)
    assert template.render_text([HELLO], tools=tools) == expected


@pytest.mark.parametrize("tool", [3, "tool", Thing, print])
def test_what_is_no_tool(tool: Any) -> None:
    """Neither dict nor function."""
    with pytest.raises(ToolError, match="tool 0"):
        ChatTemplate("{{ tools }}").render_text([HELLO], tools=[tool])
