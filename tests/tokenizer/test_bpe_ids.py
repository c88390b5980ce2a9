"""The ids of whole texts are the tokenizer's own."""

import unicodedata

import pytest
from bpepeers import PEERS, Peer, peer
from hypothesis import given, settings
from hypothesis import strategies as st
from sampletexts import ATOMS, RUNS, TEXTS, adversarial_texts, long_texts, random_texts

SEED = 20251121


@pytest.fixture(scope="module", params=PEERS)
def real(request: pytest.FixtureRequest) -> Peer:
    return peer(request.param)


@pytest.mark.parametrize("text", [*TEXTS.values()], ids=[*TEXTS])
def test_sample_texts(real: Peer, text: str) -> None:
    real.check(text)


def test_long_texts(real: Peer) -> None:
    for text in long_texts().values():
        real.check(text)


def test_runs(real: Peer) -> None:
    for text in RUNS.values():
        real.check(text)


def test_random_texts(real: Peer) -> None:
    for text in random_texts(SEED, 1_000):
        real.check(text)


def test_adversarial_texts(real: Peer) -> None:
    for text in adversarial_texts(SEED, 1_500):
        real.check(text)


def test_characters(real: Peer) -> None:
    """One in 31 of all, between letters and twice after a space."""
    characters = [c for c in map(chr, range(0, 0x110000, 31)) if is_assigned(c)]
    for first in range(0, len(characters), 500):
        real.check("".join(f"a{c}b {c}{c}" for c in characters[first : first + 500]))


def is_assigned(character: str) -> bool:
    """In this Python's version of Unicode, which is not newer than any library's.

    Surrogates and code points that are never assigned are left out as well.
    """
    return unicodedata.category(character) not in ("Cn", "Cs")


@settings(max_examples=50)
@given(data=st.data())
def test_texts_of_atoms_and_tokens(real: Peer, data: st.DataObject) -> None:
    """Also those that are made of the tokenizer's own tokens, in an order that no encoder gives.

    The names of special tokens are among them.
    """
    ids = st.integers(0, real.bpe.vocab_size - 1)
    tokens = ids.map(lambda i: (real.bpe.token_bytes(i) or b"").decode(errors="ignore"))
    parts = st.one_of(st.sampled_from(ATOMS), tokens, st.characters(codec="utf-8"))
    text = "".join(data.draw(st.lists(parts, max_size=12)))
    real.check(text)
