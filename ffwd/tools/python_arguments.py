"""Arguments as Python's keyword arguments: `city="Paris", days=3`.

JSON strings and numbers, as they are written here, are Python literals of the same values, so what
has neither booleans nor null in it is JSON. The rest is put together from what a schema declares.
"""

import keyword
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ffwd.grammar import Grammar, choice, json_schema, lit, optional, repeat, rule, rules, seq
from ffwd.grammar._repeat import MAX_COUNT, bounds
from ffwd.tools.integers import plain_integer
from ffwd.tools.schema import ToolSchema, key_pointer, unsupported

# The argument names that vLLM's parsers accept.
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]{0,255}")
_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
# The keywords of arrays and objects that are followed. Types that JSON and Python write alike may
# have any keyword.
_FOLLOWED = {
    "array": frozenset({"items", "prefixItems", "minItems", "maxItems"}),
    "object": frozenset({"properties", "required", "additionalProperties"}),
}
_ASSERTIONS = {
    "array": frozenset(
        {"items", "prefixItems", "minItems", "maxItems", "contains", "uniqueItems"}
        | {"minContains", "maxContains", "unevaluatedItems", "additionalItems"}
    ),
    "object": frozenset(
        {"properties", "required", "additionalProperties", "patternProperties", "propertyNames"}
        | {"minProperties", "maxProperties", "dependencies", "dependentRequired"}
        | {"dependentSchemas", "unevaluatedProperties"}
    ),
}
_EVERYWHERE = ("allOf", "not", "if", "then", "else", "$dynamicRef", "$recursiveRef")
_OF_SCALARS = {
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "string": ("minLength", "maxLength", "pattern", "format"),
}
_ANY = "any value"
_MAX_NESTING = 64


def python_arguments(schema: Mapping[str, Any]) -> Grammar:
    """Return the arguments that follow a schema, in the order of its declarations.

    Raises:
        UnsupportedSchemaError: The schema has a keyword that cannot be followed in this style.

    """
    return _Literals(schema).arguments()


class _Literals:
    """Python literals of one schema; references become rules."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._document = ToolSchema(schema)
        self._rules: dict[str, Grammar | None] = {}

    def arguments(self) -> Grammar:
        """Return all keyword arguments."""
        properties = self._document.properties(self._document.root, "")
        if properties.others is not None and not properties.declared:
            raise unsupported(
                "arguments that are not declared cannot be written as keyword arguments",
                "/additionalProperties",
                "additionalProperties",
            )
        members = []
        for name, value in properties.declared.items():
            pointer = key_pointer("", "properties", name)
            if not _NAME.fullmatch(name) or keyword.iskeyword(name):
                raise unsupported(
                    f"{name!r} cannot be the name of a keyword argument", pointer, "properties"
                )
            written = seq(lit(name + "="), self._value(value, pointer, 0))
            members.append((written, name in properties.required))
        return self._with_rules(_separated(members))

    def _with_rules(self, grammar: Grammar) -> Grammar:
        definitions = {name: body for name, body in self._rules.items() if body is not None}
        if not definitions:
            return grammar
        return rules({"arguments": grammar, **definitions}, "arguments")

    def _value(self, schema: Any, pointer: str, nesting: int) -> Grammar:
        if nesting > _MAX_NESTING:
            raise unsupported(f"nested more than {_MAX_NESTING} deep", pointer, "type")
        if schema is True or schema == {}:
            return self._any()
        if not isinstance(schema, Mapping):
            raise unsupported("nothing is valid here", pointer, "type")
        if "$ref" in schema:
            return self._reference(schema, pointer)
        for found in _EVERYWHERE:
            if found in schema:
                raise _cannot(found, pointer)
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if values is not None:
            return self._listed(values, schema, pointer)
        for union in ("anyOf", "oneOf"):
            if union in schema:
                return self._union(schema, union, pointer, nesting)
        types = schema.get("type", _TYPES)
        names = [types] if isinstance(types, str) else list(types)
        if not names or any(name not in _TYPES for name in names):
            raise unsupported(f"{types!r} is no type", pointer, "type")
        return choice([self._typed(name, schema, pointer, nesting) for name in names])

    def _typed(self, name: str, schema: Mapping[str, Any], pointer: str, nesting: int) -> Grammar:
        if name == "null":
            return lit("None")
        if name == "boolean":
            return choice(["True", "False"])
        if name == "integer" and (plain := plain_integer({**schema, "type": name})) is not None:
            return plain
        if name in ("integer", "number", "string"):
            own = {key: schema[key] for key in _OF_SCALARS[name] if key in schema}
            return json_schema({"type": name, **own})
        for found in _ASSERTIONS[name]:
            if found in schema and found not in _FOLLOWED[name]:
                raise _cannot(found, pointer)
        if name == "array":
            return self._array(schema, pointer, nesting)
        return self._object(schema, pointer, nesting)

    def _array(self, schema: Mapping[str, Any], pointer: str, nesting: int) -> Grammar:
        first = schema.get("prefixItems", [])
        least, most = bounds(schema, "Items")
        if least > MAX_COUNT:
            message = f"minItems must be at most {MAX_COUNT}"
            raise unsupported(message, f"{pointer}/minItems", "minItems")
        if first and (least not in (0, len(first)) or schema.get("items", True) is not False):
            raise _cannot("prefixItems with other items", pointer)
        if first:
            items = [
                self._value(item, f"{pointer}/prefixItems/{index}", nesting + 1)
                for index, item in enumerate(first)
            ]
            whole = seq("[", *_interleaved(items), "]")
            return whole if least else _prefixes(items)
        item = schema.get("items", True)
        if item is False or most == 0:
            return lit("[]")
        written = self._value(item, f"{pointer}/items", nesting + 1)
        return seq("[", repeat(written, least, most, separator=", "), "]")

    def _object(self, schema: Mapping[str, Any], pointer: str, nesting: int) -> Grammar:
        properties = self._document.properties(schema, pointer)
        members = []
        for name, value in properties.declared.items():
            below = key_pointer(pointer, "properties", name)
            key = json_schema({"const": name})
            written = seq(key, ": ", self._value(value, below, nesting + 1))
            members.append((written, name in properties.required))
        if properties.others is not None and not members:
            others = self._value(properties.others, f"{pointer}/additionalProperties", nesting + 1)
            member = seq(json_schema({"type": "string"}), ": ", others)
            return seq("{", repeat(member, separator=", "), "}")
        return seq("{", _separated(members), "}")

    def _listed(self, values: Sequence[Any], schema: Mapping[str, Any], pointer: str) -> Grammar:
        asserted = {"enum", "const", "type", *sum(_OF_SCALARS.values(), ())}
        types = schema.get("type", _TYPES)
        allowed = [types] if isinstance(types, str) else types
        for found in asserted - {"enum", "const", "type"}:
            if found in schema:
                raise _cannot(f"{found} with enum", pointer)
        literals = [
            _literal(value, pointer)
            for value in values
            if any(_is_of(value, name) for name in allowed)
        ]
        if not literals:
            raise unsupported("no value of the type is listed", pointer, "enum")
        return choice(literals)

    def _union(self, schema: Mapping[str, Any], union: str, pointer: str, nesting: int) -> Grammar:
        beside = [key for key in ("type", "properties", "items", "required") if key in schema]
        if beside:
            raise _cannot(f"{union} beside {beside[0]}", pointer)
        options = schema[union]
        if not isinstance(options, Sequence) or not options:
            raise unsupported(f"{union} must list schemas", pointer, union)
        if union == "oneOf" and not self._disjoint(options, pointer):
            raise _cannot("oneOf whose options have types in common", pointer)
        return choice(
            [
                self._value(option, f"{pointer}/{union}/{index}", nesting + 1)
                for index, option in enumerate(options)
            ]
        )

    def _disjoint(self, options: Sequence[Any], pointer: str) -> bool:
        seen: set[str] = set()
        for option in options:
            resolved, _ = self._document.resolve(option, pointer)
            types = resolved.get("type") if isinstance(resolved, Mapping) else None
            names = {types} if isinstance(types, str) else set(types or _TYPES)
            if "number" in names:
                names.add("integer")
            if names & seen:
                return False
            seen |= names | ({"number"} if "integer" in names else set())
        return True

    def _reference(self, schema: Mapping[str, Any], pointer: str) -> Grammar:
        resolved, place = self._document.resolve(schema, pointer)
        if place not in self._rules:
            self._rules[place] = None
            self._rules[place] = self._value(resolved, place, 0)
        return rule(place or "#")

    def _any(self) -> Grammar:
        """Return any literal with a value in JSON."""
        if _ANY not in self._rules:
            scalars = [json_schema({"type": "string"}), json_schema({"type": "number"})]
            member = seq(json_schema({"type": "string"}), ": ", rule(_ANY))
            self._rules[_ANY] = choice(
                [
                    *scalars,
                    *("True", "False", "None"),
                    seq("[", repeat(rule(_ANY), separator=", "), "]"),
                    seq("{", repeat(member, separator=", "), "}"),
                ]
            )
        return rule(_ANY)


def _separated(members: Sequence[tuple[Grammar, bool]]) -> Grammar:
    """Return members in order, with `, ` between those that come; pairs with whether one must."""
    # behind[i]: what may follow a member before i.
    behind: Grammar = seq()
    starts: list[Grammar] = []
    for member, required in reversed(members):
        starts = [seq(member, behind)] if required else [*starts, seq(member, behind)]
        following = seq(", ", member)
        behind = seq(following if required else optional(following), behind)
    if not starts:
        return seq()
    begun = choice(starts[::-1])
    return begun if any(required for _, required in members) else optional(begun)


def _interleaved(items: Sequence[Grammar]) -> list[Grammar]:
    parts: list[Grammar] = []
    for item in items:
        parts += [lit(", "), item] if parts else [item]
    return parts


def _prefixes(items: Sequence[Grammar]) -> Grammar:
    """Return the first few of these, in brackets."""
    inner: Grammar = seq()
    for index in range(len(items) - 1, -1, -1):
        inner = optional(seq(*([", "] if index else []), items[index], inner))
    return seq("[", inner, "]")


def _is_of(value: Any, name: str) -> bool:
    if name == "boolean" or isinstance(value, bool):
        return name == "boolean" and isinstance(value, bool)
    if name in ("number", "integer"):
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        return whole if name == "integer" else isinstance(value, (int, float))
    kinds: dict[str, type] = {"null": type(None), "string": str, "array": list, "object": dict}
    return isinstance(value, kinds[name])


def _literal(value: Any, pointer: str) -> Grammar:
    if value is None or isinstance(value, bool):
        return lit(repr(value))
    if isinstance(value, (str, int, float)):
        return json_schema({"const": value})
    raise unsupported("only scalars can be listed", pointer, "enum")


def _cannot(found: str, pointer: str) -> Exception:
    return unsupported(
        f"{found} is not supported for a value that is written in Python",
        pointer,
        found.split()[0],
    )
