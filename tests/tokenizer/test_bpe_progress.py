"""Texts that grow, and stretches of texts: each count is that of encoding the stretch alone."""

import random
from functools import partial

import pytest
from bpepeers import Peer, peer
from sampletexts import ATOMS, RUNS, TEXTS, adversarial_texts
from smalltokenizers import byte_level

from ffwd import TextError
from ffwd.tokenizer import AppendEncoder, Bpe, IntervalCounter, PrependEncoder

SEED = 63
NAMES = (
    "tiktoken:llama3",
    "tiktoken:o200k",
    "tiktoken:cl100k",
    "tokenizers:qwen",
    "tokenizers:deepseek",
    "tokenizers:gpt2",
    "mistral-common:tekken_240911.json",
    "sentencepiece:mistral-v3",
    "tokenizers:mistral-v1",
)


@pytest.fixture(scope="module", params=NAMES)
def real(request: pytest.FixtureRequest) -> Peer:
    return peer(request.param)


def texts(count: int = 60) -> list[str]:
    return [*TEXTS.values(), *adversarial_texts(SEED, count), *(run[:120] for run in RUNS.values())]


def test_appending_characters(real: Peer) -> None:
    """The count is right after each of them."""
    count = partial(real.bpe.count, normalize=False)
    for text in texts():
        encoder = real.bpe.append_encoder(normalize=False)
        assert isinstance(encoder, AppendEncoder)
        for end in range(1, len(text) + 1):
            encoder.push(text[end - 1])
            assert encoder.count() == count(text[:end]), text[:end]
        assert encoder.tokens() == real.bpe.encode(text, normalize=False)
        assert encoder.text == text.encode()


def test_appending_and_rolling_back(real: Peer) -> None:
    rng = random.Random(SEED)
    count = partial(real.bpe.count, normalize=False)
    for _ in range(20):
        encoder, parts = real.bpe.append_encoder(normalize=False), list[str]()
        for _ in range(40):
            if rng.random() < 0.4:
                del parts[rng.randrange(len(parts) + 1) :]
                encoder.truncate(len("".join(parts).encode()))
            else:
                parts.append("".join(rng.choices(ATOMS, k=rng.randrange(1, 6))))
                encoder.push(parts[-1].encode())
            assert encoder.count() == count("".join(parts)), parts
            assert len(encoder) == len("".join(parts).encode())


def test_appending_bytes(real: Peer) -> None:
    """What is not yet a character does not count."""
    for text in ("naïve 日本語 👍🏽 ok", "e\u0301 …"):
        encoder = real.bpe.append_encoder(normalize=False)
        data = text.encode()
        for end in range(1, len(data) + 1):
            encoder.push(data[end - 1 : end])
            complete = data[:end].decode(errors="ignore")
            assert encoder.count() == real.bpe.count(complete, normalize=False)


def test_prepending_characters(real: Peer) -> None:
    count = partial(real.bpe.count, normalize=False)
    for text in texts():
        encoder = real.bpe.prepend_encoder(normalize=False)
        assert isinstance(encoder, PrependEncoder)
        for start in range(len(text) - 1, -1, -1):
            encoder.push(text[start])
            assert encoder.count() == count(text[start:]), text[start:]
        assert encoder.tokens() == real.bpe.encode(text, normalize=False)
        assert encoder.text == text.encode()


def test_prepending_and_rolling_back(real: Peer) -> None:
    rng = random.Random(SEED)
    count = partial(real.bpe.count, normalize=False)
    for _ in range(20):
        encoder, parts = real.bpe.prepend_encoder(normalize=False), list[str]()
        for _ in range(30):
            if rng.random() < 0.4:
                del parts[: rng.randrange(len(parts) + 1)]
                encoder.truncate(len("".join(parts).encode()))
            else:
                parts.insert(0, "".join(rng.choices(ATOMS, k=rng.randrange(1, 6))))
                encoder.push(parts[0])
            assert encoder.count() == count("".join(parts)), parts


@pytest.mark.parametrize("prefix_space", [True, False])
def test_intervals(real: Peer, prefix_space: bool) -> None:
    rng = random.Random(SEED)
    count = partial(real.bpe.count, normalize=False, prefix_space=prefix_space)
    for text in [*texts(), "".join(rng.choices(ATOMS, k=400)), " " * 300 + "x" + "\n" * 300]:
        counter = real.bpe.interval_counter(text, normalize=False, prefix_space=prefix_space)
        assert isinstance(counter, IntervalCounter)
        places = [len(text[:n].encode()) for n in range(len(text) + 1)]
        for _ in range(40):
            start, end = sorted((rng.randrange(len(places)), rng.randrange(len(places))))
            expected = count(text[start:end])
            assert counter.count(places[start], places[end]) == expected, text[start:end]
        assert counter.count() == count(text)
        assert len(counter) == places[-1]


def test_intervals_that_are_none(real: Peer) -> None:
    counter = real.bpe.interval_counter("aé日", normalize=False)
    for start, end in ((0, 7), (3, 1), (2, 3), (0, 2), (0, 5)):
        with pytest.raises(TextError):
            counter.count(start, end)


def test_text_that_is_none() -> None:
    """A refused text changes nothing."""
    bpe = peer("tiktoken:o200k").bpe
    append, prepend = bpe.append_encoder(), bpe.prepend_encoder()
    append.push("ab")
    prepend.push("ab")
    for data in (b"\xff", b"a\x80", b"\xc3a"):
        for encoder in (append, prepend):
            with pytest.raises(TextError):
                encoder.push(data)
            assert encoder.count() == 1
            assert len(encoder) == 2


def test_text_that_the_tokenizer_would_compose() -> None:
    bpe = peer("tokenizers:qwen").bpe
    for call in (
        bpe.interval_counter,
        bpe.append_encoder().push,
        bpe.prepend_encoder().push,
        partial(bpe.split_at, num_tokens=2),
    ):
        with pytest.raises(TextError, match="normal"):
            call("cafe\u0301 au lait")
        call("caf\u00e9 au lait")


def test_tokenizers_that_look_for_words() -> None:
    """A word that was added can come about where two stretches meet."""
    bpe = Bpe.from_huggingface(byte_level(["word"]))
    for call in (
        bpe.append_encoder,
        bpe.prepend_encoder,
        partial(bpe.interval_counter, "a word"),
        partial(bpe.split_at, "a word", 2),
    ):
        with pytest.raises(TextError, match="added tokens"):
            call()
    assert bpe.count("a word") == 3
