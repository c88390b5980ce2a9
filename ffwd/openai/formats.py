"""`response_format`: the form of an answer's text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ffwd.grammar import (
    Grammar,
    WritingOptions,
    any_text,
    ebnf,
    gbnf,
    json_schema,
    lark,
    regex,
    schema_of,
    span,
    structural_tag,
)
from ffwd.grammar._typed import is_type
from ffwd.grammar._writing import Writing, takes_writing
from ffwd.openai.strict import check_strict

if TYPE_CHECKING:
    from typing_extensions import Unpack


@takes_writing()
def response_format(format: Any, **options: Unpack[WritingOptions]) -> Grammar:
    """Return the grammar for a `response_format`.

    Args:
        format: None or `{"type": "text"}`: any text. `{"type": "json_object"}`: a JSON object;
            several servers also take a `schema` for it. `{"type": "json_schema", "json_schema":
            {"schema": …, "strict": …}}`: the schema, which may also be beside `type` as in
            responses. With `strict` the schema must be valid in OpenAI's strict mode
            (`check_strict`); without it, any schema is followed unchanged. Types of other servers:
            `{"type": "regex", "value": …}` (TGI, the dialect of `ffwd.regex`), `{"type": "json",
            "value": …}` (TGI), `{"type": "grammar", "grammar": …}` (Fireworks, GBNF), `{"type":
            "grammar", "syntax": "lark" | "regex", "definition": …}` (OpenAI's custom tools), with
            `"gbnf"` and `"ebnf"` as further syntaxes, and `{"type": "structural_tag", …}` (vLLM and
            SGLang, `ffwd.structural_tag`). A pydantic model or another Python type, as in OpenAI's
            client: its schema with all properties required (`ffwd.schema_of(format,
            require_all=True)`, whose `parse` reads the answer).
        **options: The JSON options of `ffwd.json_schema`, except `registry`.

    Raises:
        GrammarError: An invalid grammar or expression.
        InvalidSchemaError: An invalid schema, or one that is not strict (`StrictSchemaError`).
        UnsupportedTypeError: A type that has no JSON Schema.
        TypeError: `format` is neither an object nor a type, or an option has another type.
        ValueError: An unknown type, a missing member, or an invalid value of an option.

    """
    Writing(**options)  # or raises
    if format is None:
        return span("content", any_text())
    if is_type(format):
        schema = schema_of(format, require_all=True, **options)
        return span("content", schema)
    if not isinstance(format, Mapping) and hasattr(format, "model_dump"):
        # As `model_dump(by_alias=True)`: a pydantic model cannot have a field called `schema`.
        format = format.model_dump(by_alias=True, exclude_none=True)
    if not isinstance(format, Mapping):
        raise TypeError(f"response_format must be an object, not {type(format).__name__}")
    kind = format.get("type")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is None:
        raise ValueError(f"response_format has the type {kind!r}, not one of {', '.join(_READERS)}")
    return span("content", read(format, options))


def _text(format: Mapping[str, Any], options: WritingOptions) -> Grammar:
    return any_text()


def _json_object(format: Mapping[str, Any], options: WritingOptions) -> Grammar:
    schema = format.get("schema")
    given = {"type": "object"} if schema is None else schema
    return json_schema(given, **options)


def _json_schema(format: Mapping[str, Any], options: WritingOptions) -> Grammar:
    inner = format.get("json_schema", format)
    if not isinstance(inner, Mapping):
        raise ValueError("`json_schema` must be an object with a `schema`")
    strict = inner.get("strict")
    if strict is not None and not isinstance(strict, bool):
        raise ValueError(f"`strict` must be a bool, not {strict!r}")
    schema = inner.get("schema", inner.get("json_schema"))
    if schema is None and not strict:
        return json_schema({"type": "object"}, **options)
    if strict:
        check_strict(schema)
    made: Grammar = json_schema(_given(schema, "schema"), **options)
    return made


def _json_value(format: Mapping[str, Any], options: WritingOptions) -> Grammar:
    schema = _given(format.get("value", format.get("schema")), "value")
    made: Grammar = json_schema(schema, **options)
    return made


def _regex(format: Mapping[str, Any], options: WritingOptions) -> Grammar:
    return regex(_string(format, "value", "pattern", "regex"))


def _grammar(format: Mapping[str, Any], options: WritingOptions) -> Grammar:
    inner = format.get("grammar", format)
    if isinstance(inner, str):
        inner = {"syntax": "gbnf", "definition": inner}
    if not isinstance(inner, Mapping):
        raise ValueError("`grammar` must be a str or an object")
    syntax = inner.get("syntax")
    read: dict[Any, Callable[[str], Grammar]] = {
        "lark": lark,
        "regex": regex,
        "gbnf": gbnf,
        "ebnf": ebnf,
    }
    if syntax not in read:
        raise ValueError(f"a grammar's syntax must be one of {', '.join(read)}, not {syntax!r}")
    return read[syntax](_string(inner, "definition"))


def _structural_tag(format: Mapping[str, Any], options: WritingOptions) -> Grammar:
    return structural_tag(dict(format), **options)


_READERS: dict[str, Callable[[Mapping[str, Any], WritingOptions], Grammar]] = {
    "text": _text,
    "json_object": _json_object,
    "json_schema": _json_schema,
    "json": _json_value,
    "regex": _regex,
    "grammar": _grammar,
    "structural_tag": _structural_tag,
}


def _given(schema: Any, name: str) -> Any:
    if schema is None:
        raise ValueError(f"response_format lacks `{name}`")
    return dict(schema) if isinstance(schema, Mapping) else schema


def _string(format: Mapping[str, Any], *names: str) -> str:
    for name in names:
        if isinstance(value := format.get(name), str):
            return value
    raise ValueError(f"response_format lacks the text `{names[0]}`")
