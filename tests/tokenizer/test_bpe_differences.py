"""Where a `Bpe` is known to differ from the tokenizer that it was read from."""

import unicodedata

import pytest
import realencodings
import realtokenizers
from bpepeers import PEERS, peer
from smalltokenizers import fallback
from test_bpe_ids import is_assigned
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from ffwd import TextError, VocabularyError
from ffwd.tokenizer import Bpe, text_encoder

SPACED = [name for name in PEERS if "mistral-v" in name]


@pytest.mark.parametrize("name", SPACED)
def test_the_character_that_spaces_are_written_as(name: str) -> None:
    """Whole texts as the tokenizer has them; without normalization nothing is lost."""
    real = peer(name)
    for text in ("▁", "a▁b", "▁▁a", " ▁ a", "a ▁", "▁ "):
        real.check(text)
        ids = real.bpe.encode(text, normalize=False, prefix_space=False)
        assert real.bpe.decode(ids) == text.encode()
        assert (
            real.bpe.decode(real.bpe.encode(text, prefix_space=False))
            == text.replace("▁", " ").encode()
        )


def test_pieces_that_sentencepiece_finds_in_every_text() -> None:
    """Where they are named like control tokens, they are found only where that is allowed."""
    real = peer("sentencepiece:mistral-v3")
    name = min(real.special)
    assert name.startswith("[")
    token = real.bpe.special_tokens[name]
    text = f"see {name}."
    assert token in real.encode(text)
    assert token not in real.bpe.encode(text)
    assert real.bpe.encode(text, special={name}) == real.encode(text)


def test_composition() -> None:
    """Qwen's tokenizer composes; in the middle of an output that would change the text."""
    real = peer("tokenizers:qwen")
    slow = text_encoder(realtokenizers.load("qwen").tokenizer)
    texts = ["e\u0301", "\u1100\u1161\u11a8", "\u212b", "a\u0327\u0301", "\u0958", "x\u0301\u0327"]
    texts += ["nai\u0308ve cafe\u0301", "\uf900", "\u0344", "\u2126 \u1e9b\u0323"]
    for text in texts:
        assert unicodedata.normalize("NFC", text) != text
        real.check(text)
        composed = real.bpe.encode(text)
        assert composed == real.bpe.encode(unicodedata.normalize("NFC", text), normalize=False)
        assert real.bpe.encode(text, normalize=False) == slow(text.encode())
        assert real.bpe.decode(real.bpe.encode(text, normalize=False)) == text.encode()
        with pytest.raises(TextError):
            real.bpe.append_encoder().push(text)
        encoder = real.bpe.append_encoder(normalize=False)
        encoder.push(text)
        assert encoder.count() == real.bpe.count(text, normalize=False)


def test_composition_of_every_character() -> None:
    """That has a decomposition, after a letter and a mark."""
    real = peer("tokenizers:qwen")
    characters = [
        c
        for c in map(chr, range(0x300, 0x30000))
        if is_assigned(c) and (unicodedata.decomposition(c) or unicodedata.combining(c))
    ]
    assert len(characters) > 5_000
    for first in range(0, len(characters), 200):
        real.check("".join(f"a{c} o\u0323{c}x" for c in characters[first : first + 200]))


@pytest.mark.parametrize("name", PEERS)
def test_characters_of_other_versions_of_unicode(name: str) -> None:
    """What this version of Unicode lacks may be cut elsewhere; it is never lost."""
    bpe = peer(name).bpe
    lacking = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) == "Cn"]
    text = "".join(f"a{c}b {c}{c}" for c in lacking[::101])
    assert bpe.decode(bpe.encode(text, prefix_space=False)) == text.encode()


def test_unknown_characters() -> None:
    """The unknown token, and what a vocabulary drops, stand for no text: no count is right."""
    own = fallback(bytes_too=False)
    assert own.encode("aca").ids == [6, 0, 4]
    gaps = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate("abc")}, merges=[]))
    gaps.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    gaps.decoder = decoders.ByteLevel()
    assert gaps.encode("axb").ids == [0, 1]
    for tokenizer in (own, gaps):
        with pytest.raises(VocabularyError, match="no token encodes the byte"):
            Bpe.from_huggingface(tokenizer)


def test_lone_surrogates() -> None:
    own = realencodings.load("gpt2")
    assert own.decode(own.encode("a\ud800")) == "a\ufffd"
    with pytest.raises(TextError):
        peer("tiktoken:gpt2").bpe.encode("a\ud800")


def test_text_without_a_match() -> None:
    """Tiktoken leaves out what its pattern does not match; here nothing is lost."""
    import tiktoken

    ranks = {bytes((byte,)): byte for byte in range(256)}
    own = tiktoken.Encoding("gaps", pat_str="[a-z]+", mergeable_ranks=ranks, special_tokens={})
    assert own.encode("ab cd") == list(b"abcd")
    assert Bpe.from_tiktoken(own).encode("ab cd") == list(b"ab cd")
