"""Compiled grammars and matchers as bytes, and back."""

import copy
import pickle
import random

import numpy as np
import pytest

import ffwd
from ffwd import CompiledGrammar, Matcher, SerializationError

END, THINK = 260, 261
TOKENS: list[bytes | None] = [bytes([byte]) for byte in range(256)]
TOKENS += [b"ab", b"true", b'{"', b"  ", None, None]
VOCABULARY = ffwd.Vocabulary(TOKENS, eos_token_ids=[END], token_names={"<think>": THINK})
OTHERS = [
    ffwd.Vocabulary([*TOKENS[:256], b"ba", *TOKENS[257:]], eos_token_ids=[END]),
    ffwd.Vocabulary(TOKENS, eos_token_ids=[END, THINK]),
    ffwd.Vocabulary([*TOKENS, None], eos_token_ids=[END]),
    ffwd.Vocabulary(TOKENS, eos_token_ids=[END]),
]

LIST = ffwd.rules(
    {"list": "(" + ffwd.repeat(ffwd.rule("list") | ffwd.regex("[a-c]+"), 0, 3) + ")"}, start="list"
)
SCHEMA = {"type": "object", "properties": {"a": {"$ref": "http://x/y"}, "b": {"enum": [1, "ab"]}}}
GRAMMARS = {
    "regex": ffwd.regex(r"\b\w+\b(?!.*x)", dialect="python", search=True),
    "operators": ffwd.regex("[a-z]+") & ~ffwd.choice(["ab", "abc"]),
    "substring": ffwd.substring_of("ab true ab  and true"),
    "choice": ffwd.choice(["ab", "true", "trueab"]),
    "schema": ffwd.json_schema(
        SCHEMA, registry={"http://x/y": {"type": "boolean"}}, property_order="any", indent=2
    ),
    "rules": LIST,
    "tokens": ffwd.token("<think>") + "ab" + ffwd.json_schema({"type": "boolean"}),
}


def mask(matcher: Matcher) -> bytes:
    """The bits of the tokens that may come."""
    row = ffwd.allocate_bitmask(1, VOCABULARY.vocab_size)
    matcher.fill_bitmask(row, 0)
    return row.tobytes()


def step(matcher: Matcher, source: random.Random) -> None:
    """Any token that may come."""
    bits = np.unpackbits(np.frombuffer(mask(matcher), np.uint8), bitorder="little")
    assert matcher.accept_token(source.choice(np.flatnonzero(bits).tolist()))


@pytest.mark.parametrize("name", GRAMMARS)
def test_masks_are_the_same_after_a_round_trip(name: str) -> None:
    """Of the grammar, and of a matcher at every step of a text."""
    compiled = ffwd.compile(GRAMMARS[name], VOCABULARY)
    data = compiled.to_bytes()
    assert ffwd.compile(GRAMMARS[name], VOCABULARY).to_bytes() == data
    again = CompiledGrammar.from_bytes(data, VOCABULARY, limits=ffwd.Limits(memory_bytes=1 << 24))
    assert again.to_bytes() == data
    assert again.vocabulary is VOCABULARY
    source = random.Random(name)
    matcher = compiled.matcher()
    for _ in range(25):
        loaded = Matcher.from_bytes(matcher.to_bytes(), again)
        assert loaded.grammar is again
        assert loaded.tokens == matcher.tokens
        assert loaded.is_terminated() == matcher.is_terminated()
        if matcher.is_terminated():
            break
        assert loaded.is_accepting() == matcher.is_accepting()
        assert mask(loaded) == mask(matcher)
        step(matcher, source)
    loaded = Matcher.from_bytes(matcher.to_bytes(), again)
    loaded.rollback(loaded.num_tokens)
    assert mask(loaded) == mask(compiled.matcher())


def test_how_a_text_began_is_kept() -> None:
    """Free text, a prefix, and what the prompt has of the answer."""
    compiled = ffwd.compile(GRAMMARS["schema"], VOCABULARY)
    matcher = compiled.matcher(
        prefix=b"ab", prefill=b"{\n", free_until=b"</t>", free_controls=[THINK], recent_tokens=[7]
    )
    matcher.accept_tokens([*b"so </", THINK, *b"</"])
    loaded = Matcher.from_bytes(matcher.to_bytes(), compiled)
    rest = [*b't>ab  "b": 1\n}', END]
    assert loaded.accept_tokens(rest)
    assert loaded.is_terminated()
    assert matcher.accept_tokens(rest)
    assert loaded.to_bytes() == matcher.to_bytes()


def test_what_does_not_fit_says_why() -> None:
    """By one word, and in words."""
    compiled = ffwd.compile(GRAMMARS["choice"], VOCABULARY)
    data, text = compiled.to_bytes(), compiled.matcher().to_bytes()

    def reason(data: bytes, vocabulary: ffwd.Vocabulary = VOCABULARY) -> str:
        with pytest.raises(SerializationError) as caught:
            CompiledGrammar.from_bytes(data, vocabulary)
        assert str(caught.value)
        return caught.value.reason

    assert {reason(data, other) for other in OTHERS} == {"vocabulary"}
    assert reason(text) == "kind"
    assert reason(b"") == "length"
    assert reason(b"\x80\x04\x95 a pickle") == "kind"
    assert reason(data + b" ") == "length"
    assert reason(data[:5] + b"\xff\xff" + data[7:]) == "version"
    for end in range(len(data)):
        assert reason(data[:end]) in ("length", "checksum")
    for at in range(len(data)):
        assert reason(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    other = ffwd.compile(ffwd.choice(["ab"]), VOCABULARY)
    with pytest.raises(SerializationError, match="another grammar") as caught:
        Matcher.from_bytes(text, other)
    assert caught.value.reason == "grammar"
    with pytest.raises(SerializationError):
        Matcher.from_bytes(data, compiled)
    with pytest.raises(TypeError):
        CompiledGrammar.from_bytes("text", VOCABULARY)  # type: ignore[arg-type]


def checksum(data: bytes) -> bytes:
    """That of the format, so that a forger's bytes are read on."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return value.to_bytes(8, "little")


@pytest.mark.parametrize("name", GRAMMARS)
def test_forged_bytes_do_no_harm(name: str) -> None:
    """What is behind a header that fits is compiled, or refused with a type."""
    compiled = ffwd.compile(GRAMMARS[name], VOCABULARY)
    source = random.Random(name)
    matcher = compiled.matcher()
    step(matcher, source)
    for data in (compiled.to_bytes(), matcher.to_bytes()):
        refused = 0
        for _ in range(150):
            payload = bytearray(data[31:-8])
            for _ in range(source.randint(1, 3)):
                at = source.randrange(len(payload) + 1)
                if source.random() < 0.5:
                    payload[at : at + 1] = source.randbytes(1)
                else:
                    payload[at : at + source.randint(0, 4)] = source.randbytes(source.randint(0, 4))
            forged = data[:23] + len(payload).to_bytes(8, "little") + payload
            forged += checksum(forged)
            try:
                if data[4:5] == b"G":
                    mask(CompiledGrammar.from_bytes(forged, VOCABULARY).matcher())
                else:
                    mask(Matcher.from_bytes(forged, compiled))
            except (SerializationError, ffwd.LimitExceededError):
                refused += 1
            except ffwd.TokenError:
                pytest.fail("a forged text must be refused as such")
        assert refused


@pytest.mark.parametrize("name", GRAMMARS)
def test_grammars_are_pickled_and_what_is_compiled_is_not(name: str) -> None:
    """As bytes a compiled grammar and a text in progress go where the vocabulary is."""
    grammar = GRAMMARS[name]
    compiled = ffwd.compile(pickle.loads(pickle.dumps(grammar)), VOCABULARY)
    assert compiled.to_bytes() == ffwd.compile(grammar, VOCABULARY).to_bytes()
    for value, instead in [
        (compiled, "CompiledGrammar.from_bytes"),
        (compiled.matcher(), "Matcher.from_bytes"),
        (VOCABULARY, "makes its own from the tokenizer"),
    ]:
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pytest.raises(TypeError, match=instead):
                pickle.dumps(value, protocol)


def test_copies() -> None:
    """What never changes is itself; a matcher goes on by itself."""
    compiled = ffwd.compile(LIST, VOCABULARY)
    for value in (compiled, VOCABULARY):
        assert copy.copy(value) is value
        assert copy.deepcopy([value, {"a": value}]) == [value, {"a": value}]
    matcher = compiled.matcher()
    for twin in (copy.copy(matcher), copy.deepcopy(matcher)):
        assert twin.accept_token(ord("("))
        assert twin.grammar is compiled
        assert matcher.num_tokens == 0
