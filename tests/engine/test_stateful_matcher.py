"""Matchers under any sequence of calls, against languages that are decided without ffwd.

A token may come exactly if some text of the language goes on with it. That is known of a regular
expression by the automaton that `interegular` builds, of a finite set of texts by looking, where
those of a schema are the candidates that `jsonschema-rs` finds valid, and of brackets by counting.
"""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import interegular
import jsonschema_rs
import numpy as np
import pytest
from cases import mask_bits
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import ffwd

BYTES = [bytes([byte]) for byte in range(256)]
LONGER = [
    *(b"aa", b"ab", b"abb", b"ba", b"bb", b"aabb", b"a,", b",b", b",bb", b"x", b"xa"),
    *(b"((", b"))", b"()", b")(", b"(())", b"1+", b"+1", b"12", b"12+3", b"01", b"-", b"0."),
    *(
        b'{"',
        b'{"a":',
        b'":',
        b'":1',
        b'1,"b":',
        b'"}',
        b"tr",
        b"true}",
        b"[1",
        b"1,",
        b"2]",
        b"]]",
    ),
    *(b",[", b"null", b" ", b"\xc3\xa9"),
]
TEXTS = [*BYTES, *LONGER]
TOOL, END, OTHER_END = len(TEXTS), len(TEXTS) + 1, len(TEXTS) + 2
CONTROL = "\ue000"
"""What the control token is in the texts of a language."""


def greedily(data: bytes) -> list[int]:
    """The longest token at each place."""
    tokens = []
    while data:
        token = max((len(text), -at) for at, text in enumerate(TEXTS) if data.startswith(text))
        tokens.append(-token[1])
        data = data[token[0] :]
    return tokens


VOCABULARY = ffwd.Vocabulary(
    [*TEXTS, None, None, None],
    eos_token_ids=[END, OTHER_END],
    width=len(TEXTS) + 6,
    encode=greedily,
    token_names={"<tool>": TOOL},
)


@dataclass(eq=False)
class Language:
    """Texts, byte for character, and what they begin with."""

    grammar: ffwd.Grammar
    alive: Callable[[str], bool]
    whole: Callable[[str], bool]
    known: dict[str, frozenset[int]] = field(default_factory=dict)

    def after(self, text: str, token: int) -> str | None:
        """The text with a token that is no end, or None where it may not come."""
        if token == TOOL:
            longer = text + CONTROL
        elif token < len(TEXTS):
            longer = text + TEXTS[token].decode("latin-1")
        else:
            return None
        return longer if self.alive(longer) else None

    def allowed(self, text: str) -> frozenset[int]:
        """The tokens that may come after a text."""
        if text not in self.known:
            tokens = {token for token in range(TOOL + 1) if self.after(text, token) is not None}
            ends = {END, OTHER_END} if self.whole(text) else set()
            self.known[text] = frozenset(tokens | ends)
        return self.known[text]

    def forced(self, text: str) -> bytes:
        """The bytes that must come, one by one."""
        forced = b""
        while not self.whole(text):
            allowed = self.allowed(text)
            first = [token for token in allowed if token < len(BYTES)]
            if TOOL in allowed or len(first) != 1:
                break
            forced += BYTES[first[0]]
            text += chr(first[0])
        return forced


def regular(grammar: ffwd.Grammar, pattern: str) -> Language:
    fsm = interegular.parse_pattern(pattern).to_fsm()

    def state(text: str) -> int | None:
        at: int | None = fsm.initial
        for character in text:
            at = fsm.map.get(at, {}).get(fsm.alphabet[character])
            if at is None or not fsm.islive(at):
                return None
        return at

    return Language(
        grammar, lambda text: state(text) is not None, lambda text: state(text) in fsm.finals
    )


def finite(grammar: ffwd.Grammar, texts: set[str]) -> Language:
    begun = {text[:length] for text in texts for length in range(len(text) + 1)}
    return Language(grammar, begun.__contains__, texts.__contains__)


def schema(document: dict[str, Any], candidates: list[Any]) -> Language:
    """A schema whose values are among the candidates, written without white space."""
    validator = jsonschema_rs.validator_for(document)
    valid = [value for value in candidates if validator.is_valid(value)]
    assert 1 < len(valid) < len(candidates)
    texts = {json.dumps(value, separators=(",", ":")) for value in valid}
    return finite(ffwd.json_schema(document, whitespace="compact"), texts)


# Without numbers, which have several spellings.
VALUES = [None, True, False, "", "1", "12", "ab", [], [True]]
ITEMS = ["1", "2", "12", True, "ab"]
OBJECTS = [
    dict(zip(names, values, strict=True))
    for names in ((), ("a",), ("b",), ("a", "b"))
    for values in itertools.product(VALUES, repeat=len(names))
]
ARRAYS = [list(items) for count in range(4) for items in itertools.product(ITEMS, repeat=count)]


def depth_of(text: str) -> int | None:
    """How many brackets are open; None where the text is nothing that a list begins with."""
    depth = 0
    for at, character in enumerate(text):
        if character not in "()" or (depth == 0 and at > 0):
            return None
        depth += 1 if character == "(" else -1
        if depth < 0:
            return None
    return depth


def halves(text: str) -> tuple[int, int] | None:
    """How many a and then b a text has."""
    count = len(text) - len(text.lstrip("a"))
    rest = text[count:]
    return (count, len(rest)) if rest.strip("b") == "" and len(rest) <= count else None


PARTS = ["a", "bb", "ab"]
CALLS = {
    first + CONTROL + ",".join(parts) + last
    for first in ("", "x")
    for count in (1, 2)
    for parts in itertools.product(PARTS, repeat=count)
    for last in ("", CONTROL)
}

LANGUAGES: dict[str, Language] = {
    "regex": regular(ffwd.regex("(ab|a)*b{0,3}(12|1+)?"), "(ab|a)*b{0,3}(12|1+)?"),
    "counted": regular(ffwd.regex("(aa|bb){2,9}x"), "(aa|bb){2,9}x"),
    "choice": finite(
        ffwd.choice(["ab", "abb", "aabb", "x", "12+3"]), {"ab", "abb", "aabb", "x", "12+3"}
    ),
    "object": schema(
        {
            "type": "object",
            "properties": {"a": {"enum": ["1", "12", None]}, "b": {"type": "boolean"}},
            "required": ["a"],
            "additionalProperties": False,
        },
        OBJECTS,
    ),
    "alternatives": schema(
        {
            "anyOf": [
                {"properties": {"a": {"const": "1"}, "b": {"enum": ["", "ab"]}}, "required": ["b"]},
                {"properties": {"a": {"enum": ["12", None]}, "b": False}, "required": ["a"]},
            ],
            "type": "object",
            "additionalProperties": False,
            "properties": {"a": {"enum": ["1", "12", None]}, "b": {"enum": ["", "ab", True]}},
        },
        OBJECTS,
    ),
    "distinct": schema(
        {
            "type": "array",
            "items": {"enum": ["1", "2", "12", "ab"]},
            "uniqueItems": True,
            "minItems": 1,
            "maxItems": 3,
            "contains": {"const": "1"},
        },
        ARRAYS,
    ),
    "lark-sum": regular(
        ffwd.lark('start: NUMBER ("+" NUMBER)*\nNUMBER: /[0-9]+/\n'), r"[0-9]+(\+[0-9]+)*"
    ),
    "lark-brackets": Language(
        ffwd.lark('start: "(" start* ")"\n'),
        lambda text: depth_of(text) is not None,
        lambda text: len(text) > 0 and depth_of(text) == 0,
    ),
    "gbnf-halves": Language(
        ffwd.gbnf('root ::= "a" root "b" | "ab"\n'),
        lambda text: halves(text) is not None,
        lambda text: (found := halves(text)) is not None and 0 < found[0] == found[1],
    ),
    "composed": finite(
        ffwd.seq(
            ffwd.optional("x"),
            ffwd.token("<tool>"),
            ffwd.repeat(ffwd.choice(PARTS), 1, 2, separator=","),
            ffwd.optional(ffwd.token("<tool>")),
        ),
        CALLS,
    ),
}
COMPILED = {
    name: ffwd.compile(language.grammar, VOCABULARY) for name, language in LANGUAGES.items()
}


@dataclass
class Text:
    """A matcher, and what it must have."""

    matcher: ffwd.Matcher
    tokens: list[int] = field(default_factory=list)

    @property
    def text(self) -> str:
        spelled = (
            CONTROL if token == TOOL else TEXTS[token].decode("latin-1")
            for token in self.tokens
            if token <= TOOL
        )
        return "".join(spelled)

    @property
    def ended(self) -> bool:
        return bool(self.tokens) and self.tokens[-1] in (END, OTHER_END)


class StatefulMatcher(RuleBasedStateMachine):
    """Up to four texts in one grammar."""

    @initialize(name=st.sampled_from(sorted(LANGUAGES)), small=st.booleans())
    def begin(self, name: str, small: bool) -> None:
        self.language = LANGUAGES[name]
        # With hardly any memory, so that what was built is let go of again and again.
        self.grammar = (
            ffwd.compile(self.language.grammar, VOCABULARY, limits=ffwd.Limits(memory_bytes=1))
            if small
            else COMPILED[name]
        )
        self.texts = [Text(self.grammar.matcher())]

    def at(self, index: int) -> Text:
        return self.texts[index % len(self.texts)]

    def expected(self, text: Text) -> frozenset[int]:
        """What the mask must have; after the end that is the end tokens."""
        return frozenset((END, OTHER_END)) if text.ended else self.language.allowed(text.text)

    @rule(index=st.integers(0, 3), number=st.integers(0, 999))
    def accept_what_fits(self, index: int, number: int) -> None:
        text = self.at(index)
        if not text.ended:
            allowed = sorted(self.expected(text))
            token = allowed[number % len(allowed)]
            assert text.matcher.accept_token(token)
            text.tokens.append(token)

    @rule(index=st.integers(0, 3), token=st.integers(0, OTHER_END + 3))
    def accept_any(self, index: int, token: int) -> None:
        text = self.at(index)
        if text.ended:
            with pytest.raises(ffwd.TokenError):
                text.matcher.accept_token(token)
            return
        fits = token in self.expected(text)
        assert text.matcher.accept_token(token) == fits
        assert text.matcher.explain(token=token).answer is not None
        if fits:
            text.tokens.append(token)

    @rule(
        index=st.integers(0, 3),
        numbers=st.lists(st.integers(0, 10**6), max_size=6),
        keep=st.booleans(),
    )
    def validate(self, index: int, numbers: list[int], keep: bool) -> None:
        """Of a draft as much is good as the language says; it is taken as a whole or not at all."""
        text = self.at(index)
        draft: list[int] = []
        scout = Text(text.matcher, list(text.tokens))
        for number in numbers:
            allowed = sorted(self.expected(scout))
            token = number % (OTHER_END + 1) if number % 5 == 0 else allowed[number % len(allowed)]
            fits = not scout.ended and token in self.expected(scout)
            draft.append(token)
            if not fits:
                break
            scout.tokens.append(token)
        good = len(scout.tokens) - len(text.tokens)
        assert text.matcher.validate_tokens(draft) == good
        if keep and good == len(draft):
            assert text.matcher.accept_tokens(draft)
            text.tokens = scout.tokens
        elif keep and not scout.ended:
            assert not text.matcher.accept_tokens(draft)

    @rule(index=st.integers(0, 3), share=st.floats(0, 1))
    def roll_back(self, index: int, share: float) -> None:
        text = self.at(index)
        count = round(share * len(text.tokens))
        text.matcher.rollback(count)
        del text.tokens[len(text.tokens) - count :]
        with pytest.raises(IndexError):
            text.matcher.rollback(len(text.tokens) + 1)

    @rule(index=st.integers(0, 3))
    def fork(self, index: int) -> None:
        text = self.at(index)
        if len(self.texts) < 4:
            self.texts.append(Text(text.matcher.fork(), list(text.tokens)))

    @rule(index=st.integers(0, 3))
    def reset(self, index: int) -> None:
        text = self.at(index)
        text.matcher.reset()
        text.tokens.clear()

    @rule(index=st.integers(0, 3))
    def save_and_load(self, index: int) -> None:
        text = self.at(index)
        data = text.matcher.to_bytes()
        text.matcher = ffwd.Matcher.from_bytes(data, self.grammar)
        assert text.matcher.to_bytes() == data

    @rule()
    def save_and_load_all(self) -> None:
        """The grammar too, as another process would."""
        data = self.grammar.to_bytes()
        self.grammar = ffwd.CompiledGrammar.from_bytes(data, VOCABULARY)
        assert self.grammar.to_bytes() == data
        for text in self.texts:
            text.matcher = ffwd.Matcher.from_bytes(text.matcher.to_bytes(), self.grammar)

    @rule(threads=st.integers(1, 2), rows=st.permutations(range(4)))
    def fill_a_batch(self, threads: int, rows: list[int]) -> None:
        bitmask = ffwd.allocate_bitmask(4, VOCABULARY.vocab_size)
        bitmask[:] = 0x5A5A5A5A
        chosen = rows[: len(self.texts)]
        matchers = [text.matcher for text in self.texts]
        ffwd.fill_bitmasks(matchers, bitmask, chosen, threads=threads)
        for row, text in zip(chosen, self.texts, strict=True):
            bits = np.unpackbits(bitmask[row].view(np.uint8), bitorder="little")
            assert set(np.flatnonzero(bits).tolist()) == self.expected(text)
        for row in set(rows) - set(chosen):
            assert (bitmask[row] == 0x5A5A5A5A).all()

    @rule(index=st.integers(0, 3), keep=st.booleans())
    def force(self, index: int, keep: bool) -> None:
        """Forced bytes are those of the language, and forced tokens spell a beginning of them."""
        text = self.at(index)
        forced = b"" if text.ended else self.language.forced(text.text)
        assert text.matcher.forced_bytes() == forced
        tokens = text.matcher.fast_forward_tokens()
        if tokens == [TOOL]:
            assert self.expected(text) == {TOOL}
        else:
            assert forced.startswith(b"".join(TEXTS[token] for token in tokens))
        assert text.matcher.validate_tokens(tokens) == len(tokens)
        if keep:
            assert text.matcher.accept_tokens(tokens)
            text.tokens += tokens

    @rule(index=st.integers(0, 3))
    def complete(self, index: int) -> None:
        text = self.at(index)
        completion = text.matcher.shortest_completion()
        if text.ended:
            assert completion == []
            return
        assert completion[-1] in (END, OTHER_END)
        assert self.language.whole(Text(text.matcher, text.tokens + completion[:-1]).text)
        assert text.matcher.validate_tokens(completion) == len(completion)

    @rule()
    def forget(self) -> None:
        VOCABULARY.clear_memos()

    @invariant()
    def as_the_language_says(self) -> None:
        for text in getattr(self, "texts", []):
            matcher = text.matcher
            assert matcher.tokens == text.tokens
            assert matcher.is_terminated() == text.ended
            assert matcher.is_accepting() == (text.ended or self.language.whole(text.text))
            bits = np.flatnonzero(mask_bits(matcher)).tolist()
            assert set(bits) == self.expected(text), text.text


TestStatefulMatcher = StatefulMatcher.TestCase
TestStatefulMatcher.settings = settings(max_examples=200, stateful_step_count=25)
