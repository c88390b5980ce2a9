"""Random tokens of real vocabularies, beside the libraries that they come from."""

from functools import cache

import pytest
import realtokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from llamacpp import models_folder

from ffwd.streaming import DecodeStream, Sequence, StopSequenceDecoder
from ffwd.tokenizer import Tokenizer, load

BYTE_LEVEL = ["llama3", "deepseek", "gpt2", "tekken"]
GGUFS = ["bert-bge", "llama-spm", "nomic-bert-moe", "qwen2"]
"""WordPiece, SentencePiece BPE with bytes, Unigram, byte-level BPE."""


@cache
def loaded(name: str) -> Tokenizer:
    if name in GGUFS:
        return load(models_folder() / f"ggml-vocab-{name}.gguf")
    return load(realtokenizers.load(name).tokenizer)


@cache
def byte_tokens(name: str) -> list[int]:
    """Tokens that are no whole characters."""
    tokenizer = loaded(name)
    found = []
    for i in range(tokenizer.vocab_size):
        data = tokenizer.token_bytes(i)
        if data is not None and "\ufffd" in data.decode(errors="replace"):
            found.append(i)
    return found


def some_ids(name: str) -> st.SearchStrategy[list[int]]:
    """Any ids that are tokens; every other one ends or begins within a character."""
    tokenizer = loaded(name)
    known = st.integers(0, tokenizer.vocab_size - 1).filter(
        lambda i: tokenizer.token_bytes(i) is not None
    )
    partial = byte_tokens(name)
    token = st.one_of(known, st.sampled_from(partial)) if partial else known
    return st.lists(token, max_size=20)


@pytest.mark.parametrize("name", [*BYTE_LEVEL, "mistral-v1", "mistral-v3", *GGUFS])
def test_a_stream_is_the_whole_decode(name: str) -> None:
    tokenizer = loaded(name)

    @given(some_ids(name), st.integers(0, 20), st.booleans())
    @settings(max_examples=60)
    def check(ids: list[int], cut: int, skip: bool) -> None:
        expected = tokenizer.decode(ids, skip_special_tokens=skip)
        stream = DecodeStream(tokenizer, skip_special_tokens=skip)
        assert "".join(stream.step(i) or "" for i in ids) + stream.flush() == expected
        parts = [stream.step_batch(ids[:cut]), stream.step_batch(ids[cut:]), stream.flush()]
        assert "".join(parts) == expected
        sequence = Sequence(tokenizer, prompt_ids=ids[:cut], skip_special_tokens=skip)
        sequence.append_tokens(ids[cut:])
        assert sequence.text == expected
        assert sequence.prompt_text + sequence.generated_text == expected

    check()


@pytest.mark.parametrize("name", BYTE_LEVEL)
def test_malformed_text_is_that_of_the_library(name: str) -> None:
    """Which replaces malformed bytes of byte-level tokenizers in the same way."""
    real = realtokenizers.load(name).tokenizer

    @given(some_ids(name))
    @settings(max_examples=60)
    def check(ids: list[int]) -> None:
        stream = DecodeStream(loaded(name))
        assert stream.step_batch(ids) + stream.flush() == real.decode(ids)

    check()


@pytest.mark.parametrize("name", ["llama3", "mistral-v3"])
def test_stops_are_those_of_a_search_in_the_whole_text(name: str) -> None:
    tokenizer = loaded(name)

    @given(some_ids(name), st.data())
    @settings(max_examples=60)
    def check(ids: list[int], data: st.DataObject) -> None:
        text = tokenizer.decode(ids)
        stop = data.draw(
            st.sampled_from(sorted({text[a : a + 3] for a in range(len(text))} - {""}) or ["x"])
        )
        decoder = StopSequenceDecoder(tokenizer, stop_strings=[stop])
        shown = "".join(decoder.step(i).text for i in ids) + decoder.flush().text
        assert shown == text.partition(stop)[0]
        assert decoder.matched == (stop if stop in text else None)

    check()
