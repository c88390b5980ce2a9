"""`response_format`, and what strict schemas are."""

from typing import Any

import pytest
from accepting import accepts

import ffwd
from ffwd.openai import StrictSchemaError, check_strict, response_format

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("form", "allowed", "refused"),
    [
        (None, ["", "any\ntext {"], []),
        ({"type": "text"}, ["", "any\ntext {"], []),
        ({"type": "json_object"}, ["{}", '{"a": [1]}'], ["[]", "", "1", "{} "]),
        ({"type": "json_object", "schema": CITY}, ['{"city": "x"}'], ["{}"]),
        ({"type": "json_schema", "json_schema": {"name": "n", "schema": CITY, "strict": True}},
         ['{"city": "x"}'], ["{}", '{"city": "x", "a": 1}']),
        ({"type": "json_schema", "name": "n", "schema": CITY}, ['{"city": "x"}'], ["{}"]),
        ({"type": "json_schema", "json_schema": {"schema": {"type": "integer"}}}, ["1"], ["{}"]),
        ({"type": "json_schema", "json_schema": {"name": "n"}}, ["{}"], ["[]"]),
        ({"type": "json", "value": {"enum": [1, "a"]}}, ["1", '"a"'], ["2"]),
        ({"type": "regex", "value": "a+b"}, ["aab"], ["b", "aab "]),
        ({"type": "grammar", "syntax": "regex", "definition": "a|b"}, ["a", "b"], ["ab"]),
    ],
)  # fmt: skip
def test_what_each_type_allows(form: Any, allowed: list[str], refused: list[str]) -> None:
    grammar = response_format(form)
    assert [text for text in allowed if not accepts(grammar, text)] == []
    assert [text for text in refused if accepts(grammar, text)] == []


def test_grammars_by_syntax() -> None:
    """They are the same as those of the functions of that name."""
    text = 'root ::= "a"'
    assert response_format({"type": "grammar", "grammar": text}) == ffwd.span(
        "content", ffwd.gbnf(text)
    )
    for syntax, function in (("lark", ffwd.lark), ("gbnf", ffwd.gbnf), ("ebnf", ffwd.ebnf)):
        form = {"type": "grammar", "syntax": syntax, "definition": text}
        expected = ffwd.span("content", function(text))
        assert response_format(form) == expected
        assert response_format({"type": "grammar", "grammar": form}) == expected


def test_structural_tags() -> None:
    tag = {"type": "structural_tag", "format": {"type": "const_string", "value": "x"}}
    assert response_format(tag) == ffwd.span("content", ffwd.structural_tag(tag))


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({}, "the type None"),
        ({"type": "yaml"}, "'yaml', not one of text, json_object"),
        ({"type": 3}, "the type 3"),
        ({"type": "json_schema", "json_schema": 3}, "must be an object"),
        ({"type": "json_schema", "json_schema": {"strict": 1}}, "must be a bool"),
        ({"type": "json"}, "lacks `value`"),
        ({"type": "regex"}, "lacks the text `value`"),
        ({"type": "grammar", "syntax": "yacc"}, "must be one of lark"),
        ({"type": "grammar", "grammar": 3}, "a str or an object"),
    ],
)
def test_what_is_no_format(form: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        response_format(form)


def test_a_format_is_an_object() -> None:
    with pytest.raises(TypeError):
        response_format("json_object")


@pytest.mark.parametrize(
    ("schema", "pointer", "message"),
    [
        (3, "", "must be an object"),
        ({"type": "array"}, "", '"type": "object"'),
        ({"type": "object", "anyOf": []}, "/anyOf", "must not be anyOf"),
        ({"type": "object"}, "", "additionalProperties: false"),
        ({**CITY, "required": []}, "", "missing: 'city'"),
        ({**CITY, "allOf": []}, "/allOf", "'allOf'"),
        ({**CITY, "properties": {"city": {"type": "object"}}}, "/properties/city", "additional"),
        ({**CITY, "properties": {"city": {"items": {"oneOf": []}}}},
         "/properties/city/items/oneOf", "'oneOf'"),
        ({**CITY, "$defs": {"a/b": {"type": ["object", "null"]}}}, "/$defs/a~1b", "additional"),
    ],
)  # fmt: skip
def test_what_strict_refuses(schema: Any, pointer: str, message: str) -> None:
    """With the place, as a tool's schema and as an answer's."""
    with pytest.raises(StrictSchemaError, match=message) as caught:
        check_strict(schema)
    assert caught.value.pointer == pointer
    form = {"type": "json_schema", "json_schema": {"schema": schema, "strict": True}}
    with pytest.raises(StrictSchemaError):
        response_format(form)


def test_what_strict_takes() -> None:
    """References, nested objects and `anyOf` within."""
    inner = {"$ref": "#/$defs/city"}
    properties = {"a": {"anyOf": [inner, {"type": "null"}]}, "b": {"type": "array", "items": inner}}
    schema = {
        "type": "object",
        "$defs": {"city": CITY},
        "properties": properties,
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    check_strict(schema)


def test_strict_bounds_the_nesting() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(100_000):
        deep = {"items": deep}
    with pytest.raises(StrictSchemaError, match="nested more than 512 deep"):
        check_strict({**CITY, "properties": {"city": deep}})
