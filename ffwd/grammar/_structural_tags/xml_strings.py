"""Strings of a schema as XML has them: without quotes and escapes."""

from dataclasses import replace
from typing import Any

from ffwd.grammar._choice import choice
from ffwd.grammar._free_text import any_text
from ffwd.grammar._grammar import Grammar
from ffwd.grammar._sequence import lit
from ffwd.grammar._string import StringText
from ffwd.grammar._structural_tags.document import Document, branches

CONSTRAINTS = ("pattern", "format", "minLength", "maxLength")
# They could constrain strings in a way that is not examined here.
REFUSED = ("not", "if", "then", "else", "$dynamicRef", "$recursiveRef")


def strings(document: Document, place: str, close: str, excluding: tuple[str, ...] = ()) -> Grammar:
    """Return the strings at a position, without the closing text and excluded texts.

    Strings with a `pattern` or `format` may have excluded texts in them, as XGrammar has it.

    Raises:
        StructuralTagError: The schema says something of strings that is not supported, or that a
            string is to have what closes it.

    """
    place = document.resolve(place)
    schema = document.at(place)
    if isinstance(schema, bool):
        return any_text(excluding=(close, *excluding))
    for keyword in REFUSED:
        if keyword in schema:
            raise document.error(
                f"{place}/{keyword}", f"{keyword!r} of strings is not supported in XML"
            )
    constrained = [keyword for keyword in CONSTRAINTS if keyword in schema]
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    inner = _inner(document, place, schema)
    ways = bool(constrained) + (values is not None) + bool(inner)
    if ways > 1:
        raise document.error(
            place,
            "strings with several of these keywords are not supported: "
            "const, enum, anyOf, oneOf, allOf, pattern, format, lengths",
        )
    if values is not None:
        texts = [value for value in values if isinstance(value, str)]
        for text in texts:
            if close in text:
                raise document.error(place, f"the string {text!r} has {close!r} in it")
        kept = [text for text in texts if not any(other in text for other in excluding)]
        if not kept:
            raise document.error(place, "each of the listed strings has an excluded text in it")
        return choice([lit(text) for text in kept])
    if inner:
        return choice([strings(document, one, close, excluding) for one in inner])
    if constrained:
        return _constrained(document, place, schema, close, excluding)
    return any_text(excluding=(close, *excluding))


def _inner(document: Document, place: str, schema: dict[str, Any]) -> list[str]:
    """Return the alternatives of the one keyword that describes strings."""
    found: list[str] = []
    for keyword in ("anyOf", "oneOf", "allOf"):
        places = [f"{place}/{one}" for one in branches(schema, keyword)]
        several = [one for one in places if "string" in document.kinds(one)]
        if found and several:
            raise document.error(
                place, "strings with several of anyOf, oneOf and allOf are not supported in XML"
            )
        if keyword == "allOf":
            several = [one for one in several if _says(document, one)] or several[:1]
        exact = keyword == "anyOf" or all(_listed(document, one) for one in several)
        if len(several) > 1 and not exact:
            raise document.error(
                f"{place}/{keyword}", f"several strings in {keyword!r} are not supported in XML"
            )
        found += several
    return found


def _says(document: Document, place: str) -> bool:
    """Return whether anything is said of strings at a place."""
    schema = document.at(document.resolve(place))
    keywords = (*CONSTRAINTS, *REFUSED, "const", "enum", "anyOf", "oneOf", "allOf")
    return isinstance(schema, dict) and any(keyword in schema for keyword in keywords)


def _listed(document: Document, place: str) -> bool:
    schema = document.at(document.resolve(place))
    # Distinct values of `oneOf`; a value in two of them is rare, and `allOf` has no such lists.
    return isinstance(schema, dict) and "const" in schema


def _constrained(
    document: Document, place: str, schema: dict[str, Any], close: str, excluding: tuple[str, ...]
) -> Grammar:
    made = string_text(document, place, schema)
    free = not made.patterns and not made.formats
    return replace(made, excluding=(close, *(excluding if free else ())))


def string_text(document: Document, place: str, schema: dict[str, Any]) -> StringText:
    """Return the constraints of `pattern`, `format` and the lengths at a position."""
    least, most = document.bounds(place, schema, "Length")
    texts = {}
    for keyword, name in (("pattern", "patterns"), ("format", "formats")):
        if keyword in schema:
            if not isinstance(schema[keyword], str):
                raise document.error(f"{place}/{keyword}", f"{keyword!r} must be a string")
            texts[name] = (schema[keyword],)
    return StringText(
        patterns=texts.get("patterns", ()),
        formats=texts.get("formats", ()),
        min_chars=least,
        max_chars=most,
    )
