"""Arguments between tags: strings as they are, all else as JSON."""

import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from ffwd.grammar import Grammar, any_text, choice, lit, optional, regex, repeat, seq
from ffwd.grammar._repeat import bounds
from ffwd.grammar._string import StringText
from ffwd.tools.format import TaggedArguments
from ffwd.tools.integers import plain_integer
from ffwd.tools.schema import ToolSchema, key_pointer, unsupported

# A name must not end the tag that it stands in.
_NAME = re.compile(r"[^\s<>\"'=/]{1,256}")
_FREE_NAME = r"[A-Za-z_][A-Za-z0-9_-]{0,63}"
_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}
    | {"$comment", "$schema", "$id", "$defs", "definitions", "contentMediaType"}
    | {"contentEncoding"}
)
_OF_STRINGS = frozenset({"type", "enum", "const", "minLength", "maxLength", "pattern", "format"})
# Nothing, or something that is not whitespace at both ends.
_TRIMMED = r"^(?:\S(?:[\s\S]*\S)?)?$"


def tagged_arguments(style: TaggedArguments, schema: Mapping[str, Any]) -> Grammar:
    """Return the arguments that follow a schema, in the order of its declarations.

    Raises:
        UnsupportedSchemaError: The schema has a keyword that cannot be followed in this style.

    """
    document = ToolSchema(schema)
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
    style: TaggedArguments, name: Grammar, document: ToolSchema, schema: Any, pointer: str
) -> Grammar:
    resolved, place = document.resolve(schema, pointer)
    if _is_string(resolved):
        return _between(style, name, style.before_string, _string(style, resolved, place))
    plain = plain_integer(resolved)
    value = document.value(schema, pointer) if plain is None else plain
    return _between(style, name, style.before_value, value)


def _between(style: TaggedArguments, name: Grammar, before: str, value: Grammar) -> Grammar:
    return seq(
        lit(style.before_name, controls=True),
        name,
        lit(before, controls=True),
        value,
        lit(style.after_value, controls=True),
    )


def _is_string(schema: Any) -> bool:
    """Return whether all values are strings, by what a parser looks at."""
    if not isinstance(schema, Mapping):
        return False
    if "type" in schema:
        return bool(schema["type"] == "string")
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return bool(values) and all(isinstance(value, str) for value in values)


def _string(style: TaggedArguments, schema: Mapping[str, Any], pointer: str) -> Grammar:
    """Return a string without quotes, which follows a schema."""
    for keyword in schema:
        if keyword not in _OF_STRINGS and keyword not in _ANNOTATIONS and keyword in _KNOWN:
            raise _cannot(keyword, pointer)
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if values is not None:
        return _listed(style, schema, values, pointer)
    least, most = bounds(schema, "Length")
    text = StringText(
        excluding=style.excluding,
        other_than=tuple(each for word in style.words for each in _in_any_case(word)),
        patterns=(_TRIMMED,) * style.trimmed + _texts(schema, "pattern", pointer),
        formats=_texts(schema, "format", pointer),
        min_chars=least,
        max_chars=most,
    )
    plain = StringText(excluding=style.excluding, max_chars=text.max_chars)
    # Nothing else is asked of most strings.
    return any_text(excluding=text.excluding, max_chars=text.max_chars) if text == plain else text


def _in_any_case(word: str) -> Iterator[str]:
    pairs = ((letter.lower(), letter.upper()) for letter in word)
    return ("".join(letters) for letters in product(*pairs))


def _texts(schema: Mapping[str, Any], keyword: str, pointer: str) -> tuple[str, ...]:
    value = schema.get(keyword)
    if value is not None and not isinstance(value, str):
        raise unsupported(f"{keyword} must be a string", f"{pointer}/{keyword}", keyword)
    return () if value is None else (value,)


def _listed(
    style: TaggedArguments, schema: Mapping[str, Any], values: list[Any], pointer: str
) -> Grammar:
    texts = [value for value in values if isinstance(value, str)]
    if "const" in schema and "enum" in schema:
        texts = [text for text in texts if text in schema["enum"]]
    for text in texts:
        ends = [end for end in style.excluding if end in text]
        trims = style.trimmed and text != text.strip()
        if ends or trims or text.lower() in style.words:
            raise unsupported(
                f"the value {text!r} would be read as something else", f"{pointer}/enum", "enum"
            )
    for keyword in ("pattern", "format", "minLength", "maxLength"):
        if keyword in schema:
            raise _cannot(f"{keyword} with enum", pointer)
    if not texts:
        raise unsupported("no string is listed", f"{pointer}/enum", "enum")
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
