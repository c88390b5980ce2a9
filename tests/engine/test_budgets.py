"""Texts with a budget of tokens: they end in time, and each mask says what may be accepted."""

import json
import random

import numpy as np
import pytest
from cases import CASES, bits_of, byte_vocabulary, mask_bits, real_vocabulary

import ffwd
from maskbench.conformance.gates import budgets
from maskbench.conformance.gates.walks import VocabularyTokens

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "tags": {"type": "array", "items": {"type": "string"}},
        "child": {"$ref": "#"},
    },
    "required": ["name"],
    "additionalProperties": False,
}


def text_of(vocabulary: ffwd.Vocabulary, tokens: list[int]) -> bytes:
    return b"".join(vocabulary.token_bytes(token) or b"" for token in tokens)


def test_random_schemas_end_in_time() -> None:
    report = budgets.run(120, 1, byte_vocabulary())
    assert not report.failures, report.failures[0]
    assert report.walks == 120 * len(budgets.MORE)
    assert report.full > 50


@pytest.mark.parametrize("name", ["gpt2", "mistral-v3"])
def test_random_schemas_end_in_time_in_a_real_vocabulary(name: str) -> None:
    report = budgets.run(1, 2, real_vocabulary(name))
    assert not report.failures, report.failures[0]


def test_too_small_a_budget_says_what_suffices() -> None:
    compiled = ffwd.compile(ffwd.json_schema(PERSON, whitespace="compact"), byte_vocabulary())
    shortest = compiled.shortest_completion()
    vocabulary = compiled.vocabulary
    assert len(json.loads(text_of(vocabulary, shortest))["name"]) == 1
    assert shortest[-1] in vocabulary.eos_token_ids
    for max_tokens in range(len(shortest)):
        with pytest.raises(ffwd.BudgetError) as caught:
            compiled.matcher(max_tokens=max_tokens)
        assert (caught.value.needed, caught.value.max_tokens) == (len(shortest), max_tokens)
        assert str(len(shortest)) in str(caught.value)
    matcher = compiled.matcher(max_tokens=len(shortest))
    assert matcher.tokens_left == matcher.max_tokens == len(shortest)
    with pytest.raises(OverflowError):
        compiled.matcher(max_tokens=-1)


def test_what_is_left_is_counted_down_and_up_again() -> None:
    vocabulary = byte_vocabulary()
    compiled = ffwd.compile(ffwd.json_schema(PERSON, whitespace="compact"), vocabulary)
    assert compiled.matcher().tokens_left is None
    assert compiled.matcher().max_tokens is None
    matcher = compiled.matcher(max_tokens=20)
    assert matcher.accept_tokens(list(b'{"name":"'))
    assert matcher.tokens_left == 11
    fork = matcher.fork()
    # With one more of these the quote, the brace and the end would not fit.
    assert matcher.accept_tokens(list(b"12345678"))
    assert not matcher.accept_token(ord("9"))
    assert matcher.validate_tokens(list(b"9")) == 0
    assert matcher.allowed_token_ids() == [ord('"')]
    assert matcher.validate_tokens([*list(b'"}'), 256, 0]) == 3
    matcher.rollback(3)
    assert matcher.tokens_left == 6
    assert matcher.validate_tokens(list(b"9999")) == 3
    assert fork.tokens_left == 11
    assert len(fork.allowed_token_ids()) > 100
    matcher.reset()
    assert matcher.tokens_left == 20
    assert matcher.accept_tokens([*b'{"name":"12345678"}', 256])
    assert matcher.is_terminated()
    assert matcher.tokens_left == 0
    assert matcher.shortest_completion() == []


def test_the_text_that_is_left_open_is_the_same_without_a_budget() -> None:
    """An ample budget changes no mask."""
    vocabulary = real_vocabulary("gpt2")
    source = random.Random(3)
    for case in list(CASES.values())[::9]:
        compiled = ffwd.compile(ffwd.json_schema(case.schema), vocabulary)
        plain, ample = compiled.matcher(), compiled.matcher(max_tokens=100_000)
        for _ in range(12):
            mask = mask_bits(plain)
            assert np.array_equal(mask, mask_bits(ample))
            allowed = np.flatnonzero(mask)
            token = int(source.choice(allowed))
            assert plain.accept_token(token)
            assert ample.accept_token(token)
            if plain.is_terminated():
                break


def test_free_text_is_closed_in_time() -> None:
    vocabulary = byte_vocabulary()
    compiled = ffwd.compile(ffwd.json_schema(PERSON, whitespace="compact"), vocabulary)
    needed = len(compiled.shortest_completion()) + len(b"</think>")
    with pytest.raises(ffwd.BudgetError) as caught:
        compiled.matcher(free_until=b"</think>", max_tokens=needed - 1)
    assert caught.value.needed == needed
    tokens = VocabularyTokens(vocabulary)
    for number in range(20):
        matcher = compiled.matcher(free_until=b"</think>", max_tokens=needed + number)
        while not matcher.is_terminated():
            matcher.fill_bitmask(tokens.rows)
            # Whatever does not lead on.
            assert matcher.accept_token(int(np.flatnonzero(tokens.allowed())[0]))
        text = text_of(vocabulary, matcher.tokens)
        assert json.loads(text.partition(b"</think>")[2])["name"]
        assert matcher.num_tokens <= needed + number


def test_forced_and_canonical_tokens_keep_to_the_budget() -> None:
    vocabulary = real_vocabulary("gpt2")
    schema = {"const": {"identifier": "immutable-0001", "kind": "internationalisation"}}
    compiled = ffwd.compile(ffwd.json_schema(schema, whitespace="compact"), vocabulary)
    needed = len(compiled.shortest_completion())
    for more in range(6):
        matcher = compiled.matcher(max_tokens=needed + more, canonical=True)
        tokens = VocabularyTokens(vocabulary)
        while not matcher.is_terminated():
            forced = matcher.fast_forward_tokens()
            assert matcher.accept_tokens(forced)
            matcher.fill_bitmask(tokens.rows)
            assert matcher.accept_token(int(np.flatnonzero(tokens.allowed())[-1]))
        assert json.loads(text_of(vocabulary, matcher.tokens)) == schema["const"]
        assert matcher.num_tokens <= needed + more


def test_batches_keep_to_budgets() -> None:
    vocabulary = byte_vocabulary()
    compiled = ffwd.compile(ffwd.json_schema(PERSON), vocabulary)
    needed = len(compiled.shortest_completion())
    source = random.Random(5)
    matchers = [compiled.matcher(max_tokens=needed + 2 * number) for number in range(12)]
    rows = ffwd.allocate_bitmask(len(matchers), vocabulary.vocab_size)
    while not all(matcher.is_terminated() for matcher in matchers):
        ffwd.fill_bitmasks(matchers, rows)
        for row, matcher in zip(rows, matchers, strict=True):
            ids = np.flatnonzero(bits_of(row, vocabulary.vocab_size))
            assert np.array_equal(np.flatnonzero(mask_bits(matcher)), ids)
            if not matcher.is_terminated():
                assert matcher.accept_token(int(source.choice(ids)))
    assert all(matcher.tokens_left is not None for matcher in matchers)
