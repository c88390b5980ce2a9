"""Data and small tools that the tests of the engine share: schemas, vocabularies, judges."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import Any

import jsonschema
import jsonschema_rs
import numpy as np
import numpy.typing as npt
from realtokenizers import load

import ffwd
import ffwd.tokenizer

WHITESPACE_MODES = ("flexible", "compact", "single-space")
SEPARATORS = {"flexible": (",", ":"), "compact": (",", ":"), "single-space": (", ", ": ")}

# Byte-level BPE of two kinds (merges; ranks), and SentencePiece with byte fallback.
MASK_VOCABULARIES = ("gpt2", "deepseek", "mistral-v3")


@dataclass(frozen=True)
class SchemaCase:
    """A schema, and instances that are valid, with their keys in the declared order."""

    name: str
    schema: Any
    valid: tuple[Any, ...] = field(default=())


def case(name: str, schema: Any, *valid: Any) -> SchemaCase:
    return SchemaCase(name, schema, valid)


def closed(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """An object schema without further properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


STRING: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}
NUMBER: dict[str, Any] = {"type": "number"}
DRAFT4 = "http://json-schema.org/draft-04/schema#"
DRAFT7 = "http://json-schema.org/draft-07/schema#"

SCHEMAS: tuple[SchemaCase, ...] = (
    # Types.
    case("anything", True, None, [1, {"a": "b"}], {"x": {"y": [None]}}, "text", -1.5e-7),
    case("object-free", {"type": "object"}, {}, {"k": 1, "l": [True]}),
    case("string-free", STRING, "", 'quote " slash \\ tab \t', "żółw 🐢 \u2028"),
    case("null-or-boolean", {"type": ["null", "boolean"]}, None, True, False),
    case("integer-free", INTEGER, 0, -17, 123456789012345678901234567890),
    case("number-free", NUMBER, 0, -0.5, 1e21, 3.25),
    case("types-mixed", {"type": ["integer", "string", "array"]}, 3, "x", [1, "y"]),
    # Numbers.
    case("minimum", {"type": "integer", "minimum": 3}, 3, 10, 1234),
    case("maximum-negative", {"type": "integer", "maximum": -12}, -12, -13, -200),
    case("between", {"type": "integer", "minimum": -7, "maximum": 112}, -7, 0, 99, 112),
    case(
        "exclusive",
        {"type": "integer", "exclusiveMinimum": 9, "exclusiveMaximum": 100},
        10,
        42,
        99,
    ),
    case("number-between", {"type": "number", "minimum": 0.5, "maximum": 12.25}, 0.5, 7, 12.25),
    case(
        "number-open",
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        0.5,
        0.001,
        0.999,
    ),
    case("number-tiny-interval", {"type": "number", "minimum": 1.25, "maximum": 1.26}, 1.25, 1.255),
    case("bounds-no-type", {"minimum": 5}, 5, "under", [1], None),
    case(
        "draft4-exclusive",
        {"$schema": DRAFT4, "type": "integer", "minimum": 1, "exclusiveMinimum": True},
        2,
        30,
    ),
    case(
        "unix-port",
        closed({"port": {"type": "integer", "minimum": 1, "maximum": 65535}}, "port"),
        {"port": 1},
        {"port": 65535},
        {"port": 8080},
    ),
    # Strings.
    case("lengths", {"type": "string", "minLength": 2, "maxLength": 5}, "ab", "żółwi", "🐢🐢"),
    case("length-exact", {"type": "string", "minLength": 3, "maxLength": 3}, "abc", "\n\t\\"),
    case("length-least", {"type": "string", "minLength": 4}, "four", "many more characters"),
    case(
        "pattern-anchored", {"type": "string", "pattern": "^[a-z]{2,4}-\\d+$"}, "ab-1", "wxyz-907"
    ),
    case("pattern-searched", {"type": "string", "pattern": "b[0-9]c"}, "b1c", "xxb7cyy"),
    case("pattern-prefix", {"type": "string", "pattern": "^x-"}, "x-", "x-header"),
    case(
        "pattern-either",
        {"type": "string", "pattern": "^(foo|ba[rz]|qu+x)$"},
        "foo",
        "baz",
        "quuux",
    ),
    case("pattern-unicode", {"type": "string", "pattern": "^[à-ÿ]+[€🐢]?$"}, "éà", "ÿ🐢", "ù€"),
    case("pattern-quotes", {"type": "string", "pattern": '^["\\\\]+$'}, '"', '\\"'),
    case(
        "pattern-and-length",
        {"type": "string", "pattern": "^[ab]*$", "minLength": 2, "maxLength": 4},
        "ab",
        "bbbb",
    ),
    case("date", {"type": "string", "format": "date"}, "2024-02-29", "1999-12-31"),
    case(
        "date-time",
        {"type": "string", "format": "date-time"},
        "2024-02-29T23:59:59Z",
        "1963-06-19T08:30:06.283185+01:00",
    ),
    case("time", {"type": "string", "format": "time"}, "08:30:06Z", "23:59:59.5-02:30"),
    case("email", {"type": "string", "format": "email"}, "joe.bloggs@example.com"),
    case("uuid", {"type": "string", "format": "uuid"}, "2eb8aa08-aa98-11ea-b4aa-73b441d16380"),
    case("ipv4", {"type": "string", "format": "ipv4"}, "192.168.0.1", "255.255.255.255"),
    case("ipv6", {"type": "string", "format": "ipv6"}, "::1", "2001:db8::ff00:42:8329"),
    case("uri", {"type": "string", "format": "uri"}, "https://example.com/a?b=c#d", "urn:x:y"),
    case("hostname", {"type": "string", "format": "hostname"}, "www.example.com", "a"),
    case("format-no-type", {"format": "date"}, "2020-01-01", 7, ["x"]),
    case("format-unknown", {"type": "string", "format": "colour-of-the-day"}, "any"),
    # Enums and constants.
    case("enum-strings", {"enum": ["red", "redder", "green", ""]}, "red", "redder", ""),
    case(
        "enum-mixed",
        {"enum": [1, "1", None, True, [1, 2], {"a": 1.5}]},
        1,
        "1",
        None,
        [1, 2],
        {"a": 1.5},
    ),
    case("enum-typed", {"type": "integer", "enum": [1, "a", 20, 300]}, 1, 20, 300),
    case("const", {"const": {"kind": "x", "n": [0, 1]}}, {"kind": "x", "n": [0, 1]}),
    case("const-escapes", {"const": 'a"b\\c\n\u0001é🐢'}, 'a"b\\c\n\u0001é🐢'),
    # Arrays.
    case("array-items", {"type": "array", "items": INTEGER}, [], [1], [1, 2, 3]),
    case(
        "array-counts",
        {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 4},
        [True, False],
        [True, True, True, True],
    ),
    case("array-empty", {"type": "array", "maxItems": 0}, []),
    case(
        "tuple",
        {"type": "array", "prefixItems": [STRING, INTEGER], "items": False},
        [],
        ["a"],
        ["a", 1],
    ),
    case(
        "tuple-required",
        {
            "type": "array",
            "prefixItems": [STRING, INTEGER],
            "minItems": 2,
            "items": {"type": "null"},
        },
        ["a", 1],
        ["a", 1, None, None],
    ),
    case(
        "tuple-draft7",
        {"$schema": DRAFT7, "type": "array", "items": [INTEGER, STRING], "additionalItems": False},
        [1],
        [1, "x"],
    ),
    case(
        "matrix",
        {
            "type": "array",
            "items": {"type": "array", "items": NUMBER, "minItems": 1, "maxItems": 3},
        },
        [[1, 2.5], [3]],
        [],
    ),
    # Objects.
    case(
        "optional-keys",
        closed({"a": INTEGER, "b": STRING, "c": {"type": "null"}}),
        {},
        {"b": "x"},
        {"a": 1, "c": None},
        {"a": 1, "b": "", "c": None},
    ),
    case(
        "required-between",
        closed({"a": INTEGER, "b": INTEGER, "c": INTEGER}, "b"),
        {"b": 1},
        {"a": 1, "b": 2, "c": 3},
        {"b": 1, "c": 2},
    ),
    case(
        "shared-prefixes",
        closed({"order": INTEGER, "orderId": STRING, "ord": STRING}, "orderId"),
        {"orderId": "x"},
        {"order": 1, "orderId": "", "ord": "y"},
    ),
    case(
        "keys-escaped",
        closed({'q"uote': INTEGER, "sla\\sh": INTEGER, "żó łw\n": INTEGER}, "sla\\sh"),
        {"sla\\sh": 1},
        {'q"uote': 1, "sla\\sh": 2, "żó łw\n": 3},
    ),
    case(
        "additional-schema",
        {
            "type": "object",
            "properties": {"id": INTEGER},
            "required": ["id"],
            "additionalProperties": STRING,
        },
        {"id": 1},
        {"id": 1, "x": "y", "idx": "z"},
    ),
    case(
        "additional-free",
        {"type": "object", "properties": {"name": STRING, "names": INTEGER}},
        {},
        {"name": "x", "other": [1]},
        {"names": 1, "n": None},
    ),
    case(
        "additional-map",
        {"type": "object", "additionalProperties": {"type": ["integer", "null"]}},
        {},
        {"a": 1, "b": None},
    ),
    case(
        "required-undeclared",
        {"type": "object", "properties": {"a": INTEGER}, "required": ["z", "a"]},
        {"a": 1, "z": 2},
        {"a": 1, "z": {}},
    ),
    case(
        "property-false",
        {"type": "object", "properties": {"yes": INTEGER, "no": False}},
        {"yes": 1},
        {"other": 1},
    ),
    case(
        "nested",
        closed(
            {
                "user": closed(
                    {
                        "name": {"type": "string", "minLength": 1},
                        "tags": {"type": "array", "items": STRING, "maxItems": 2},
                    },
                    "name",
                ),
                "active": {"type": "boolean"},
            },
            "user",
        ),
        {"user": {"name": "a"}},
        {"user": {"name": "b", "tags": ["x"]}, "active": False},
    ),
    # References.
    case(
        "ref-shared",
        {
            "$defs": {"size": {"type": "integer", "minimum": 0, "maximum": 20}},
            **closed({"w": {"$ref": "#/$defs/size"}, "h": {"$ref": "#/$defs/size"}}, "w", "h"),
        },
        {"w": 0, "h": 20},
    ),
    case(
        "ref-tree",
        {
            "$ref": "#/$defs/node",
            "$defs": {
                "node": closed(
                    {"v": INTEGER, "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
                    "v",
                )
            },
        },
        {"v": 1},
        {"v": 1, "kids": [{"v": 2, "kids": []}, {"v": 3}]},
    ),
    case(
        "ref-list",
        closed(
            {"head": STRING, "tail": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}}, "head", "tail"
        ),
        {"head": "a", "tail": None},
        {"head": "a", "tail": {"head": "b", "tail": None}},
    ),
    case(
        "ref-json",
        {
            "$defs": {
                "v": {
                    "anyOf": [
                        {"type": ["null", "boolean", "string"]},
                        {"type": "array", "items": {"$ref": "#/$defs/v"}},
                    ]
                }
            },
            "$ref": "#/$defs/v",
        },
        None,
        "x",
        [[], ["y", [True]]],
    ),
    case(
        "ref-sibling",
        {
            "$defs": {"name": STRING},
            "type": "object",
            "properties": {"n": {"$ref": "#/$defs/name", "maxLength": 3}},
            "required": ["n"],
        },
        {"n": "abc"},
        {"n": "", "more": 1},
    ),
    # Combinations.
    case(
        "any-of-scalars",
        {"anyOf": [{"type": "integer", "minimum": 100}, {"type": "string", "maxLength": 2}]},
        100,
        "ab",
    ),
    case(
        "any-of-overlap",
        {"anyOf": [{"type": "integer", "maximum": 10}, {"type": "integer", "minimum": 5}]},
        3,
        7,
        70,
    ),
    case(
        "any-of-objects",
        {
            "anyOf": [
                closed({"kind": {"const": "circle"}, "r": NUMBER}, "kind", "r"),
                closed({"kind": {"const": "rect"}, "w": NUMBER, "h": NUMBER}, "kind", "w", "h"),
            ]
        },
        {"kind": "circle", "r": 1.5},
        {"kind": "rect", "w": 1, "h": 2},
    ),
    case(
        "any-of-same-keys",
        {
            "anyOf": [
                closed({"a": INTEGER, "b": STRING}, "a", "b"),
                closed({"a": STRING, "b": INTEGER}, "a", "b"),
            ]
        },
        {"a": 1, "b": "x"},
        {"a": "x", "b": 1},
    ),
    case(
        "any-of-arrays",
        {
            "anyOf": [
                {"type": "array", "items": INTEGER, "minItems": 1},
                {"type": "array", "items": STRING, "maxItems": 2},
            ]
        },
        [1, 2, 3],
        ["a", "b"],
        [],
    ),
    case(
        "any-of-required",
        {
            "type": "object",
            "properties": {"a": INTEGER, "b": INTEGER},
            "additionalProperties": False,
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        {"a": 1},
        {"b": 1},
        {"a": 1, "b": 2},
    ),
    case(
        "nullable-object",
        {"anyOf": [{"type": "null"}, closed({"x": {"type": "boolean"}}, "x")]},
        None,
        {"x": True},
    ),
    case(
        "all-of",
        {
            "allOf": [
                {"type": "object", "properties": {"a": INTEGER}, "required": ["a"]},
                {"properties": {"b": {"type": "string", "maxLength": 4}}, "required": ["b"]},
            ]
        },
        {"a": 1, "b": "four"},
        {"a": 1, "b": "", "c": 0},
    ),
    case(
        "annotations",
        {
            "title": "t",
            "description": "d",
            "default": 1,
            "examples": [2],
            "type": "integer",
            "deprecated": True,
            "x-own": {"y": 1},
        },
        5,
    ),
)

CASES = {case.name: case for case in SCHEMAS}
assert len(CASES) == len(SCHEMAS), "two cases have the same name"


@cache
def byte_vocabulary() -> ffwd.Vocabulary:
    """Token b is byte b; 256 is the end. It encodes, too: byte for byte."""
    tokens = [bytes([byte]) for byte in range(256)]
    return ffwd.Vocabulary([*tokens, None], eos_token_ids=[256], encode=list)


@cache
def real_vocabulary(name: str) -> ffwd.Vocabulary:
    """The vocabulary of one of `realtokenizers.NAMES`."""
    real = load(name)
    return ffwd.tokenizer.from_huggingface(
        real.tokenizer, vocab_size=real.width, eos_token_ids=real.eos_token_ids
    )


@cache
def token_bytes(name: str) -> tuple[bytes | None, ...]:
    vocabulary = real_vocabulary(name)
    return tuple(vocabulary.token_bytes(token) for token in range(vocabulary.vocab_size))


def tokens_of(vocabulary: ffwd.Vocabulary) -> list[bytes | None]:
    return [vocabulary.token_bytes(token) for token in range(vocabulary.vocab_size)]


def mask_bits(matcher: ffwd.Matcher) -> npt.NDArray[np.bool_]:
    """The bitmask of the matcher as `[vocab_size]` booleans."""
    size = matcher.grammar.vocabulary.vocab_size
    bitmask = ffwd.allocate_bitmask(1, size)
    matcher.fill_bitmask(bitmask)
    return bits_of(bitmask[0], size)


def bits_of(row: npt.NDArray[Any], size: int) -> npt.NDArray[np.bool_]:
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")
    return bits[:size].astype(np.bool_)


def accepts(grammar: ffwd.CompiledGrammar, text: str | bytes) -> bool:
    """Whether a grammar that was compiled for `byte_vocabulary` accepts the whole text."""
    data = text.encode() if isinstance(text, str) else text
    matcher = grammar.matcher()
    return matcher.accept_tokens(list(data)) and matcher.is_accepting()


def text_of(instance: Any, whitespace: str = "compact") -> str:
    return json.dumps(instance, ensure_ascii=False, separators=SEPARATORS[whitespace])


class DuplicateKeyError(ValueError):
    """An object of a document has the same key twice."""


def _unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise DuplicateKeyError(f"duplicate key among {keys}")
    return dict(pairs)


def _exact(text: str) -> Decimal | int:
    """A JSON number without rounding, with astronomic exponents brought nearer.

    No bound of a schema here comes near them, and the judges would write out all the digits.
    """
    mantissa, _, exponent = text.lower().partition("e")
    # Decimal itself has limits, far beyond what is told apart below.
    value = Decimal(f"{mantissa}e{max(-100_000, min(int(exponent or 0), 100_000))}")
    if value and value.adjusted() > 400:
        return 10**400 if value > 0 else -(10**400)
    if value and value.adjusted() < -400:
        return Decimal("1e-400").copy_sign(value)
    return value


def parse(text: str) -> Any:
    """Strict JSON: no duplicate keys, no NaN; numbers with a point or an exponent are exact."""

    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")

    return json.loads(
        text, object_pairs_hook=_unique_keys, parse_float=_exact, parse_constant=refuse
    )


def _is_number(_: Any, value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _is_integer(_: Any, value: Any) -> bool:
    return _is_number(_, value) and value == int(value)


class Judges:
    """jsonschema-rs (formats asserted) and Python's jsonschema (the formats that it has)."""

    _FORMATS = ("date", "ipv4", "ipv6", "uuid", "email")

    def __init__(self, schema: Any) -> None:
        self.rust = jsonschema_rs.validator_for(
            schema, validate_formats=True, ignore_unknown_formats=True
        )
        # Bounds as decimals, for 0.1 as a float is not the 0.1 of the schema's text.
        exact = json.loads(json.dumps(schema), parse_float=Decimal)
        plain = jsonschema.validators.validator_for(exact, jsonschema.Draft202012Validator)
        numbers = plain.TYPE_CHECKER.redefine_many({"number": _is_number, "integer": _is_integer})
        exact_type = jsonschema.validators.extend(plain, type_checker=numbers)
        self.python = exact_type(exact, format_checker=jsonschema.FormatChecker(self._FORMATS))

    def verdict(self, instance: Any) -> bool:
        """The verdict of jsonschema-rs, which decides where judges differ."""
        return bool(self.rust.is_valid(instance))

    def refusals(self, instance: Any) -> list[str]:
        """Which judges refuse the instance, with their reasons."""
        refusals = [f"jsonschema-rs: {error}" for error in self.rust.iter_errors(instance)]
        refusals += [f"jsonschema: {error.message}" for error in self.python.iter_errors(instance)]
        return refusals
