"""Arguments between tags: strings as they are, all else as JSON."""

import re
from collections.abc import Mapping
from typing import Any

from ffwd.grammar import Grammar, any_text, choice, lit, optional, regex, repeat, seq
from ffwd.tools.format import TaggedArguments
from ffwd.tools.schema import Document, key_pointer, unsupported
from ffwd.tools.text_patterns import format_text, pattern_text

# A name must not end the tag that it stands in.
_NAME = re.compile(r"[^\s<>\"'=/]{1,256}")
_FREE_NAME = r"[A-Za-z_][A-Za-z0-9_-]{0,63}"
_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}
    | {"$comment", "$schema", "$id", "$defs", "definitions", "contentMediaType"}
    | {"contentEncoding"}
)
_OF_STRINGS = frozenset({"type", "enum", "const", "minLength", "maxLength", "pattern", "format"})
_MAX_LENGTH = 100_000


def tagged_arguments(style: TaggedArguments, schema: Mapping[str, Any]) -> Grammar:
    """The arguments that follow a schema, in the order in which it declares them.

    Raises:
        UnsupportedSchemaError: The schema has a keyword that cannot be followed in this style.

    """
    document = Document(schema)
    properties = document.properties(schema, "")
    parts: list[Grammar] = []
    for name, value in properties.declared.items():
        pointer = key_pointer("", "properties", name)
        if not _NAME.fullmatch(name):
            raise unsupported(f"the name {name!r} cannot stand in a tag", pointer, "properties")
        argument = _argument(style, lit(name), document, value, pointer)
        parts.append(argument if name in properties.required else optional(argument))
    if properties.others is not None and not properties.declared:
        others = any_text(excluding=style.excluding)
        if properties.others is not True:
            pointer = "/additionalProperties"
            parts.append(
                repeat(_argument(style, regex(_FREE_NAME), document, properties.others, pointer))
            )
        else:
            parts.append(repeat(_between(style, regex(_FREE_NAME), style.before_string, others)))
    return seq(*parts)


def _argument(
    style: TaggedArguments, name: Grammar, document: Document, schema: Any, pointer: str
) -> Grammar:
    resolved, place = document.resolve(schema, pointer)
    if _is_string(resolved):
        return _between(style, name, style.before_string, _string(style, resolved, place))
    return _between(style, name, style.before_value, document.value(schema, pointer))


def _between(style: TaggedArguments, name: Grammar, before: str, value: Grammar) -> Grammar:
    return seq(
        lit(style.before_name, controls=True),
        name,
        lit(before, controls=True),
        value,
        lit(style.after_value, controls=True),
    )


def _is_string(schema: Any) -> bool:
    """Whether all values are strings, by what a parser looks at."""
    if not isinstance(schema, Mapping):
        return False
    if "type" in schema:
        return bool(schema["type"] == "string")
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return bool(values) and all(isinstance(value, str) for value in values)


def _string(style: TaggedArguments, schema: Mapping[str, Any], pointer: str) -> Grammar:
    """A string without quotes, which follows a schema."""
    for keyword in schema:
        if keyword not in _OF_STRINGS and keyword not in _ANNOTATIONS and keyword in _KNOWN:
            raise _cannot(keyword, pointer)
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if values is not None:
        return _listed(style, schema, values, pointer)
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    for keyword in ("pattern", "format"):
        if keyword in schema and (least or most is not None):
            raise _cannot(f"{keyword} with a length", pointer)
    if "pattern" in schema and "format" in schema:
        raise _cannot("pattern with format", pointer)
    if "pattern" in schema:
        return pattern_text(schema["pattern"], pointer)
    found = format_text(schema.get("format"), pointer)
    if found is not None:
        return found
    if not least:
        return any_text(excluding=style.excluding, max_chars=most)
    if least > _MAX_LENGTH or (most is not None and most < least):
        raise _cannot("minLength", pointer)
    rest = any_text(excluding=style.excluding, max_chars=None if most is None else most - least)
    first = "".join(sorted({text[0] for text in style.excluding}))
    # What is excluded cannot begin there, so it cannot reach into the rest either.
    return regex(f"[^{re.escape(first)}]{{{least}}}") + rest


def _listed(
    style: TaggedArguments, schema: Mapping[str, Any], values: list[Any], pointer: str
) -> Grammar:
    texts = [value for value in values if isinstance(value, str)]
    if "const" in schema and "enum" in schema:
        texts = [text for text in texts if text in schema["enum"]]
    for text in texts:
        ends = [end for end in style.excluding if end in text]
        if ends:
            raise unsupported(
                f"the value {text!r} has {ends[0]!r} in it, which would end it",
                pointer,
                "enum",
            )
    for keyword in ("pattern", "format", "minLength", "maxLength"):
        if keyword in schema:
            raise _cannot(f"{keyword} with enum", pointer)
    if not texts:
        raise unsupported("no string is listed", pointer, "enum")
    return choice(texts)


# Keywords that restrict strings and are none of those above.
_KNOWN = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "contentSchema", "$dynamicRef"}
)


def _cannot(keyword: str, pointer: str) -> Exception:
    return unsupported(
        f"{keyword} is not supported for a string that is written without quotes",
        pointer,
        keyword.split()[0],
    )
