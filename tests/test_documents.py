"""`ffwd.sample_documents` and `ffwd.boundary_documents`: every document is valid, and varied."""

import itertools
import json
import re
from collections import Counter
from pathlib import Path

import jsonschema_rs
import pytest

import ffwd
from ffwd._native import inject_fault

ROOT = Path(__file__).resolve().parent.parent
CORPUS = {
    row["id"]: row["schema"]
    for row in map(
        json.loads,
        (ROOT / "maskbench/corpus/builtin.jsonl").read_text(encoding="utf-8").splitlines(),
    )
}
# ECMA-262 has ASCII words, and the validator has those of Unicode.
OTHER_DIALECT = {"builtin_kw_pattern_word_boundary"}
VOCABULARY = ffwd.Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])


def check(schema, texts, grammar=None):
    """Both the matcher and another implementation accept every text."""
    compiled = ffwd.compile(grammar or ffwd.json_schema(schema), VOCABULARY)
    validator = jsonschema_rs.validator_for(schema, validate_formats=True)
    for text in texts:
        matcher = compiled.matcher()
        assert matcher.accept_tokens(list(text.encode())), text
        assert matcher.is_accepting(), text
        validator.validate(json.loads(text))
        assert "\n" not in text


# A quarter of them: all take minutes.
@pytest.mark.parametrize("name", sorted(CORPUS.keys() - OTHER_DIALECT)[::4])
def test_documents_of_the_corpus_are_valid(name):
    schema = CORPUS[name]
    grammar = ffwd.json_schema(schema)
    try:
        sampled = list(ffwd.sample_documents(grammar, 2, seed=1))
    except ffwd.UnsupportedSchemaError:
        with pytest.raises(ffwd.UnsupportedSchemaError):
            ffwd.boundary_documents(grammar)
        return
    assert len(sampled) == 2
    edges = list(ffwd.boundary_documents(grammar, 8))
    assert len(set(edges)) == len(edges) > 0
    check(schema, sampled + edges)


# ------------------------------------------------------------------------------------- at random


def sampled(schema, count):
    return [json.loads(text) for text in ffwd.sample_documents(ffwd.json_schema(schema), count)]


def test_a_seed_gives_the_same_documents_everywhere():
    grammar = ffwd.json_schema({"items": {"enum": ["new", 3, None]}, "type": "array"})
    five = list(ffwd.sample_documents(grammar, 5))
    # Fixed: another machine or version of Python has these, too.
    assert five == ['[3,"new","new",3]', '["new","new"]', "[3]", "[]", '["new",3,null]']
    assert list(ffwd.sample_documents(grammar, 3)) == five[:3]
    assert list(ffwd.sample_documents(grammar, 5, seed=1)) != five


def test_listed_values_are_equally_likely():
    # By bytes, "new" would be as likely as all the others together.
    values = ["new", "paid", "partly paid", "shipped", "shipping", 3, 30, None, True]
    found = Counter(map(str, sampled({"enum": values}, 900)))
    assert set(found) == set(map(str, values))
    assert all(60 < number < 150 for number in found.values())


def test_kinds_of_values_are_equally_likely():
    found = Counter(type(value) for value in sampled({"type": ["string", "number", "array"]}, 300))
    assert all(found[kind] > 60 for kind in (str, list))
    assert found[int] + found[float] > 60


def test_optional_properties_are_in_half_of_the_objects():
    names = [f"key{number}" for number in range(6)]
    schema = {
        "type": "object",
        "properties": {name: {"type": "null"} for name in names},
        "required": ["key4"],
        "additionalProperties": False,
    }
    found = Counter(name for value in sampled(schema, 400) for name in value)
    assert found["key4"] == 400
    assert all(140 < found[name] < 260 for name in names if name != "key4")


def test_properties_of_any_order_come_in_any_order():
    schema = {"properties": {"a": {"type": "null"}, "b": {"type": "null"}}, "required": ["a", "b"]}
    schema |= {"type": "object", "additionalProperties": False}
    grammar = ffwd.json_schema(schema, property_order="any")
    found = Counter(ffwd.sample_documents(grammar, 100))
    assert all(found[text] > 25 for text in ('{"a":null,"b":null}', '{"b":null,"a":null}'))


def test_branches_are_equally_likely():
    branches = [
        {
            "type": "object",
            "properties": {f"k{number}": {"type": "null"}},
            "required": [f"k{number}"],
            "additionalProperties": False,
        }
        for number in range(4)
    ]
    found = Counter(next(iter(value)) for value in sampled({"anyOf": branches}, 400))
    assert all(60 < found[f"k{number}"] < 140 for number in range(4))


def test_lengths_vary_up_to_a_bound():
    lengths = Counter(map(len, sampled({"type": "array", "items": {"type": "null"}}, 300)))
    assert set(lengths) == set(range(6))
    assert min(lengths.values()) > 25
    texts = sampled({"type": "string"}, 300)
    assert {len(text) for text in texts} == set(range(25))
    characters = Counter("".join(texts))
    readable = sum(number for each, number in characters.items() if re.match("[A-Za-z0-9 ]", each))
    assert 0.75 < readable / characters.total() < 0.98
    assert any(ord(each) > 0xFFFF for each in characters)
    assert any(0x7F < ord(each) <= 0xFFFF for each in characters)
    assert any(each in '"\\\n\t' for each in characters)


def test_numbers_have_varied_magnitudes():
    numbers = sampled({"type": "number"}, 300)
    assert len({len(str(abs(int(number)))) for number in numbers}) > 6
    assert sum(number < 0 for number in numbers) > 80
    assert sum(isinstance(number, float) for number in numbers) > 80
    bounded = sampled({"type": "integer", "minimum": 0, "maximum": 150}, 300)
    assert len(set(bounded)) > 100
    assert 60 < sum(number > 99 for number in bounded) < 140


def test_recursive_schemas_end():
    node = {
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#"}, "minItems": 2}},
        "additionalProperties": False,
    }
    texts = list(ffwd.sample_documents(ffwd.json_schema(node), 40, max_bytes=600))
    assert max(len(text) for text in texts) <= 600
    check(node, texts)
    assert len(set(texts)) > 10


@pytest.mark.parametrize(
    "options",
    [
        {"whitespace": "compact"},
        {"whitespace": "single-space"},
        {"whitespace": "flexible"},
        {"property_order": "any"},
        {"numbers": "any"},
        {"escapes": "any"},
    ],
    ids=str,
)
def test_writing_options_hold(options):
    schema = CORPUS["builtin_person"]
    grammar = ffwd.json_schema(schema, **options)
    texts = [*ffwd.sample_documents(grammar, 5), *ffwd.boundary_documents(grammar, 20)]
    check(schema, texts, grammar)
    if options == {"whitespace": "single-space"}:
        assert all('": ' in text for text in texts)


def test_indented_documents_have_their_layout():
    grammar = ffwd.json_schema({"type": "array", "minItems": 2, "items": {"enum": [1]}}, indent=2)
    texts = list(ffwd.sample_documents(grammar, 3))
    assert all(text == json.dumps(json.loads(text), indent=2) for text in texts)


@pytest.mark.parametrize(
    ("grammar", "expected"),
    [
        (ffwd.regex("[0-9]{4}-[0-9]{2}"), "[0-9]{4}-[0-9]{2}"),
        (ffwd.lark('start: (W ",")* W\nW: /[a-z]+/ | "é"'), "(?:[a-zé]+,)*[a-zé]+"),
        (ffwd.gbnf('root ::= ("a" | "b" | "(" root ")")+'), "[ab()]+"),
        (ffwd.choice(["yes", "no"]), "yes|no"),
    ],
    ids=["regex", "lark", "gbnf", "choice"],
)
def test_texts_of_other_grammars_are_valid(grammar, expected):
    compiled = ffwd.compile(grammar, VOCABULARY)
    texts = list(ffwd.sample_documents(grammar, 40, max_bytes=200))
    assert texts == list(ffwd.sample_documents(grammar, 40, max_bytes=200))
    assert len(set(texts)) == 2 if expected == "yes|no" else len(set(texts)) > 30
    for text in texts:
        assert re.fullmatch(expected, text)
        assert len(text.encode()) <= 200
        matcher = compiled.matcher()
        assert matcher.accept_tokens(list(text.encode()))
        assert matcher.is_accepting()


def test_alternatives_of_a_grammar_are_equally_likely():
    grammar = ffwd.lark('start: "apple" | "apricot" | "pear" | N\nN: /[0-9]/')
    found = Counter(text[:2] for text in ffwd.sample_documents(grammar, 300))
    assert found["ap"] > 100
    assert found["pe"] > 45
    assert sum(found.values()) - found["ap"] - found["pe"] > 45


# ------------------------------------------------------------------------------------ at the edges


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 300},
        "status": {"enum": ["new", "paid", None]},
        "amount": {"anyOf": [{"type": "integer", "minimum": -7, "maximum": 1000}, {"const": "x"}]},
        "ratio": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "code": {"type": "string", "pattern": "^[A-F][0-9]{2,4}$"},
    },
    "additionalProperties": False,
}


def test_edges_of_a_schema_are_met():
    texts = list(ffwd.boundary_documents(ffwd.json_schema(SCHEMA)))
    check(SCHEMA, texts)
    assert texts == list(ffwd.boundary_documents(ffwd.json_schema(SCHEMA)))
    assert len(set(texts)) == len(texts)
    assert texts[0] == "{}"
    documents = [json.loads(text) for text in texts]
    found = [set(document) for document in documents]
    assert set(SCHEMA["properties"]) in found
    assert all({name} in found for name in SCHEMA["properties"])

    def values(name):
        return [document[name] for document in documents if name in document]

    assert {"new", "paid", None} <= set(values("status"))
    assert {-7, 0, 1000, "x"} <= set(values("amount"))
    assert {1.7976931348623157e308, 5e-324, 2**53 + 1, 2**63, -(2**63)} <= set(values("ratio"))
    assert any('"ratio":-0' in text for text in texts)
    assert {"", "\0", "\U0001f600", "e\u0301", '"', "\\"} <= set(values("name"))
    assert any("\\u0000" in text for text in texts)
    assert max(map(len, values("name"))) == 300
    assert {0, 1, 2, 40} <= {len(tags) for tags in values("tags")}
    assert {3, 5} <= {len(code) for code in values("code")}
    assert {"A", "F"} <= {code[0] for code in values("code")}


def test_recursive_schemas_have_deep_documents():
    schema = {
        "type": "object",
        "properties": {"value": {"type": "null"}, "next": {"$ref": "#"}},
        "additionalProperties": False,
    }
    texts = list(ffwd.boundary_documents(ffwd.json_schema(schema)))
    check(schema, texts)
    assert max(text.count("{") for text in texts) > 20
    assert '{"value":null}' in texts
    assert '{"next":{}}' in texts


def test_numbers_next_to_a_bound_stay_valid_as_doubles():
    schema = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
    grammar = ffwd.json_schema(schema)
    texts = [*ffwd.boundary_documents(grammar), *ffwd.sample_documents(grammar, 200)]
    assert len(texts) > 200
    assert all(0 < float(text) < 1 for text in texts)


def test_count_bounds_the_documents():
    grammar = ffwd.json_schema(SCHEMA)
    assert list(ffwd.boundary_documents(grammar, 0)) == []
    everything = list(itertools.islice(ffwd.boundary_documents(grammar), 7))
    assert list(ffwd.boundary_documents(grammar, 7)) == everything


# ----------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("function", [ffwd.sample_documents, ffwd.boundary_documents])
def test_errors_are_typed(function):
    with pytest.raises(ValueError, match="count must not be negative"):
        function(ffwd.json_schema(True), -1)
    with pytest.raises(ValueError, match="max_bytes must be positive"):
        function(ffwd.json_schema(True), 1, max_bytes=0)
    with pytest.raises(TypeError):
        function({"type": "object"}, 1)
    with pytest.raises(ffwd.InvalidSchemaError) as raised:
        function(ffwd.json_schema({"items": {"type": "objct"}}), 1)
    assert raised.value.pointer == "/items/type"
    with pytest.raises(ffwd.BudgetError) as small:
        list(function(ffwd.json_schema({"const": "0123456789"}), 1, max_bytes=5))
    assert small.value.needed == 13


@pytest.fixture
def no_fault_left():
    yield
    inject_fault(None)


@pytest.mark.parametrize("function", [ffwd.sample_documents, ffwd.boundary_documents])
@pytest.mark.usefixtures("no_fault_left")
def test_documents_before_a_limit_are_valid(function):
    documents = function(ffwd.json_schema(SCHEMA), 1000)
    written = [next(documents), next(documents)]
    # The next work of the engine meets a limit.
    inject_fault(1)
    with pytest.raises(ffwd.LimitExceededError):
        written.extend(documents)
    inject_fault(None)
    check(SCHEMA, written)
    assert next(documents, None) is None


def test_a_hostile_pattern_is_a_typed_error():
    schema = {"type": "string", "pattern": "^(a|b)*a(a|b){12}$"}
    limits = ffwd.Limits(call_steps=100)
    for function in (ffwd.sample_documents, ffwd.boundary_documents):
        with pytest.raises(ffwd.LimitExceededError) as raised:
            list(function(ffwd.json_schema(schema), 1, limits=limits))
        assert raised.value.limit == "call_steps"


def test_a_grammar_of_rules_has_no_edges():
    with pytest.raises(TypeError, match="schema must be a JsonSchema, not Regex"):
        ffwd.boundary_documents(ffwd.regex("a"))
