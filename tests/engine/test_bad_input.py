"""Bad and hostile input: a typed error that says what and where, or success, and soon.

Every case runs in another process, which must answer in time, in little memory, and still be
there afterwards.
"""

import concurrent.futures
import json
import multiprocessing
import string
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import hostile
import hypothesis
import pytest
from cases import byte_vocabulary
from hypothesis import settings
from hypothesis import strategies as st

import ffwd

# A second or so on an idle machine; the rest is for busy ones.
TIMEOUT_S = 300

Use = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def use() -> Iterator[Use]:
    """`hostile.use` in a process of its own, which is replaced when a test has lost it."""
    context = multiprocessing.get_context("spawn")
    pools: list[ProcessPoolExecutor] = []

    def start() -> None:
        pools.append(ProcessPoolExecutor(1, context, initializer=hostile.limit_memory))

    def call(kind: str, content: Any, begin: bytes = b"") -> dict[str, Any]:
        if not pools:
            start()
            # Importing takes a while, and is no part of what is timed.
            pools[-1].submit(hostile.use, "choice", ["a"]).result(timeout=600)
        pool = pools[-1]
        try:
            return pool.submit(hostile.use, kind, content, begin).result(timeout=TIMEOUT_S)
        except (concurrent.futures.TimeoutError, concurrent.futures.BrokenExecutor) as failure:
            for process in list((pool._processes or {}).values()):
                process.kill()
            pool.shutdown(wait=True, cancel_futures=True)
            pools.clear()
            raise AssertionError(f"no answer: {type(failure).__name__}") from failure

    yield call
    for pool in pools:
        pool.shutdown()


# --- not a schema ------------------------------------------------------------------------------

NOT_JSON = [
    "",
    " ",
    "{",
    "}",
    '{"type": "string"',
    '{"type": }',
    "{'type': 'string'}",
    '{"type": "string",}',
    '{"a": 1} {"b": 2}',
    "nul",
    "NaN",
    '{"minimum": NaN}',
    '{"minimum": 01}',
    '{"const": "\\x"}',
    '{"const": "\\ud800"}',
    '{"const": "a\nb"}',
    "\ufeff{}",
    "\x00",
]

INVALID = [
    (3, ""),
    ("text", ""),
    (None, ""),
    ([], ""),
    ({"type": "strin"}, "/type"),
    ({"type": 3}, "/type"),
    ({"type": ["string", "strin"]}, "/type/1"),
    ({"minimum": "x"}, "/minimum"),
    ({"maxLength": -1}, "/maxLength"),
    ({"minLength": 1.5}, "/minLength"),
    ({"maxItems": "3"}, "/maxItems"),
    ({"properties": []}, "/properties"),
    ({"properties": {"a": 3}}, "/properties/a"),
    ({"properties": {"a/b~c": {"type": "?"}}}, "/properties/a~1b~0c/type"),
    ({"required": "a"}, "/required"),
    ({"required": [1]}, "/required/0"),
    ({"items": 3}, "/items"),
    ({"prefixItems": {}}, "/prefixItems"),
    ({"enum": 3}, "/enum"),
    ({"anyOf": {}}, "/anyOf"),
    ({"anyOf": [{}, 5]}, "/anyOf/1"),
    ({"pattern": 3}, "/pattern"),
    ({"format": 3}, "/format"),
    ({"$ref": 3}, "/$ref"),
    ({"$ref": "#/$defs/missing"}, "/$ref"),
    ({"anyOf": [{"type": "integer"}, {"$ref": "#"}]}, ""),
    ({"additionalProperties": "no"}, "/additionalProperties"),
    ({"properties": {"a": {"items": {"pattern": "("}}}}, "/properties/a/items/pattern"),
    ({"pattern": "[z-a]"}, "/pattern"),
    ({"pattern": "a{2,1}"}, "/pattern"),
    ({"pattern": "*"}, "/pattern"),
]

UNSUPPORTED = [
    ({"pattern": "(a)\\1"}, "pattern", "/pattern"),
    ({"not": {"pattern": "(a)\\1"}}, "pattern", "/not/pattern"),
    (
        {"patternProperties": {"(a)\\1": {}}},
        "patternProperties",
        "/patternProperties/(a)\\1",
    ),
    ({"$ref": "https://example.com/other.json"}, "$ref", "/$ref"),
    ({"items": {"$dynamicRef": "other.json#a"}}, "$dynamicRef", "/items/$dynamicRef"),
]

UNSATISFIABLE = [
    False,
    {"type": "integer", "minimum": 5, "maximum": 4},
    {"type": "integer", "exclusiveMinimum": 4, "exclusiveMaximum": 5},
    {"type": "string", "minLength": 3, "maxLength": 2},
    {"type": "string", "pattern": "^a{5}$", "maxLength": 4},
    {"type": "array", "minItems": 2, "prefixItems": [{}], "items": False},
    {"type": "object", "properties": {"a": False}, "required": ["a"]},
    {"type": "object", "required": ["a"], "additionalProperties": False},
    {"enum": []},
    {"type": "string", "enum": [1, 2]},
    {"anyOf": [False, {"type": "string", "const": 1}]},
    {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
    {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]},
]  # fmt: skip


@pytest.mark.parametrize("text", NOT_JSON)
def test_not_json(use: Use, text: str) -> None:
    answer = use("schema", text)
    assert answer["error"] == "InvalidSchemaError", answer
    assert answer["message"]
    assert isinstance(answer["pointer"], str)


@pytest.mark.parametrize(("schema", "pointer"), INVALID)
def test_not_a_schema(schema: Any, pointer: str) -> None:
    # As text, for as Python values not all of these are even looked at.
    with pytest.raises(ffwd.InvalidSchemaError) as caught:
        ffwd.compile(ffwd.json_schema(json.dumps(schema)), byte_vocabulary())
    assert caught.value.pointer == pointer
    assert not pointer or pointer in str(caught.value)


@pytest.mark.parametrize("schema", [3, None, [], 1.5, b"{}", {1}])
def test_not_even_the_type_of_a_schema(schema: Any) -> None:
    with pytest.raises(TypeError):
        ffwd.json_schema(schema)


@pytest.mark.parametrize(("schema", "keyword", "pointer"), UNSUPPORTED)
def test_unsupported_keywords(schema: Any, keyword: str, pointer: str) -> None:
    with pytest.raises(ffwd.UnsupportedSchemaError) as caught:
        ffwd.compile(ffwd.json_schema(schema), byte_vocabulary())
    assert caught.value.keyword == keyword
    assert caught.value.pointer == pointer
    assert pointer in str(caught.value)


@pytest.mark.parametrize("schema", UNSATISFIABLE, ids=str)
def test_unsatisfiable_schemas(use: Use, schema: Any) -> None:
    answer = use("schema", schema)
    assert answer["error"] == "UnsatisfiableSchemaError", answer
    assert isinstance(answer["pointer"], str)


@pytest.mark.parametrize(
    ("pattern", "line", "column"),
    [("(", 1, 1), ("ab)", 1, 3), ("a\nb[", 2, 2), ("*", 1, 1), ("é\\q", 1, 2), ("a{3,1}", 1, 2)],
)
def test_bad_regexes(pattern: str, line: int, column: int) -> None:
    with pytest.raises(ffwd.GrammarError) as caught:
        ffwd.compile(ffwd.regex(pattern), byte_vocabulary())
    assert (caught.value.line, caught.value.column) == (line, column), str(caught.value)


LARGE = {"long": "a" * 100_000, "nested": "(" * 1000 + ")" * 1000, "classes": r"\pL" * 9000}


@pytest.mark.parametrize("name", LARGE)
def test_large_patterns(name: str) -> None:
    schema = {"items": {"pattern": LARGE[name].replace(r"\pL", r"\p{L}")}}
    for grammar, pointer in (
        (ffwd.regex(LARGE[name]), ""),
        (ffwd.json_schema(schema), "/items/pattern"),
    ):
        with pytest.raises(ffwd.LimitExceededError) as caught:
            ffwd.compile(grammar, byte_vocabulary())
        assert (bool(caught.value.limit), caught.value.pointer) == (True, pointer)
        assert caught.value.maximum > 0


@pytest.mark.parametrize(
    "pattern", ["(?=a)b", "(a)\\1", "a(?!b)", "(?<=a)b", "a\\bb", "x^", "[b&&a]"]
)
def test_regexes_outside_the_dialect_or_empty(pattern: str) -> None:
    with pytest.raises(ffwd.FfwdError):
        ffwd.compile(ffwd.regex(pattern), byte_vocabulary())


@pytest.mark.parametrize(
    "options",
    [
        {"whitespace": "loose"},
        {"whitespace": ""},
        {"whitespace": None},
        {"max_whitespace": -1},
        {"max_whitespace": 10**6},
        {"max_whitespace": "8"},
        {"max_whitespace": True},
        {"policy": "loose"},
        {"policy": None},
        {"registry": [("http://example.com", {})]},
        {"registry": {"http://example.com": []}},
        {"registry": {1: {}}},
    ],
    ids=str,
)
def test_bad_options(options: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        ffwd.json_schema({}, **options)


@pytest.mark.parametrize("text", ["\ud800", "a\udfff"], ids=["alone", "after a letter"])
def test_lone_surrogates(text: str) -> None:
    for make in (
        lambda: ffwd.json_schema({"const": text}),
        lambda: ffwd.json_schema({"properties": {text: {}}}),
        lambda: ffwd.json_schema('{"const": "' + text + '"}'),
    ):
        with pytest.raises(ffwd.InvalidSchemaError):
            make()
    for make in (lambda: ffwd.regex(text), lambda: ffwd.choice(["a", text])):
        with pytest.raises(ffwd.GrammarError) as caught:
            make()
        assert caught.value.line == 1


def test_other_types() -> None:
    vocabulary = byte_vocabulary()
    with pytest.raises(TypeError):
        ffwd.compile("a", vocabulary)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        ffwd.compile(ffwd.regex("a"), None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        ffwd.choice("abc")
    with pytest.raises(ffwd.GrammarError):
        ffwd.choice([])


# --- too much ----------------------------------------------------------------------------------


def nested(levels: int) -> str:
    return '{"items":' * levels + "true" + "}" * levels


def fibonacci(levels: int) -> dict[str, Any]:
    """Each definition asks for the one before it twice."""
    definitions: dict[str, Any] = {"d0": {"type": "integer"}}
    for n in range(1, levels):
        below = {"$ref": f"#/$defs/d{n - 1}"}
        definitions[f"d{n}"] = {
            "type": "object",
            "properties": {"l": below, "r": below},
            "required": ["l", "r"],
        }
    return {"$ref": f"#/$defs/d{levels - 1}", "$defs": definitions}


def all_of_products(count: int) -> dict[str, Any]:
    """A conjunction of choices: 2 ** count alternatives when it is multiplied out."""
    return {
        "allOf": [
            {
                "anyOf": [
                    {"properties": {f"k{n}": {"type": "integer"}}, "required": [f"k{n}"]},
                    {"properties": {f"k{n}": {"type": "string"}}, "required": [f"k{n}"]},
                ]
            }
            for n in range(count)
        ]
    }


WORDS = [a + b + c for a in string.ascii_letters for b in string.ascii_letters for c in "xyz"]

HOSTILE: dict[str, tuple[str, Any, bytes]] = {
    "brackets": ("schema", "[" * 100_000, b""),
    "braces": ("schema", '{"a":' * 100_000, b""),
    "balanced brackets": ("schema", "[" * 100_000 + "]" * 100_000, b""),
    "nested items": ("schema", nested(100_000), b"[[[["),
    "nested items in budget": ("schema", nested(100), b"[[[["),
    "nested const": ("schema", '{"const":' + "[" * 50_000 + "]" * 50_000 + "}", b"[[["),
    "document of brackets": ("schema", "true", b"[" * 100_000),
    "document of braces": ("schema", "true", b'{"a":' * 50_000),
    "document of digits": ("schema", '{"type":"number","minimum":0.001}', b"1" * 100_000),
    "document of a string": ("schema", "true", b'"' + b"a" * 200_000),
    "document of keys": (
        "schema",
        "true",
        b"{" + b"".join(b'"%s":1,' % word.encode() for word in WORDS),
    ),
    "huge repeat": ("regex", "a{1000000000}", b"a" * 1000),
    "huge repeat of a group": ("regex", "(?:ab?){1000000000}", b"ab" * 1000),
    "huge bounded repeat": ("regex", "a{0,4294967295}", b"a" * 1000),
    "repeat overflow": ("regex", "a{99999999999999999999}", b""),
    "nested repeats": ("regex", "(((a{1000}){1000}){1000}){1000}", b"a" * 100),
    "nested optional repeats": ("regex", "((((a{0,99}){0,99}){0,99}){0,99})b", b"a" * 200),
    "optional then required": ("regex", "(a?){50}a{50}", b"a" * 70),
    "optional then required, long": ("regex", "(a?){5000}a{5000}", b"a" * 400),
    "the n-th from the end": ("regex", "(a|b)*a(a|b){40}", b"ab" * 200),
    "the n-th from the end, long": ("regex", ".*a.{1000}", b"ab" * 400),
    "stars of stars": ("regex", "((((a*)*)*)*)*b", b"a" * 300),
    "words in words": ("regex", "(\\S+\\s+){0,199}\\S+", b"ab cd " * 200),
    "deep groups": ("regex", "(" * 50_000 + "a" + ")" * 50_000, b"a"),
    "deep alternatives": ("regex", "(a|" * 20_000 + "b" + ")" * 20_000, b"b"),
    "many alternatives": ("regex", "|".join(WORDS), b"a"),
    "many classes": ("regex", "\\p{L}" * 3000, b"a" * 100),
    "large classes": ("regex", "(\\w\\W\\p{Greek}?){300}", b"a-" * 100),
    "intersecting classes": ("regex", "[\\p{L}&&[^\\p{Lu}--[a-z]]]{0,500}x", b""),
    "long literal": ("regex", "a" * 500_000, b"a" * 10),
    "schema with a huge repeat": ("schema", {"pattern": "^a{1000000000}$"}, b'"aaa'),
    "schema with blow-up": ("schema", {"pattern": "^(a?){50}a{50}$", "type": "string"}, b'"aaa'),
    "search with blow-up": ("schema", {"pattern": "a.{60}b.{60}c"}, b'"' + b"abc" * 100),
    "look-ahead blow-up": ("schema", {"pattern": "^(?=.*a.{40})(?=.*b.{41})(?=.*c.{42})"}, b'"abc'),
    "words and a length": (
        "schema",
        {"pattern": "^(?:\\S+\\s+){0,199}\\S+$", "maxLength": 500, "minLength": 50},
        b'"' + b"ab cd " * 60,
    ),
    "many patterns": (
        "schema",
        {"type": "string", "allOf": [{"pattern": f"{a}.*{b}"} for a in "abcde" for b in "vwxyz"]},
        b'"abcvwx',
    ),
    "huge minLength": ("schema", {"type": "string", "minLength": 10**18}, b'"aaa'),
    "huge length overflow": ("schema", {"type": "string", "maxLength": 10**30}, b'"aaa'),
    "huge minItems": ("schema", {"type": "array", "minItems": 10**18}, b"[1,1"),
    "huge maxItems": ("schema", {"type": "array", "maxItems": 10**30}, b"[1,1"),
    "long integer bound": ("schema", '{"minimum":1' + "0" * 100_000 + "}", b"1000"),
    "long fraction bound": ("schema", '{"maximum":0.' + "1" * 100_000 + "}", b"0.11"),
    "exponent bound": ("schema", '{"maximum":1e999999999}', b"1e99"),
    "exponent bound below": ("schema", '{"type":"integer","minimum":-1e999999999}', b"-1"),
    "exponent overflow": ("schema", '{"minimum":1e99999999999999999999999}', b"1"),
    "tiny exponent bound": ("schema", '{"exclusiveMinimum":1e-999999999}', b"0.0"),
    "interval of exponents": ("schema", '{"minimum":1e-5000,"maximum":1e5000}', b"0.0"),
    "const exponent": ("schema", '{"const":1e999999999}', b"1"),
    "giant enum": ("schema", {"enum": [f"{w}{n}" for w in WORDS[:2000] for n in range(20)]}, b'"a'),
    "giant enum of objects": ("schema", {"enum": [{"a": n, "b": [n]} for n in range(5000)]}, b"{"),
    "long enum value": ("schema", {"enum": ["x" * 500_000, "x" * 499_999 + "y"]}, b'"xx'),
    "many properties": ("schema", {"properties": {w: {} for w in WORDS}}, b'{"a'),
    "many required": (
        "schema",
        {"properties": {w: {"type": "null"} for w in WORDS[:2000]}, "required": WORDS[:2000]},
        b"{",
    ),
    "long key": ("schema", {"required": ["k" * 300_000]}, b'{"k'),
    "many types of any": (
        "schema",
        {"anyOf": [{"type": "object", "properties": {w: {"const": w}}, "required": [w]}
                   for w in WORDS[:400]]},
        b"{",
    ),
    "products": ("schema", all_of_products(24), b'{"k0":1,"k1":"'),
    "fibonacci": ("schema", fibonacci(60), b'{"l":' * 59 + b"1"),
    "mutual recursion": (
        "schema",
        {"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]},
                                        "b": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}}},
        b"n",
    ),
    "chain of references": (
        "schema",
        {
            "$ref": "#/$defs/0",
            "$defs": {str(n): {"$ref": f"#/$defs/{n + 1}"} for n in range(5000)}
            | {"5000": {"type": "null"}},
        },
        b"n",
    ),
    "nested any of": (
        "schema",
        '{"anyOf":[{"type":"null"},' * 100 + '{"type":"integer"}' + "]}" * 100,
        b"1",
    ),
    "giant choice": ("choice", [f"{word} {n}" for word in WORDS[:2000] for n in range(20)], b"a"),
    "long choice": ("choice", ["x" * 1_000_000, "x" * 999_999], b"xxx"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input(use: Use, name: str) -> None:
    kind, content, begin = HOSTILE[name]
    answer = use(kind, content, begin)
    errors = {None, "LimitExceededError", "InvalidSchemaError", "GrammarError",
              "UnsupportedSchemaError", "UnsatisfiableSchemaError"}  # fmt: skip
    assert answer["error"] in errors, answer
    if answer["error"] == "LimitExceededError":
        assert answer["limit"]
        assert answer["maximum"] > 0
    if answer["error"] is not None:
        assert 0 < len(answer["message"]) < 2000, "an error must not repeat all of a hostile input"


# What must work in spite of its size: refusing everything would pass the test above.
WORKS = [
    "nested items in budget",
    "document of a string",
    "document of digits",
    "huge bounded repeat",
    "optional then required",
    "stars of stars",
    "words in words",
    "many alternatives",
    "words and a length",
    "giant enum",
    "many properties",
    "many required",
    "fibonacci",
    "giant choice",
    "huge maxItems",
]


@pytest.mark.parametrize("name", WORKS)
def test_large_input_that_works(use: Use, name: str) -> None:
    answer = use(*HOSTILE[name])
    assert answer["error"] is None, answer
    assert answer["accepted"] > 0


def outcome(grammar: Callable[[], ffwd.Grammar]) -> ffwd.CompiledGrammar | ffwd.FfwdError:
    try:
        return ffwd.compile(grammar(), byte_vocabulary())
    except ffwd.FfwdError as error:
        return error


@hypothesis.seed(40)
@settings(max_examples=300)
@hypothesis.given(
    pattern=st.text("ab()[]{}|*+?\\^$.-,09:=!<>&pdwsuxLé\n", max_size=14),
)
def test_random_regexes(pattern: str) -> None:
    """Any text is a regular expression, or a typed error."""
    for grammar in (lambda: ffwd.regex(pattern), lambda: ffwd.json_schema({"pattern": pattern})):
        found = outcome(grammar)
        if isinstance(found, ffwd.FfwdError):
            assert str(found)
        else:
            assert found.matcher().allowed_token_ids()


KEYWORDS = [
    "type", "properties", "required", "additionalProperties", "items", "prefixItems", "minItems",
    "maxItems", "enum", "const", "anyOf", "allOf", "oneOf", "not", "if", "then", "$ref", "$defs",
    "minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum",
    "multipleOf", "$schema", "$id", "$anchor", "definitions", "dependencies", "propertyNames",
    "patternProperties", "contains", "uniqueItems", "minProperties", "unevaluatedProperties",
]  # fmt: skip
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 5),
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from(["string", "object", "#", "#/$defs/a", "a", "", "^a+$", "date", "integer"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from([*KEYWORDS, "a", "b"]), inner, max_size=4),
    ),
    max_leaves=12,
)


@hypothesis.seed(41)
@settings(max_examples=400)
@hypothesis.given(schema=st.dictionaries(st.sampled_from(KEYWORDS), VALUES, max_size=4))
def test_random_schemas(schema: dict[str, Any]) -> None:
    """Whatever stands at a keyword: a grammar that allows something, or a typed error."""
    found = outcome(lambda: ffwd.json_schema(schema))
    if isinstance(found, ffwd.CompiledGrammar):
        matcher = found.matcher()
        assert matcher.allowed_token_ids()
        assert not matcher.is_accepting()
        return
    assert isinstance(found, ffwd.SchemaError | ffwd.LimitExceededError)
    assert str(found)
    if isinstance(found, ffwd.SchemaError):
        assert resolves(schema, found.pointer), found.pointer


def resolves(document: Any, pointer: str) -> bool:
    """Whether the pointer is a place of the document."""
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict) and key in document:
            document = document[key]
        elif isinstance(document, list) and key.isdigit() and int(key) < len(document):
            document = document[int(key)]
        else:
            return False
    return True


# --- vocabularies ------------------------------------------------------------------------------

ALL_BYTES: list[bytes | None] = [bytes([byte]) for byte in range(256)]


BAD_VOCABULARIES: dict[str, tuple[list[bytes | None], dict[str, Any], str]] = {
    "no A": ([*ALL_BYTES[:65], *ALL_BYTES[66:], None], {"eos_token_ids": [255]}, "41"),
    "no text": ([None], {"eos_token_ids": [0]}, ""),
    "empty": ([], {"eos_token_ids": []}, ""),
    "no end": ([*ALL_BYTES, None], {"eos_token_ids": []}, ""),
    "end outside": ([*ALL_BYTES, None], {"eos_token_ids": [257]}, "257"),
    "end far outside": ([*ALL_BYTES, None], {"eos_token_ids": [2**32 - 1]}, "4294967295"),
    "narrow": ([*ALL_BYTES, None], {"eos_token_ids": [256], "width": 10}, ""),
    "wide": ([*ALL_BYTES, None], {"eos_token_ids": [256], "width": 2**60}, "1152921504606846976"),
    "no width": ([*ALL_BYTES, None], {"eos_token_ids": [256], "width": 0}, ""),
}


@pytest.mark.parametrize("name", BAD_VOCABULARIES)
def test_bad_vocabularies(name: str) -> None:
    tokens, arguments, named = BAD_VOCABULARIES[name]
    with pytest.raises(ffwd.VocabularyError) as caught:
        ffwd.Vocabulary(tokens, **arguments)
    assert named in str(caught.value).lower()


@pytest.mark.parametrize(
    ("tokens", "ends"),
    [
        (["a"], [0]),
        ([1, 2], [0]),
        (None, [0]),
        (ALL_BYTES, None),
        (ALL_BYTES, [-1]),
        (ALL_BYTES, ["a"]),
        (ALL_BYTES, [2**40]),
    ],
    ids=["str", "int", "none", "no ends", "negative", "text", "huge"],
)
def test_vocabularies_of_other_types(tokens: Any, ends: Any) -> None:
    with pytest.raises((TypeError, OverflowError, ffwd.VocabularyError)):
        ffwd.Vocabulary(tokens, eos_token_ids=ends)


def test_ids_outside_the_vocabulary() -> None:
    vocabulary = byte_vocabulary()
    with pytest.raises((ffwd.TokenError, IndexError)):
        vocabulary.token_bytes(257)
    matcher = ffwd.compile(ffwd.regex("a+"), vocabulary).matcher()
    for call in (
        lambda: matcher.accept_token(257),
        lambda: matcher.accept_tokens([97, 257]),
        lambda: matcher.validate_tokens([97, 257]),
    ):
        with pytest.raises(ffwd.TokenError) as caught:
            call()
        assert caught.value.token == 257
        assert "257" in str(caught.value)
    assert matcher.num_tokens == 0


def test_every_error_is_a_value_error_with_one_base() -> None:
    for name in dir(ffwd):
        kind = getattr(ffwd, name)
        if isinstance(kind, type) and issubclass(kind, Warning):
            assert issubclass(kind, UserWarning), name
        elif isinstance(kind, type) and issubclass(kind, Exception):
            assert issubclass(kind, ffwd.FfwdError), name
            assert issubclass(kind, ValueError), name
