"""Texts that grow, and stretches of texts: counts are those of whole texts, at every place."""

import random
from itertools import combinations_with_replacement

import pytest
from bpepeers import PEERS, Peer, peer

from ffwd._native import TextError
from ffwd.tokenizer import Bpe

SEED = 20251121

ATOMS = [
    *"abcdefgh ABC '\t\n\"{}[]:,.0123456789",
    *("  ", "é", "日", "\u017f", "🙂", "\u2028", "\x85", "'s", "'LL", "\r\n", "\n\n", '{"', '": '),
    *(" " * 12, "a" * 9, "1" * 7),
]


def texts() -> list[str]:
    generator = random.Random(SEED)
    drawn = ["".join(generator.choices(ATOMS, k=generator.randint(0, 80))) for _ in range(8)]
    return [*drawn, " " * 150 + "a" + " " * 40 + "\n" * 30 + " " * 20 + "\n  ", "a" * 100, "1" * 80]


@pytest.fixture(scope="module", params=PEERS)
def bpe(request: pytest.FixtureRequest) -> Bpe:
    real: Peer = peer(request.param)
    return real.bpe


OPTIONS = [{}, {"pretokenize": False}, {"prefix_space": False}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_appending(bpe: Bpe, options: dict[str, bool]) -> None:
    generator = random.Random(SEED)
    for text in texts():
        encoder = bpe.append_encoder(normalize=False, **options)
        for end, character in enumerate(text, 1):
            encoder.push(character)
            assert encoder.count() == bpe.count(text[:end], normalize=False, **options)
        expected = bpe.encode(text, normalize=False, **options)
        assert encoder.tokens() == expected
        for _ in range(5):
            length = generator.randint(0, len(encoder))
            encoder.truncate(length)
            kept = text.encode()[:length]
            assert encoder.text == kept
            whole = kept.decode(errors="ignore")
            assert encoder.count() == bpe.count(whole, normalize=False, **options)
            encoder.push(text.encode()[length:])
            assert encoder.count() == len(expected)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_prepending(bpe: Bpe, options: dict[str, bool]) -> None:
    generator = random.Random(SEED)
    for text in texts():
        data = text.encode()
        encoder = bpe.prepend_encoder(normalize=False, **options)
        for start in reversed(range(len(text))):
            encoder.push(text[start])
            assert encoder.count() == bpe.count(text[start:], normalize=False, **options)
        expected = bpe.encode(text, normalize=False, **options)
        assert encoder.tokens() == expected
        for _ in range(5):
            length = generator.randint(0, len(encoder))
            encoder.truncate(length)
            kept = data[len(data) - length :]
            assert encoder.text == kept
            whole = kept.decode(errors="ignore")
            assert encoder.count() == bpe.count(whole, normalize=False, **options)
            encoder.push(data[: len(data) - length])
            assert encoder.count() == len(expected)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_intervals(bpe: Bpe, options: dict[str, bool]) -> None:
    generator = random.Random(SEED)
    for text in texts():
        counter = bpe.interval_counter(text, normalize=False, **options)
        assert len(counter) == len(text.encode())
        for _ in range(60):
            start = generator.randint(0, len(text))
            end = generator.randint(start, len(text))
            place = len(text[:start].encode())
            found = counter.count(place, place + len(text[start:end].encode()))
            assert found == bpe.count(text[start:end], normalize=False, **options)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_all_intervals(bpe: Bpe, options: dict[str, bool]) -> None:
    for text in ("Hello world, this is", " naïve 日本  x\n y ", "a" * 40, "   "):
        counter = bpe.interval_counter(text, normalize=False, **options)
        places = [len(text[:end].encode()) for end in range(len(text) + 1)]
        for start, end in combinations_with_replacement(range(len(text) + 1), 2):
            expected = bpe.count(text[start:end], normalize=False, **options)
            assert counter.count(places[start], places[end]) == expected, text[start:end]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_splits_are_the_longest_beginnings(bpe: Bpe, options: dict[str, bool]) -> None:
    for text in texts():
        counts = [bpe.count(text[:end], normalize=False, **options) for end in range(len(text) + 1)]
        for limit in (0, 1, 2, 5, 20, 50):
            fitting = [end for end, count in enumerate(counts) if end > 0 and count <= limit]
            expected = max(fitting, default=min(1, len(text)))
            head, rest = bpe.split_at(text, limit, normalize=False, **options)
            assert (head, rest) == (text[:expected], text[expected:])
            data = bpe.split_at(text.encode(), limit, normalize=False, **options)
            assert data == (head.encode(), rest.encode())


def test_chunks_are_never_empty(bpe: Bpe) -> None:
    rest = "".join(texts()) * 3
    chunks = []
    while rest:
        head, rest = bpe.split_at(rest, 40, normalize=False)
        assert head
        assert bpe.count(head, normalize=False) <= 40
        chunks.append(head)
    assert "".join(chunks) == "".join(texts()) * 3


def test_a_limited_count(bpe: Bpe) -> None:
    for text in texts():
        count = bpe.count(text)
        assert count == len(bpe.encode(text))
        for limit in (0, 1, count - 1, count, count + 1, 1000):
            if limit >= 0:
                assert bpe.count_up_to(text, limit) == (count if count <= limit else None)


def test_all_methods(bpe: Bpe) -> None:
    for text in texts():
        expected = bpe.encode(text)
        assert bpe.encode(text, method="table") == expected
        assert bpe.encode(text, method="heap") == expected
        fewest = bpe.encode(text, method="minimal")
        assert len(fewest) <= len(expected)
        assert bpe.decode(fewest) == bpe.decode(expected)
        assert bpe.decode(bpe.encode(text, method="greedy")) == bpe.decode(expected)


def test_bytes_that_cannot_come() -> None:
    bpe = peer("tokenizers:llama3").bpe
    encoder = bpe.append_encoder()
    encoder.push("é")
    with pytest.raises(TextError) as caught:
        encoder.push(b"ab\xff")
    assert caught.value.byte == 4
    assert encoder.text == "é".encode()
    counter = bpe.interval_counter("aé")
    with pytest.raises(TextError) as caught:
        counter.count(0, 2)
    assert caught.value.byte == 2
    with pytest.raises(TextError, match="not within"):
        counter.count(0, 4)


def test_text_that_would_be_composed_is_refused() -> None:
    bpe = peer("tokenizers:qwen").bpe
    encoder = bpe.append_encoder()
    encoder.push("plain, é")
    with pytest.raises(TextError, match="normalization"):
        encoder.push("e\u0301")
    assert encoder.count() == bpe.count("plain, é")
    with pytest.raises(TextError, match="normalization"):
        bpe.interval_counter("e\u0301")
