"""The format `json_schema`, in all of its styles."""

import re
from dataclasses import dataclass
from typing import Any

from ffwd.grammar._grammar import Grammar
from ffwd.grammar._kinds import JsonSchema, json_schema
from ffwd.grammar._structural_tags.closed import closed
from ffwd.grammar._structural_tags.document import Document
from ffwd.grammar._structural_tags.errors import StructuralTagError
from ffwd.grammar._structural_tags.fields import Fields
from ffwd.grammar._structural_tags.without import without
from ffwd.grammar._structural_tags.xml import STYLES, arguments
from ffwd.grammar._writing import Whitespace, Writing


@dataclass(frozen=True)
class Schemas(Writing):
    """Reads JSON Schemas; the attributes are options of `structural_tag`."""

    whitespace: Whitespace = "flexible"
    closed_objects: bool = True

    def read(self, fields: Fields) -> Grammar:
        """Return the grammar of a format with a schema."""
        deprecated = fields.value("type") == "qwen_xml_parameter"
        schema = fields.value("json_schema")
        pointer = fields.place("json_schema")
        if not isinstance(schema, (bool, dict)):
            raise StructuralTagError.at(pointer, "'json_schema' must be an object or a boolean")
        style = "qwen_xml" if deprecated else fields.text("style", "json")
        if style != "json" and style not in STYLES:
            raise StructuralTagError.at(
                fields.place("style"),
                f"there is no style {style!r}; there are json, {', '.join(STYLES)}",
            )
        most = None if deprecated else fields.count("max_whitespace_cnt", None)
        any_order = not deprecated and fields.flag("any_order", False)
        excluding = () if deprecated else fields.texts("excludes", [])
        for text in excluding:
            if re.search(r'["\\\x00-\x1f]', text):
                raise StructuralTagError.at(
                    fields.place("excludes"), f"{text!r} has characters that JSON escapes"
                )
        if self.closed_objects:
            schema = closed(schema)
        options = self.options()
        if most is not None:
            options["max_whitespace"] = most
            # A bound on runs of whitespace is about runs.
            if self.whitespace == "consistent" and (self.separators, self.indent) == (None, None):
                options["whitespace"] = "flexible"
        if any_order:
            options["property_order"] = "any"

        def json_text(inner: Any, known: dict[str, Any]) -> JsonSchema:
            if excluding:
                inner = without(inner, excluding)
                known = {uri: without(document, excluding) for uri, document in known.items()}
            made: JsonSchema = json_schema(inner, registry=known, **options)
            return made

        if style == "json":
            return json_text(schema, {})
        document = Document(schema, pointer, json_text)
        space = options["max_whitespace"]
        return arguments(STYLES[style], document, space, any_order, excluding)
