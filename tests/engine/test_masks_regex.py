"""Masks of regular expressions against an automaton that nobody here wrote.

`interegular` builds the automaton of the pattern; a token may come next exactly if, after its text,
some text is still accepted.
"""

import random
import re
import string
from collections.abc import Sequence
from functools import cache

import interegular
import numpy as np
import pytest
from cases import (
    MASK_VOCABULARIES,
    accepts,
    byte_vocabulary,
    mask_bits,
    real_vocabulary,
    token_bytes,
)
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from interegular.fsm import FSM

import ffwd

ALPHABET = "ab01-é"


class Twin:
    """The automaton of a pattern, over characters; a state is dead where it is None."""

    def __init__(self, pattern: str) -> None:
        self.fsm: FSM = interegular.parse_pattern(pattern).to_fsm()
        self.start: int | None = self._alive(self.fsm.initial)

    def _alive(self, state: int | None) -> int | None:
        return state if state is not None and self.fsm.islive(state) else None

    def step(self, state: int | None, text: str) -> int | None:
        for character in text:
            if state is None:
                return None
            symbol = self.fsm.alphabet[character]
            state = self._alive(self.fsm.map.get(state, {}).get(symbol))
        return state

    def accepting(self, state: int | None) -> bool:
        return state in self.fsm.finals

    def accepts(self, text: str) -> bool:
        return self.accepting(self.step(self.start, text))


def quoted(character: str) -> str:
    return re.escape(character)


def classes(alphabet: str) -> st.SearchStrategy[str]:
    chosen = st.lists(st.sampled_from(alphabet), min_size=1, max_size=3, unique=True)
    return st.builds(
        lambda negated, characters: f"[{negated}{''.join(map(quoted, characters))}]",
        st.sampled_from(["", "", "^"]),
        chosen,
    )


RANGES = st.sampled_from(["[a-c]", "[0-9]", "[^a-z]", "[a-z0-9_-]", ".", "[à-ü]"])
REPEATS = st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,3}", "{2,}", "{0}", "*?", "+?", "??"])


def patterns(alphabet: str = ALPHABET) -> st.SearchStrategy[str]:
    """Patterns that regex-syntax, interegular and Python read alike."""
    literal = st.text(alphabet, min_size=1, max_size=3).map(quoted)
    leaf = st.one_of(literal, literal, classes(alphabet), RANGES)

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        group = inner.map(lambda pattern: f"(?:{pattern})")
        return st.one_of(
            st.lists(group, min_size=2, max_size=3).map("".join),
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
            st.builds(lambda pattern, repeat: pattern + repeat, group, REPEATS),
            inner.map(lambda pattern: f"({pattern})"),
        )

    return st.recursive(leaf, grow, max_leaves=6)


# Shapes that generated patterns reach seldom.
PATTERNS = (
    "",
    "a",
    "(?:)",
    "a*",
    "(a|b)*abb",
    "(?:a{3}){2}b?",
    "(a?){6}a{6}",
    "a{2,17}",
    "(?:ab|a)(?:bc|c)",
    "[^a]*a[^a]*",
    "(?:0|1(?:01*0)*1)*",
    "-?(?:0|[1-9][0-9]{0,4})(?:\\.[0-9]+)?",
    "[a-z]+(?:-[a-z]+)*",
    "(?:[0-9a-f]{2}:){5}[0-9a-f]{2}",
    "(?:yes|no|maybe)(?:, (?:yes|no|maybe)){0,3}",
    '"(?:[^"\\\\]|\\\\.)*"',
    "the (?:quick|quiet|quite) (?:brown|broad)",
    "https?://[a-z]+\\.(?:com|org)/?",
    ".{0,5}x",
    "[à-ü]{1,3}|€+|[\U0001f400-\U0001f4ff]",
)


@cache
def small_vocabulary() -> tuple[ffwd.Vocabulary, tuple[str | None, ...]]:
    """All bytes, then short texts, two ends, and ids that are not text."""
    source = random.Random(11)
    texts = {"".join(source.choices(ALPHABET, k=source.randint(2, 5))) for _ in range(150)}
    texts |= {"a" * n for n in range(2, 9)} | {"b" * n for n in range(2, 5)}
    bytes_too = [bytes([byte]) for byte in range(256)]
    tokens = [*bytes_too, None, *(text.encode() for text in sorted(texts)), None, None]
    size = len(tokens)
    vocabulary = ffwd.Vocabulary(tokens, eos_token_ids=[size - 1, 256], width=size + 5)
    return vocabulary, readable(tokens)


def readable(tokens: Sequence[bytes | None]) -> tuple[str | None, ...]:
    """The text of each token, None where it has none or stops inside a character."""
    return tuple(None if data is None else _text(data) for data in tokens)


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


@cache
def real_texts(name: str) -> tuple[str | None, ...]:
    return readable(token_bytes(name))


def walk_beside_twin(
    pattern: str,
    vocabulary: ffwd.Vocabulary,
    texts: Sequence[str | None],
    source: random.Random,
    *,
    steps: int,
    sample: int | None,
) -> None:
    """Compares mask and twin along a random walk of whole characters."""
    twin = Twin(pattern)
    matcher = ffwd.compile(ffwd.regex(pattern), vocabulary).matcher()
    state = twin.start
    ends = vocabulary.eos_token_ids
    whole = [token for token, text in enumerate(texts) if text is not None]
    for _ in range(steps):
        bits = mask_bits(matcher)
        accepting = twin.accepting(state)
        assert matcher.is_accepting() == accepting
        assert [bool(bits[token]) for token in ends] == [accepting] * len(ends)
        allowed = [t for t in np.flatnonzero(bits).tolist() if t not in ends]
        # The tokens that the mask allows, and others: all, or some where there are many.
        checked = whole if sample is None else source.sample(whole, sample)
        few = allowed if sample is None else source.sample(allowed, min(sample, len(allowed)))
        for token in {*checked, *few}:
            text = texts[token]
            if text is None:
                # Bytes that are no text alone: cut off inside a character.
                assert token < len(texts)
                continue
            alive = twin.step(state, text) is not None
            assert alive == bool(bits[token]), (pattern, matcher.tokens, text)
        next_tokens = [token for token in few if texts[token] is not None]
        if not next_tokens:
            break
        token = source.choice(next_tokens)
        assert matcher.accept_token(token)
        state = twin.step(state, texts[token] or "")


def exists(pattern: str) -> bool:
    return Twin(pattern).start is not None


@seed(20)
@settings(max_examples=150)
@given(pattern=patterns(), number=st.integers(0, 2**32))
def test_generated_patterns_on_a_small_vocabulary(pattern: str, number: int) -> None:
    vocabulary, texts = small_vocabulary()
    if not exists(pattern):
        with pytest.raises(ffwd.FfwdError):
            ffwd.compile(ffwd.regex(pattern), vocabulary)
        return
    source = random.Random(number)
    walk_beside_twin(pattern, vocabulary, texts, source, steps=6, sample=None)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_on_a_small_vocabulary(pattern: str) -> None:
    vocabulary, texts = small_vocabulary()
    for number in range(4):
        source = random.Random(number)
        walk_beside_twin(pattern, vocabulary, texts, source, steps=10, sample=None)


@pytest.mark.parametrize("name", MASK_VOCABULARIES)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_on_real_vocabularies(pattern: str, name: str) -> None:
    source = random.Random(f"{name} {pattern}")
    texts = real_texts(name)
    for _ in range(2):
        walk_beside_twin(pattern, real_vocabulary(name), texts, source, steps=6, sample=400)


@pytest.mark.parametrize("name", MASK_VOCABULARIES)
def test_every_token_of_real_vocabularies(name: str) -> None:
    """All bits of a few masks, not only a sample."""
    texts = real_texts(name)
    for pattern in (
        "[a-z]+(?:-[a-z]+)*",
        '"(?:[^"\\\\]|\\\\.)*"',
        "(?:[0-9a-f]{2}:){5}[0-9a-f]{2}",
    ):
        source = random.Random(3)
        walk_beside_twin(pattern, real_vocabulary(name), texts, source, steps=3, sample=None)


@seed(21)
@settings(max_examples=40)
@given(pattern=patterns(), number=st.integers(0, 2**32))
def test_generated_patterns_on_a_real_vocabulary(pattern: str, number: int) -> None:
    if exists(pattern):
        source = random.Random(number)
        name = MASK_VOCABULARIES[number % len(MASK_VOCABULARIES)]
        texts = real_texts(name)
        walk_beside_twin(pattern, real_vocabulary(name), texts, source, steps=4, sample=300)


# --- inside characters -------------------------------------------------------------------------


@cache
def completions(prefix: bytes) -> list[str]:
    """Every character whose UTF-8 begins with the bytes."""
    length = 2 if prefix[0] < 0xE0 else 3 if prefix[0] < 0xF0 else 4
    low = prefix + b"\x80" * (length - len(prefix))
    high = prefix + b"\xbf" * (length - len(prefix))
    first = _code(low, length)
    last = _code(high, length)
    return [
        chr(code)
        for code in range(first, last + 1)
        if code < 0x110000 and not 0xD800 <= code < 0xE000 and chr(code).encode().startswith(prefix)
    ]


def _code(data: bytes, length: int) -> int:
    code = data[0] & (0xFF >> (length + 1))
    for byte in data[1:]:
        code = code << 6 | byte & 0x3F
    return code


UNICODE_PATTERNS = (
    "[à-ü]+",
    "[^é]",
    "(?:é|€|🐢)+x",
    ".",
    "[\u0780-\u0fff]b",
    "[\ud7ff-\ue000]",
    "[\U0001f400-\U0001f4ff]{2}",
    "[^\x00-\u07ff]",
)


@pytest.mark.parametrize("pattern", UNICODE_PATTERNS)
def test_bytes_inside_characters(pattern: str) -> None:
    """A token that stops inside a character may come if and only if some character completes it."""
    twin = Twin(pattern)
    matcher = ffwd.compile(ffwd.regex(pattern), byte_vocabulary()).matcher()
    bits = mask_bits(matcher)
    for lead in range(0x80, 0x100):
        prefix = bytes([lead])
        continued = completions(prefix) if 0xC0 <= lead < 0xF8 else []
        alive = {
            character for character in continued if twin.step(twin.start, character) is not None
        }
        assert bool(bits[lead]) == bool(alive), prefix
        if not alive:
            continue
        second = matcher.fork()
        assert second.accept_token(lead)
        assert not second.is_accepting()
        after = mask_bits(second)
        expected = {character.encode()[1] for character in alive}
        assert set(np.flatnonzero(after).tolist()) == expected, prefix


@pytest.mark.parametrize("name", MASK_VOCABULARIES)
@pytest.mark.parametrize("pattern", UNICODE_PATTERNS)
def test_tokens_that_end_inside_characters(pattern: str, name: str) -> None:
    """Likewise for the tokens of real vocabularies: whole characters, then the begin of one."""
    twin = Twin(pattern)
    tokens = token_bytes(name)
    bits = mask_bits(ffwd.compile(ffwd.regex(pattern), real_vocabulary(name)).matcher())
    checked = 0
    for token, (data, text) in enumerate(zip(tokens, real_texts(name), strict=True)):
        if data is None or text is not None:
            continue
        whole = data.decode(errors="ignore")
        head = whole.encode()
        tail = data[len(head) :]
        if not data.startswith(head) or not tail or not 0xC2 <= tail[0] < 0xF5:
            assert not bits[token], data
            continue
        state = twin.step(twin.start, whole)
        alive = any(twin.step(state, character) is not None for character in completions(tail))
        assert bool(bits[token]) == alive, data
        checked += 1
    assert checked > 20


def test_no_text_that_is_not_utf8() -> None:
    """Overlong forms, surrogates, and code points that do not exist are never allowed."""
    matcher = ffwd.compile(ffwd.regex("(?s:.)*"), byte_vocabulary()).matcher()
    for data in (
        b"\xc0\xaf",
        b"\xe0\x80\x80",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xff",
        b"\x80",
    ):
        assert not matcher.accept_tokens(list(data)), data
    for data in ("\u0080", "\u0800", "\ud7ff", "\ue000", "\U0010ffff"):
        assert matcher.accept_tokens(list(data.encode()))
        assert matcher.is_accepting()


# --- whole texts -------------------------------------------------------------------------------


@seed(22)
@settings(max_examples=200)
@given(
    pattern=patterns(),
    texts=st.lists(st.text(ALPHABET + "cx9\n", max_size=8), min_size=5, max_size=20),
    number=st.integers(0, 2**32),
)
def test_whole_texts_as_python(pattern: str, texts: list[str], number: int) -> None:
    if not exists(pattern):
        return
    grammar = ffwd.compile(ffwd.regex(pattern), byte_vocabulary())
    compiled = re.compile(pattern)
    members = [member(pattern, random.Random(number + i)) for i in range(4)]
    for text in [*texts, "", *filter(None, members)]:
        assert accepts(grammar, text) == (compiled.fullmatch(text) is not None), (pattern, text)


def member(pattern: str, source: random.Random) -> str:
    """A text of the language, by a random walk of the twin."""
    twin = Twin(pattern)
    state = twin.start
    text = ""
    alphabet = ALPHABET + string.ascii_lowercase + string.digits + "_~\t"
    for _ in range(30):
        if twin.accepting(state) and source.random() < 0.3:
            break
        ways = [c for c in alphabet if twin.step(state, c) is not None]
        if not ways:
            break
        text += source.choice(ways)
        state = twin.step(state, text[-1])
    return text


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("\\d+", ["0", "42", "٣"], ["", "a"]),
        ("\\w\\s\\w", ["a b", "é\tß", "a\u3000b"], ["ab", "- -"]),
        ("(?i)straße", ["STRAßE", "\u017ftra\u1e9ee"], ["strasse"]),
        ("\\p{Greek}+", ["αβγ"], ["abc", ""]),
        ("[a-z--[aeiou]]+", ["xyz"], ["xaz"]),
        ("(?s).", ["\n", "🐢"], ["", "ab"]),
        (".", ["a", "\r"], ["\n"]),
        ("(?x) a b # comment", ["ab"], ["a b"]),
        ("\\x41\\u{1F422}", ["A🐢"], ["A"]),
        ("^ab$", ["ab"], ["ab\n", "xab"]),
        ("a|b|", ["a", "b", ""], ["ab"]),
    ],
)
def test_the_dialect_of_regex_syntax(pattern: str, good: list[str], bad: list[str]) -> None:
    grammar = ffwd.compile(ffwd.regex(pattern), byte_vocabulary())
    assert [text for text in good if not accepts(grammar, text)] == []
    assert [text for text in bad if accepts(grammar, text)] == []


@seed(23)
@settings(max_examples=60)
@given(
    options=st.lists(st.text(ALPHABET + '\n"', max_size=6), min_size=1, max_size=8),
    others=st.lists(st.text(ALPHABET, max_size=6), max_size=8),
    number=st.integers(0, 2**32),
)
def test_choices(options: list[str], others: list[str], number: int) -> None:
    """A choice accepts its options; a token may come if some option goes on with it."""
    grammar = ffwd.compile(ffwd.choice(options), byte_vocabulary())
    for text in [*options, *others, *(option[:-1] for option in options)]:
        assert accepts(grammar, text) == (text in options)
    vocabulary, texts = small_vocabulary()
    matcher = ffwd.compile(ffwd.choice(options), vocabulary).matcher()
    written = ""
    source = random.Random(number)
    for _ in range(7):
        bits = mask_bits(matcher)
        expected = {
            token
            for token, text in enumerate(texts)
            if text and any(option.startswith(written + text) for option in options)
        }
        allowed = {token for token in np.flatnonzero(bits).tolist() if texts[token] is not None}
        assert allowed == expected
        assert matcher.is_accepting() == (written in options)
        if not expected:
            break
        token = source.choice(sorted(expected))
        assert matcher.accept_token(token)
        written += texts[token] or ""
