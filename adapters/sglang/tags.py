"""Structural tags as SGLang has them, in the form that XGrammar documents."""

import json
from typing import Any

# Formats whose schema SGLang omits for a tool without one.
_WITH_SCHEMA = frozenset({"json_schema", "qwen_xml_parameter"})


def as_structural_tag(text: str) -> str:
    """Return a request's structural tag in XGrammar's form.

    A schema that is null or missing is one that allows any value, and the older form may say
    `at_least_one`. Everything else is left as it is, what is wrong with it included.
    """
    try:
        tag = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(tag, dict):
        return text
    changed = _fill_in_structures(tag) or _fill_in_schemas(tag.get("format"))
    if "at_least_one" in tag and "structures" in tag:
        tag, changed = _in_new_form(tag), True
    return json.dumps(tag) if changed else text


def _fill_in_structures(tag: dict[str, Any]) -> bool:
    structures = tag.get("structures")
    missing = [
        structure
        for structure in (structures if isinstance(structures, list) else [])
        if isinstance(structure, dict) and structure.get("schema") is None
    ]
    for structure in missing:
        structure["schema"] = {}
    return bool(missing)


def _fill_in_schemas(root: Any) -> bool:
    """Return whether a format lacked any schema, without looking into schemas."""
    changed = False
    following = [root]
    while following:
        part = following.pop()
        if isinstance(part, list):
            following.extend(part)
        elif isinstance(part, dict):
            if part.get("type") in _WITH_SCHEMA and part.get("json_schema") is None:
                part["json_schema"] = {}
                changed = True
            following.extend(part.get(name) for name in ("content", "elements", "tags"))
    return changed


def _in_new_form(tag: dict[str, Any]) -> dict[str, Any]:
    tags = [
        {
            "begin": structure.get("begin"),
            "content": {"type": "json_schema", "json_schema": structure.get("schema")},
            "end": structure.get("end"),
        }
        if isinstance(structure, dict)
        else structure
        for structure in (tag["structures"] if isinstance(tag["structures"], list) else [])
    ]
    return {
        "type": "structural_tag",
        "format": {
            "type": "triggered_tags",
            "triggers": tag.get("triggers"),
            "tags": tags,
            "at_least_one": tag["at_least_one"],
        },
    }
