"""Random documents that refer to each other, statically and dynamically, against jsonschema-rs."""

import json
import random
from typing import Any

import jsonschema_rs
import pytest
from cases import byte_vocabulary

import ffwd

DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
BASE = "http://example.com/"

LEAVES: list[Any] = [
    True,
    {"type": "integer"},
    {"type": "string"},
    {"type": "null"},
    {"minimum": 2},
    {"maxLength": 1},
    {"type": ["object", "array"]},
    {"maxItems": 1},
    {"required": ["a"]},
]


class Documents:
    """Resources that refer to each other: some embedded in the first one, some beside it."""

    def __init__(self, seed: int, draft: str) -> None:
        self.random = random.Random(seed)
        self.draft = draft
        self.definitions = "definitions" if draft == DRAFT_7 else "$defs"
        self.names = [f"r{index}" for index in range(self.random.randint(2, 4))]
        documents = [self.resource(name) for name in self.names]
        self.root = documents[0]
        self.root["$schema"] = draft
        self.others: dict[str, Any] = {}
        for name, document in zip(self.names[1:], documents[1:], strict=True):
            if self.random.random() < 0.5:
                self.root[self.definitions][name] = document
            else:
                self.others[BASE + name] = {"$schema": draft, **document}

    def reference(self) -> Any:
        source = self.random
        target = source.choice(self.names)
        kind = source.random()
        if kind < 0.45 and self.draft == DRAFT_2020:
            # An anchor by a plain `$ref` is left out: validators take it for a dynamic one.
            return {"$dynamicRef": source.choice(["#x", "#y", f"{target}#x", f"{target}#y"])}
        if kind < 0.45 and self.draft == DRAFT_2019:
            return {"$recursiveRef": "#"}
        if kind < 0.75:
            return {"$ref": target}
        if kind < 0.9:
            return {"$ref": source.choice(["", target]) + f"#/{self.definitions}/leaf"}
        return source.choice(LEAVES)

    def schema(self) -> dict[str, Any]:
        source = self.random
        schema: dict[str, Any] = {}
        if source.random() < 0.5:
            names = source.sample("ab", source.randint(1, 2))
            schema["properties"] = {name: self.reference() for name in names}
        if source.random() < 0.4:
            schema["items"] = self.reference()
        if source.random() < 0.2:
            schema["additionalProperties"] = self.reference()
        leaf = source.choice(LEAVES)
        return {**schema, **leaf} if isinstance(leaf, dict) and source.random() < 0.3 else schema

    def resource(self, name: str) -> dict[str, Any]:
        source = self.random
        schema = {"$id": BASE + name, **self.schema()}
        definitions: dict[str, Any] = {"leaf": source.choice(LEAVES)}
        later = [other for other in self.names if other > name]
        if later and self.draft != DRAFT_7 and source.random() < 0.35:
            schema["$ref"] = source.choice(later)
        if source.random() < 0.15:
            schema["anyOf"] = [
                {"items": self.reference()},
                {"properties": {"a": self.reference()}},
            ]
        if self.draft == DRAFT_2020:
            own_anchor = source.random() < 0.5
            for anchor in "xy":
                place = schema if own_anchor and anchor == "x" else self.schema()
                place["$dynamicAnchor" if source.random() < 0.7 else "$anchor"] = anchor
                if place is not schema:
                    definitions[anchor] = place
        elif self.draft == DRAFT_2019 and source.random() < 0.7:
            schema["$recursiveAnchor"] = True
        schema[self.definitions] = definitions
        return schema

    def value(self, depth: int = 0) -> Any:
        source = self.random
        kind = source.random()
        if depth > 2 or kind < 0.45:
            return source.choice([1, 2, 3, "x", "yy", None])
        if kind < 0.75:
            return {name: self.value(depth + 1) for name in "abc" if source.random() < 0.5}
        return [self.value(depth + 1) for _ in range(source.randint(0, 2))]


@pytest.mark.parametrize("draft", [DRAFT_7, DRAFT_2019, DRAFT_2020])
def test_references_mean_what_they_mean_elsewhere(draft: str) -> None:
    for seed in range(150):
        documents = Documents(seed, draft)
        known = [*documents.others.items(), (documents.root["$id"], documents.root)]
        validator = jsonschema_rs.validator_for(
            documents.root, registry=jsonschema_rs.Registry(known)
        )
        grammar = ffwd.json_schema(
            documents.root,
            registry=documents.others,
            whitespace="compact",
            property_order="any",
        )
        try:
            compiled = ffwd.compile(grammar, byte_vocabulary())
        except ffwd.UnsatisfiableSchemaError:
            compiled = None
        for _ in range(10):
            value = documents.value()
            text = json.dumps(value, separators=(",", ":")).encode()
            accepted = False
            if compiled is not None:
                matcher = compiled.matcher()
                accepted = matcher.accept_tokens(list(text)) and matcher.is_accepting()
            assert accepted == validator.is_valid(value), (seed, value, documents.root)
