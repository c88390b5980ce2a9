"""Forced tokens are those that the tokenizer itself would have written.

Documents are tokenised whole, and the matcher walks along them: wherever it forces tokens, they
must be the document's next ones. Others would have led a model where no text has been.
"""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cases import (
    SCHEMAS,
    SEPARATORS,
    byte_vocabulary,
    mask_bits,
    real_vocabulary,
    text_of,
    token_bytes,
)
from realtokenizers import load

import ffwd

CORPUS = Path(__file__).resolve().parents[2] / "maskbench" / "corpus" / "builtin.jsonl"
BYTE_LEVEL = ("gpt2", "llama3", "qwen", "tekken")


@cache
def corpus() -> tuple[tuple[str, Any, tuple[Any, ...]], ...]:
    """The built-in corpus and the cases of these tests: name, schema, valid documents.

    Without the schemas that turn on one keyword, whose documents are too small to force much.
    """
    read = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
    small = ("builtin_kw_", "builtin_format_")
    read = [entry for entry in read if not entry["id"].startswith(small)]
    found = [
        (entry["id"], entry["schema"], tuple(t["data"] for t in entry["tests"] if t["valid"]))
        for entry in read
    ]
    found += [(case.name, case.schema, case.valid) for case in SCHEMAS]
    return tuple(found)


def encoded(name: str, text: str) -> list[int]:
    """The tokenizer's own encoding, in the middle of a text."""
    real = load(name)
    if real.dummy_space:
        # At the begin of a text it writes a space; the vocabulary's encoder takes that away.
        return real_vocabulary(name).encode(text.encode())
    ids: list[int] = real.tokenizer.encode(text, add_special_tokens=False).ids
    return ids


class Walk:
    """Counts over documents: tokens, forced ones, sequences, and those that are not canonical."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.documents = self.tokens = self.forced = self.sequences = 0
        self.bad: list[tuple[Any, ...]] = []

    def document(self, grammar: ffwd.CompiledGrammar, text: str, name: str) -> None:
        tokens = encoded(name, text)
        pieces = token_bytes(name)
        # A document that the engine tokenises otherwise is no document of these tests.
        assert b"".join(pieces[token] or b"" for token in tokens) == text.encode()
        matcher = grammar.matcher()
        if matcher.validate_tokens(tokens) != len(tokens):
            return
        self.documents += 1
        self.tokens += len(tokens)
        at = 0
        while at < len(tokens):
            forced = matcher.fast_forward_tokens(**self.options)
            step = 1
            if forced:
                self.sequences += 1
                if tokens[at : at + len(forced)] == forced:
                    step = len(forced)
                    self.forced += step
                else:
                    shown = [pieces[token] for token in (*tokens[max(0, at - 2) : at + 4],)]
                    self.bad.append((text[:60], shown, [pieces[token] for token in forced]))
            assert matcher.accept_tokens(tokens[at : at + step])
            at += step

    def all(self, name: str, whitespace: str) -> "Walk":
        vocabulary = real_vocabulary(name)
        for _, schema, documents in corpus():
            description = ffwd.json_schema(schema, whitespace=whitespace)  # type: ignore[arg-type]
            try:
                grammar = ffwd.compile(description, vocabulary)
            except ffwd.UnsupportedSchemaError:
                continue
            for document in documents:
                self.document(grammar, text_of(document, whitespace), name)
        return self


@pytest.mark.parametrize("name", [*BYTE_LEVEL, "deepseek", "mistral-v3"])
def test_forced_tokens_are_the_tokenizers_own(name: str) -> None:
    """Flexible whitespace, compact documents: no exception is allowed."""
    walk = Walk().all(name, "flexible")
    assert walk.bad == []
    assert walk.documents > 200
    assert walk.sequences > 500
    assert walk.forced > 0.08 * walk.tokens, (walk.forced, walk.tokens)


@pytest.mark.parametrize(
    "options", [{"backoff_bytes": 7}, {"backoff_tokens": 2}, {"conservative": True}], ids=str
)
def test_other_backoffs_that_suffice(options: dict[str, Any]) -> None:
    walk = Walk(**options).all("gpt2", "flexible")
    assert walk.bad == []
    assert walk.forced > 0.06 * walk.tokens


def test_no_backoff_is_not_canonical() -> None:
    """What the backoff is for: without it most sequences are wrong, so the walk does see them."""
    walk = Walk(backoff_tokens=0).all("gpt2", "flexible")
    assert len(walk.bad) > 0.2 * walk.sequences


@pytest.mark.parametrize("name", ["gpt2", "deepseek", "mistral-v3"])
@pytest.mark.parametrize("whitespace", ["flexible", "compact", "single-space"])
def test_forced_tokens_fit(name: str, whitespace: str) -> None:
    """In any mode: what is forced is accepted, spells forced bytes, and changes nothing.

    It may go beyond them, where the tokenizer leaves just one token of those that the grammar
    allows.
    """
    vocabulary = real_vocabulary(name)
    pieces = token_bytes(name)
    sequences = 0
    for case in SCHEMAS:
        description = ffwd.json_schema(case.schema, whitespace=whitespace)  # type: ignore[arg-type]
        grammar = ffwd.compile(description, vocabulary)
        for document in case.valid:
            matcher = grammar.matcher()
            for token in vocabulary.encode(text_of(document, whitespace).encode()):
                before = (matcher.tokens, mask_bits(matcher).tobytes())
                forced = matcher.fast_forward_tokens()
                assert (matcher.tokens, mask_bits(matcher).tobytes()) == before
                assert matcher.validate_tokens(forced) == len(forced)
                spelled = b"".join(pieces[token] or b"" for token in forced)
                text = matcher.forced_bytes()
                assert text.startswith(spelled) or spelled.startswith(text)
                sequences += bool(forced)
                assert matcher.accept_token(token)
    assert sequences > 20


def test_bytes_as_tokens_need_no_backoff() -> None:
    """Where no token is longer than a byte, the forced tokens are the forced bytes."""
    compared = 0
    for case in SCHEMAS:
        grammar = ffwd.compile(ffwd.json_schema(case.schema), byte_vocabulary())
        for document in case.valid:
            matcher = grammar.matcher()
            for byte in text_of(document).encode():
                forced = matcher.forced_bytes()
                assert matcher.fast_forward_tokens() == list(forced)
                compared += bool(forced)
                assert matcher.accept_token(byte)
    assert compared > 100


ORDER = {
    "type": "object",
    "properties": {"order": {"type": "integer"}, "orderId": {"type": "string"}},
    "additionalProperties": False,
    "anyOf": [{"required": ["order"]}, {"required": ["orderId"]}],
}
PERSON = {
    "type": "object",
    "properties": {"name_of_the_person": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name_of_the_person", "age"],
    "additionalProperties": False,
}
RETRIES = {
    "type": "object",
    "properties": {"retries": {"type": "integer"}, "retrieveDate": {"type": "string"}},
    "additionalProperties": False,
}
AGGREGATION = {
    "type": "object",
    "properties": {
        "aggregationOptions": {"type": "array", "items": {"type": "string"}},
        "name": {"type": "string"},
    },
    "required": ["aggregationOptions"],
    "additionalProperties": False,
}


LONGER_NAMES: dict[str, tuple[Any, list[Any]]] = {
    "order": (ORDER, [{"order": 1}, {"orderId": "x"}, {"order": 1, "orderId": ""}]),
    "person": (
        PERSON,
        [{"name_of_the_person": "Ada", "age": 3}, {"name_of_the_person": "", "age": 36}],
    ),
    "retries": (RETRIES, [{"retries": 3}, {"retrieveDate": "now"}]),
    "aggregation": (
        AGGREGATION,
        [{"aggregationOptions": []}, {"aggregationOptions": ["a"], "name": "b"}],
    ),
    "enum": ({"enum": ["order", "orderId", "order-id"]}, ["order", "orderId", "order-id"]),
}


@pytest.mark.parametrize("name", [*BYTE_LEVEL, "deepseek", "mistral-v3"])
@pytest.mark.parametrize("names", LONGER_NAMES)
def test_names_that_a_longer_token_covers(name: str, names: str) -> None:
    schema, documents = LONGER_NAMES[names]
    grammar = ffwd.compile(ffwd.json_schema(schema), real_vocabulary(name))
    walk = Walk()
    for document in documents:
        walk.document(grammar, text_of(document), name)
    assert walk.bad == []
    assert walk.documents == len(documents)


def test_backoff_cannot_see_tokens_that_start_later() -> None:
    """`retr` is `re` `tr` on its own and `ret` `ries` or `retrieve` in the texts: the token that
    goes beyond the forced bytes starts later than any suffix that a backoff takes away."""
    schema, documents = LONGER_NAMES["retries"]
    grammar = ffwd.compile(ffwd.json_schema(schema), real_vocabulary("tekken"))
    walk = Walk(backoff_tokens=4)
    for document in documents:
        walk.document(grammar, text_of(document), "tekken")
    assert walk.bad


def test_nothing_is_forced_while_a_longer_name_is_possible() -> None:
    """`order` is forced as text, and not as a token: `orderId` may be one."""
    vocabulary = real_vocabulary("llama3")
    grammar = ffwd.compile(ffwd.json_schema(ORDER, whitespace="compact"), vocabulary)
    matcher = grammar.matcher()
    assert matcher.forced_bytes() == b'{"order'
    forced = matcher.fast_forward_tokens()
    for document in ({"order": 1}, {"orderId": "x"}):
        assert vocabulary.encode(text_of(document).encode())[: len(forced)] == forced


def test_the_key_of_a_person_is_forced() -> None:
    """Within one key everything but the beginning and the end is forced."""
    name = "llama3"
    vocabulary = real_vocabulary(name)
    matcher = ffwd.compile(ffwd.json_schema(PERSON), vocabulary).matcher()
    tokens = vocabulary.encode(b'{"name_of_the_person":"Ada","age":3}')
    assert matcher.accept_token(tokens[0])
    forced = matcher.fast_forward_tokens()
    spelled = b"".join(token_bytes(name)[token] or b"" for token in forced)
    assert b'name_of_the_person"'.startswith(spelled)
    assert len(spelled) >= len(b"name_of_the")
    assert tokens[1 : 1 + len(forced)] == forced


CONSTANT = {"const": "The quick brown fox jumps over the lazy dog, again and again and again."}


@pytest.mark.parametrize("name", ["gpt2", "mistral-v3"])
def test_options(name: str) -> None:
    vocabulary = real_vocabulary(name)
    matcher = ffwd.compile(ffwd.json_schema(CONSTANT), vocabulary).matcher()
    full = matcher.fast_forward_tokens()
    assert full == vocabulary.encode(text_of(CONSTANT["const"]).encode())[: len(full)]
    assert len(full) > 10
    for limit in range(len(full) + 3):
        assert matcher.fast_forward_tokens(max_tokens=limit) == full[:limit]
    careful = matcher.fast_forward_tokens(conservative=True)
    assert full[: len(careful)] == careful
    eager = matcher.fast_forward_tokens(backoff_tokens=0)
    assert eager[: len(full)] == full
    many = matcher.fast_forward_tokens(backoff_tokens=10**9)
    assert full[: len(many)] == many
    for count in (0, 1, 3, 7, 100, 10**9):
        found = matcher.fast_forward_tokens(backoff_bytes=count)
        assert eager[: len(found)] == found
    assert matcher.fast_forward_tokens(backoff_bytes=0) == eager
    assert matcher.num_tokens == 0


def test_more_backoff_is_never_longer() -> None:
    """Along documents: no backoff forces at least what the default does, which is at least what
    the conservative variant does; and somewhere they differ."""
    vocabulary = real_vocabulary("gpt2")
    differ = [0, 0]
    for case in SCHEMAS:
        grammar = ffwd.compile(ffwd.json_schema(case.schema), vocabulary)
        for document in case.valid:
            matcher = grammar.matcher()
            for token in vocabulary.encode(text_of(document).encode()):
                eager = matcher.fast_forward_tokens(backoff_tokens=0)
                usual = matcher.fast_forward_tokens(method="backoff")
                careful = matcher.fast_forward_tokens(conservative=True)
                assert eager[: len(usual)] == usual
                assert usual[: len(careful)] == careful
                differ[0] += eager != usual
                differ[1] += usual != careful
                assert matcher.accept_token(token)
    assert all(differ), differ


def test_after_the_end_nothing_is_forced() -> None:
    vocabulary = real_vocabulary("gpt2")
    matcher = ffwd.compile(ffwd.choice(["yes"]), vocabulary).matcher()
    assert matcher.accept_tokens(vocabulary.encode(b"yes"))
    assert matcher.fast_forward_tokens() == []
    assert matcher.accept_token(vocabulary.eos_token_ids[0])
    assert matcher.fast_forward_tokens() == []


def test_without_an_encoder() -> None:
    vocabulary = ffwd.Vocabulary([bytes([b]) for b in range(256)] + [None], eos_token_ids=[256])
    matcher = ffwd.compile(ffwd.json_schema(CONSTANT), vocabulary).matcher()
    with pytest.raises(ffwd.VocabularyError):
        matcher.fast_forward_tokens()
    with pytest.raises(ffwd.VocabularyError):
        vocabulary.encode(b"x")
    # All else works.
    assert matcher.forced_bytes().startswith(b'"The quick')
    assert mask_bits(matcher).sum() == 1


def failing(_: bytes) -> list[int]:
    raise RuntimeError("the encoder is out of order")


@pytest.mark.parametrize(
    "encode",
    [failing, lambda _: None, lambda _: [10**12], lambda _: [-1], lambda _: ["a"]],
    ids=["raises", "none", "huge", "negative", "text"],
)
def test_an_encoder_that_fails(encode: Any) -> None:
    vocabulary = ffwd.Vocabulary(
        [bytes([b]) for b in range(256)] + [None], eos_token_ids=[256], encode=encode
    )
    matcher = ffwd.compile(ffwd.json_schema(CONSTANT), vocabulary).matcher()
    with pytest.raises(ffwd.VocabularyError):
        matcher.fast_forward_tokens()
    assert matcher.num_tokens == 0
    assert mask_bits(matcher).sum() == 1


LIES: dict[str, Callable[[bytes], list[int]]] = {
    "nothing": lambda data: [],
    "reversed": lambda data: list(data)[::-1],
    "too much": lambda data: [*data, 0],
    "other text": lambda data: [65] * 9,
    "outside": lambda data: [299],
}


@pytest.mark.parametrize("encode", LIES.values(), ids=LIES)
def test_an_encoder_that_lies_never_forces_what_does_not_fit(encode: Any) -> None:
    """Either a typed error, or tokens that the grammar accepts."""
    vocabulary = ffwd.Vocabulary(
        [bytes([b]) for b in range(256)] + [None], eos_token_ids=[256], encode=encode
    )
    matcher = ffwd.compile(ffwd.json_schema(CONSTANT), vocabulary).matcher()
    try:
        forced = matcher.fast_forward_tokens()
    except ffwd.VocabularyError:
        return
    assert matcher.validate_tokens(forced) == len(forced)


@pytest.mark.parametrize(
    "options", [{"max_tokens": -1}, {"backoff_tokens": -1}, {"max_tokens": "1"}]
)
def test_bad_options(options: dict[str, Any]) -> None:
    matcher = ffwd.compile(ffwd.json_schema(CONSTANT), byte_vocabulary()).matcher()
    with pytest.raises((TypeError, OverflowError, ValueError)):
        matcher.fast_forward_tokens(**options)


def test_separators_are_what_the_modes_write() -> None:
    assert set(SEPARATORS) == {"flexible", "compact", "single-space"}
    for whitespace in SEPARATORS:
        schema = {"const": {"a": 1, "b": "c"}}
        description = ffwd.json_schema(schema, whitespace=whitespace)  # type: ignore[arg-type]
        matcher = ffwd.compile(description, byte_vocabulary()).matcher()
        assert matcher.accept_tokens(list(text_of(schema["const"], whitespace).encode()))
        assert matcher.is_accepting()
