"""The JSON Schema that pydantic makes of a type, narrowed to the values that it can parse.

This module only removes or narrows. Its schemas accept no value that pydantic's own reject. They
also reject values that the type would refuse (a decimal of too many digits, a key that is no
integer) or silently drop (undeclared properties).
"""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, NoDefault

# Keys of JSON objects are strings, so integers are written in them.
_INTEGER_KEY = "^(0|-?[1-9][0-9]*)$"


def generator(*, require_all: bool) -> type[GenerateJsonSchema]:
    """Return the class that makes schemas; `require_all`: require every declared property."""
    return _RequireAll if require_all else _Closed


class _Closed(GenerateJsonSchema):
    """Objects have the properties of their type and no others, unless the type keeps others."""

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        return _close(super().model_schema(schema))

    def dataclass_schema(self, schema: Any) -> JsonSchemaValue:
        return _close(super().dataclass_schema(schema))

    def typed_dict_schema(self, schema: Any) -> JsonSchemaValue:
        return _close(super().typed_dict_schema(schema))

    def dict_schema(self, schema: Any) -> JsonSchemaValue:
        made = super().dict_schema(schema)
        if "patternProperties" in made:
            # Keys have a pattern; those that are not of it are refused.
            made.setdefault("additionalProperties", False)
        if schema.get("keys_schema", {}).get("type") == "int":
            made.setdefault("propertyNames", {"pattern": _INTEGER_KEY})
        return made

    def decimal_schema(self, schema: Any) -> JsonSchemaValue:
        made = super().decimal_schema(schema)
        parts = made.get("anyOf", ())
        if {"type": "string"} not in parts:
            return made  # pydantic says itself which texts are decimals
        places, digits = schema.get("decimal_places"), schema.get("max_digits")
        bounds: JsonSchemaValue = {}
        if places is not None:
            bounds["multipleOf"] = 10.0**-places if places else 1
        if digits is not None:
            whole = digits - (places or 0)
            bounds |= {"exclusiveMinimum": -(10**whole), "exclusiveMaximum": 10**whole}
        number: JsonSchemaValue = next(part for part in parts if part.get("type") == "number")
        conflicts = any(keyword in number for keyword in bounds)
        number = {"allOf": [number, bounds]} if conflicts else number | bounds
        text = {"type": "string", "pattern": _decimal_pattern(digits, places)}
        if {"ge", "gt", "le", "lt", "multiple_of"} & schema.keys():
            # No pattern knows the size of a number: those that are bounded are numbers.
            return {**{k: v for k, v in made.items() if k != "anyOf"}, **number}
        made["anyOf"] = [number, text]
        return made


class _RequireAll(_Closed):
    """As OpenAI's strict mode has it."""

    def field_is_required(self, field: Any, total: bool) -> bool:
        return True

    def get_default_value(self, schema: Any) -> Any:
        return NoDefault


def _close(made: JsonSchemaValue) -> JsonSchemaValue:
    if "properties" in made:
        made.setdefault("additionalProperties", False)
    return made


def _decimal_pattern(digits: int | None, places: int | None) -> str:
    """Return the pattern of a plain decimal, without leading zeros."""
    whole = "[0-9]*"
    if digits is not None:
        whole = f"[0-9]{{0,{max(digits - (places or 0) - 1, 0)}}}"
    integer = f"(0|[1-9]{whole})"
    if digits is not None and digits <= (places or 0):
        integer = "0"
    if places == 0:
        return f"^-?{integer}$"
    most = places if places is not None else digits
    fraction = "[0-9]+" if most is None else f"[0-9]{{1,{most}}}"
    if places is None and digits is not None:
        # Any split of the digits: without a point, or as a fraction of zero.
        return f"^-?({integer}|0[.]{fraction})$"
    return f"^-?{integer}([.]{fraction})?$"
