"""JSON Schemas, as immutable descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from ffwd._deprecated import warn_deprecated
from ffwd.grammar._grammar import Grammar
from ffwd.grammar._text import invalid_schema, lone_surrogate, schema_text
from ffwd.grammar._writing import Writing, WritingOptions, takes_writing

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ffwd.grammar._typed import TypedSchema

T = TypeVar("T")
Registry: TypeAlias = Mapping[str, str | bool | dict[str, Any]]


@dataclass(frozen=True, eq=False, repr=False)
class JsonSchema(Grammar, Writing):
    """JSON text that is valid against a JSON Schema, made by `json_schema`.

    Attributes:
        schema: The schema, as JSON text.
        registry: The documents for references: pairs of a URI and JSON text.

    """

    schema: str
    registry: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)

    _function = "json_schema"

    def __post_init__(self) -> None:
        if not isinstance(self.schema, str):
            raise TypeError(f"schema must be JSON text, not {type(self.schema).__name__}")
        index = lone_surrogate(self.schema)
        if index is not None:
            raise invalid_schema(f"the schema's text has a lone surrogate at index {index}", "")
        Writing.__post_init__(self)
        _check_registry(self.registry)
        super().__post_init__()

    @property
    def layout_separators(self) -> tuple[str, str] | None:
        """Deprecated: use `separators` and `indent`."""
        warn_deprecated("ffwd.JsonSchema.layout_separators", use="`separators` and `indent`")
        if self.separators is None and self.indent is not None:
            return (",", ": ")
        return self.separators

    @property
    def layout_indent(self) -> str | None:
        """Deprecated: use `indent`."""
        warn_deprecated("ffwd.JsonSchema.layout_indent", use="`indent`")
        return " " * self.indent if isinstance(self.indent, int) else self.indent


@overload
def json_schema(
    schema: str | bool | dict[str, Any],
    *,
    registry: Registry | None = None,
    **options: Unpack[WritingOptions],
) -> JsonSchema: ...


@overload
def json_schema(
    schema: type[T], *, registry: Registry | None = None, **options: Unpack[WritingOptions]
) -> TypedSchema[T]: ...


@overload
def json_schema(
    schema: Any, *, registry: Registry | None = None, **options: Unpack[WritingOptions]
) -> JsonSchema: ...


@takes_writing()
def json_schema(
    schema: Any, *, registry: Registry | None = None, **options: Unpack[WritingOptions]
) -> JsonSchema:
    """Return a grammar for JSON text that is valid against a schema.

    This function checks only the schema's form; `ffwd.compile` checks its keywords.

    Args:
        schema: The schema: JSON text, or the Python values that `json.loads` returns for such text.
            A str is always text: the schema `true` is `True` or `"true"`. A Python type or a
            function is converted by `schema_of`, to a grammar with a `parse`.
        registry: The documents that `$ref` may refer to, and metaschemas that `$schema` may name,
            by their absolute URIs; each as JSON text or Python values. Nothing is fetched. The
            metaschemas of all drafts are built in.
        whitespace: `"consistent"` is what `json.dumps` writes with one pair of separators and one
            indentation: compact, `", "` and `": "`, or an indent of 1 to 8 spaces or a tab. The
            output chooses at the first difference, and keeps to it. `"flexible"` allows runs of
            whitespace wherever JSON does inside the value (none before or after it), `"compact"`
            allows none, and `"single-space"` requires exactly one space after each colon and comma.
        max_whitespace: The longest run of whitespace that `"flexible"` allows, in characters, 0 to
            4096.
        separators: The exact text between items and between a key and its value, as in
            `json.dumps`: a comma and a colon with whitespace around them.
        indent: The exact layout of `json.dumps` with this `indent`: each item and member on a line
            of its own, indented by this number of spaces, or by this whitespace, for each container
            around it. The separators are then `(",", ": ")` unless given.
        property_order: `"declared"` requires properties in the order in which the schema declares
            them, and undeclared ones after them; `"any"` allows every order.
        numbers: `"plain"` writes integers as integers (`21`, neither `21.0` nor `2.1e1`) if the
            schema allows nothing else. It writes no number that is infinite as a double, such as
            `1e999`, unless a bound or a listed value of the schema is one. `"any"` allows every
            form of every valid number.
        escapes: `"canonical"` writes each character of a string in one way: itself, or the escape
            that JSON requires. `"any"` also allows `\\uXXXX`, pairs of surrogates and `\\/` for the
            characters of values and of property names. Then no text within a string is forced.
        policy: `"strict"` refuses a schema with an unsupported keyword. `"lenient"` ignores such a
            keyword, so the grammar accepts values that it forbids; `ffwd.fidelity_report` lists it
            as widened.

    Raises:
        InvalidSchemaError: A value that JSON does not have: NaN, an infinity, a lone surrogate, a
            property name that is not a string, an object of another type; with its `pointer`.
        LimitExceededError: Nested more than 512 deep, more than a million values, more than 64
            million characters in strings, or an integer of more than 14,000 bits.
        UnsupportedTypeError: A type that has no JSON Schema; see `schema_of`.
        TypeError: `schema` is of none of the types above, or an option has another type.
        ValueError: An option has an invalid value, or `whitespace` is given together with
            `separators` or `indent`.

    """
    documents = {} if registry is None else registry
    if not isinstance(documents, Mapping):
        raise TypeError(f"registry must be a mapping, not {type(documents).__name__}")
    if not isinstance(schema, (str, bool, dict)):
        from ffwd.grammar._typed import is_type, schema_of

        if is_type(schema):
            return schema_of(schema, **options)
    return JsonSchema(
        schema=_schema_text(schema, "schema"),
        registry=tuple(
            (uri, _schema_text(document, f"the document {uri!r}"))
            for uri, document in documents.items()
        ),
        **options,
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
