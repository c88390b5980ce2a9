"""JSON Schemas of Python types, and values of these types from text."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from ffwd.grammar._kinds import JsonSchema
from ffwd.grammar._text import schema_text
from ffwd.grammar._writing import WritingOptions, takes_writing

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ffwd.typed import Adapter

T = TypeVar("T")


@dataclass(frozen=True, eq=False, repr=False)
class TypedSchema(JsonSchema, Generic[T]):
    """JSON text for a value of a Python type, made by `schema_of`.

    It is a grammar like any other, and `parse` returns the values of accepted texts::

        schema = ffwd.schema_of(Person)
        grammar = ffwd.compile(schema, vocabulary)
        person = schema.parse(text)

    Attributes:
        type: The type, as it was given.
        require_all: Whether every declared property is required.

    """

    type: Any = None
    require_all: bool = False
    _adapter: Adapter | None = field(default=None, compare=False)

    _function = "schema_of"

    def parse(self, text: str | bytes) -> T:
        """Return the value of a text, as pydantic parses it.

            person = ffwd.schema_of(Person).parse('{"name": "Ada", "age": 36}')

        For a function, it is an `inspect.BoundArguments`: `function(*b.args, **b.kwargs)`.

        Raises:
            TruncatedError: The text ends before the value does.
            ParseError: The text is no value of the type, for instance because a validator
                rejects it that no schema can express. `text` has it, and `problems` the errors
                with their positions.

        """
        adapter = self._adapter
        if adapter is None:  # it comes from another process
            adapter = _adapter(self.type, require_all=self.require_all)
            object.__setattr__(self, "_adapter", adapter)
        return cast(T, adapter.parse(text))

    def _label(self) -> tuple[Any, ...]:
        own = tuple(getattr(self, one.name) for one in fields(JsonSchema))
        return (*own, _Same(self.type), self.require_all)

    def _arguments(self) -> Iterable[tuple[str, object]]:
        yield "", self.type
        for name, value in super()._arguments():
            if name not in ("", "type", "_adapter"):
                yield name, value

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_adapter": None}


@overload
def schema_of(  # type: ignore[overload-overlap]  # a class can be called, too, and is a type first
    type: type[T],
    /,
    *,
    require_all: bool = False,
    **options: Unpack[WritingOptions],
) -> TypedSchema[T]: ...


@overload
def schema_of(
    type: Callable[..., Any],
    /,
    *,
    require_all: bool = False,
    **options: Unpack[WritingOptions],
) -> TypedSchema[inspect.BoundArguments]: ...


@overload
def schema_of(
    type: Any,
    /,
    *,
    require_all: bool = False,
    **options: Unpack[WritingOptions],
) -> TypedSchema[Any]: ...


@takes_writing()
def schema_of(
    type: Any,
    /,
    *,
    require_all: bool = False,
    **options: Unpack[WritingOptions],
) -> TypedSchema[Any]:
    """Return a grammar for values of a Python type, whose `parse` returns such values.

        class Person(pydantic.BaseModel):
            name: str
            age: int

        schema = ffwd.schema_of(Person)
        grammar = ffwd.compile(schema, vocabulary)
        schema.parse('{"name": "Ada", "age": 36}')  # a Person

    The schema is pydantic's, with aliases, constraints and discriminated unions, and narrower in
    three points. Objects have no properties that their type would drop (`extra="allow"` keeps
    them). Decimals have no more digits than allowed. Integer keys are written as integers.

    Args:
        type: A pydantic model, dataclass, TypedDict, NamedTuple, enum, `Literal[…]`, a union, a
            container of these, anything else with a JSON Schema in pydantic, or a
            `TypeAdapter`. A function stands for its arguments, as an object; its docstring's
            `Args:` become their descriptions. To send the grammar to another process, `pickle`
            must be able to find the class.
        require_all: Require every declared property, including those with a default, as in
            OpenAI's strict mode.
        **options: The JSON options of `json_schema`, except `registry`.

    Raises:
        UnsupportedTypeError: JSON has no form for a part of the type; `place` names it.
        ImportError: pydantic is not installed.
        InvalidSchemaError: The schema has a value that JSON does not have.
        TypeError: `type` is a text; or an option has another type.
        ValueError: An option has an invalid value.

    """
    if isinstance(type, (str, bytes)):
        raise TypeError("a text is no type: json_schema takes a schema as JSON text")
    if isinstance(type, TypedSchema):
        type = type.type
    adapter = _adapter(type, require_all=require_all)
    return TypedSchema(
        schema=schema_text(adapter.schema),
        **options,
        type=type,
        require_all=require_all,
        _adapter=adapter,
    )


def is_type(value: object) -> bool:
    """Return whether `schema_of` takes the value, which is then no schema or its text."""
    return (
        isinstance(value, (type, functools.partial, typing.NewType, TypedSchema))
        or value is Any
        or typing.get_origin(value) is not None
        or inspect.isroutine(value)
        # By name: neither package is imported for it. The second is what `type X = …` makes.
        or type(value).__name__ in ("TypeAdapter", "TypeAliasType")
    )


def _adapter(given: Any, *, require_all: bool) -> Adapter:
    try:
        import pydantic
    except ImportError as error:
        raise ImportError(
            "a type as a schema needs pydantic: pip install 'ffwd[pydantic]'", name="pydantic"
        ) from error
    if int(pydantic.VERSION.partition(".")[0]) < 2:
        raise ImportError(
            f"a type as a schema needs pydantic 2, not {pydantic.VERSION}: pip install "
            "'ffwd[pydantic]'",
            name="pydantic",
        )
    from ffwd.typed import adapter_of

    return adapter_of(given, require_all=require_all)


class _Same:
    """A type as a part of a grammar's identity: not every type can be hashed."""

    def __init__(self, given: Any) -> None:
        self._given = given
        try:
            self._hash = hash(given)
        except TypeError:
            self._hash = id(given)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and (
            self._given is other._given or self._given == other._given
        )

    def __hash__(self) -> int:
        return self._hash
