"""Token ids back to text, by the table of bytes alone."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import realtokenizers
from hypothesis import given, settings
from streams import any_tokens, decoder_of, written

import ffwd
from ffwd._native import Decoder

TOKENS = [b"<s>", b" a", b"\xe4\xb8", b"\x96", None, b""]


def decoder(**options: Any) -> Decoder:
    return Decoder(TOKENS, special=[0], **options)


def test_ids_may_be_any_integers() -> None:
    expected = " a\u4e16 a"
    for ids in ([0, 1, 2, 3, 5, 1], (0, 1, 2, 3, 5, 1), np.array([0, 1, 2, 3, 5, 1])):
        assert decoder().decode(ids) == expected
        assert decoder().decode_bytes(ids) == expected.encode()
    assert decoder().decode(iter([0, 1]), skip_special_tokens=False) == "<s> a"
    assert decoder().decode([]) == ""
    assert decoder().vocab_size == 6


def test_only_a_space_that_the_text_begins_with_is_dropped() -> None:
    stripping = decoder(strip_first_space=True)
    assert stripping.strip_first_space
    assert stripping.decode([0, 1, 1]) == "a a"
    assert stripping.decode([0, 1], skip_special_tokens=False) == "<s> a"
    assert stripping.decode_bytes([1]) == b"a"
    assert stripping.decode([3, 1]) == "\ufffd a"


@pytest.mark.parametrize("unknown", [4, 6, 2**32 - 1, 2**32, 2**80, -1, -(2**80)])
def test_unknown_ids_are_named(unknown: int) -> None:
    for decode in (decoder().decode, decoder().decode_bytes):
        with pytest.raises(ffwd.TokenError, match=str(unknown)) as raised:
            decode([1, unknown])
        assert raised.value.token == unknown


@pytest.mark.parametrize("ids", ["12", b"12", 7, [1.0], [None], ["1"]])
def test_what_is_no_token_ids_is_a_type_error(ids: Any) -> None:
    with pytest.raises(TypeError):
        decoder().decode(ids)


def test_a_table_that_cannot_be_used() -> None:
    with pytest.raises(ffwd.VocabularyError, match="6 is outside"):
        Decoder(TOKENS, special=[6])
    with pytest.raises(ffwd.VocabularyError, match="4 has no token"):
        Decoder(TOKENS, special=[4])
    with pytest.raises(TypeError, match="token 1 must be bytes or None"):
        Decoder([b"a", "b"])  # type: ignore[list-item]


@given(any_tokens())
@settings(max_examples=300)
def test_malformed_bytes_are_replaced_as_python_does(tokens: list[bytes]) -> None:
    table = Decoder(tokens)
    ids = list(range(len(tokens)))
    assert table.decode(ids) == b"".join(tokens).decode(errors="replace")
    assert table.decode_bytes(ids) == b"".join(tokens)


@pytest.mark.parametrize("name", ["llama3", "deepseek", "gpt2", "mistral-v1", "mistral-v3"])
def test_real_tokenizers(name: str) -> None:
    """As the tokenizers library decodes what it encoded."""
    real = realtokenizers.load(name)
    table = decoder_of(name)
    for text in written():
        ids = real.tokenizer.encode(text).ids
        for skip in (True, False):
            expected = real.tokenizer.decode(ids, skip_special_tokens=skip)
            assert table.decode(ids, skip_special_tokens=skip) == expected


def test_threads_share_a_decoder() -> None:
    """Long lists are decoded with the interpreter lock released."""
    table = decoder_of("gpt2")
    ids = realtokenizers.load("gpt2").tokenizer.encode("threads share a decoder \u4e16 ").ids * 500
    expected = table.decode(ids)
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: table.decode(ids), range(32))) == {expected}
