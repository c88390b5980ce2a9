"""Arguments that are not JSON: between tags, and as Python's keyword arguments."""

import random
from typing import Any

import compiled
import jsonschema
import pytest
from accepting import accepts, engine
from samples import sample
from toolrequests import NESTED, SCALARS, function

import ffwd
from ffwd.tools import RefusedToolsError
from ffwd.tools.integers import plain_integer


def call(parameters: Any, style: str, **more: Any) -> ffwd.Grammar:
    return ffwd.openai.tools([function("f", parameters, **more)], "required", format=style)


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def python(parameters: Any) -> ffwd.Grammar:
    return call(parameters, "llama3-pythonic")


ANY = obj(a={})


@pytest.mark.parametrize(
    ("schema", "allowed", "refused"),
    [
        (obj(a={"type": "boolean"}), ["a=True", "a=False"], ["a=true", "a=None", ""]),
        (obj(a={"type": ["null", "integer"]}), ["a=None", "a=-3"], ["a=3.0", "a=null"]),
        (obj(a={"type": "string"}), ['a="x\\n\\"é"'], ["a='x'", "a=x"]),
        (obj(a={"enum": [True, None, 3, "x"]}), ["a=True", "a=None", "a=3", 'a="x"'], ["a=4"]),
        (obj(a={"const": "x"}), ['a="x"'], ['a="y"']),
        (obj(a={"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "boolean"}}]}),
         ["a=None", "a=[]", "a=[True, False]"], ["a=[None]", "a=[True,False]"]),
        (obj(a={"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 2}),
         ["a=[True]", "a=[True, True]"], ["a=[]", "a=[True, True, True]"]),
        (obj(a={"type": "array", "prefixItems": [{"const": 1}, {"type": "null"}], "items": False}),
         ["a=[]", "a=[1]", "a=[1, None]"], ["a=[None]", "a=[1, None, 1]"]),
        (obj(a=obj(b={"type": "null"})), ['a={"b": None}'], ["a={}", 'a={"b":None}']),
        (obj(a={"type": "object", "additionalProperties": {"type": "boolean"}}),
         ["a={}", 'a={"x": True, "y": False}'], ['a={"x": 1}']),
        (ANY, ['a={"x": [None, 1, "y", {}]}', "a=True", "a=[]"], ["a=", "a=x"]),
        ({"type": "object", "properties": {"a": True, "b": {"const": 1}, "c": {"const": 2}}},
         ["", "a=None", "b=1", "a=1, c=2", "b=1, c=2", "a=1, b=1, c=2"], ["c=2, b=1", ", b=1"]),
        ({"type": "object", "properties": {"a": {"const": 0}, "b": {"const": 1}},
          "required": ["b"]}, ["b=1", "a=0, b=1"], ["", "a=0", "a=0, "]),
    ],
)  # fmt: skip
def test_python_arguments(schema: Any, allowed: list[str], refused: list[str]) -> None:
    grammar = python(schema)
    assert [text for text in allowed if not accepts(grammar, f"[f({text})]")] == []
    assert [text for text in refused if accepts(grammar, f"[f({text})]")] == []


def test_python_arguments_of_recursive_schemas() -> None:
    tree = {
        "type": "object",
        "properties": {"leaf": {"type": "boolean"}, "below": {"$ref": "#/$defs/trees"}},
        "required": ["leaf"],
        "additionalProperties": False,
    }
    trees = {"type": "array", "items": {"$ref": "#/$defs/tree"}}
    schema = {**obj(root={"$ref": "#/$defs/tree"}), "$defs": {"tree": tree, "trees": trees}}
    grammar = python(schema)
    text = 'root={"leaf": True, "below": [{"leaf": False}, {"leaf": True, "below": []}]}'
    assert accepts(grammar, f"[f({text})]")
    assert not accepts(grammar, f"[f({text.replace('False', 'None')})]")


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("schema", [SCALARS, NESTED])
def test_python_arguments_are_python(schema: Any, seed: int) -> None:
    """What Python reads is valid against the schema."""
    text = sample(python(schema), random.Random(seed))
    assert text.startswith("[f(")
    for arguments in eval(text, {"f": lambda **arguments: arguments}):
        jsonschema.validate(arguments, schema)


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        (obj(**{"class": {}}), "properties"),
        (obj(**{"a-b": {}}), "properties"),
        ({"type": "object"}, "additionalProperties"),
        (obj(a={"allOf": [{}]}), "allOf"),
        (obj(a={"type": "array", "uniqueItems": True, "items": {}}), "uniqueItems"),
        (obj(a={"type": "object", "minProperties": 1}), "minProperties"),
        (obj(a={"oneOf": [{"type": "integer"}, {"type": "number"}]}), "oneOf"),
        ({**obj(a={}), "anyOf": [{}]}, "anyOf"),
        (obj(a={"enum": [[1]]}), "enum"),
    ],
)
def test_what_python_arguments_cannot_follow(schema: Any, keyword: str) -> None:
    with pytest.raises(RefusedToolsError) as caught:
        python(schema)
    assert caught.value.refused[0].keyword == keyword


def tagged(**properties: Any) -> ffwd.Grammar:
    return call(obj(**properties), "qwen3-coder")


def argument(value: str) -> str:
    inner = f"<parameter=a>\n{value}\n</parameter>\n"
    return f"<tool_call>\n<function=f>\n{inner}</function>\n</tool_call>"


@pytest.mark.parametrize(
    ("schema", "allowed", "refused"),
    [
        ({"type": "string"}, ["", "x", "a\n<b>", 'say "hi"'], ["</parameter>", "null", "NULL"]),
        ({"type": "string", "maxLength": 2}, ["", "漢字"], ["abc"]),
        ({"type": "string", "minLength": 2}, ["ab", "abc"], ["a"]),
        ({"type": "string", "pattern": "^[a-c]+$"}, ["abc"], ["", "abd"]),
        ({"type": "string", "pattern": "b"}, ["abc", "b"], ["", "ac", "b</parameter>"]),
        ({"enum": ["x", "y"]}, ["x", "y"], ["z", '"x"']),
        ({"$ref": "#/properties/b"}, ["deep"], ["x", '"deep"']),
        ({"type": "integer", "minimum": -5, "maximum": 12}, ["-5", "0", "12"], ["13", "-6", "3.0"]),
        ({"type": ["string", "null"]}, ['"x"', "null"], ["x"]),
        ({"type": "array", "items": {"$ref": "#/properties/b"}}, ['["deep"]', "[]"], ["[1]"]),
        ({"type": "boolean"}, ["true"], ["True"]),
    ],
)
def test_tagged_arguments(schema: Any, allowed: list[str], refused: list[str]) -> None:
    """Strings as they are, the rest as JSON, with references into the whole schema."""
    parameters = {"type": "object", "properties": {"a": schema, "b": {"const": "deep"}},
                  "required": ["a"]}  # fmt: skip
    grammar = call(parameters, "qwen3-coder")
    assert [text for text in allowed if not accepts(grammar, argument(text))] == []
    assert [text for text in refused if accepts(grammar, argument(text))] == []


@pytest.mark.parametrize("style", ["qwen3-coder", "glm-4.5", "llama3-pythonic"])
@pytest.mark.parametrize(
    ("kind", "value"),
    [("Length", {"type": "string"}), ("Items", {"type": "array", "items": {"type": "null"}})],
)
def test_counts_that_nothing_reaches(style: str, kind: str, value: Any) -> None:
    """A largest number is none, and a whole number may be a float."""
    shortest = engine(call(obj(a=value), style)).matcher().shortest_completion()
    for more in ({f"max{kind}": 2**70}, {f"max{kind}": 1e92}, {f"min{kind}": 0.0}):
        bounded = engine(call(obj(a={**value, **more}), style))
        assert bounded.matcher().shortest_completion() == shortest, more


def test_a_least_number_that_nothing_reaches() -> None:
    with pytest.raises(RefusedToolsError, match=r"at most 4294967295 .*/properties/a/minItems"):
        python(obj(a={"type": "array", "items": {}, "minItems": 2**70}))


def test_formats_of_tagged_strings() -> None:
    """By the engine alone."""
    grammar = engine(tagged(a={"type": "string", "format": "date"}))
    assert compiled.accepts(grammar, argument("2024-02-29"))
    assert not compiled.accepts(grammar, argument("2024-02-30"))


def test_tagged_arguments_of_any_name() -> None:
    """Where none is declared; with `strict: false` as well."""
    for grammar in (
        call({"type": "object"}, "qwen3-coder"),
        call(SCALARS, "qwen3-coder", strict=False),
    ):
        assert accepts(grammar, argument("x"))
        assert accepts(grammar, argument("x").replace("=a>", "=other_name>"))


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        (obj(**{"a>": {}}), "properties"),
        (obj(a={"type": "string", "enum": ["</parameter>"]}), "enum"),
        (obj(a={"type": "string", "enum": ["Null"]}), "enum"),
        (obj(a={"type": "string", "not": {"const": "x"}}), "not"),
        ({**obj(a={}), "minProperties": 1}, "minProperties"),
        ({**obj(), "required": ["a"]}, "required"),
    ],
)
def test_what_tagged_arguments_cannot_follow(schema: Any, keyword: str) -> None:
    with pytest.raises(RefusedToolsError) as caught:
        call(schema, "qwen3-coder")
    assert caught.value.refused[0].keyword == keyword


def test_integers_as_digits() -> None:
    """Every bound, beside counting."""
    rng = random.Random(5)
    for _ in range(60):
        least, most = sorted(rng.randint(-1200, 1200) for _ in range(2))
        schema = {"type": "integer"}
        if rng.random() < 0.8:
            schema["minimum" if rng.random() < 0.5 else "exclusiveMinimum"] = least
        if rng.random() < 0.8:
            schema["maximum" if rng.random() < 0.5 else "exclusiveMaximum"] = most + 2
        grammar = plain_integer(schema)
        assert grammar is not None
        for number in [*range(-1300, 1300, 37), least - 1, least, least + 1, most, most + 2]:
            valid = jsonschema.Draft202012Validator(schema).is_valid(number)
            assert accepts(grammar, str(number)) == valid, (schema, number)
