"""References to other documents, to metaschemas, and dynamic ones."""

import json
from typing import Any

import pytest
from cases import byte_vocabulary

import ffwd

OTHER = "http://example.com/other.json"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_4 = "http://json-schema.org/draft-04/schema#"


def accepts(schema: Any, text: str, registry: dict[str, Any] | None = None) -> bool:
    grammar = ffwd.json_schema(schema, whitespace="compact", numbers="any", registry=registry)
    matcher = ffwd.compile(grammar, byte_vocabulary()).matcher()
    return matcher.accept_tokens(list(text.encode())) and matcher.is_accepting()


REGISTERED: dict[str, tuple[Any, dict[str, Any], list[str], list[str]]] = {
    "the document": (
        {"$ref": OTHER},
        {OTHER: {"type": "integer"}},
        ["1"],
        ['"a"'],
    ),
    "a pointer into it": (
        {"items": {"$ref": f"{OTHER}#/$defs/a~1b"}},
        {OTHER: {"$defs": {"a/b": {"type": "null"}}}},
        ["[null,null]"],
        ["[1]"],
    ),
    "an anchor": (
        {"$ref": f"{OTHER}#here"},
        {OTHER: '{"$defs": {"x": {"$anchor": "here", "type": "null"}}}'},
        ["null"],
        ["1"],
    ),
    "relative to the schema's own identifier": (
        {"$id": "http://example.com/schema.json", "$ref": "other.json"},
        {OTHER: {"type": "null"}},
        ["null"],
        ["1"],
    ),
    "relative to the other document's identifier": (
        {"$ref": OTHER},
        {
            OTHER: {"$id": "http://example.org/a/b.json", "$ref": "c.json"},
            "http://example.org/a/c.json": {"type": "null"},
        },
        ["null"],
        ["1"],
    ),
    "by an identifier inside another document": (
        {"$ref": "http://example.org/inner"},
        {OTHER: {"$defs": {"x": {"$id": "http://example.org/inner", "type": "null"}}}},
        ["null"],
        ["1"],
    ),
    "documents that refer to each other": (
        {"$ref": OTHER},
        {
            OTHER: {
                "type": "object",
                "properties": {"a": {"$ref": "more.json"}},
                "additionalProperties": False,
            },
            "http://example.com/more.json": {"anyOf": [{"type": "null"}, {"$ref": "other.json"}]},
        },
        ['{"a":{"a":null}}', "{}"],
        ['{"a":{"b":null}}', "null"],
    ),
    "a document of another draft": (
        {"$schema": DRAFT_2020, "$ref": OTHER},
        {OTHER: {"$schema": DRAFT_7, "items": [{"type": "null"}], "additionalItems": False}},
        ["[null]", "[]"],
        ["[1]", "[null,null]"],
    ),
    "integers of another draft": (
        {"$schema": DRAFT_2020, "prefixItems": [{"type": "integer"}, {"$ref": OTHER}]},
        {OTHER: {"$schema": DRAFT_4, "type": "integer"}},
        ["[1.0,1]"],
        ["[1,1.0]"],
    ),
    "a document that does not name its draft": (
        {"$schema": DRAFT_4, "allOf": [{"$ref": OTHER}]},
        {OTHER: {"maximum": 3, "exclusiveMaximum": True}},
        ["2.5"],
        ["3"],
    ),
    "a draft that the place cannot name": (
        # The draft around it knows no `id`, so this is no resource of its own.
        {
            "$ref": "#/definitions/a/definitions/b",
            "definitions": {
                "a": {
                    "id": "a",
                    "$schema": DRAFT_4,
                    "definitions": {"b": {"$ref": "#/definitions/c", "exclusiveMaximum": 3}},
                },
                "c": {"maximum": 4},
            },
        },
        {},
        ["2"],
        ["3"],
    ),
    "a metaschema without validation": (
        {"$schema": OTHER, "properties": {"a": False, "b": {"minimum": 3}}},
        {
            OTHER: {
                "$schema": DRAFT_2020,
                "$id": OTHER,
                "$vocabulary": {
                    "https://json-schema.org/draft/2020-12/vocab/applicator": True,
                    "https://json-schema.org/draft/2020-12/vocab/core": True,
                    "http://example.com/unknown": False,
                },
            }
        },
        ['{"b":1}'],
        ['{"a":1}'],
    ),
}


@pytest.mark.parametrize("name", REGISTERED)
def test_registry(name: str) -> None:
    schema, registry, valid, invalid = REGISTERED[name]
    for text in valid:
        assert accepts(schema, text, registry), text
    for text in invalid:
        assert not accepts(schema, text, registry), text


FAULTS: dict[str, tuple[dict[str, Any], type[ffwd.SchemaError], str]] = {
    "not JSON": ({OTHER: "{"}, ffwd.InvalidSchemaError, f"{OTHER}#"),
    "not a schema": (
        {OTHER: {"items": {"type": "x"}}},
        ffwd.InvalidSchemaError,
        f"{OTHER}#/items/type",
    ),
    "a reference to nothing": (
        {OTHER: {"$ref": "#/$defs/a"}},
        ffwd.InvalidSchemaError,
        f"{OTHER}#/$ref",
    ),
    "a document that is not there": (
        {OTHER: {"$ref": "nowhere.json"}},
        ffwd.UnsupportedSchemaError,
        f"{OTHER}#/$ref",
    ),
    "no registry": ({}, ffwd.UnsupportedSchemaError, "/$ref"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_name_the_document(name: str) -> None:
    registry, kind, pointer = FAULTS[name]
    with pytest.raises(kind) as caught:
        accepts({"$ref": OTHER}, "1", registry)
    assert caught.value.pointer == pointer
    if kind is ffwd.UnsupportedSchemaError:
        assert "registry" in str(caught.value)


def test_documents_that_nothing_refers_to_are_not_read() -> None:
    assert accepts({"type": "null"}, "null", {OTHER: "{"})


def test_required_vocabularies_that_nobody_knows_are_refused() -> None:
    metaschema = {"$schema": DRAFT_2020, "$vocabulary": {"http://example.com/unknown": True}}
    with pytest.raises(ffwd.UnsupportedSchemaError) as caught:
        accepts({"$schema": OTHER}, "1", {OTHER: metaschema})
    assert (caught.value.keyword, caught.value.pointer) == ("$schema", "/$schema")
    assert "http://example.com/unknown" in str(caught.value)


def tree(draft: str) -> dict[str, Any]:
    """A tree whose nodes are those of the schema that extends it."""
    recursive = {"$recursiveAnchor": True} if draft == DRAFT_2019 else {"$dynamicAnchor": "node"}
    node = {"$recursiveRef": "#"} if draft == DRAFT_2019 else {"$dynamicRef": "#node"}
    return {
        "$schema": draft,
        "$id": "http://example.com/strict",
        **recursive,
        "$ref": "tree",
        "unevaluatedProperties": False,
        "$defs": {
            "tree": {
                "$id": "tree",
                **recursive,
                "type": "object",
                "properties": {"data": True, "children": {"type": "array", "items": node}},
            }
        },
    }


@pytest.mark.parametrize("draft", [DRAFT_2019, DRAFT_2020])
def test_dynamic_references_mean_the_outermost_schema(draft: str) -> None:
    schema = tree(draft)
    assert accepts(schema, '{"children":[{"data":1},{"children":[]}]}')
    assert not accepts(schema, '{"children":[{"daat":1}]}')
    # The tree itself does not mind.
    alone = {"$schema": draft, "$ref": "tree", "$defs": schema["$defs"]}
    assert accepts(alone, '{"children":[{"daat":1}]}')


def test_one_schema_in_two_dynamic_scopes() -> None:
    def items(name: str, kind: str) -> dict[str, Any]:
        return {
            "$id": name,
            "$ref": "list",
            "$defs": {"item": {"$dynamicAnchor": "item", "type": kind}},
        }

    schema = {
        "$schema": DRAFT_2020,
        "$id": "http://example.com/root",
        "properties": {"numbers": {"$ref": "numbers"}, "texts": {"$ref": "texts"}},
        "$defs": {
            "a": items("numbers", "number"),
            "b": items("texts", "string"),
            "c": {
                "$id": "list",
                "items": {"$dynamicRef": "#item"},
                "$defs": {"any": {"$dynamicAnchor": "item"}},
            },
        },
    }
    assert accepts(schema, '{"numbers":[1,2],"texts":["a"]}')
    assert not accepts(schema, '{"numbers":["a"]}')
    assert not accepts(schema, '{"texts":[1]}')


def test_long_chains_of_documents() -> None:
    documents: dict[str, Any] = {
        f"http://example.com/{i}": {"$ref": str(i + 1)} for i in range(300)
    }
    documents["http://example.com/300"] = {"type": "null"}
    assert accepts({"$ref": "http://example.com/0"}, "null", documents)


def test_registries_are_text_in_the_grammar() -> None:
    grammar = ffwd.json_schema({"$ref": OTHER}, registry={OTHER: {"type": "null"}})
    assert grammar.registry == ((OTHER, json.dumps({"type": "null"})),)
    assert hash(grammar) == hash(grammar)
