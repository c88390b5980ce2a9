"""Grammars of rules with a budget: completions are texts of them, and all texts end in time."""

import random

import numpy as np
import pytest
from compiled import END, byte_vocabulary
from larkcases import CASES

import ffwd

# Grammars of llama.cpp, each with the length of a shortest text.
GBNF = [
    ('root ::= "a" root "b" | "c"', 1),
    ('root ::= root "+" root | "(" root ")" | [0-9]+', 1),
    ('root ::= root "x" | "yy"', 2),
    ('root ::= a | b\na ::= "(" b ")"\nb ::= "[" a "]" | "zzzzz" | a "!"', 5),
    ('root ::= ("ab" | "c"){3,5} "d"?', 3),
    ('root ::= ("ab" | "cde"){3,5} end\nend ::= "." | ""', 6),
    ('root ::= [a-z]+ "=" [0-9]{2,4} ("," root)?', 4),
    ('root ::= x* "end"\nx ::= "e" | "en" | root', 3),
    ('root ::= "if " root " then " root (" else " root)? | "ok"', 2),
    ('root ::= "" | "a" root "a" | "b" root "b"', 0),
    ('root ::= item{100}\nitem ::= "a" | "[" root "]"', 100),
    ('root ::= "<" list{2} ">"\nlist ::= "(" (item ("," item)*)? ")"\nitem ::= [0-9] | list', 6),
]

LARK = [
    (
        'start: %json {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}',
        7,
    ),
    ('start: "f(" %json {"type": "array", "minItems": 2, "uniqueItems": true} ")" start?', 8),
    ('start: pair ("," pair)*\npair: NAME "=" %json {"type": "boolean"}\nNAME: /[a-z]+/', 6),
    ('start: e\ne: e "+" t | t\nt: t "*" f | f\nf: "(" e ")" | N\nN: /[0-9]+/\n%ignore / +/', 1),
    ('start: "{" start* "}" | "xxx" | start ";"', 2),
]


def lark_cases() -> list[tuple[str, int]]:
    """Grammars with texts, whose shortest is at least as long as a shortest text."""
    return [(text, min(len(one.encode()) for one in texts)) for text, texts, _ in CASES if texts]


def all_grammars() -> list[tuple[ffwd.Grammar, int, bool]]:
    """Grammars, each with a length, and whether it is that of a shortest text or only a bound."""
    found: list[tuple[ffwd.Grammar, int, bool]]
    found = [(ffwd.gbnf(text), length, True) for text, length in GBNF]
    found += [(ffwd.lark(text), length, True) for text, length in LARK]
    found += [(ffwd.lark(text), length, False) for text, length in lark_cases()]
    return found


def pieces_vocabulary() -> ffwd.Vocabulary:
    """All bytes, and tokens of several."""
    more = ["ab", "),", '":', '{"', '"}', "[]", "(1", "=1", "xx", "en", "nd", " th", "+(", "true"]
    tokens = [bytes([byte]) for byte in range(END)] + [piece.encode() for piece in more]
    return ffwd.Vocabulary([*tokens, None], eos_token_ids=[len(tokens)])


def allowed(matcher: ffwd.Matcher) -> list[int]:
    return matcher.allowed_token_ids()


def shortest_by_trying(compiled: ffwd.CompiledGrammar, most: int = 1500) -> int | None:
    """How many tokens a text has at least, all texts tried; `None` where they are too many."""
    pending, length = [compiled.matcher()], 0
    while pending and len(pending) <= most:
        if any(matcher.is_accepting() for matcher in pending):
            return length
        following = []
        for matcher in pending:
            for token in allowed(matcher):
                following.append(matcher.fork())
                assert following[-1].accept_token(token)
        pending, length = following, length + 1
    return None


@pytest.mark.parametrize(
    "vocabulary", [byte_vocabulary(), pieces_vocabulary()], ids=["bytes", "pieces"]
)
def test_completions_end_texts_and_are_short(vocabulary: ffwd.Vocabulary) -> None:
    tried = 0
    for grammar, length, exactly in all_grammars():
        compiled = ffwd.compile(grammar, vocabulary)
        completion = compiled.shortest_completion()
        matcher = compiled.matcher()
        assert matcher.accept_tokens(completion), grammar
        assert matcher.is_terminated()
        text = b"".join(vocabulary.token_bytes(token) or b"" for token in completion)
        assert len(text) == length if exactly else len(text) <= length, (grammar, text)
        least = shortest_by_trying(compiled)
        if least is not None:
            tried += 1
            # A text of the fewest bytes need not be one of the fewest tokens.
            more = 1 if len(vocabulary.eos_token_ids) and vocabulary.vocab_size > END + 1 else 0
            assert least + 1 <= len(completion) <= least + 1 + more, (grammar, text)
    assert tried > 20


@pytest.mark.parametrize(
    "vocabulary", [byte_vocabulary(), pieces_vocabulary()], ids=["bytes", "pieces"]
)
def test_all_texts_end_in_time(vocabulary: ffwd.Vocabulary) -> None:
    source = random.Random(17)
    ends = set(vocabulary.eos_token_ids)
    full = 0
    for grammar, _, _ in all_grammars():
        compiled = ffwd.compile(grammar, vocabulary)
        needed = len(compiled.shortest_completion())
        if needed > 1:
            with pytest.raises(ffwd.BudgetError) as caught:
                compiled.matcher(max_tokens=needed - 1)
            assert caught.value.needed == needed
        for more in (0, 1, 3, 9, 30):
            matcher = compiled.matcher(max_tokens=needed + more)
            while not matcher.is_terminated():
                mask = allowed(matcher)
                assert mask, (grammar, matcher.tokens)
                going_on = [token for token in mask if token not in ends] or mask
                assert matcher.accept_token(source.choice(going_on)), (grammar, matcher.tokens)
                if source.random() < 0.1:
                    matcher.rollback(source.randrange(min(matcher.num_tokens, 4) + 1))
            assert matcher.num_tokens <= needed + more
            full += matcher.num_tokens == needed + more
            plain = compiled.matcher()
            assert plain.accept_tokens(matcher.tokens)
            assert plain.is_terminated()
    assert full > 100


def test_masks_say_what_may_be_accepted() -> None:
    vocabulary = pieces_vocabulary()
    source = random.Random(18)
    for grammar, _, _ in all_grammars()[::3]:
        compiled = ffwd.compile(grammar, vocabulary)
        needed = len(compiled.shortest_completion())
        matcher = compiled.matcher(max_tokens=needed + 4)
        while not matcher.is_terminated():
            mask = set(allowed(matcher))
            for token in range(vocabulary.vocab_size):
                assert (token in mask) == bool(matcher.validate_tokens([token])), (grammar, token)
            assert matcher.accept_token(source.choice(sorted(mask)))


@pytest.mark.parametrize(
    ("grammar", "length"),
    [
        (ffwd.gbnf('root ::= item{30000} "."\nitem ::= "a" | "(" item ")"'), 30_001),
        (ffwd.gbnf('root ::= "<" ("[" [a-z]{2} "]"){4000} ">"'), 16_002),
        (ffwd.json_schema({"type": "array", "minItems": 5000}, whitespace="compact"), 10_001),
        (
            ffwd.json_schema(
                {"minItems": 7000, "type": "array", "items": {"type": "array", "minItems": 3}},
                whitespace="compact",
            ),
            7000 * 8 + 1,
        ),
        (ffwd.json_schema({"type": "string", "minLength": 100_000}), 100_002),
        (ffwd.json_schema({"type": "string", "pattern": "^(ab|c){70000}$"}), 70_002),
    ],
)
def test_what_must_come_very_often_is_completed(grammar: ffwd.Grammar, length: int) -> None:
    """The search is for one item, and not for all of them."""
    compiled = ffwd.compile(grammar, byte_vocabulary())
    with pytest.raises(ffwd.BudgetError) as caught:
        compiled.matcher(max_tokens=1000)
    assert caught.value.needed == length + 1
    matcher = compiled.matcher(max_tokens=length + 3)
    source = random.Random(19)
    for _ in range(20):
        assert matcher.accept_token(source.choice(allowed(matcher)))
    rest = matcher.shortest_completion()
    assert matcher.accept_tokens(rest)
    assert matcher.is_terminated()
    assert matcher.num_tokens <= length + 3


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 50_000_000},
        {"type": "array", "minItems": 2_000_000_000},
        {"type": "object", "minProperties": 30_000},
    ],
)
def test_what_is_too_long_is_refused(schema: object) -> None:
    compiled = ffwd.compile(ffwd.json_schema(schema), byte_vocabulary())
    with pytest.raises((ffwd.LimitExceededError, ffwd.BudgetError)):
        compiled.matcher(max_tokens=1000)


def test_keys_and_items_that_must_differ_are_told_apart_in_time() -> None:
    """What a completion would write may be what the text has just written."""
    short = set(b'ab01"[]{}:,')
    vocabulary = pieces_vocabulary()
    source = random.Random(20)
    for schema in (
        {"type": "object", "minProperties": 3, "additionalProperties": {"type": "null"}},
        {"type": "object", "propertyNames": {"pattern": "^[ab]{1,2}$"}, "minProperties": 4},
        {"type": "array", "uniqueItems": True, "minItems": 3, "items": {"type": "string"}},
        {"type": "array", "uniqueItems": True, "minItems": 3, "items": {"type": "integer"}},
        {
            "type": "array",
            "uniqueItems": True,
            "minItems": 2,
            "items": {"minItems": 1, "type": "array"},
        },
    ):
        grammar = ffwd.json_schema(schema, whitespace="compact")
        compiled = ffwd.compile(grammar, vocabulary)
        needed = len(compiled.shortest_completion())
        for more in (0, 2, 4, 6, 8, 12):
            matcher = compiled.matcher(max_tokens=needed + more)
            while not matcher.is_terminated():
                mask = set(allowed(matcher))
                for token in range(vocabulary.vocab_size):
                    says = bool(matcher.validate_tokens([token]))
                    assert (token in mask) == says, (schema, matcher.tokens, token)
                # Short keys and items meet each other.
                likely = sorted(mask & short) or sorted(mask)
                assert matcher.accept_token(source.choice(likely))
            assert matcher.num_tokens <= needed + more


def test_an_ample_budget_changes_no_mask() -> None:
    vocabulary = pieces_vocabulary()
    source = random.Random(21)
    for grammar, _, _ in all_grammars()[::2]:
        compiled = ffwd.compile(grammar, vocabulary)
        plain, ample = compiled.matcher(), compiled.matcher(max_tokens=100_000)
        rows = np.zeros((2, (vocabulary.vocab_size + 31) // 32), dtype=np.int32)
        for _ in range(12):
            plain.fill_bitmask(rows[0])
            ample.fill_bitmask(rows[1])
            assert np.array_equal(rows[0], rows[1])
            token = source.choice(allowed(plain))
            assert plain.accept_token(token)
            assert ample.accept_token(token)
            if plain.is_terminated():
                break
