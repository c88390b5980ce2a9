"""Definitions that ask for each other in place, against jsonschema-rs."""

import json
import random
from typing import Any

import jsonschema_rs
import pytest
from cases import byte_vocabulary

import ffwd

DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"

SAID: list[dict[str, Any]] = [
    {"type": ["integer", "string", "object"]},
    {"type": ["integer", "array", "object"]},
    {"minimum": 2},
    {"maximum": 4},
    {"maxLength": 1},
    {"maxItems": 1},
    {"required": ["a"]},
    {"multipleOf": 2},
]


def definitions(source: random.Random, *, siblings: bool) -> dict[str, Any]:
    """Definitions each of which asks for some of the others, mostly around in a circle."""
    names = [f"d{index}" for index in range(source.randint(1, 5))]
    refs = [{"$ref": f"#/definitions/{name}"} for name in names]
    found = {}
    for at, name in enumerate(names):
        following = refs[(at + 1) % len(names)] if source.random() < 0.8 else source.choice(SAID)
        said = dict(source.choice(SAID))
        kind = source.random()
        if kind < 0.4 or (kind < 0.7 and not siblings):
            schema = {"allOf": [following, source.choice([*SAID, *refs])], **said}
        elif kind < 0.7:
            schema = {**following, **said}
        elif kind < 0.85:
            schema = dict(following)
        else:
            schema = {"anyOf": [following], **said}
        if source.random() < 0.3 and "$ref" not in schema:
            schema["properties"] = {"a": source.choice(refs)}
        if source.random() < 0.2 and "$ref" not in schema:
            schema["items"] = source.choice(refs)
        found[name] = schema
    return found


def value(source: random.Random, depth: int = 0) -> Any:
    kind = source.random()
    if depth > 2 or kind < 0.5:
        return source.choice([1, 2, 3, 4, 6, "x", "yy", None, 2.5])
    if kind < 0.8:
        return {name: value(source, depth + 1) for name in "ab" if source.random() < 0.7}
    return [value(source, depth + 1) for _ in range(source.randint(0, 2))]


@pytest.mark.parametrize("draft", [DRAFT_7, DRAFT_2020])
def test_circles_mean_what_they_mean_elsewhere(draft: str) -> None:
    """A schema that meets itself on the same value adds nothing to what it says."""
    judged = {True: 0, False: 0}
    for seed in range(200):
        source = random.Random(seed)
        known = definitions(source, siblings=draft == DRAFT_2020)
        schema = {"$schema": draft, "definitions": known, "allOf": [{"$ref": "#/definitions/d0"}]}
        validator = jsonschema_rs.validator_for(schema)
        grammar = ffwd.json_schema(schema, whitespace="compact", property_order="any")
        try:
            compiled = ffwd.compile(grammar, byte_vocabulary())
        except ffwd.UnsatisfiableSchemaError:
            compiled = None
        for _ in range(12):
            instance = value(source)
            text = json.dumps(instance, separators=(",", ":")).encode()
            accepted = False
            if compiled is not None:
                matcher = compiled.matcher()
                accepted = matcher.accept_tokens(list(text)) and matcher.is_accepting()
            assert accepted == validator.is_valid(instance), (seed, instance, schema)
            judged[accepted] += 1
    assert min(judged.values()) > 200, judged


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_circles_without_a_meaning_are_refused(keyword: str) -> None:
    schema = {
        "$ref": "#/$defs/a",
        "$defs": {"a": {keyword: [{"$ref": "#/$defs/a"}, {"type": "null"}]}},
    }
    with pytest.raises(ffwd.InvalidSchemaError, match="refers to itself") as caught:
        ffwd.compile(ffwd.json_schema(schema), byte_vocabulary())
    assert caught.value.pointer == "/$defs/a"
