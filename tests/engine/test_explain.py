"""`Matcher.explain` agrees with masks and `validate_tokens`, and names who asks for what."""

import random
from collections.abc import Sequence

import pytest
from cases import real_vocabulary

import ffwd
from ffwd import Explanation

EOS = 256
# A control token beside the bytes.
CALL = 257
VOCABULARY = ffwd.Vocabulary(
    [bytes([byte]) for byte in range(256)] + [None, None, b"ab", b'{"', b'":', b"1,", b"foo"],
    eos_token_ids=[EOS],
    token_names={"<|end|>": EOS, "<|call|>": CALL},
)
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 5},
        "age": {"type": "integer"},
        "tags": {
            "type": "array",
            "items": {"enum": ["red", "green"]},
            "minItems": 1,
            "maxItems": 2,
        },
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
ARITHMETIC = """start: sum
sum: product | sum "+" product
product: atom | product "*" atom
atom: NUMBER | "(" sum ")"
NUMBER: /[0-9]+/
%ignore " "
"""
GRAMMARS: dict[str, ffwd.GrammarLike] = {
    "json schema": ffwd.json_schema(SCHEMA),
    "compact": ffwd.json_schema(SCHEMA, whitespace="compact"),
    "any json": ffwd.json_schema(True),
    "any of": ffwd.json_schema(
        {"anyOf": [{"type": "integer"}, {"required": ["a"], "minProperties": 2}]}
    ),
    "regex": ffwd.regex(r"[0-9]{4}-(0[1-9]|1[0-2])(foo|ab)?"),
    "choice": ffwd.choice(["red", "green", "blue"]),
    "lark": ffwd.lark(ARITHMETIC),
    "lark with json": ffwd.lark('start: "a" <|call|> %json {"type": "boolean"} | "b" /x*/ "y"'),
    "gbnf": ffwd.gbnf('root ::= item ("," item)*\nitem ::= [a-z]+ | "(" root ")"'),
    "structural tag": ffwd.structural_tag(
        {
            "type": "structural_tag",
            "format": {
                "type": "triggered_tags",
                "triggers": ["foo="],
                "tags": [
                    {
                        "begin": "foo=a>",
                        "content": {"type": "json_schema", "json_schema": {"type": "integer"}},
                        "end": "ab",
                    }
                ],
            },
        }
    ),
    "reasoning": ffwd.seq(ffwd.text_until("ab"), ffwd.choice(["foo", "x"])),
    "composed": ffwd.seq("foo", ffwd.regex("[a-c]+"), ffwd.json_schema({"type": "array"}), "!"),
}


def matcher(name: str, **options: object) -> ffwd.Matcher:
    return ffwd.compile(GRAMMARS[name], VOCABULARY).matcher(**options)  # type: ignore[arg-type]


def after(name: str, text: bytes, **options: object) -> ffwd.Matcher:
    at = matcher(name, **options)
    assert at.accept_tokens(list(text))
    return at


def single_bytes(tokens: Sequence[int]) -> bytes:
    return bytes(token for token in tokens if token < 256)


def check(at: ffwd.Matcher, rng: random.Random) -> Explanation:
    """Compares what is explained with masks, which know nothing of explanations."""
    allowed = set(at.allowed_token_ids())
    before = (at.tokens, at.is_accepting())
    plain = at.explain()
    assert plain.num_tokens == at.num_tokens
    assert plain.answer is None
    if at.max_tokens is None and plain.stage == "grammar":
        assert plain.next_bytes == single_bytes(sorted(allowed))
        assert (
            plain.is_accepting == (EOS in allowed) == any(e.kind == "end" for e in plain.expected)
        )
    assert plain.expected or at.is_terminated()
    assert str(plain)
    assert plain.to_dict()["num_tokens"] == at.num_tokens
    some = rng.sample(sorted(allowed), min(2, len(allowed)))
    tokens = [*rng.sample(range(263), 4), EOS, CALL, *some]
    for token in tokens:
        answer = at.explain(token).answer
        assert answer is not None
        assert answer.allowed == (token in allowed), (token, at.tokens)
        assert bool(answer.reasons) == (not answer.allowed)
        assert str(answer)
    for _ in range(2):
        text = bytes(
            rng.choice(b'{}[]":,0123456789aberdgfox()+*-! \xc3') for _ in range(rng.randrange(1, 7))
        )
        check_text(at, text)
    assert (at.tokens, at.is_accepting()) == before
    return plain


def check_text(at: ffwd.Matcher, text: bytes) -> None:
    answer = at.explain(text=text).answer
    assert answer is not None
    if at.max_tokens is not None or at.is_terminated():
        return
    good = at.validate_tokens(list(text))
    assert answer.good_bytes == good, text
    assert answer.allowed == (good == len(text))
    if answer.allowed:
        assert answer.refused_byte is None
        return
    assert answer.refused_byte == text[good]
    assert answer.reasons
    other = at.fork()
    assert other.accept_tokens(list(text[:good]))
    assert answer.instead_bytes == single_bytes(other.allowed_token_ids())
    assert answer.refused_byte not in answer.instead_bytes


@pytest.mark.parametrize("name", GRAMMARS)
def test_explanations_agree_with_masks(name: str) -> None:
    rng = random.Random(name)
    for _ in range(4):
        at = matcher(name)
        for _ in range(rng.randrange(4, 25)):
            check(at, rng)
            allowed = at.allowed_token_ids()
            if not allowed:
                break
            assert at.accept_token(rng.choice(allowed))
        check(at, rng)


@pytest.mark.parametrize("name", GRAMMARS)
def test_examples_may_come(name: str) -> None:
    """Each example is a text that the grammar goes on with."""
    rng = random.Random(name)
    at = matcher(name)
    while not at.is_terminated() and at.num_tokens < 30:
        explanation = at.explain()
        for expected in explanation.expected:
            if expected.example is not None:
                answer = at.explain(text=expected.example).answer
                assert answer is not None
                assert answer.allowed, (at.tokens, expected)
        if explanation.completion is not None:
            assert at.validate_tokens(list(explanation.completion)) == len(explanation.completion)
            other = at.fork()
            assert explanation.completion_text is not None
            text_tokens = list(explanation.completion_text)
            assert name == "lark with json" or other.accept_tokens([*text_tokens, EOS])
        assert at.accept_token(rng.choice(at.allowed_token_ids()))


def test_a_schema_is_named_by_its_pointer() -> None:
    at = after("compact", b'{"name":')
    (expected,) = at.explain().expected
    assert (expected.kind, expected.what) == ("value", "a string")
    assert expected.pointers == ("#/properties/name",)
    answer = at.explain(text="12").answer
    assert answer is not None
    assert (answer.good_bytes, answer.refused_byte) == (0, ord("1"))
    assert answer.reasons[0].pointers == ("#/properties/name",)
    assert "a string" in answer.reasons[0].message

    at = after("compact", b'{"name":"x","age":')
    assert [e.what for e in at.explain().expected] == ["an integer"]
    at = after("compact", b'{"name":"x","age":1,"tags":[')
    (expected,) = at.explain().expected
    assert expected.what == '"red" or "green"' or expected.what == '"green" or "red"'
    assert expected.pointers == ("#/properties/tags/items",)


def reason(at: ffwd.Matcher, text: str) -> ffwd.Reason:
    answer = at.explain(text=text).answer
    assert answer is not None
    assert not answer.allowed
    return answer.reasons[0]


def test_objects_and_arrays_say_what_they_miss() -> None:
    missing = reason(after("compact", b'{"name":"x"'), "}")
    assert missing.message == 'the object may not close before its required key "age"'
    assert missing.pointers == ("#",)
    not_now = reason(after("compact", b'{"name":"x","age":1,'), '"name"')
    assert not_now.message.startswith('the key "name" may not come here')
    unknown = reason(after("compact", b'{"name":"x","age":1,'), '"nick"')
    assert unknown.message.startswith("no key that may come here")
    assert unknown.pointers == ("#",)
    short = reason(after("compact", b'{"name":"x","age":1,"tags":['), "]")
    assert short.pointers == ("#/properties/tags",)
    full = reason(after("compact", b'{"name":"x","age":1,"tags":["red","red"'), ",")
    assert full.message == "the array may have no further item"
    assert full.pointers == ("#/properties/tags",)


def test_a_terminal_has_its_rules_and_their_places() -> None:
    at = after("lark", b"1+")
    expected = {e.what: e for e in at.explain().expected}
    assert '"("' in expected
    assert "/[0-9]+/" in expected
    (rule,) = expected['"("'].rules
    assert (rule.name, rule.source, rule.line) == ("atom", "Lark", 4)
    assert "NUMBER" in {rule.name for rule in expected["/[0-9]+/"].rules}

    in_number = after("lark", b"1+23")
    begun = [e for e in in_number.explain().expected if e.begun]
    assert [e.what for e in begun] == ["/[0-9]+/"]
    answer = in_number.explain(text=")").answer
    assert answer is not None
    assert answer.good_bytes == 0
    assert "atom" not in {rule.name for e in answer.instead for rule in e.rules if e.what == '")"'}


def test_only_terminals_that_have_begun_go_on() -> None:
    grammar = ffwd.lark('start: "begin" | "bend" | /b[0-9]+/')
    at = ffwd.compile(grammar, VOCABULARY).matcher()
    assert {e.what for e in at.explain().expected} == {'"begin"', '"bend"', "/b[0-9]+/"}
    assert at.accept_tokens(list(b"be"))
    assert {e.what for e in at.explain().expected} == {'"begin"', '"bend"'}
    assert at.accept_tokens(list(b"n"))
    assert {e.what for e in at.explain().expected} == {'"bend"'}


def test_tokens_of_a_set() -> None:
    at = after("lark with json", b"a")
    (expected,) = at.explain().expected
    assert (expected.kind, expected.example) == ("token", None)
    assert "call" in expected.what
    answer = at.explain(CALL).answer
    assert answer is not None
    assert answer.allowed
    other = matcher("lark with json").explain(CALL).answer
    assert other is not None
    assert "may not come as a token here" in other.reasons[0].message


def test_several_schemas_are_numbered() -> None:
    grammar = ffwd.seq(ffwd.json_schema({"type": "integer"}), ";", ffwd.json_schema({"const": "x"}))
    at = ffwd.compile(grammar, VOCABULARY).matcher()
    (expected,) = at.explain().expected
    assert expected.pointers == ("schema 1#",)
    assert at.accept_tokens(list(b"1;"))
    (expected,) = at.explain().expected
    assert expected.what == '"x"'
    assert all(pointer.startswith("schema 2#") for pointer in expected.pointers)


def test_budgets_free_text_and_the_end() -> None:
    rng = random.Random(5)
    at = matcher("compact", max_tokens=22)
    assert at.accept_tokens(list(b'{"name":"'))
    explanation = check(at, rng)
    assert explanation.notes
    tokens = [t for t in range(256) if t in b"abc" and t not in at.allowed_token_ids()]
    while not tokens:
        assert at.accept_token(ord("a"))
        check(at, rng)
        tokens = [t for t in b"abc" if t not in at.allowed_token_ids()]
    answer = at.explain(tokens[0]).answer
    assert answer is not None
    assert answer.refused_byte is None
    assert "in time" in answer.reasons[0].message

    free = matcher("compact", free_until=b"</t>")
    assert free.accept_tokens(list(b"hm"))
    explanation = check(free, rng)
    assert explanation.stage == "free_text"
    assert "</t>" in explanation.expected[0].what
    answer = free.explain(text="</t>[").answer
    assert answer is not None
    assert (answer.good_bytes, answer.refused_byte) == (4, ord("["))

    prefixed = matcher("compact", prefix=b"ab")
    explanation = check(prefixed, rng)
    assert (explanation.stage, explanation.next_bytes) == ("prefix", b"a")

    done = after("choice", b"red")
    assert done.accept_token(EOS)
    explanation = done.explain(EOS)
    assert (explanation.stage, explanation.expected) == ("ended", ())
    assert explanation.answer is not None
    assert not explanation.answer.allowed


def test_questions_that_cannot_be_answered() -> None:
    at = matcher("choice")
    with pytest.raises(ffwd.TokenError):
        at.explain(100_000)
    with pytest.raises(ValueError, match="not both"):
        at.explain(1, "x")
    with pytest.raises(TypeError):
        at.explain(text=3)  # type: ignore[arg-type]


def test_lists_are_bounded() -> None:
    names: dict[str, dict[str, object]] = {f"key{n:05}": {} for n in range(5_000)}
    schema = {"type": "object", "properties": names, "additionalProperties": False}
    at = ffwd.compile(ffwd.json_schema(schema, property_order="any"), VOCABULARY).matcher()
    assert at.accept_tokens(list(b"{"))
    explanation = at.explain()
    assert len(str(explanation)) < 5_000
    words = ffwd.choice([f"word{n}" for n in range(20_000)])
    assert len(str(ffwd.compile(words, VOCABULARY).matcher().explain(0))) < 5_000
    rules = "start: " + " | ".join(f'"w{n}" /[a-z]+/' for n in range(500))
    explanation = ffwd.compile(ffwd.lark(rules), VOCABULARY).matcher().explain(text="w1!")
    assert len(explanation.expected) <= 48
    assert explanation.num_more > 0


def test_a_terminal_that_began_long_ago() -> None:
    """It is still known which of several has begun, and the limit is far away."""
    text = "start: (NAME | NUMBER | TEXT)+\nNAME: /[a-z][a-z0-9]*/\nNUMBER: /[0-9]+/\n"
    grammar = ffwd.lark(text + 'TEXT: /"[^"]*"/\n%ignore " "')
    compiled = ffwd.compile(grammar, VOCABULARY)
    for begin, name in [("a", "NAME"), ("7", "NUMBER"), ('"', "TEXT")]:
        for count in (200, 300, 4_000):
            at = compiled.matcher()
            assert at.accept_tokens(list((begin + "1" * count).encode()))
            begun = [item for item in at.explain().expected if item.begun]
            assert [[rule.name for rule in item.rules] for item in begun] == [[name]], (name, count)


def test_tokens_that_no_tokenizer_writes() -> None:
    """Under canonical masks the answer says what takes a token out."""
    vocabulary = real_vocabulary("gpt2")
    compiled = ffwd.compile(ffwd.regex("[a-z]{2,12} (world|there)!*"), vocabulary)
    plain, canonical = compiled.matcher(), compiled.matcher(canonical=True)
    refused = set()
    for _ in range(6):
        may, must = plain.allowed_token_ids(), canonical.allowed_token_ids()
        assert set(must) <= set(may)
        explanation = canonical.explain()
        assert any("no tokenizer" in note for note in explanation.notes)
        for token in may:
            answer = canonical.explain(token).answer
            assert answer is not None
            assert answer.allowed == (token in must)
            if not answer.allowed:
                refused.add(token)
                assert answer.good_bytes == len(answer.text)
                assert [reason.message for reason in answer.reasons] == [
                    "the grammar allows it, but no tokenizer would write it here"
                ]
            plainly = plain.explain(token).answer
            assert plainly is not None
            assert plainly.allowed
        shortest = min(must, key=lambda token: len(vocabulary.token_bytes(token) or b""))
        assert plain.accept_token(shortest)
        assert canonical.accept_token(shortest)
    assert len(refused) >= 3
