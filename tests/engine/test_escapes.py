"""`escapes="any"`, against strings that are written canonically.

The twin writes each escape of a text canonically and asks the grammar with canonical escapes. It
tries characters for an escape that is not complete.
"""

import json
import random
from typing import Any, NamedTuple

import jsonschema_rs
import pytest

import ffwd
from maskbench.data import builtin_cases

SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
HEX = "0123456789abcdefABCDEF"
JOINED = (
    *("\\u", "\\u0", "\\u00", "\\u006", "\\u0061", "u00", "0061", "61", "1", 'e9"', "\\/", '"\\u'),
    *("\\ud83d", "\\uD83D\\uDE00", "\\ud83d\\", "d83d", "\\ude00", "de00\\u0062", '\\n"', 'a\\"'),
    *(
        '{"\\u0061":',
        '"\\u0061b":',
        '\\u0061","',
        "ab",
        'b":"',
        '","',
        '"]',
        '"}',
        "é",
        "😀",
        "\\\\",
    ),
    *('","\\u0061', '":"\\u00e9"}', "a\\u0062", '"a":1,"\\u0061', 'a":1}', "\\t", "a/b", '"a\\/'),
)
TEXTS = [*(bytes([byte]) for byte in range(256)), None, *map(str.encode, JOINED)]
EOS = 256
CANDIDATES = 'abxyz0123456789- /é😀"\\\n\t\x01\uffff\U0010ffff~\x7f'
"""Characters for escapes that are not complete, beside those of the schema."""


class Case(NamedTuple):
    schema: Any
    options: dict[str, Any] = {}  # noqa: RUF012


def closed(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False} | more


WORDS = [
    f"{first}{middle}é{last}" for first in "abxy" for middle in "01/" for last in ("", "😀", '"')
]
CASES = {
    "any": Case({}),
    "string": Case({"type": "string"}),
    "few": Case({"enum": ["a", "ab", "é/\n", "😀", '"\\', "\x01", 1, None]}),
    "many": Case({"enum": WORDS}),
    "pattern": Case({"type": "string", "pattern": "^[a-cé]{2}(😀|/b)?$"}),
    "lookahead": Case({"type": "string", "pattern": "^(?!ab)[ab]{2,3}$"}),
    "lengths": Case({"type": "string", "minLength": 2, "maxLength": 3}),
    "not": Case({"type": "string", "maxLength": 2, "not": {"enum": ["a", "", "é"]}}),
    "date": Case({"type": "string", "format": "date"}),
    "names": Case(closed({"a": True, "a/b": {"type": "boolean"}, "é": {"enum": ["x"]}, '"': {}})),
    "required": Case(closed({"ab": {"type": "string"}, "a😀": {"const": "a"}}, required=["ab"])),
    "any order": Case(
        closed({"a": {"enum": ["a", "b"]}, "b": {"type": "null"}, "ab": {}}, required=["a", "ab"]),
        {"property_order": "any"},
    ),
    "other names": Case(
        {"properties": {"a": {"const": "b"}}, "additionalProperties": {"enum": ["x", 1]}}
    ),
    "patterns of names": Case(
        {"patternProperties": {"^a": {"const": "é"}, "b$": {"type": "string"}}, "minProperties": 2}
        | {"propertyNames": {"maxLength": 2}, "type": "object", "additionalProperties": False}
    ),
    "unique": Case(
        {"type": "array", "items": {"enum": ["a", "ab", "é", "/"]}, "uniqueItems": True}
    ),
    "unique strings": Case(
        {"type": "array", "items": {"type": "string", "pattern": "^[ab/]{1,2}$"}, "minItems": 2}
        | {"uniqueItems": True, "maxItems": 3}
    ),
    "unique objects": Case(
        {"type": "array", "uniqueItems": True, "minItems": 2, "maxItems": 3}
        | {"items": closed({"a": {"enum": ["a", "é"]}}, required=["a"])}
    ),
    "contains": Case(
        {"type": "array", "contains": {"const": "a/"}, "items": {"enum": ["a/", "b"]}}
    ),
    "flexible": Case(closed({"a": {"const": "é"}}, required=["a"]), {"whitespace": "flexible"}),
    "compact": Case(closed({"a": {"enum": ["a", "b"]}}), {"whitespace": "compact"}),
}


def canonically(character: str) -> bytes:
    """Return the bytes of a character in a string."""
    return json.dumps(character, ensure_ascii=False).encode()[1:-1].replace(b"\\u007f", b"\x7f")


class Reading(NamedTuple):
    """A text whose escapes are written canonically."""

    written: bytes
    escape: str
    """One that is not complete."""
    in_string: bool


def read(text: bytes, in_string: bool = False) -> Reading | None:
    """Return a text as it is written canonically; `None` if it has an escape that JSON lacks."""
    written, at = b"", 0
    while at < len(text):
        byte = text[at : at + 1]
        if not in_string or byte != b"\\":
            in_string ^= byte == b'"'
            written += byte
            at += 1
            continue
        escape = text[at:].decode("latin-1")
        size = 2 if escape[1:2] != "u" else 6
        digits = escape[2:6] if size == 6 else ""
        if any(digit not in HEX for digit in digits):
            return None
        if len(escape) < size:
            return Reading(written, escape, True)
        if size == 2:
            if escape[1] not in SHORT:
                return None
            written += canonically(SHORT[escape[1]])
            at += 2
            continue
        code = int(digits, 16)
        if 0xDC00 <= code < 0xE000:
            return None
        if 0xD800 <= code < 0xDC00:
            lower = escape[6:12]
            if lower[:2] != "\\u"[: len(lower)] or any(digit not in HEX for digit in lower[2:]):
                return None
            if len(lower) < 6:
                return Reading(written, escape, True)
            low = int(lower[2:], 16)
            if not 0xDC00 <= low < 0xE000:
                return None
            code, size = 0x10000 + (code - 0xD800 << 10) + (low - 0xDC00), 12
        written += canonically(chr(code))
        at += size
    return Reading(written, "", in_string)


def escapes_of(character: str) -> list[str]:
    """Return the escapes of a character."""
    units = character.encode("utf-16-be")
    pairs = [units[at : at + 2].hex() for at in range(0, len(units), 2)]
    long = "".join(f"\\u{pair}" for pair in pairs)
    return [long] + ["\\" + short for short, known in SHORT.items() if known == character]


def completed(escape: str) -> list[str]:
    """Return some of the characters whose escapes begin so."""
    first, second = escape[:6], escape[6:]
    characters = []
    for digit in "05af":
        one = (first + "\\u"[len(first) :]).ljust(6, digit)
        for whole in (one, one + second + "\\udc00"[len(second) :]):
            reading = read(whole.encode(), in_string=True)
            if reading is not None and not reading.escape:
                characters.append(json.loads(f'"{whole}"'))
    return characters


class Twin:
    """What may come, by the grammar with canonical escapes."""

    def __init__(self, case: Case, vocabulary: ffwd.Vocabulary) -> None:
        grammar = ffwd.compile(ffwd.json_schema(case.schema, **case.options), vocabulary)
        self.matcher = grammar.matcher()
        self.text = b""
        self.written = 0
        self.candidates = sorted({*CANDIDATES, *json.dumps(case.schema, ensure_ascii=False)})

    def go_on(self, text: bytes) -> None:
        reading = read(self.text + text)
        assert reading is not None
        assert self.matcher.accept_tokens(list(reading.written[self.written :]))
        self.text += text
        self.written = len(reading.written)

    def may_come(self, text: bytes) -> bool:
        reading = read(self.text + text)
        if reading is None:
            return False
        rest = reading.written[self.written :]
        if not reading.escape:
            return self.matches(rest)
        return any(
            escape.lower().startswith(reading.escape.lower())
            and self.matches(rest + canonically(character))
            for character in self.candidates + completed(reading.escape)
            for escape in escapes_of(character)
        )

    def matches(self, text: bytes) -> bool:
        return self.matcher.validate_tokens(list(text)) == len(text)

    def may_end(self) -> bool:
        reading = read(self.text)
        return reading is not None and not reading.escape and self.matcher.is_accepting()


@pytest.fixture(scope="module")
def vocabulary() -> ffwd.Vocabulary:
    return ffwd.Vocabulary(TEXTS, eos_token_ids=[EOS])


def compiled(case: Case, vocabulary: ffwd.Vocabulary) -> ffwd.CompiledGrammar:
    return ffwd.compile(ffwd.json_schema(case.schema, escapes="any", **case.options), vocabulary)


def respelled(value: Any, draw: random.Random) -> str:
    """Return a JSON text in which characters are escapes at random."""

    def spelled(character: str) -> str:
        long = escapes_of(character)[0]
        digits = "".join(draw.choice((digit, digit.upper())) for digit in long)
        ways = [long, digits.replace("U", "u"), canonically(character).decode()]
        return draw.choice(ways + escapes_of(character)[1:])

    match value:
        case str():
            return '"' + "".join(map(spelled, value)) + '"'
        case dict():
            members = (f"{respelled(k, draw)}:{respelled(v, draw)}" for k, v in value.items())
            return "{" + ",".join(members) + "}"
        case list():
            return "[" + ",".join(respelled(item, draw) for item in value) + "]"
    return json.dumps(value)


@pytest.mark.parametrize("name", CASES)
def test_masks_are_those_of_the_twin(name, vocabulary):
    case, draw = CASES[name], random.Random(name)
    grammar = compiled(case, vocabulary)
    is_valid = jsonschema_rs.validator_for(case.schema).is_valid
    ended = 0
    for _ in range(6):
        matcher, twin = grammar.matcher(), Twin(case, vocabulary)
        for _ in range(24):
            allowed = set(matcher.allowed_token_ids())
            expected = {
                token for token, text in enumerate(TEXTS) if text and twin.may_come(text)
            } | ({EOS} if twin.may_end() else set())
            assert allowed == expected, (twin.text, [TEXTS[token] for token in allowed ^ expected])
            if not allowed - {EOS}:
                break
            # Escapes more often than they are drawn by chance.
            escapes = [token for token in allowed - {EOS} if b"\\" in TEXTS[token]]
            token = draw.choice(
                escapes if escapes and draw.random() < 0.4 else sorted(allowed - {EOS})
            )
            assert twin.may_come(matcher.forced_bytes())
            assert matcher.accept_token(token)
            twin.go_on(TEXTS[token])
        rest = matcher.shortest_completion()
        text = twin.text + b"".join(TEXTS[token] for token in rest if token != EOS)
        assert matcher.accept_tokens(rest)
        assert is_valid(json.loads(text)), text
        ended += 1
    assert ended == 6


@pytest.mark.parametrize("name", CASES)
def test_budgets_are_kept(name, vocabulary):
    case, draw = CASES[name], random.Random(name)
    grammar = compiled(case, vocabulary)
    is_valid = jsonschema_rs.validator_for(case.schema).is_valid
    shortest = len(grammar.matcher().shortest_completion())
    for spare in (0, 1, 3, 9, 14):
        matcher = grammar.matcher(max_tokens=shortest + spare)
        text = b""
        while not matcher.is_terminated():
            allowed = matcher.allowed_token_ids()
            assert allowed, text
            escapes = [token for token in allowed if b"\\" in (TEXTS[token] or b"")]
            token = draw.choice(escapes or allowed)
            assert matcher.accept_token(token)
            text += TEXTS[token] or b""
        assert is_valid(json.loads(text)), text


def accepts(grammar: ffwd.CompiledGrammar, text: str) -> bool:
    matcher = grammar.matcher()
    return matcher.accept_tokens(list(text.encode())) and matcher.is_accepting()


@pytest.mark.parametrize("order", ["declared", "any"])
def test_respelled_documents_have_the_verdicts_of_canonical_ones(order, vocabulary):
    """All documents of the built-in corpus."""
    draw = random.Random(order)
    seen = {True: 0, False: 0}
    for item in builtin_cases():
        options = {"whitespace": "compact", "property_order": order, "numbers": "any"}
        case = Case(item.schema, options)
        try:
            canonical = ffwd.compile(ffwd.json_schema(item.schema, **options), vocabulary)
        except ffwd.SchemaError:
            continue
        grammar = compiled(case, vocabulary)
        for test in item.tests:
            plain = json.dumps(test.data, ensure_ascii=False, separators=(",", ":"))
            verdict = accepts(canonical, plain.replace("\\u007f", "\x7f"))
            assert accepts(grammar, respelled(test.data, draw)) == verdict, (item.id, plain)
            seen[verdict] += 1
    assert min(seen.values()) > 50


RECORD = closed({"a": {"type": "string"}, "é": {"enum": ["x/y"]}}, required=["a", "é"])
SPELLED = r'{"\u0061":"q\u00e9\"","\u00E9":"x\/y"}'


@pytest.mark.parametrize("saved", [False, True])
def test_within_other_rules(saved, vocabulary):
    """Texts around the JSON, a capture, and a part with a limit; also from saved bytes."""
    content = ffwd.json_schema(RECORD, escapes="any", whitespace="compact")
    rules = ffwd.seq(
        ffwd.regex(r"[a\\]{3}"),
        ffwd.capture("record", content),
        ffwd.limit(ffwd.seq("<", content), max_tokens=len(SPELLED) + 1),
        ">",
    )
    grammar = ffwd.compile(rules, vocabulary)
    if saved:
        grammar = ffwd.CompiledGrammar.from_bytes(grammar.to_bytes(), vocabulary)
    matcher = grammar.matcher()
    # A backslash outside of strings is none of theirs.
    before = "a\\a"
    assert matcher.accept_tokens(list((before + SPELLED + "<").encode()))
    assert matcher.captures()["record"] == SPELLED
    for byte in SPELLED.encode():
        assert byte in matcher.allowed_token_ids()
        assert matcher.accept_token(byte)
    assert matcher.accept_tokens([ord(">")])
    assert matcher.is_accepting()
    # The part has one token left, so the longer form of its first name does not fit.
    matcher.rollback(len(SPELLED) + 1)
    assert not matcher.accept_tokens(list(rb'{"\u0061":"q\u00e9\"","\u00E9":"\u0078\/y"}'))


def test_escapes_are_explained(vocabulary):
    grammar = ffwd.compile(ffwd.json_schema(RECORD, escapes="any"), vocabulary)
    matcher = grammar.matcher()
    assert matcher.accept_tokens(list(rb'{"\u00'))
    (expected,) = matcher.explain().expected
    assert '"a"' in str(expected)
    assert matcher.accept_tokens(list(b'61": "\\ud83'))
    (expected,) = matcher.explain().expected
    assert "string" in str(expected)


def test_all_schemas_of_a_grammar_have_the_same(vocabulary):
    with pytest.raises(ffwd.GrammarError, match="same escapes"):
        ffwd.compile(
            ffwd.seq(ffwd.json_schema({}, escapes="any"), ffwd.json_schema({})), vocabulary
        )


@pytest.mark.parametrize(
    "text", [rb'"\ud800"', rb'"\udc', rb'"\ud800\n', rb'"\u00g', rb'"\x', rb'"\u+']
)
def test_what_json_lacks_is_refused(text, vocabulary):
    matcher = ffwd.compile(ffwd.json_schema({}, escapes="any"), vocabulary).matcher()
    assert matcher.validate_tokens(list(text)) == len(text) - 1
