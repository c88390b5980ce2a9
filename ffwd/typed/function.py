"""The parameters of a function, as a type with a key for each."""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

from pydantic import Field
from typing_extensions import NotRequired, TypedDict

from ffwd.chat.tools import parse_docstring
from ffwd.grammar import UnsupportedTypeError


def is_function(value: object) -> bool:
    """Whether it is a function, a method or a partial: not a class, and no callable object."""
    return inspect.isroutine(value) or isinstance(value, functools.partial)


def function_name(function: Callable[..., Any]) -> str:
    """Return the function's name."""
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)


def parameters_type(function: Callable[..., Any]) -> Any:
    """Return a `TypedDict` of the parameters; those with a default may be missing.

    Descriptions come from the docstring, in Google's form (`Args:`), unless the hint has one.

    Raises:
        UnsupportedTypeError: A parameter without a hint, or one that takes any number of arguments.

    """
    name = function_name(function)
    try:
        signature = inspect.signature(function)
        hints = _hints(function)
    except (TypeError, ValueError, NameError) as error:
        raise UnsupportedTypeError(
            f"the parameters of {name} cannot be told: {error}", place=name, type=function
        ) from error
    described = parse_docstring((inspect.getdoc(function) or "").strip())[1]
    keys: dict[str, Any] = {}
    for parameter in signature.parameters.values():
        place = f"{name}.{parameter.name}"
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise UnsupportedTypeError(
                f"{place} takes any number of arguments, which have no names; name them, or give "
                "a function that does",
                place=place,
                type=function,
            )
        if parameter.name not in hints:
            raise UnsupportedTypeError(
                f"{place} has no type hint; say what it is: `{parameter.name}: int`",
                place=place,
                type=function,
            )
        hint = hints[parameter.name]
        if parameter.name in described:
            # A description in the hint itself comes after this one, and holds.
            hint = _with_description(hint, described[parameter.name])
        keys[parameter.name] = hint if parameter.default is parameter.empty else NotRequired[hint]
    # The functional form, for parameters have any names.
    return TypedDict(name, keys)  # type: ignore[operator]


def bind(function: Callable[..., Any], given: dict[str, Any]) -> inspect.BoundArguments:
    """Return arguments by name, as a call of the function takes them."""
    signature = inspect.signature(function)
    positional, named = [], dict(given)
    for parameter in signature.parameters.values():
        # One that is missing is only passed over where none comes after it.
        if parameter.kind is not parameter.POSITIONAL_ONLY or not named:
            break
        positional.append(named.pop(parameter.name, parameter.default))
    return signature.bind(*positional, **named)


def _with_description(hint: Any, description: str) -> Any:
    own = getattr(hint, "__metadata__", ())
    if any(getattr(part, "description", None) for part in own):
        return hint
    return Annotated[hint, Field(description=description)]


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    while isinstance(function, functools.partial):
        function = function.func
    return get_type_hints(function, include_extras=True)
