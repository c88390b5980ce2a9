"""Hard structures: many definitions, references and branches."""

from __future__ import annotations

from random import Random
from typing import Any

from maskbench.speed.draw import Draw
from maskbench.speed.growth.schemas import Schema, name_of
from maskbench.speed.hard.case import HardCase, describe


def all_of_references() -> HardCase:
    """Return a release tool's configuration: objects that extend others by `allOf`."""
    draw = Draw(Random(1))
    number = iter(range(10_000))
    definitions: Schema = {
        "Active": {"enum": ["ALWAYS", "NEVER", "RELEASE", "SNAPSHOT"]},
        "Extra": {"type": "object", "additionalProperties": {"type": "string"}},
    }

    def properties(count: int) -> Schema:
        kinds: tuple[Schema, ...] = (
            {"type": "string"},
            {"type": "boolean"},
            {"$ref": "#/definitions/Active"},
            {"$ref": "#/definitions/Extra"},
            {"type": "array", "items": {"type": "string"}},
            {"type": "integer"},
        )
        return {name_of(next(number)): draw.pick(kinds) for _ in range(count)}

    shared: Schema = {"active": {"$ref": "#/definitions/Active"}, "enabled": {"type": "boolean"}}
    for i in range(12):
        definitions[f"Base{i}"] = {"type": "object", "properties": shared | properties(8)}
    members: Schema = {}
    for i in range(58):
        definitions[f"Part{i}"] = {"type": "object", "properties": properties(27)}
        parts = [{"$ref": f"#/definitions/Base{i % 12}"}, {"$ref": f"#/definitions/Part{i}"}]
        members[f"part{i}"] = {"allOf": parts}
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": definitions,
        "type": "object",
        "properties": members,
    }
    document = {
        f"part{i}": {"active": "NEVER", "enabled": i % 2 == 0, "another": f"value {i}"}
        for i in range(0, 58, 9)
    }
    return HardCase(
        "allOf of references",
        "58 `allOf` of two references each, over 1,664 properties",
        schema,
        (document, {"part57": {"enabled": True}}),
        ("JsonSchemaStore---jreleaser-1.7.0",),
    )


def resources() -> HardCase:
    """Return resources of a cluster: hundreds of definitions with long descriptions."""
    draw = Draw(Random(2))
    definitions: Schema = {}
    for i in range(360):
        members: Schema = {
            "apiVersion": {"description": describe(draw, 40), "type": ["string", "null"]},
            "kind": {"description": describe(draw, 30), "type": ["string", "null"]},
        }
        for j in range(8):
            named = f"{name_of(37 * i + j)}Spec" if j % 3 == 0 else name_of(37 * i + j)
            to = 3 * i + j + 1
            kind: Schema = {"type": ["string", "null"]}
            if j % 3 == 0 and to < 360:
                kind = {"$ref": f"#/definitions/io.example.v1.Type{to}"}
            elif j % 3 == 1:
                kind = {"type": ["array", "null"], "items": {"type": ["string", "null"]}}
            members[named] = {"description": describe(draw, 18), **kind}
        definitions[f"io.example.v1.Type{i}"] = {
            "description": describe(draw, 25),
            "type": "object",
            "properties": members,
            "required": ["kind"],
        }
    schema = {"definitions": definitions, "$ref": "#/definitions/io.example.v1.Type0"}
    first, second = f"{name_of(0)}Spec", name_of(1)
    document = {
        "apiVersion": "v1",
        "kind": "Deployment",
        first: {"kind": "Spec", name_of(38): ["a", "b", None]},
        second: ["node-1", "node-2"],
    }
    return HardCase(
        "definitions of a cluster's resources",
        "900 kB: 360 definitions that refer to each other",
        schema,
        (document,),
        ("Kubernetes---kb_1161_Normalized",),
    )


def many_all_ofs() -> HardCase:
    """Return a linter's rules: each is the common object with properties of its own."""
    draw = Draw(Random(3))
    common: Schema = {
        "type": "object",
        "properties": {
            "active": {"type": "boolean"},
            "excludes": {"type": "array", "items": {"type": "string"}},
            "ignored": {"type": "array", "items": {"type": "string"}},
        },
    }
    groups: Schema = {}
    for group in range(14):
        rules: Schema = {}
        for rule in range(19):
            own = {
                name_of(1000 * group + 10 * rule + k): draw.pick(
                    ({"type": "integer"}, {"type": "string"}, {"type": "boolean"})
                )
                for k in range(3)
            }
            parts = [{"$ref": "#/$defs/common"}, {"type": "object", "properties": own}]
            rules[f"{name_of(19 * group + rule).capitalize()}Rule"] = {"allOf": parts}
        groups[f"group-{group}"] = {"type": "object", "properties": rules}
    schema = {"$defs": {"common": common}, "type": "object", "properties": groups}
    names = [f"{name_of(19 * 3 + rule).capitalize()}Rule" for rule in range(19)]
    document = {
        "group-3": {name: {"active": True, "excludes": ["**/test/**"]} for name in names[::3]},
        "group-9": {},
    }
    return HardCase(
        "allOf by the hundred",
        "266 `allOf` of a common object and three properties",
        schema,
        (document,),
        ("JsonSchemaStore---detekt-1.22.0",),
    )


def many_optional() -> HardCase:
    """Return a schema of schemas with 112 optional keywords."""
    kinds: tuple[Schema, ...] = (
        {"$ref": "#"},
        {"type": "array", "items": {"$ref": "#"}},
        {"type": "object", "additionalProperties": {"$ref": "#"}},
        {"type": "string"},
        {"type": "integer", "minimum": 0},
        {"anyOf": [{"$ref": "#"}, {"type": "array", "items": {"$ref": "#"}, "minItems": 1}]},
    )
    properties = {name_of(i): kinds[i % 6] for i in range(112)}
    document: Any = {name_of(3): "leaf", name_of(4): 7}
    for i in (0, 6, 60, 108):
        document = {name_of(i): document, name_of(i + 2): {"any name": {name_of(i + 3): "x"}}}
    return HardCase(
        "112 optional properties",
        "112 optional properties in one recursive object",
        {"type": "object", "properties": properties},
        (document,),
    )


def recursive_unions() -> HardCase:
    """Return a grammar of graphics: unions of unions, closed objects, all recursive."""
    draw = Draw(Random(5))
    count = 104
    definitions: Schema = {}
    scalars: tuple[Schema, ...] = (
        {"type": "string", "enum": ["left", "right", "center", "top", "bottom"]},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "string"},
    )
    for i in range(count):
        members: Schema = {}
        for j in range(14):
            kind = dict(draw.pick(scalars))
            if j % 5 == 0:
                kind = {"$ref": f"#/definitions/Union{(i * 7 + j) % count}"}
            members[name_of(11 * i + j)] = {"description": describe(draw, 9), **kind}
        definitions[f"Object{i}"] = {
            "type": "object",
            "properties": members,
            "additionalProperties": False,
        }
    for i in range(count):
        branches = [{"$ref": f"#/definitions/Object{(i + k) % count}"} for k in range(0, 9, 3)]
        definitions[f"Union{i}"] = {"anyOf": [*branches, scalars[i % 4], {"type": "null"}]}
    # Object i leads to object 7 i + 5, and so on.
    path = [0]
    for _ in range(5):
        path.append((path[-1] * 7 + 5) % count)
    document: Any = {}
    for i in reversed(path):
        # In declared order, which is that of the numbers.
        inner = {name_of(11 * i + 5): document} if i != path[-1] else {}
        before, after = (
            {name_of(11 * i + j): _scalar(definitions, i, j) for j in part}
            for part in ((1, 2), (7, 12))
        )
        document = before | inner | after
    return HardCase(
        "recursive unions",
        "200 kB: 104 `anyOf` of three closed objects, two scalars, all recursive",
        {"definitions": definitions, "$ref": "#/definitions/Union0"},
        (document,),
        ("Github_ultra---o21764", "Github_ultra---o48404", "Github_ultra---o50639"),
    )


def _scalar(definitions: Schema, number: int, member: int) -> Any:
    """Return a value of an object's member that is no union."""
    kind = definitions[f"Object{number}"]["properties"][name_of(11 * number + member)]
    if "enum" in kind:
        return kind["enum"][2]
    return {"number": 1.5, "boolean": True, "string": "a text"}[kind["type"]]


def one_of_forty() -> HardCase:
    """Return values that may be left empty: each is `oneOf` null and an object."""
    definitions: Schema = {}
    for i in range(41):
        following = [{"$ref": f"#/definitions/Config{k}"} for k in (2 * i + 1, 2 * i + 2) if k < 41]
        members: Schema = {f"{name_of(i)}{j}": {"type": "string"} for j in range(6)}
        members |= {
            f"next{number}": {"oneOf": [{"type": "null"}, reference]}
            for number, reference in enumerate(following)
        }
        definitions[f"Config{i}"] = {
            "type": "object",
            "properties": members,
            "required": [f"{name_of(i)}0"],
            "additionalProperties": False,
        }
    root: Schema = {"oneOf": [{"$ref": "#/definitions/Config0"}, {"type": "null"}]}
    document: Any = None
    for i in (15, 7, 3, 1, 0):
        document = {f"{name_of(i)}0": "a", f"{name_of(i)}4": "b"} | (
            {"next0": document} if document else {"next0": None}
        )
    return HardCase(
        "oneOf with null",
        "41 `oneOf` of null and a closed object that leads to two more",
        {"definitions": definitions, **root},
        (document,),
        ("JsonSchemaStore---cluster.yml",),
    )


def same_reference_twice() -> HardCase:
    """Return a reference under `allOf` and again under `anyOf`."""
    text_or_null = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    run: Schema = {
        "type": "object",
        "required": ["tool"],
        "properties": {
            "tool": {"type": "string", "enum": [f"{name_of(i)}-install" for i in range(31)]},
            "input": text_or_null,
            "options": text_or_null,
            "comments": text_or_null,
        },
        "additionalProperties": False,
    }
    reference = [{"$ref": "#/definitions/run"}]
    schema = {
        "definitions": {"run": run},
        "type": "object",
        "properties": {"run": {"type": "array", "items": {"allOf": reference, "anyOf": reference}}},
        "required": ["run"],
        "additionalProperties": False,
    }
    items = [
        {"tool": f"{name_of(i)}-install", "input": f"version {i}", "comments": None}
        for i in (3, 14, 30)
    ]
    return HardCase(
        "one reference twice",
        "2 kB: one `$ref` under `allOf` and under `anyOf`",
        schema,
        ({"run": items},),
        ("JsonSchemaStore---devinit.schema-6.0",),
    )


def optional_rules() -> HardCase:
    """Return a linter's rules: 97 names with a number, a word, or a list that starts with one."""
    severity: list[Schema] = [
        {"type": "integer", "minimum": 0, "maximum": 2},
        {"type": "string", "enum": ["off", "warn", "error"]},
    ]
    rule = {
        "oneOf": [
            *severity,
            {"type": "array", "items": [{"oneOf": severity}], "minItems": 1, "maxItems": 3},
        ]
    }
    properties = {
        f"{name_of(i)}-{name_of(i * 7)}": {"$ref": "#/definitions/rule"} for i in range(97)
    }
    names = list(properties)
    values: list[Any] = ["error", 1, ["warn", {"always": True}], "off", [2]]
    document = {names[i]: values[i % 5] for i in range(0, 97, 8)}
    return HardCase(
        "97 optional rules",
        "97 optional properties, each a `oneOf` of three",
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"rule": rule},
            "type": "object",
            "properties": {"rules": {"type": "object", "properties": properties}},
        },
        ({"rules": document}, {"rules": {"other": [1, 2]}}),
        ("JsonSchemaStore---eslintrc",),
    )


def excluded_keys() -> HardCase:
    """Return maps with any key except those of other kinds."""
    names = "|".join(name_of(i) for i in range(60))
    steps = {
        "type": "object",
        "patternProperties": {f"^(?!({names})$)[a-z][A-Za-z0-9_-]*$": {"type": "string"}},
        "additionalProperties": False,
        "minProperties": 1,
    }
    described = {
        "type": "object",
        "properties": {name_of(i): {"type": "integer"} for i in range(60)},
        "patternProperties": {"^x-": {}},
        "additionalProperties": {"type": "string"},
    }
    schema = {"type": "object", "properties": {"steps": steps, "fields": described}}
    document = {
        "steps": {"build_all": "make", "kalo": "echo", "test-2": "pytest"},
        "fields": {name_of(3): 7, name_of(59): 3, "x-more": {"a": [1]}, "anything": "else"},
    }
    return HardCase(
        "excluded keys",
        "keys of a pattern but for 60 names; 60 names beside any other key",
        schema,
        (document,),
    )


STRUCTURES = (
    all_of_references,
    resources,
    many_all_ofs,
    many_optional,
    recursive_unions,
    one_of_forty,
    same_reference_twice,
    optional_rules,
    excluded_keys,
)
