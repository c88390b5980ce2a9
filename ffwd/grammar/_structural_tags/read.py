"""The whole of a structural tag."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ffwd.grammar._grammar import Grammar
from ffwd.grammar._structural_tags.errors import StructuralTagError
from ffwd.grammar._structural_tags.fields import Fields
from ffwd.grammar._structural_tags.formats import Around, Reader
from ffwd.grammar._structural_tags.schemas import Schemas
from ffwd.grammar._text import check_json
from ffwd.grammar._writing import WritingOptions, takes_writing

if TYPE_CHECKING:
    from typing_extensions import Unpack

# The most characters of a structural tag as text.
MAX_CHARACTERS = 64_000_000


@takes_writing(Schemas)
def structural_tag(
    tag: str | dict[str, Any],
    *,
    closed_objects: bool = True,
    **options: Unpack[WritingOptions],
) -> Grammar:
    """Return the grammar of a structural tag of XGrammar.

    Both forms are read: `{"type": "structural_tag", "format": {...}}`, with all formats of XGrammar
    0.2.8, and the older `{"type": "structural_tag", "structures": [...], "triggers": [...]}`.

    Texts in it, such as `<tool_call>`, are control tokens where the vocabulary has such ones.

    Args:
        tag: The structural tag, as JSON text or Python values.
        closed_objects: Whether objects that declare their properties have no others unless their
            schemas say so, as XGrammar reads them. Without it, they may, as JSON Schema has it.
        **options: How JSON is written: all but `registry` of `json_schema`. `whitespace` is
            `"flexible"` unless given; `property_order` and `max_whitespace` are for formats that
            do not say. With `policy="lenient"` fields of formats that are not known are left out,
            too.

    Raises:
        StructuralTagError: A format that is not known, a field that is missing or has a value that
            it cannot have; with the `pointer` to the place. It is a `GrammarError`.
        InvalidSchemaError: A schema with a value that JSON does not have.
        LimitExceededError: Too large, or nested too deeply.
        TypeError: `tag` is neither a str nor a dict, or an option has another type.
        ValueError: An option has a value that it cannot have.

    """
    document = _document(tag)
    schemas = Schemas(closed_objects=closed_objects, **options)
    reader = Reader(schemas, lenient=schemas.policy == "lenient")
    fields = Fields(document, "", "a structural tag")
    if fields.text("type", "structural_tag") != "structural_tag":
        raise StructuralTagError.at("/type", "'type' must be 'structural_tag'")
    if fields.has("format"):
        grammar = reader.read(fields.value("format"), "/format", Around())
    elif fields.has("structures") or fields.has("triggers"):
        grammar = _older(reader, fields)
    else:
        raise StructuralTagError.at("", "a structural tag needs 'format'")
    reader.check_unread(fields)
    return grammar


def _older(reader: Reader, fields: Fields) -> Grammar:
    try:
        return reader.read(_triggered(fields), "", Around())
    except StructuralTagError as error:
        # The place in the older form.
        pointer = error.pointer.replace("/content/json_schema", "/schema", 1)
        if pointer == "/tags" or pointer.startswith("/tags/"):
            pointer = "/structures" + pointer.removeprefix("/tags")
        raise StructuralTagError.at(pointer, error.reason) from None


def _triggered(fields: Fields) -> dict[str, Any]:
    """Return the older form as a format."""
    tags = []
    for item, pointer in fields.items("structures"):
        structure = Fields(item, pointer, "a structure")
        schema = structure.value("schema")
        if isinstance(schema, str):
            schema = _loaded(schema, structure.place("schema"))
        content = {"type": "json_schema", "json_schema": schema}
        tags.append(
            {
                "type": "tag",
                "begin": structure.text("begin"),
                "content": content,
                "end": structure.text("end"),
            }
        )
    return {"type": "triggered_tags", "triggers": fields.value("triggers"), "tags": tags}


def _document(tag: str | dict[str, Any]) -> object:
    if isinstance(tag, str):
        return _loaded(tag, "")
    if not isinstance(tag, dict):
        raise TypeError(f"a structural tag must be a str or a dict, not {type(tag).__name__}")
    # Bounds the next step, which would not end for a value that contains itself.
    check_json(tag)
    return tag


def _loaded(text: str, pointer: str) -> object:
    if len(text) > MAX_CHARACTERS:
        raise StructuralTagError.at(pointer, f"the JSON text has over {MAX_CHARACTERS} characters")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise StructuralTagError.at(pointer, f"this is not JSON: {error}") from None
    except (RecursionError, ValueError) as error:
        raise StructuralTagError.at(pointer, f"this JSON cannot be read: {error}") from None
    check_json(value)
    return value
