"""Text while its tokens come: always that of all tokens together."""

import codecs
import re
import threading
from collections.abc import Iterator
from itertools import repeat, takewhile
from typing import Any

import pytest
import realtokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st
from streams import any_tokens, decoder_of, written
from tokenizers.decoders import DecodeStream as PeerStream

import ffwd
from ffwd.streaming import Decoder, DecodeStream, StreamInUseError

TOKENIZERS = ["llama3", "deepseek", "gpt2", "tekken", "mistral-v1", "mistral-v3"]


def streamed(stream: DecodeStream, ids: list[int]) -> str:
    return "".join(stream.step(i) or "" for i in ids) + stream.flush()


def certain(data: bytes) -> str:
    """What of a text can be told from its first bytes, as Python reads a file."""
    # Python waits for the third byte of a surrogate, which no text has: these two are malformed.
    ended = re.search(rb"\xed[\xa0-\xbf]\Z", data) is not None
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data, ended)


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("skip", [True, False])
def test_real_tokenizers(name: str, skip: bool) -> None:
    """By tokens, in batches and at every cut into two batches."""
    decoder = decoder_of(name)
    for text in written():
        ids = realtokenizers.load(name).tokenizer.encode(text).ids
        expected = decoder.decode(ids, skip_special_tokens=skip)
        stream = DecodeStream(decoder, skip_special_tokens=skip)
        assert streamed(stream, ids) == expected
        for cut in range(len(ids) + 1):
            head, rest = stream.step_batch(ids[:cut]), stream.step_batch(ids[cut:])
            assert head + rest + stream.flush() == expected


@pytest.mark.parametrize("name", TOKENIZERS)
def test_as_the_tokenizers_library(name: str) -> None:
    """Wherever no character is open: it holds back all of a token that ends within one.

    It drops a genuine U+FFFD at the end of a text.
    """
    real = realtokenizers.load(name).tokenizer
    for text in written():
        if "\ufffd" in text:
            continue
        peer, stream = PeerStream(skip_special_tokens=True), DecodeStream(decoder_of(name))
        expected = own = ""
        for i in real.encode(text).ids:
            expected += peer.step(real, i) or ""
            own += stream.step(i) or ""
            if not stream.pending:
                assert own == expected


@given(any_tokens(), st.booleans(), st.booleans())
@example([b"a\xed\xbf"], False, True)
@example([b"\xed", b"\xa0\x80"], False, True)
@settings(max_examples=300)
def test_every_cut(tokens: list[bytes], strip: bool, skip: bool) -> None:
    """Text comes as soon as it is certain, and nothing is lost."""
    decoder = Decoder([b"<s>", *tokens], special=[0], strip_first_space=strip)
    ids = list(range(len(tokens) + 1))
    stream = DecodeStream(decoder, skip_special_tokens=skip)
    for _ in range(2):
        text = ""
        for i in ids:
            text += stream.step(i) or ""
            data = decoder.decode_bytes(ids[: i + 1], skip_special_tokens=skip)
            assert text == certain(data)
            assert text + stream.pending.decode(errors="replace") == data.decode(errors="replace")
        assert text + stream.flush() == decoder.decode(ids, skip_special_tokens=skip)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_text_after_a_held_character_is_not_lost(size: int) -> None:
    data = "\u4e16\u754c \u9f98\u9750\u9f49".encode()
    decoder = Decoder([data[at : at + size] for at in range(0, len(data), size)])
    assert streamed(DecodeStream(decoder), list(range(decoder.vocab_size))) == data.decode()


def test_a_genuine_replacement_character_passes_at_once() -> None:
    decoder = Decoder(["\ufffd".encode(), b"a", b"\xef\xbf", b"\xbd"])
    stream = DecodeStream(decoder)
    assert [stream.step(i) for i in (0, 1, 2, 3, 0)] == ["\ufffd", "a", None, "\ufffd", "\ufffd"]
    assert stream.flush() == ""


def test_flush_gives_what_is_pending() -> None:
    decoder = Decoder([b"a\xf0\x9f", b"\x91", b"b"])
    stream = DecodeStream(decoder)
    assert stream.step(0) == "a"
    assert stream.step(1) is None
    assert stream.pending == b"\xf0\x9f\x91"
    assert stream.flush() == "\ufffd"
    assert stream.flush() == ""
    assert stream.step(2) == "b"


def test_malformed_bytes_come_as_soon_as_they_are_certain() -> None:
    decoder = Decoder([b"\xff", b"\xe0", b"\x80", b"\xed\xa0\x80", b"\xc3", b"("])
    stream = DecodeStream(decoder)
    bad = "\ufffd"
    assert [stream.step(i) for i in range(6)] == [bad, None, 2 * bad, 3 * bad, None, bad + "("]


@pytest.mark.parametrize("name", ["mistral-v1", "mistral-v3"])
def test_a_prompt_decides_about_the_first_space(name: str) -> None:
    """Of a text that goes on, the space before a word is part."""
    real = realtokenizers.load(name).tokenizer
    decoder = decoder_of(name)
    begin, end = real.token_to_id("<s>"), real.token_to_id("</s>")
    word, more = (real.encode(text, add_special_tokens=False).ids for text in ("Hello", "you"))
    for prompt, expected in [
        ([], "Hello"),
        ([begin], "Hello"),
        (more, " Hello"),
        ([begin, *more], " Hello"),
        ([*more, end], "Hello"),
    ]:
        assert DecodeStream(decoder, prompt_ids=prompt).step_batch(word) == expected


def test_a_character_that_the_prompt_begins_comes_whole() -> None:
    decoder = Decoder([b"a\xe4\xb8", b"\x96", b"b"])
    assert DecodeStream(decoder, prompt_ids=[0]).step(1) == "\u4e16"
    assert DecodeStream(decoder, prompt_ids=[0]).step(2) == "\ufffdb"


def test_a_tokenizer_may_be_given() -> None:
    class Tokenizer:
        decoder = Decoder([b"a"])

    assert DecodeStream(Tokenizer()).step(0) == "a"
    for wrong in (object(), None, "gpt2", Tokenizer):
        if wrong is Tokenizer:
            continue
        with pytest.raises(TypeError, match="needs a Decoder"):
            DecodeStream(wrong)


def test_a_decoder_that_cannot_be_made_says_why() -> None:
    class Tokenizer:
        @property
        def decoder(self) -> Decoder:
            raise ffwd.VocabularyError("no bytes")

    with pytest.raises(ffwd.VocabularyError, match="no bytes"):
        DecodeStream(Tokenizer())


def test_a_fork_goes_on_by_itself() -> None:
    stream = DecodeStream(Decoder([b"\xe4\xb8", b"\x96", b"\x8d"]))
    stream.step(0)
    fork = stream.fork()
    assert (stream.step(1), fork.step(2)) == ("\u4e16", "\u4e0d")


@pytest.mark.parametrize("unknown", [1, 3, -1, 2**32, 2**70])
def test_unknown_ids_change_nothing(unknown: int) -> None:
    decoder = Decoder([b"\xe4\xb8", None, b"\x96"])
    stream = DecodeStream(decoder)
    stream.step(0)
    for call in (stream.step, lambda i: stream.step_batch([0, i])):
        with pytest.raises(ffwd.TokenError, match=str(unknown)) as raised:
            call(unknown)
        assert raised.value.token == unknown
    with pytest.raises(ffwd.TokenError):
        DecodeStream(decoder, prompt_ids=[unknown])
    assert stream.step(2) == "\u4e16"


def test_a_stream_that_is_in_use_says_so() -> None:
    """Many tokens are decoded with the interpreter lock released, so that another can come."""
    decoder = Decoder([b"a" * 1000])
    stream = DecodeStream(decoder)
    ids = [0] * 50_000
    texts: list[str] = []
    thread = threading.Thread(target=lambda: texts.append(stream.step_batch(ids)))
    thread.start()
    with pytest.raises(StreamInUseError, match="belongs to one request"):
        list(takewhile(lambda _: thread.is_alive(), map(stream.step, repeat(0))))
    thread.join()
    assert texts == ["a" * 1000 * len(ids)]


def test_ids_may_use_the_stream_that_they_are_for() -> None:
    """Nothing is locked while they are asked for."""
    stream = DecodeStream(Decoder([b"a", b"b"]))

    def ids() -> Iterator[int]:
        assert stream.step(1) == "b"
        yield 0

    assert stream.step_batch(ids()) == "a"


@pytest.mark.parametrize("wrong", [None, "1", 1.0, b"1"])
def test_what_is_no_id_is_a_type_error(wrong: Any) -> None:
    stream = DecodeStream(Decoder([b"a", b"b"]))
    with pytest.raises(TypeError):
        stream.step(wrong)
    with pytest.raises(TypeError):
        stream.step_batch(wrong)
