"""Masks of JSON Schemas: exact at every step of random walks, which always end in a valid document.

A walk that cannot go on, and a document that a judge refuses, are what no user may ever see.
"""

import random
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from cases import (
    CASES,
    MASK_VOCABULARIES,
    SCHEMAS,
    WHITESPACE_MODES,
    Judges,
    SchemaCase,
    mask_bits,
    parse,
    real_vocabulary,
    text_of,
    token_bytes,
)

import ffwd

# A walk is free for so many steps, then goes for the end, and must be there after some more.
FREE_STEPS = 30
ALL_STEPS = 400
# What leads out of a value, best first; inside a string the quote alone does.
CLOSERS = [
    b"}",
    b"]",
    b",",
    b"e",
    b"-",
    b"5",
    b"1",
    b"0",
    b"n",
    b"t",
    b'"',
    b":",
    b".",
    b"[",
    b"{",
    b" ",
]


class Text:
    """The bytes so far, and whether they stop inside a string."""

    def __init__(self) -> None:
        self.data = b""
        self.in_string = False
        self._escaped = False

    def append(self, data: bytes) -> None:
        self.data += data
        for byte in data:
            if self._escaped:
                self._escaped = False
            elif self.in_string and byte == ord("\\"):
                self._escaped = True
            elif byte == ord('"'):
                self.in_string = not self.in_string


@cache
def ids(name: str) -> dict[bytes, int]:
    """The token of each text."""
    return {data: token for token, data in enumerate(token_bytes(name)) if data is not None}


def assert_exact(
    matcher: ffwd.Matcher, bits: npt.NDArray[np.bool_], sample: npt.NDArray[np.int_]
) -> None:
    """The bits say what `validate_tokens` finds by walking the token's bytes."""
    for token in sample.tolist():
        fits = matcher.validate_tokens([token]) == 1
        assert fits == bits[token], (token, matcher.tokens)


class WayOut:
    """Chooses tokens that bring a text to its end.

    Where the end of a string needs certain characters, those of a valid instance lead there.
    """

    def __init__(self, name: str, case: SchemaCase) -> None:
        known = ids(name)
        self._closers = [known[data] for data in CLOSERS if data in known]
        self._quote = known[b'"']
        characters = text_of(case.valid[-1]).encode()
        self._characters = [known[bytes([byte])] for byte in characters if bytes([byte]) in known]
        self._next = 0

    def token(self, bits: npt.NDArray[np.bool_], text: Text) -> int | None:
        if not text.in_string:
            return next((token for token in self._closers if bits[token]), None)
        if bits[self._quote]:
            return self._quote
        for _ in self._characters:
            token = self._characters[self._next % len(self._characters)]
            self._next += 1
            if bits[token]:
                return token
        return None


def walk(
    case: SchemaCase,
    grammar: ffwd.CompiledGrammar,
    name: str,
    random_source: random.Random,
    *,
    checks: int = 0,
    free_steps: int = FREE_STEPS,
) -> bytes:
    """A random text that the masks allow, from beginning to end.

    `checks`: how many tokens of each mask are compared with `validate_tokens`.
    """
    tokens = token_bytes(name)
    ends = set(grammar.vocabulary.eos_token_ids)
    way_out = WayOut(name, case)
    matcher = grammar.matcher()
    text = Text()
    for step in range(ALL_STEPS):
        bits = mask_bits(matcher)
        allowed = np.flatnonzero(bits)
        assert len(allowed), f"a dead end after {text.data!r}"
        if checks:
            generator = np.random.default_rng(random_source.getrandbits(32))
            assert_exact(matcher, bits, generator.integers(len(bits), size=checks))
            assert_exact(matcher, bits, generator.choice(allowed, size=min(checks, len(allowed))))
        offered = [token for token in ends if bits[token]]
        assert bool(offered) == matcher.is_accepting() == (len(offered) == len(ends))
        if offered and (step >= free_steps or len(allowed) == len(ends)):
            assert matcher.accept_token(offered[0])
            assert matcher.is_terminated()
            return text.data
        token = int(random_source.choice(allowed))
        while token in ends:
            token = int(random_source.choice(allowed))
        # Not always, for a way out can go in circles, such as ever more digits.
        if step >= free_steps and random_source.random() < 0.8:
            found = way_out.token(bits, text)
            token = token if found is None else found
        data = tokens[token]
        assert data is not None, f"token {token} is offered and is not text"
        assert matcher.accept_token(token), (token, text.data)
        text.append(data)
    raise AssertionError(f"no end within {ALL_STEPS} steps: {text.data!r}")


def assert_valid(judges: Judges, data: bytes) -> None:
    instance = parse(data.decode())
    assert not judges.refusals(instance), data.decode()


@pytest.mark.parametrize("name", MASK_VOCABULARIES)
@pytest.mark.parametrize("case", SCHEMAS, ids=lambda case: case.name)
def test_random_walks_end_in_valid_documents(case: SchemaCase, name: str) -> None:
    judges = Judges(case.schema)
    for mode in WHITESPACE_MODES:
        grammar = ffwd.compile(
            ffwd.json_schema(case.schema, whitespace=mode), real_vocabulary(name)
        )
        for seed in range(2):
            source = random.Random(f"{case.name} {name} {mode} {seed}")
            data = walk(case, grammar, name, source, checks=40)
            assert_valid(judges, data)
            if mode == "compact":
                assert_compact(data)


def assert_compact(data: bytes) -> None:
    """No whitespace outside strings."""
    text = Text()
    for byte in data:
        assert text.in_string or byte not in b" \t\n\r", data
        text.append(bytes([byte]))


@pytest.mark.parametrize("case", SCHEMAS, ids=lambda case: case.name)
def test_short_walks_end_as_well(case: SchemaCase) -> None:
    """Going for the end from the beginning, or nearly, finds other ways out than long walks."""
    judges = Judges(case.schema)
    name = "gpt2"
    description = ffwd.json_schema(case.schema, whitespace="flexible")
    grammar = ffwd.compile(description, real_vocabulary(name))
    for free_steps in range(8):
        source = random.Random(f"{case.name} {free_steps}")
        data = walk(case, grammar, name, source, free_steps=free_steps)
        assert_valid(judges, data)


@pytest.mark.parametrize("name", MASK_VOCABULARIES)
@pytest.mark.parametrize(
    "case_name",
    [
        "anything",
        "additional-free",
        "shared-prefixes",
        "any-of-objects",
        "lengths",
        "pattern-unicode",
    ],
)
def test_every_bit_of_masks_along_a_document(case_name: str, name: str) -> None:
    case = CASES[case_name]
    vocabulary = real_vocabulary(name)
    grammar = ffwd.compile(ffwd.json_schema(case.schema, whitespace="compact"), vocabulary)
    source = random.Random(case_name)
    everything = np.arange(vocabulary.vocab_size)
    matcher = grammar.matcher()
    for _ in range(4):
        bits = mask_bits(matcher)
        assert_exact(matcher, bits, everything)
        assert matcher.allowed_token_ids() == np.flatnonzero(bits).tolist()
        bits[vocabulary.eos_token_ids] = False
        choices = np.flatnonzero(bits)
        if not len(choices):
            break
        assert matcher.accept_token(int(source.choice(choices)))


@pytest.mark.parametrize("limit", [0, 1, 5])
def test_whitespace_runs_are_bounded(limit: int) -> None:
    """No run of whitespace, however it is cut into tokens, is longer than the limit."""
    name = "gpt2"
    vocabulary = real_vocabulary(name)
    tokens = token_bytes(name)
    schema = {"type": "array", "items": {"type": "object"}}
    description = ffwd.json_schema(schema, whitespace="flexible", max_whitespace=limit)
    grammar = ffwd.compile(description, vocabulary)
    spaces = {
        token: len(data)
        for token, data in enumerate(tokens)
        if data is not None and not data.strip(b" \t\r\n")
    }
    for seed in range(6):
        source = random.Random(seed)
        matcher = grammar.matcher()
        assert matcher.accept_tokens([ids(name)[b"["]])
        total = 0
        while total < limit:
            bits = mask_bits(matcher)
            fitting = [token for token in spaces if bits[token]]
            assert set(fitting) == {t for t, n in spaces.items() if n <= limit - total}
            token = source.choice(fitting)
            assert matcher.accept_token(token)
            total += spaces[token]
        bits = mask_bits(matcher)
        assert not any(bits[token] for token in spaces)
        assert bits.any()


def test_single_space_is_exactly_one() -> None:
    """What `json.dumps` writes by default, and nothing else."""
    name = "gpt2"
    case = CASES["nested"]
    grammar = ffwd.compile(
        ffwd.json_schema(case.schema, whitespace="single-space"), real_vocabulary(name)
    )
    source = random.Random(7)
    for _ in range(20):
        data = walk(case, grammar, name, source, free_steps=12)
        text = Text()
        previous = b""
        for position, byte in enumerate(data):
            here = bytes([byte])
            if not text.in_string:
                following = data[position + 1 : position + 2]
                assert (here == b" ") == (previous in (b",", b":") and previous != b""), data
                assert here not in (b",", b":") or following == b" ", data
            text.append(here)
            previous = here if not text.in_string else b""
