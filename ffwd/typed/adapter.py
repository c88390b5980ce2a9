"""JSON Schemas of types, and values of types from JSON text."""

from collections.abc import Callable
from functools import partial
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic_core import PydanticSerializationError

from ffwd.grammar import ParseError, TruncatedError, UnsupportedTypeError
from ffwd.typed.function import bind, is_function, parameters_type
from ffwd.typed.generate import generator
from ffwd.typed.integers import respell_integers
from ffwd.typed.place import failing_place, name_of

# The errors of pydantic for a type without a schema; an infinite type raises RecursionError.
_REFUSED = (
    PydanticUserError,
    PydanticUndefinedAnnotation,
    PydanticSerializationError,
    RecursionError,
    AttributeError,
    NameError,
    TypeError,
)
_MAX_SHOWN = 8


class Adapter:
    """A type, its schema and its values.

    Args:
        type: What `ffwd.schema_of` takes.
        require_all: See there.

    Raises:
        UnsupportedTypeError: JSON has no form for a part of it.

    """

    def __init__(self, type: Any, *, require_all: bool) -> None:
        self.name = name_of(type)
        self._made: Callable[[Any], Any] | None = None
        inner = type
        if is_function(type):
            self._made = partial(bind, type)
            inner = parameters_type(type)
            self.name = inner.__name__
        elif isinstance(type, TypeAdapter):
            self._adapter: TypeAdapter[Any] = type
            self.name = name_of(type._type)
        self._require_all = require_all
        try:
            if not isinstance(type, TypeAdapter):
                self._adapter = TypeAdapter(inner)
            self.schema: dict[str, Any] = self._schema(self._adapter)
        except _REFUSED as error:
            raise self._refusal(inner, error) from error

    def __repr__(self) -> str:
        return f"Adapter({self.name})"

    def parse(self, text: str | bytes) -> Any:
        """Return the value of a JSON text.

        Raises:
            TruncatedError: The text ends before the value does.
            ParseError: It is no value of the type.

        """
        written = text if isinstance(text, str) else text.decode(errors="replace")
        try:
            value = self._validate(written)
        except ValidationError as error:
            raise self._parse_error(written, error) from error
        return value if self._made is None else self._made(value)

    def _validate(self, text: str) -> Any:
        # pydantic reads a number with a point as a float, which has 15 exact digits.
        text = respell_integers(text, longer_than=15)
        try:
            return self._adapter.validate_json(text)
        except ValidationError:
            respelt = respell_integers(text)
            if respelt == text:
                raise
        return self._adapter.validate_json(respelt)

    def _schema(self, adapter: TypeAdapter[Any]) -> dict[str, Any]:
        return adapter.json_schema(
            schema_generator=generator(require_all=self._require_all), mode="validation"
        )

    def _fails(self, part: Any) -> bool:
        try:
            self._schema(TypeAdapter(part))
        except _REFUSED:
            return True
        return False

    def _refusal(self, type: Any, error: Exception) -> UnsupportedTypeError:
        place, part = failing_place(type, self._fails)
        if isinstance(error, RecursionError):
            why = "it contains itself with other type arguments, without end"
        else:
            why = str(error).partition("\n")[0].partition(". Set `")[0]
        return UnsupportedTypeError(
            f"{place} cannot be a JSON Schema: {name_of(part)}: {why}; give it a type that JSON "
            "has, or say how it is written with Annotated[…, pydantic.WithJsonSchema({…})]",
            place=place,
            type=part,
        )

    def _parse_error(self, written: str, error: ValidationError) -> ParseError:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        if found[0]["type"] == "json_invalid":
            message = found[0]["msg"]
            if "EOF while parsing" in message:
                return TruncatedError.of(written)
            return ParseError(
                f"the text is no JSON ({message}): a grammar was not followed, or something was "
                "written before or after it",
                text=written,
                problems=(("", message),),
            )
        problems = tuple((_place(one["loc"]), one["msg"]) for one in found)
        listed = "; ".join(
            f"{place}: {message}" if place else message for place, message in problems[:_MAX_SHOWN]
        )
        more = f"; and {len(problems) - _MAX_SHOWN} more" if len(problems) > _MAX_SHOWN else ""
        return ParseError(
            f"the text is no {self.name}: {listed}{more}. If it was written under the type's "
            "schema, the schema cannot say this: generate again, or put it into the schema (a "
            "pattern, bounds, Field(json_schema_extra=…))",
            text=written,
            problems=problems,
        )


def adapter_of(type: Any, *, require_all: bool = False) -> Adapter:
    """Return the adapter of a type; see `Adapter`."""
    return Adapter(type, require_all=require_all)


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location))
