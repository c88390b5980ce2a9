"""Narrow masks, and the forced tokens that are drafts of speculative decoding."""

import json
import random
from typing import Any

import pytest
from slow_request import SlowRequest, row_bits
from tiny_engine_model import train_tokenizer

import ffwd
from ffwd.engine import EngineRequest
from ffwd.tokenizer import from_huggingface

SEED = 20261122
SCHEMA = {
    "type": "object",
    "properties": {
        "order_status": {"enum": ["pending", "shipped", "delivered"]},
        "address_of_the_customer": {"type": "string", "maxLength": 12},
        "number_of_the_item": {"type": "integer", "minimum": 0, "maximum": 99},
        "express": {"type": "boolean"},
    },
    "required": ["order_status", "address_of_the_customer", "number_of_the_item", "express"],
    "additionalProperties": False,
}
LARK = 'start: "please answer the question: " ("red" | "green" | "blue") " apple" " banana"*'
TAG = {
    "type": "structural_tag",
    "format": {
        "type": "triggered_tags",
        "triggers": ["<tool_call>"],
        "tags": [
            {
                "begin": '<tool_call>\n{"name": "weather", "arguments": ',
                "content": {"type": "json_schema", "json_schema": SCHEMA},
                "end": "}\n</tool_call>",
            }
        ],
    },
}
GRAMMARS: dict[str, ffwd.Grammar] = {
    "compact": ffwd.json_schema(json.dumps(SCHEMA), whitespace="compact"),
    "consistent": ffwd.json_schema(json.dumps(SCHEMA)),
    "flexible": ffwd.json_schema(json.dumps(SCHEMA), whitespace="flexible"),
    "regex": ffwd.regex("(ab+ weather){2} in [A-Z][a-z]{3} tomorrow", dialect="python"),
    "choice": ffwd.choice(["red apple", "red apples", "green banana"]),
    "lark": ffwd.lark(LARK),
    "tag": ffwd.structural_tag(json.dumps(TAG)),
}


@pytest.fixture(scope="module")
def vocabulary() -> ffwd.Vocabulary:
    return from_huggingface(train_tokenizer(seed=1), vocab_size=512)


@pytest.fixture(scope="module")
def compiled(vocabulary: ffwd.Vocabulary) -> dict[str, ffwd.CompiledGrammar]:
    return {name: ffwd.compile(grammar, vocabulary) for name, grammar in GRAMMARS.items()}


def allowed(request: EngineRequest | SlowRequest) -> set[int]:
    bitmask = ffwd.allocate_bitmask(2, 512)
    request.fill_bitmask(bitmask, 1)
    return row_bits(bitmask[1])


@pytest.mark.parametrize("name", GRAMMARS)
def test_walks_with_narrow_masks(name: str, compiled: dict[str, Any]) -> None:
    """Whatever is sampled, drafts are all that the masks leave, and masks go by the text alone."""
    print("seed", SEED)
    rng = random.Random(SEED)
    # At random it would hardly ever come.
    call = compiled[name].vocabulary.token_names["<tool_call>"]
    drafted = 0
    for _ in range(8):
        narrow = EngineRequest(compiled[name], narrow=True)
        slow = SlowRequest(compiled[name], narrow=True)
        plain = EngineRequest(compiled[name])
        for _ in range(60):
            if narrow.is_terminated():
                break
            mask, wide = allowed(narrow), allowed(plain)
            run = narrow.forced(16)
            assert mask
            assert mask <= wide
            assert (mask, run) == (allowed(slow), slow.forced(16))
            assert plain.forced(16) == wide_twin(slow, compiled[name]).forced(16)
            assert narrow.forced(4) == run[:4]
            if not run:
                assert mask == wide
            drafted += len(run)
            # Verified one by one, as by a sampler: every mask leaves the draft only.
            for token in run:
                assert allowed(narrow) == {token}
                assert narrow.accept(token)
            # The same masks, reached in another way.
            if not narrow.is_terminated():
                other = EngineRequest(compiled[name], narrow=True)
                other.accept_tokens("", plain.matcher().tokens + run)
                assert allowed(other) == allowed(narrow)
            narrow.rollback(len(run))
            assert allowed(narrow) == mask
            token = call if call in mask else rng.choice(sorted(mask))
            assert narrow.accept(token)
            assert plain.accept(token)
            assert slow.accept(token)
    assert drafted > 0


def wide_twin(slow: SlowRequest, compiled: ffwd.CompiledGrammar) -> SlowRequest:
    """A slow request without narrow masks, after the same tokens."""
    twin = SlowRequest(compiled)
    assert twin.accept_tokens("", slow.matcher.tokens)
    return twin


def test_what_is_forced_is_cut_as_the_tokenizer_cuts_it(compiled: dict[str, Any]) -> None:
    tokenizer = train_tokenizer(seed=1)
    text = '<tool_call>\n{"name": "weather", "arguments": {"order'
    ids = tokenizer.encode(text, add_special_tokens=False)
    narrow = EngineRequest(compiled["tag"], narrow=True)
    narrow.accept(ids[0])
    assert narrow.forced(64)[: len(ids) - 4] == ids[1:-3]
    # Masks alone leave other ways to write it.
    plain = EngineRequest(compiled["tag"])
    plain.accept(ids[0])
    assert len(plain.forced(64)) < len(ids) - 4


def test_the_end_is_drafted_where_nothing_else_may_come(compiled: dict[str, Any]) -> None:
    for narrow in (True, False):
        matcher = EngineRequest(compiled["choice"], narrow=narrow)
        tokenizer = train_tokenizer(seed=1)
        matcher.accept_tokens("", tokenizer.encode("green banana", add_special_tokens=False))
        assert matcher.forced(4) == [tokenizer.eos_token_id]
        matcher.accept(tokenizer.eos_token_id)
        assert matcher.forced(4) == []
        matcher.rollback(1)
        matcher.rollback(1)
        assert not matcher.is_terminated()


def test_the_end_is_not_drafted_where_text_may_follow(compiled: dict[str, Any]) -> None:
    tokenizer = train_tokenizer(seed=1)
    for narrow in (True, False):
        matcher = EngineRequest(compiled["choice"], narrow=narrow)
        assert matcher.accept_tokens("", tokenizer.encode("red apple", add_special_tokens=False))
        assert matcher.matcher().is_accepting()
        assert matcher.forced(4) == []
        assert matcher.forced(0) == []


def test_a_copy_is_narrow_too(compiled: dict[str, Any]) -> None:
    matcher = EngineRequest(compiled["compact"], narrow=True)
    fork = EngineRequest(matcher)
    matcher.accept_tokens("", matcher.forced(3))
    assert matcher.num_tokens == 3
    assert len(allowed(fork)) == 1
    assert fork.num_tokens == 0


def test_every_bit_of_a_word_can_be_the_only_one() -> None:
    """Tokens 31 and 63 are the sign bits of their words."""
    words = [bytes([byte]) for byte in range(256)]
    vocabulary = from_huggingface(train_tokenizer(seed=1), vocab_size=512)
    seen = set()
    for token in range(3, 3 + 64):
        text = vocabulary.token_bytes(token)
        if text is None or text not in words or not text.isascii():
            continue
        grammar = ffwd.lit(text.decode()) + ffwd.regex("[0-9]+")
        matcher = EngineRequest(ffwd.compile(grammar, vocabulary), narrow=True)
        (only,) = allowed(matcher)
        assert vocabulary.token_bytes(only) == text
        seen.add(only % 32)
    assert 31 in seen


def test_without_a_compiled_tokenizer_masks_are_as_they_are() -> None:
    tokens = [bytes([byte]) for byte in range(256)] + [b"abc", None]
    vocabulary = ffwd.Vocabulary(tokens, eos_token_ids=[257])
    matcher = EngineRequest(ffwd.compile(ffwd.lit("abcd"), vocabulary), narrow=True)
    bitmask = ffwd.allocate_bitmask(1, 258)
    matcher.fill_bitmask(bitmask, 0)
    assert bitmask[0, 8] == 1
    assert bitmask[0, 97 // 32] == 1 << 97 % 32
    assert matcher.forced(8) == []
    matcher.accept(256)
    assert matcher.forced(8) == [100, 257]
