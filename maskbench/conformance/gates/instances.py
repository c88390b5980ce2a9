"""Instances for a schema: some that take its hints, and what becomes of them by small edits."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

from maskbench.conformance.gates.schemas import NAMES, TEXTS, draw_value

Path = tuple[str | int, ...]


def draw_instance(source: random.Random, schema: Any, root: Any, depth: int = 4) -> Any:
    """Return a value that follows some of the schema's keywords, so that it is sometimes valid."""
    if not isinstance(schema, dict) or depth <= 0:
        return draw_value(source, 1)
    schema = _with_hints(source, schema, root)
    if "const" in schema and source.random() < 0.8:
        return copy.deepcopy(schema["const"])
    if "enum" in schema and source.random() < 0.8:
        return copy.deepcopy(source.choice(schema["enum"]))
    match _kind(source, schema):
        case "object":
            return _draw_object(source, schema, root, depth)
        case "array":
            return _draw_array(source, schema, root, depth)
        case "string":
            return source.choice(TEXTS)
        case "integer":
            return source.randint(-3, 11)
        case "number":
            return source.choice((source.randint(-3, 11), source.randint(-30, 110) / 10))
        case "boolean":
            return source.random() < 0.5
        case "null":
            return None
        case _:
            return draw_value(source, 2)


def _with_hints(source: random.Random, schema: dict[str, Any], root: Any) -> dict[str, Any]:
    """Return the schema with the keywords of one that applies in place."""
    applied: list[Any] = []
    for keyword in ("allOf", "anyOf", "oneOf"):
        applied += schema.get(keyword, [])
    applied += [schema[keyword] for keyword in ("if", "then", "else") if keyword in schema]
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        target = root
        for step in reference[1:].split("/")[1:]:
            target = target.get(step, {}) if isinstance(target, dict) else {}
        applied.append(target)
    chosen = source.choice(applied) if applied else None
    if not isinstance(chosen, dict) or source.random() < 0.3:
        return schema
    merged = {**schema, **chosen}
    for keyword in ("properties", "patternProperties"):
        if keyword in schema and keyword in chosen:
            merged[keyword] = {**schema[keyword], **chosen[keyword]}
    return merged


def _kind(source: random.Random, schema: dict[str, Any]) -> str:
    kinds = schema.get("type")
    if isinstance(kinds, str):
        return kinds
    if isinstance(kinds, list):
        return str(source.choice(kinds))
    if any("ropert" in keyword or keyword in ("required",) for keyword in schema):
        return "object"
    if any("tems" in keyword or keyword == "contains" for keyword in schema):
        return "array"
    if any(keyword in schema for keyword in ("pattern", "minLength", "maxLength", "format")):
        return "string"
    if any(keyword in schema for keyword in ("minimum", "maximum", "multipleOf")):
        return "number"
    return "any"


def _draw_object(source: random.Random, schema: dict[str, Any], root: Any, depth: int) -> Any:
    properties = schema.get("properties", {})
    names = [name for name in properties if source.random() < 0.6]
    names += [name for name in schema.get("required", ()) if source.random() < 0.9]
    names += source.sample(NAMES, source.choice((0, 0, 1, 2)))
    source.shuffle(names)
    patterned = list(schema.get("patternProperties", {}).values())
    others = [*patterned, schema.get("additionalProperties", True), True]
    return {
        name: draw_instance(
            source,
            properties[name] if name in properties else source.choice(others),
            root,
            depth - 1,
        )
        for name in names
    }


def _draw_array(source: random.Random, schema: dict[str, Any], root: Any, depth: int) -> Any:
    items = schema.get("items", True)
    prefix = schema.get("prefixItems", items if isinstance(items, list) else [])
    rest = [True if isinstance(items, list) else items]
    rest += [schema[keyword] for keyword in ("contains", "unevaluatedItems") if keyword in schema]
    length = source.randint(schema.get("minItems", 0), 4) if schema.get("minItems", 0) <= 4 else 5
    return [
        draw_instance(
            source, prefix[index] if index < len(prefix) else source.choice(rest), root, depth - 1
        )
        for index in range(length)
    ]


def edited(source: random.Random, instance: Any) -> Any:
    """Return the instance with one position changed."""
    path, value = source.choice(list(_places(instance)))
    return _replaced(instance, path, _edit(source, value))


def _edit(source: random.Random, value: Any) -> Any:
    if source.random() < 0.2:
        return draw_value(source, 2)
    if isinstance(value, dict):
        names = list(value)
        match source.choice(("less", "more", "rename", "order")):
            case "less" if names:
                gone = source.choice(names)
                return {name: member for name, member in value.items() if name != gone}
            case "rename" if names:
                old, new = source.choice(names), source.choice(NAMES)
                return {new if name == old else name: member for name, member in value.items()}
            case "order":
                source.shuffle(names)
                return {name: value[name] for name in names}
            case _:
                return {**value, source.choice(NAMES): draw_value(source, 1)}
    if isinstance(value, list):
        match source.choice(("less", "more", "again", "order")):
            case "less" if value:
                at = source.randrange(len(value))
                return value[:at] + value[at + 1 :]
            case "again" if value:
                return [*value, source.choice(value)]
            case "order":
                return source.sample(value, len(value))
            case _:
                return [*value, draw_value(source, 1)]
    if isinstance(value, str):
        at = source.randint(0, len(value))
        return source.choice(
            (value[:at] + source.choice("abcé1 \n") + value[at:], value[:at] + value[at + 1 :])
        )
    if isinstance(value, int | float) and not isinstance(value, bool):
        return source.choice((value + 1, value - 1, -value, value * 2, value / 2, float(value)))
    return draw_value(source, 1)


def _places(instance: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    yield path, instance
    if isinstance(instance, dict):
        for key, value in instance.items():
            yield from _places(value, (*path, key))
    elif isinstance(instance, list):
        for index, value in enumerate(instance):
            yield from _places(value, (*path, index))


def _replaced(instance: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    changed = copy.deepcopy(instance)
    place = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return changed
