"""Tokens and their text, and where each token lies in it."""

import pytest
import realtokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import any_tokens, decoder_of, written

import ffwd
from ffwd.streaming import Decoder, Sequence
from ffwd.tokenizer import load


@given(any_tokens(), st.integers(0, 9), st.booleans())
@settings(max_examples=200)
def test_text_is_that_of_all_tokens(tokens: list[bytes], prompt: int, skip: bool) -> None:
    decoder = Decoder([b"<s>", *tokens], special=[0])
    ids = list(range(len(tokens) + 1))
    sequence = Sequence(decoder, prompt_ids=ids[:prompt], skip_special_tokens=skip)
    certain = sequence.text.removesuffix(sequence.pending.decode(errors="replace"))
    for i in ids[prompt:]:
        certain += sequence.append_token(i)
        assert certain + sequence.pending.decode(errors="replace") == sequence.text
    assert sequence.token_ids == ids
    assert len(sequence) == len(ids)
    assert (sequence.prompt_ids, sequence.generated_ids) == (ids[:prompt], ids[prompt:])
    assert sequence.text == decoder.decode(ids, skip_special_tokens=skip)
    assert sequence.data == decoder.decode_bytes(ids, skip_special_tokens=skip)
    assert sequence.prompt_text + sequence.generated_text == sequence.text
    # On the bytes the tokens lie side by side; the text before a place in the bytes is that of
    # the bytes before it, with a character that begins there not counted.
    ends = [end for _, end in sequence.byte_offsets]
    assert sequence.byte_offsets == list(zip([0, *ends[:-1]], ends, strict=True))
    assert (ends or [0])[-1] == len(sequence.data)
    at = 0
    for (start, end), (first, last) in zip(
        sequence.byte_offsets, sequence.character_offsets, strict=True
    ):
        assert last >= first >= at - 1
        own = sequence.data[start:end]
        assert (first == last) == (not own)
        assert last == len(sequence.data[:end].decode(errors="replace")) if own else True
        at = last
    assert at <= len(sequence.text)


@pytest.mark.parametrize("name", ["llama3", "gpt2"])
def test_offsets_are_those_of_the_tokenizers_library(name: str) -> None:
    """Whose offsets are those of the text that was encoded."""
    for text in written():
        encoding = realtokenizers.load(name).tokenizer.encode(text, add_special_tokens=False)
        sequence = Sequence(decoder_of(name))
        sequence.append_tokens(encoding.ids)
        assert sequence.text == text
        own = sequence.character_offsets
        # It trims the space before a word.
        for (start, end), (first, last) in zip(own, encoding.offsets, strict=True):
            assert last == end
            assert first == start or text[start:first].isspace()
        for token_id, (start, end) in zip(encoding.ids, sequence.byte_offsets, strict=True):
            assert decoder_of(name).decode_bytes([token_id]) == text.encode()[start:end]


def test_places() -> None:
    decoder = Decoder([b"<s>", b"a\xe4", b"\xb8\x96", b"\xe4", b"b", b""], special=[0])
    sequence = Sequence(decoder, prompt_ids=[0, 1])
    assert (sequence.prompt_text, sequence.generated_text) == ("a", "\ufffd")
    assert sequence.append_token(2) == "\u4e16"
    assert (sequence.prompt_text, sequence.generated_text) == ("a", "\u4e16")
    assert [sequence.append_token(i) for i in (3, 0, 5, 4)] == ["", "", "", "\ufffdb"]
    assert sequence.character_offsets == [
        *[(0, 0), (0, 2), (1, 2)],
        *[(2, 3), (3, 3), (3, 3), (3, 4)],
    ]
    assert sequence.byte_offsets == [(0, 0), (0, 2), (2, 4), (4, 5), (5, 5), (5, 5), (5, 6)]


def test_unknown_ids_change_nothing() -> None:
    sequence = Sequence(Decoder([b"a"]))
    for call in (sequence.append_token, lambda i: sequence.append_tokens([0, i])):
        with pytest.raises(ffwd.TokenError, match="3"):
            call(3)
    assert sequence.token_ids == []
    with pytest.raises(ffwd.TokenError, match="3"):
        Sequence(Decoder([b"a"]), prompt_ids=[3])


@pytest.mark.parametrize("name", ["gpt2", "mistral-v3"])
def test_texts_are_appended(name: str) -> None:
    """Where a text goes on, the tokenizer puts no space before it."""
    tokenizer = load(realtokenizers.load(name).tokenizer)
    sequence = Sequence(tokenizer)
    head = sequence.append_text("The answer is")
    assert head == tokenizer.encode("The answer is")
    rest = sequence.append_text(" 4\u4e162, <s> is text")
    assert sequence.text == "The answer is 4\u4e162, <s> is text"
    assert sequence.token_ids == head + rest
    sequence.append_text("!")
    assert sequence.text.endswith("text!")


def test_a_text_begins_anew_after_a_special_token() -> None:
    tokenizer = load(realtokenizers.load("mistral-v3").tokenizer)
    end = tokenizer.token_to_id("</s>")
    assert end is not None
    sequence = Sequence(tokenizer, prompt_ids=[end])
    assert sequence.at_text_start
    assert sequence.append_text("Hello") == tokenizer.encode("Hello")
    assert not sequence.at_text_start


def test_a_decoder_cannot_encode() -> None:
    with pytest.raises(TypeError, match="made with a tokenizer"):
        Sequence(Decoder([b"a"])).append_text("a")
