"""What a shape is, and the short notations in which shapes are written."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from maskbench.shapes.draw import Draw

Schema = dict[str, Any]


_DRAWS = 6  # for one valid instance that is not there yet


class _Drop:
    pass


DROP = _Drop()
"""As the value of an edit: remove what is there."""


@dataclass(frozen=True)
class Shape:
    """A schema with a source of valid instances and edits that break them.

    `draw` gives an instance with all optional members. Paths are keys and array positions
    joined by `/`, `+` appends to an array. An instance without any of the `optional` paths is
    valid; an instance with any one of the `breaks` (path, value or `DROP`) applied is not.
    """

    id: str
    schema: Any
    draw: Callable[[Draw], Any]
    breaks: tuple[tuple[str, Any], ...]
    optional: tuple[str, ...] = ()
    features: tuple[str, ...] = field(default=())

    def tests(self, seed: int, *, valid: int) -> list[dict[str, Any]]:
        """Labelled instances: up to `valid` valid ones, the first of them full, and one per break.

        There are fewer valid ones where no others could be drawn, for none comes twice.
        """
        source = random.Random(f"{seed}/{self.id}")
        draw = Draw(source)
        tests: list[dict[str, Any]] = []
        seen: set[str] = set()
        for number in range(valid * _DRAWS):
            data = self.draw(draw)
            # Later array positions first, so that the earlier ones stay where they are.
            for path in reversed(self.optional):
                if number and source.random() < 0.5:
                    edit(data, path, DROP)
            text = json.dumps(data)
            if text not in seen:
                seen.add(text)
                tests.append({"valid": True, "data": data})
            if len(seen) == valid:
                break
        for path, value in self.breaks:
            broken = edit(self.draw(draw), path, value)
            tests.append({"valid": False, "data": broken})
        return tests


def listed(
    id: str, schema: Any, valid: Sequence[Any], invalid: Sequence[Any], *features: str
) -> Shape:
    """A shape whose instances are given themselves.

    For a schema that turns on one keyword: its instances are what is just inside and just outside.
    """
    return Shape(
        id,
        schema,
        lambda d: copy.deepcopy(d.pick(valid)),
        tuple(("", value) for value in invalid),
        features=features,
    )


def edit(data: Any, path: str, value: Any) -> Any:
    """Sets, appends or removes what is at `path`, in place, and returns the whole."""
    # Breaks are shared between instances, which must not share parts.
    value = copy.deepcopy(value)
    if not path:
        return value
    *parents, last = path.split("/")
    parent = data
    for step in parents:
        parent = parent[_key(parent, step)]
    if isinstance(value, _Drop):
        del parent[_key(parent, last)]
    elif isinstance(parent, list) and last == "+":
        parent.append(value)
    else:
        parent[_key(parent, last)] = value
    return data


def _key(parent: Any, step: str) -> int | str:
    return int(step) if isinstance(parent, list) else step


STR: Schema = {"type": "string"}
INT: Schema = {"type": "integer"}
NUM: Schema = {"type": "number"}
BOOL: Schema = {"type": "boolean"}
NULL: Schema = {"type": "null"}


def text(low: int | None = None, high: int | None = None, **more: Any) -> Schema:
    """A string of `low` to `high` characters."""
    return _bounds("string", "minLength", low, "maxLength", high, more)


def integer(low: int | None = None, high: int | None = None, **more: Any) -> Schema:
    """An integer from `low` to `high`."""
    return _bounds("integer", "minimum", low, "maximum", high, more)


def number(low: float | None = None, high: float | None = None, **more: Any) -> Schema:
    """A number from `low` to `high`."""
    return _bounds("number", "minimum", low, "maximum", high, more)


def pattern(regex: str, **more: Any) -> Schema:
    """A string in which the pattern is found."""
    return {"type": "string", "pattern": regex, **more}


def form(name: str) -> Schema:
    """A string of a format."""
    return {"type": "string", "format": name}


def enum(*values: Any) -> Schema:
    """One of some values."""
    return {"enum": list(values)}


def words(*values: str) -> Schema:
    """One of some strings, with the type given too, as most schemas do."""
    return {"type": "string", "enum": list(values)}


def array(items: Any, low: int | None = None, high: int | None = None, **more: Any) -> Schema:
    """An array of `low` to `high` items."""
    return {**_bounds("array", "minItems", low, "maxItems", high, {}), "items": items, **more}


def ref(name: str) -> Schema:
    """A definition of the same schema."""
    return {"$ref": f"#/$defs/{name}"}


def obj(
    properties: Schema, *, optional: Iterable[str] = (), closed: bool = True, **more: Any
) -> Schema:
    """An object whose properties are required but for the optional ones."""
    omitted = set(optional)
    assert omitted <= set(properties), omitted - set(properties)
    schema: Schema = {"type": "object", "properties": properties}
    required = [name for name in properties if name not in omitted]
    if required:
        schema["required"] = required
    if closed:
        schema["additionalProperties"] = False
    return {**schema, **more}


def defs(definitions: Schema) -> Schema:
    """The definitions of a schema, as a keyword of `obj`."""
    return {"$defs": definitions}


def _bounds(kind: str, low_name: str, low: Any, high_name: str, high: Any, more: Schema) -> Schema:
    schema: Schema = {"type": kind}
    if low is not None:
        schema[low_name] = low
    if high is not None:
        schema[high_name] = high
    return {**schema, **more}
