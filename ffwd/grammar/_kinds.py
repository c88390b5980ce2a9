"""JSON Schemas, as immutable descriptions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args, overload

from ffwd.grammar._grammar import Grammar
from ffwd.grammar._text import invalid_schema, lone_surrogate, schema_text

if TYPE_CHECKING:
    from ffwd.grammar._typed import TypedSchema

T = TypeVar("T")

Whitespace: TypeAlias = Literal["consistent", "flexible", "compact", "single-space"]
"""Which whitespace may stand between the tokens of JSON; see `json_schema`."""

Policy: TypeAlias = Literal["strict", "lenient"]
"""What happens to a keyword that is not supported; see `json_schema`."""

PropertyOrder: TypeAlias = Literal["declared", "any"]
"""In which order the properties of objects come; see `json_schema`."""

Numbers: TypeAlias = Literal["plain", "any"]
"""Which spellings of numbers are written; see `json_schema`."""

MAX_WHITESPACE = 4096
# Of one separator or of one step of indentation.
MAX_LAYOUT = 64
JSON_WHITESPACE = " \t\n\r"

WHITESPACES: tuple[Whitespace, ...] = get_args(Whitespace)
POLICIES: tuple[Policy, ...] = get_args(Policy)
PROPERTY_ORDERS: tuple[PropertyOrder, ...] = get_args(PropertyOrder)
NUMBERS: tuple[Numbers, ...] = get_args(Numbers)


@dataclass(frozen=True, eq=False, repr=False)
class JsonSchema(Grammar):
    """JSON text that is valid against a JSON Schema. Made by `json_schema`.

    Attributes:
        schema: The schema, as JSON text.
        whitespace: Where whitespace may stand; see `json_schema`.
        max_whitespace: The longest run of whitespace, in characters, 0 to 4096.
        separators: Between items, and between a key and its value; see `json_schema`.
        indent: How far each level is indented; see `json_schema`.
        property_order: In which order properties come; see `json_schema`.
        numbers: Which spellings of numbers are written; see `json_schema`.
        registry: The documents that references may lead to: pairs of a URI and JSON text.
        policy: What happens to a keyword that is not supported; see `json_schema`.

    """

    schema: str
    whitespace: Whitespace = "consistent"
    max_whitespace: int = 64
    separators: tuple[str, str] | None = None
    indent: int | str | None = None
    property_order: PropertyOrder = "declared"
    numbers: Numbers = "plain"
    registry: tuple[tuple[str, str], ...] = ()
    policy: Policy = "strict"

    _function = "json_schema"

    def __post_init__(self) -> None:
        if not isinstance(self.schema, str):
            raise TypeError(f"schema must be JSON text, not {type(self.schema).__name__}")
        index = lone_surrogate(self.schema)
        if index is not None:
            raise invalid_schema(f"the schema's text has a lone surrogate at index {index}", "")
        if self.whitespace not in WHITESPACES:
            raise ValueError(
                f"whitespace must be one of {', '.join(WHITESPACES)}, not {self.whitespace!r}"
            )
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
        if self.property_order not in PROPERTY_ORDERS:
            raise ValueError(
                f"property_order must be one of {', '.join(PROPERTY_ORDERS)}, "
                f"not {self.property_order!r}"
            )
        if self.numbers not in NUMBERS:
            raise ValueError(f"numbers must be one of {', '.join(NUMBERS)}, not {self.numbers!r}")
        if self.policy not in POLICIES:
            raise ValueError(f"policy must be one of {', '.join(POLICIES)}, not {self.policy!r}")
        _check_registry(self.registry)
        super().__post_init__()

    @property
    def layout_separators(self) -> tuple[str, str] | None:
        """The separators with their default where `indent` is given; None where neither is."""
        if self.separators is None and self.indent is not None:
            return (",", ": ")
        return self.separators

    @property
    def layout_indent(self) -> str | None:
        """What one level is indented by; None where values are not on lines of their own."""
        return " " * self.indent if isinstance(self.indent, int) else self.indent


@overload
def json_schema(
    schema: str | bool | dict[str, Any],
    *,
    whitespace: Whitespace = "consistent",
    max_whitespace: int = 64,
    separators: tuple[str, str] | None = None,
    indent: int | str | None = None,
    property_order: PropertyOrder = "declared",
    numbers: Numbers = "plain",
    registry: Mapping[str, str | bool | dict[str, Any]] | None = None,
    policy: Policy = "strict",
) -> JsonSchema: ...


@overload
def json_schema(
    schema: type[T],
    *,
    whitespace: Whitespace = "consistent",
    max_whitespace: int = 64,
    separators: tuple[str, str] | None = None,
    indent: int | str | None = None,
    property_order: PropertyOrder = "declared",
    numbers: Numbers = "plain",
    registry: Mapping[str, str | bool | dict[str, Any]] | None = None,
    policy: Policy = "strict",
) -> "TypedSchema[T]": ...


@overload
def json_schema(
    schema: Any,
    *,
    whitespace: Whitespace = "consistent",
    max_whitespace: int = 64,
    separators: tuple[str, str] | None = None,
    indent: int | str | None = None,
    property_order: PropertyOrder = "declared",
    numbers: Numbers = "plain",
    registry: Mapping[str, str | bool | dict[str, Any]] | None = None,
    policy: Policy = "strict",
) -> JsonSchema: ...


def json_schema(
    schema: Any,
    *,
    whitespace: Whitespace = "consistent",
    max_whitespace: int = 64,
    separators: tuple[str, str] | None = None,
    indent: int | str | None = None,
    property_order: PropertyOrder = "declared",
    numbers: Numbers = "plain",
    registry: Mapping[str, str | bool | dict[str, Any]] | None = None,
    policy: Policy = "strict",
) -> JsonSchema:
    """JSON text that is valid against a schema.

    What the schema means is looked at by `ffwd.compile`; here only its form is.

    Args:
        schema: The schema: JSON text, or the Python values that `json.loads` makes of such text.
            Note that a str is text: the schema `true` is `True` or `"true"`. A Python type or a
            function is what `schema_of` makes of it: a grammar with a `parse`.
        whitespace: `"consistent"` is what `json.dumps` writes with one pair of separators and one
            indentation: compact, `", "` and `": "`, or an indent of 1 to 8 spaces or a tab. The
            text decides where these first differ, and keeps to it.
            `"flexible"` allows runs of whitespace wherever JSON does inside the value (none
            before or after it), `"compact"` allows none,
            and `"single-space"` asks for exactly one space after each colon and comma.
        max_whitespace: The longest run of whitespace that `"flexible"` allows, in characters,
            0 to 4096.
        separators: Exactly the text between items and between a key and its value, as in
            `json.dumps`: a comma and a colon with whitespace around them.
        indent: Exactly the layout of `json.dumps` with this `indent`: each item and member on a
            line of its own, indented by so many spaces, or by this whitespace, for each container
            around it. The separators are then `(",", ": ")` unless given.
        property_order: `"declared"` asks for properties in the order in which the schema declares
            them, those that it does not declare after them; `"any"` takes every order.
        numbers: `"plain"` writes integers as integers (`21`, neither `21.0` nor `2.1e1`) where the
            schema allows nothing else, and no number that is infinite as a double, such as `1e999`,
            unless a bound or a listed value of the schema is one. `"any"` writes every number that
            is valid.
        registry: The documents that `$ref` and its like may lead to, and metaschemas that `$schema`
            may name, by their absolute URIs; each as JSON text or Python values. Nothing is
            fetched. The metaschemas of all drafts are known without it.
        policy: `"strict"` refuses a schema with a keyword that is not supported. `"lenient"` leaves
            such a keyword out, so that values may come which it forbids;
            `ffwd.fidelity_report` lists them as widened.

    Raises:
        InvalidSchemaError: A value that JSON does not have: NaN, an infinity, a lone surrogate, a
            property name that is not a string, an object of another type. Its `pointer` says
            where.
        LimitExceededError: Nested more than 512 deep, more than a million values, more than 64
            million characters in strings, or an integer of more than 14,000 bits.
        UnsupportedTypeError: A type that has no JSON Schema; see `schema_of`.
        TypeError: `schema` is of none of the types above, or an option has another type.
        ValueError: An option has a value that it cannot have, or `whitespace` is given together
            with `separators` or `indent`.

    """
    documents = {} if registry is None else registry
    if not isinstance(documents, Mapping):
        raise TypeError(f"registry must be a mapping, not {type(documents).__name__}")
    if not isinstance(schema, (str, bool, dict)):
        from ffwd.grammar._typed import is_type, schema_of

        if is_type(schema):
            return schema_of(
                schema,
                whitespace=whitespace,
                max_whitespace=max_whitespace,
                separators=separators,
                indent=indent,
                property_order=property_order,
                numbers=numbers,
                policy=policy,
            )
    return JsonSchema(
        schema=_schema_text(schema, "schema"),
        whitespace=whitespace,
        max_whitespace=max_whitespace,
        separators=separators,
        indent=indent,
        property_order=property_order,
        numbers=numbers,
        registry=tuple(
            (uri, _schema_text(document, f"the document {uri!r}"))
            for uri, document in documents.items()
        ),
        policy=policy,
    )


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


def _schema_text(schema: object, what: str) -> str:
    if isinstance(schema, str):
        return schema
    if isinstance(schema, (bool, dict)):
        return schema_text(schema)
    raise TypeError(f"{what} must be a str, a dict, a bool or a type, not {type(schema).__name__}")


def _check_registry(registry: object) -> None:
    if not isinstance(registry, tuple):
        raise TypeError(f"registry must be a tuple of pairs, not {type(registry).__name__}")
    for uri, text in registry:
        if not isinstance(uri, str) or not isinstance(text, str):
            raise TypeError("registry must be pairs of a URI and JSON text")
        for part in (uri, text):
            index = lone_surrogate(part)
            if index is not None:
                raise invalid_schema(
                    f"the registry has a lone surrogate at index {index} of {part[:80]!r}", ""
                )
