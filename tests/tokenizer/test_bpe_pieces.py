"""Text that is not cut, bytes that are no text, and the several methods of encoding."""

import random
from functools import partial

import pytest
import realencodings
import realtokenizers
from bpepeers import PEERS, Peer, peer
from hypothesis import given, settings
from hypothesis import strategies as st
from sampletexts import RUNS, TEXTS, adversarial_texts, long_texts, random_texts
from tokenizers import Tokenizer, pre_tokenizers

SEED = 31

BYTE_LEVEL = [name for name in PEERS if "mistral-v" not in name]


@pytest.fixture(scope="module", params=PEERS)
def real(request: pytest.FixtureRequest) -> Peer:
    return peer(request.param)


def random_bytes(seed: int, count: int, most: int = 60) -> list[bytes]:
    """Some of them UTF-8 with a few bytes changed."""
    rng = random.Random(seed)
    texts = [bytearray(text.encode()) for text in adversarial_texts(seed, count // 2)]
    for text in texts:
        text[rng.randrange(len(text))] = rng.randrange(256)
    return [rng.randbytes(rng.randrange(1, most)) for _ in range(count // 2)] + [*map(bytes, texts)]


@pytest.mark.parametrize("name", realencodings.NAMES)
def test_one_piece_as_in_tiktoken(name: str) -> None:
    """A whole text is one piece, be it UTF-8 or not."""
    own = realencodings.load(name)
    bpe = peer(f"tiktoken:{name}").bpe
    texts = [text.encode() for text in [*TEXTS.values(), *RUNS.values()] if text]
    for data in [*texts, *random_bytes(SEED, 2_000), *(bytes((b,)) for b in range(256))]:
        assert bpe.encode(data, pretokenize=False) == own._encode_single_piece(data), data


@pytest.mark.parametrize("name", [n for n in realtokenizers.NAMES if "mistral" not in n])
def test_one_piece_as_in_tokenizers(name: str) -> None:
    """Bytes are written as characters, and nothing is cut."""
    given = realtokenizers.load(name).tokenizer
    own = Tokenizer(given.model)
    own.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bpe = peer(f"tokenizers:{name}").bpe
    for text in [*TEXTS.values(), *random_texts(SEED, 300), *adversarial_texts(SEED, 300)]:
        ids = bpe.encode(text, pretokenize=False, normalize=False)
        assert ids == own.encode(text).ids, text


def test_bytes_that_are_no_text(real: Peer) -> None:
    """Nothing is lost, and every method gives the same."""
    for data in random_bytes(SEED, 600):
        ids = real.bpe.encode(data, prefix_space=False, normalize=False)
        assert real.bpe.decode(ids) == data
        assert real.bpe.encode(data, prefix_space=False, normalize=False, method="heap") == ids
        one = real.bpe.encode(data, prefix_space=False, normalize=False, pretokenize=False)
        assert real.bpe.decode(one) == data


def test_bytes_of_a_text_are_the_text(real: Peer) -> None:
    for text in [*TEXTS.values(), *random_texts(SEED, 300)]:
        assert real.bpe.encode(text.encode()) == real.bpe.encode(text)


def test_methods_agree(real: Peer) -> None:
    texts = [*TEXTS.values(), *random_texts(SEED, 300), *adversarial_texts(SEED, 300)]
    texts += [text[:4_000] for text in [*RUNS.values(), *long_texts().values()]]
    for text in texts:
        for pretokenize in (True, False):
            ids = real.bpe.encode(text, pretokenize=pretokenize)
            for method in ("table", "heap"):
                other = real.bpe.encode(text, pretokenize=pretokenize, method=method)
                assert other == ids, (method, text)


def test_methods_that_are_not_exact(real: Peer) -> None:
    """Their tokens spell the text, and `minimal` has the fewest of all."""
    for text in [*TEXTS.values(), *adversarial_texts(SEED, 200)]:
        ids = real.bpe.encode(text, prefix_space=False, normalize=False)
        greedy = real.bpe.encode(text, prefix_space=False, normalize=False, method="greedy")
        minimal = real.bpe.encode(text, prefix_space=False, normalize=False, method="minimal")
        assert real.bpe.decode(greedy) == real.bpe.decode(minimal) == text.encode()
        assert len(minimal) <= min(len(ids), len(greedy)), text


def test_counting(real: Peer) -> None:
    for text in [*TEXTS.values(), *adversarial_texts(SEED, 200), *long_texts().values()]:
        count = len(real.bpe.encode(text))
        assert real.bpe.count(text) == count
        assert real.bpe.count_up_to(text, count) == count
        assert real.bpe.count_up_to(text, count + 5) == count
        if count:
            assert real.bpe.count_up_to(text, count - 1) is None
            assert real.bpe.count_up_to(text, 0) is None


def test_splitting(real: Peer) -> None:
    """Heads have at most so many tokens, one more character would be too much, nothing is lost."""
    for text in [*TEXTS.values(), *adversarial_texts(SEED, 40)]:
        for limit in (1, 2, 5, 17):
            rest, chunks = text, []
            while rest:
                head, rest = real.bpe.split_at(rest, limit, normalize=False)
                assert head
                chunks.append(head)
                count = partial(real.bpe.count, normalize=False)
                if len(head) > 1:
                    assert count(head) <= limit, (text, limit)
                assert all(count(head + rest[:n]) > limit for n in range(1, min(20, len(rest))))
            assert "".join(chunks) == text


def test_decoding(real: Peer) -> None:
    """Token by token, and special tokens by their names."""
    bpe = real.bpe
    rng = random.Random(SEED)
    text = [i for i in range(bpe.vocab_size) if bpe.token_bytes(i) is not None]
    for _ in range(50):
        ids = rng.choices(text, k=30)
        assert bpe.decode(ids) == b"".join(bpe.token_bytes(i) or b"" for i in ids)


@settings(max_examples=100)
@given(data=st.binary(max_size=40), cut=st.integers(0, 40))
@pytest.mark.parametrize("name", ["tiktoken:o200k", "sentencepiece:mistral-v3"])
def test_cuts_inside_of_characters(name: str, data: bytes, cut: int) -> None:
    bpe = peer(name).bpe
    text = "日本語 naïve 👩‍👧 text ".encode() + data
    for part in (text[:cut], text[cut:]):
        ids = bpe.encode(part, prefix_space=False)
        assert bpe.decode(ids) == part
        assert bpe.count(part) == len(bpe.encode(part))
