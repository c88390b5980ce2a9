"""Python types as schemas, and values of them from what a grammar lets through.

What a type allows is decided by pydantic, and what a schema allows by jsonschema-rs.
"""

import dataclasses
import functools
import inspect
import json
import pickle
import random
import subprocess
import sys
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

import jsonschema_rs
import pydantic
import pytest
from openai.lib._pydantic import to_strict_json_schema
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from typecases import CASES, Cat, Colour, Dog, Movie, Node, Owner, Range, weather

import ffwd

VOCABULARY = ffwd.Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=[256])


def accepts(grammar: ffwd.Grammar, text: str) -> bool:
    matcher = ffwd.compile(grammar, VOCABULARY).matcher()
    return matcher.accept_tokens(list(text.encode())) and matcher.is_accepting()


def adapter_of(type: Any) -> TypeAdapter[Any]:
    return type if isinstance(type, TypeAdapter) else TypeAdapter(type)


@pytest.mark.parametrize("name", CASES)
def test_values_there_and_back(name: str) -> None:
    """What pydantic writes of a value is let through, and becomes that value again."""
    type, values, _ = CASES[name]
    schema = ffwd.schema_of(type, whitespace="compact")
    for value in values:
        text = adapter_of(type).dump_json(value, by_alias=True, exclude_unset=True).decode()
        assert accepts(schema, text), text
        assert schema.parse(text) == value
        assert schema.parse(text.encode()) == value


@pytest.mark.parametrize("name", CASES)
def test_what_is_no_value_is_not_let_through(name: str) -> None:
    type, _, wrong = CASES[name]
    schema = ffwd.schema_of(type, whitespace="compact")
    assert [text for text in wrong if accepts(schema, text)] == []


def plain(number: str) -> int | float:
    """Integers as JSON Schema has them."""
    exact = Decimal(number)
    return int(exact) if exact == int(exact) else float(number)


def written(schema: ffwd.TypedSchema[Any], rng: random.Random) -> str:
    """A text of at most 300 bytes that the grammar lets through, at random."""
    matcher = ffwd.compile(schema, VOCABULARY).matcher(max_tokens=300)
    while not matcher.is_terminated():
        allowed = matcher.allowed_token_ids()
        # No exponents: Python's floats have no 1e999, and pydantic's integers none of that size.
        letters = [t for t in allowed if (32 <= t < 127 and t not in b"eE") or t == 256]
        assert matcher.accept_token(rng.choice(letters or allowed))
    return bytes(matcher.tokens[:-1]).decode()


@pytest.mark.parametrize("name", CASES)
def test_what_is_let_through_is_a_value(name: str) -> None:
    """It is valid against pydantic's own schema, and parsed by pydantic itself."""
    type, _, _ = CASES[name]
    schema = ffwd.schema_of(type, whitespace="compact")
    own = jsonschema_rs.validator_for(adapter_of(type).json_schema(), validate_formats=False)
    rng = random.Random(name)
    refused = []
    for _ in range(15):
        text = written(schema, rng)
        own.validate(json.loads(text))
        try:
            parsed = schema.parse(text)
        except ffwd.ParseError as error:
            # No schema knows which dates Python has, or how long a `timedelta` may be.
            refused.append(error.text)
            continue
        exact = json.dumps(json.loads(text, parse_float=plain))
        assert parsed == adapter_of(type).validate_json(exact)
    assert not refused or name in ("times", "model")


def test_json_schema_takes_types() -> None:
    typed = ffwd.json_schema(Owner, whitespace="compact", property_order="any")
    assert typed == ffwd.schema_of(Owner, whitespace="compact", property_order="any")
    assert isinstance(typed, ffwd.JsonSchema)
    assert json.loads(typed.schema)["title"] == "Owner"
    assert ffwd.json_schema(list[int]).parse("[1]") == [1]
    assert ffwd.json_schema(weather).parse('{"city":"Bern","units":"C"}').args == ("Bern", 1)
    # Values of Python that are schemas stay schemas.
    assert type(ffwd.json_schema(True)) is ffwd.JsonSchema
    assert type(ffwd.json_schema('{"type": "string"}')) is ffwd.JsonSchema
    for neither in (None, 5, [int], object()):
        with pytest.raises(TypeError, match="or a type"):
            ffwd.json_schema(neither)


def test_a_type_is_a_grammar_among_others() -> None:
    """It may be part of others, is equal by value, and can be sent to another process."""
    colour = ffwd.schema_of(Colour)
    grammar = ffwd.seq("colour: ", ffwd.capture("it", colour), ".")
    assert accepts(grammar, 'colour: "red".')
    assert not accepts(grammar, "colour: 3.")
    assert colour == ffwd.schema_of(Colour)
    assert colour != ffwd.schema_of(Colour, whitespace="compact")
    assert colour != ffwd.json_schema(json.loads(colour.schema))
    assert hash(colour) == hash(ffwd.schema_of(Colour))
    assert repr(colour) == "schema_of(<enum 'Colour'>)"
    there = pickle.loads(pickle.dumps(colour))
    assert there == colour
    assert there.parse("2") is Colour.BLUE
    # Types that cannot be hashed can be told apart all the same.
    odd = Annotated[int, Field(json_schema_extra={"x": [1]}), ["a list"]]
    assert ffwd.schema_of(odd) == ffwd.schema_of(odd)
    assert [one.fidelity for one in ffwd.fidelity_report(ffwd.schema_of(Cat))].count("refused") == 0


def test_functions() -> None:
    schema = ffwd.schema_of(weather, whitespace="compact")
    described = json.loads(schema.schema)
    assert described["properties"]["days"]["description"] == "For how long."
    assert described["required"] == ["city", "units"]
    assert described["additionalProperties"] is False
    bound = schema.parse('{"city":"Bern","days":2,"units":"F"}')
    assert isinstance(bound, inspect.BoundArguments)
    assert weather(*bound.args, **bound.kwargs) == "Bern 2 F"
    assert not accepts(schema, '{"city":"Bern","days":0,"units":"F"}')

    def gaps(a: int = 1, b: int = 2, /, json: str = "x", _c: bool = False) -> tuple[Any, ...]:
        return (a, b, json, _c)

    bound = ffwd.schema_of(gaps).parse('{"b":5,"json":"y","_c":true}')
    assert gaps(*bound.args, **bound.kwargs) == (1, 5, "y", True)
    bound = ffwd.schema_of(functools.partial(weather, "Bern")).parse('{"days":3,"units":"C"}')
    assert bound.arguments == {"days": 3, "units": "C"}

    class Tool:
        def run(self, text: str) -> str:
            return text

    assert ffwd.schema_of(Tool().run).parse('{"text":"x"}').arguments == {"text": "x"}


def test_require_all_is_what_openai_asks_of_a_model() -> None:
    """As OpenAI's client makes it of the same model."""

    def shape(schema: Any) -> Any:
        """What of a schema is compared: which properties objects have, and have to have."""
        if isinstance(schema, dict):
            found = {
                key: shape(schema[key]) for key in schema if key not in ("required", "default")
            }
            if "properties" in schema:
                found["required"] = sorted(schema["required"])
            return found
        return [shape(one) for one in schema] if isinstance(schema, list) else schema

    class Rating(BaseModel):
        stars: int = 3
        why: str | None = None

    class Answer(BaseModel):
        movie: str = "M"
        ratings: list[Rating] | None = None

    ours = json.loads(ffwd.schema_of(Answer, require_all=True).schema)
    assert shape(ours) == shape(to_strict_json_schema(Answer))
    ffwd.openai.check_strict(ours)
    grammar = ffwd.openai.response_format(Answer, whitespace="compact")
    assert accepts(grammar, '{"movie":"M","ratings":[{"stars":1,"why":null}]}')
    assert not accepts(grammar, '{"movie":"M"}')
    assert not accepts(grammar, '{"movie":"M","ratings":[{"stars":1}]}')


class Opaque:
    """Nothing that JSON has."""


@dataclasses.dataclass
class Button:
    label: str
    clicks: list[dict[str, tuple[int, Callable[[], int]]]]


class Lenient(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    ok: int
    deep: list[Opaque | None]


def no_hint(a: int, b) -> None: ...
def anything(*args: int) -> None: ...
def options(**options: int) -> None: ...


@pytest.mark.parametrize(
    ("type", "place"),
    [
        (Opaque, "Opaque"),
        (Button, "Button.clicks[][value][1]"),
        (list[dict[str, Button]], "list[dict[str, test_schema_of.Button]][][value].clicks[]"),
        (Lenient, "Lenient.deep[]"),
        (Callable[[int], int], "collections.abc.Callable"),
        (range, "range"),
        (object(), "<object object"),
        (no_hint, "no_hint.b"),
        (anything, "anything.args"),
        (options, "options.options"),
        (5, "5"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_schema_names_its_place(type: Any, place: str) -> None:
    with pytest.raises(ffwd.UnsupportedTypeError) as caught:
        ffwd.schema_of(type)
    assert caught.value.place.startswith(place)
    assert caught.value.place in str(caught.value)


def test_a_type_without_end() -> None:
    """A generic dataclass that contains itself with other arguments."""
    namespace: dict[str, Any] = {}
    if sys.version_info < (3, 12):
        with pytest.raises(TypeError, match="a text is no type"):
            ffwd.schema_of("list[int]")
        return
    exec("type Endless[T] = dict[str, T | Endless[list[T]]]", namespace)
    with pytest.raises(ffwd.UnsupportedTypeError):
        ffwd.schema_of(namespace["Endless"][int])


def test_texts_that_are_no_values() -> None:
    schema = ffwd.schema_of(Range)
    assert accepts(schema, '{"low": 2, "high": 1}')
    with pytest.raises(ffwd.ParseError, match="low is above high") as caught:
        schema.parse('{"low": 2, "high": 1}')
    assert caught.value.text == '{"low": 2, "high": 1}'
    assert isinstance(caught.value.__cause__, pydantic.ValidationError)
    with pytest.raises(ffwd.ParseError, match="generate again") as caught:
        ffwd.schema_of(Movie).parse('{"title": "M", "year": "x"}')
    assert [place for place, _ in caught.value.problems] == ["year"]
    with pytest.raises(ffwd.ParseError, match="before or after") as caught:
        schema.parse('Sure! {"low": 1, "high": 2}')
    assert not isinstance(caught.value, ffwd.TruncatedError)
    whole = '{"name": "a", "children": [{"name": "b\\u00e4"}]}'
    nodes = ffwd.schema_of(Node)
    for end in range(len(whole)):
        with pytest.raises(ffwd.TruncatedError, match="max_new_tokens") as cut:
            nodes.parse(whole[:end])
        assert cut.value.text == whole[:end]


def test_options_are_checked_as_everywhere() -> None:
    with pytest.raises(ValueError, match="whitespace"):
        ffwd.schema_of(int, whitespace="none")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a text is no type"):
        ffwd.schema_of('{"type": "string"}')


def test_pydantic_is_imported_where_a_type_is_given() -> None:
    """And without it, the message says what to install."""
    program = (
        "import sys, ffwd\n"
        "assert 'pydantic' not in sys.modules and 'torch' not in sys.modules\n"
        "sys.modules['pydantic'] = None\n"
        "ffwd.json_schema({'type': 'string'})\n"
        "try: ffwd.schema_of(int)\n"
        "except ImportError as error: assert \"pip install 'ffwd[pydantic]'\" in str(error)\n"
        "else: raise SystemExit('no error')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# --------------------------------------------------------------------------------------- keywords


def test_typos_in_keywords() -> None:
    """They ask for nothing, as the standard has it, and are told with what was meant."""
    schema = {"propertys": {}, "properties": {"propertys": {"minlength": 1}, "a": {"x-b": 1}}}
    assert [
        (one.pointer, one.suggestion) for one in ffwd.unknown_keywords(ffwd.json_schema(schema))
    ] == [
        ("/propertys", "properties"),
        ("/properties/propertys/minlength", "minLength"),
    ]


def test_nothing_is_said_of_schemas_that_are_only_compiled() -> None:
    """A schema is data: nothing is said where it is read from others."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ffwd.compile(ffwd.json_schema({"type": "string", "maxlength": 1}), VOCABULARY)


def test_integers_however_they_are_spelt() -> None:
    """As JSON Schema has it, `7.0` is an integer, of any size, also to a strict model."""

    class Strict(BaseModel):
        model_config = ConfigDict(strict=True)
        a: int
        b: str

    schema = ffwd.schema_of(Strict, numbers="any")
    for text, a in {"7.0": 7, "12e2": 1200, "-0.0": 0, "9" * 30 + ".00": int("9" * 30)}.items():
        whole = f'{{"a": {text}, "b": "7.0 \\" 7.0"}}'
        assert accepts(schema, whole)
        assert schema.parse(whole) == Strict(a=a, b='7.0 " 7.0')
    for text in ("7.5", "1e-1", "1e99999999", "1e" + "9" * 30, '"7.0"'):
        with pytest.raises(ffwd.ParseError):
            schema.parse(f'{{"a": {text}, "b": ""}}')


def test_discriminated_unions_choose_by_their_tag() -> None:
    schema = ffwd.schema_of(Owner, whitespace="compact")
    parsed = schema.parse('{"firstName":"A","pets":[{"kind":"dog"},{"kind":"cat","lives":1}]}')
    assert [type(pet) for pet in parsed.pets] == [Dog, Cat]
