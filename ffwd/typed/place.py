"""The position of a type's part without a form in JSON."""

import dataclasses
import types
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typing_extensions
from pydantic import BaseModel

_QUALIFIERS = frozenset(
    getattr(module, name)
    for module in (typing, typing_extensions)
    for name in ("Required", "NotRequired", "ReadOnly", "Final", "ClassVar")
    if hasattr(module, name)
)
_DEEPEST = 64


def name_of(annotation: Any) -> str:
    """Return a type's name in source code."""
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation.__qualname__.rpartition("<locals>.")[2]
    return str(annotation).replace("typing.", "")


def failing_place(annotation: Any, fails: Callable[[Any], bool]) -> tuple[str, Any]:
    """Return the innermost part of a type that fails by itself, with its position.

    A place is written as it is reached: `Order.items[].price` for the field of an item.
    """
    place, seen = name_of(annotation), [annotation]
    for _ in range(_DEEPEST):
        for step, part in _parts(annotation):
            if not any(part is other for other in seen) and fails(part):
                seen.append(part)
                place, annotation = place + step, part
                break
        else:
            break
    return place, annotation


def _parts(annotation: Any) -> Iterator[tuple[str, Any]]:
    if (fields := _fields(annotation)) is not None:
        for name, hint in fields.items():
            for part in _unqualified(hint):
                yield f".{name}", part
        return
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield "", arguments[0]
    elif origin in (Union, types.UnionType):
        yield from (("", part) for part in arguments)
    elif origin is tuple and arguments[-1:] != (Ellipsis,):
        yield from ((f"[{index}]", part) for index, part in enumerate(arguments))
    elif isinstance(origin, type) and issubclass(origin, typing.Mapping) and len(arguments) == 2:
        yield "[key]", arguments[0]
        yield "[value]", arguments[1]
    elif isinstance(origin, type) and issubclass(origin, typing.Iterable):
        yield from (("[]", part) for part in arguments if part is not Ellipsis)


def _fields(annotation: Any) -> dict[str, Any] | None:
    """Return the annotations of a class with named fields; None for anything else."""
    if not isinstance(annotation, type):
        return None
    if issubclass(annotation, BaseModel):
        return {name: field.annotation for name, field in annotation.model_fields.items()}
    if not (
        dataclasses.is_dataclass(annotation)
        or typing_extensions.is_typeddict(annotation)
        or hasattr(annotation, "_fields")
    ):
        return None
    try:
        return get_type_hints(annotation, include_extras=True)
    except (NameError, TypeError):
        return None


def _unqualified(hint: Any) -> Iterator[Any]:
    while get_origin(hint) in _QUALIFIERS:
        (hint,) = get_args(hint)
    yield hint
