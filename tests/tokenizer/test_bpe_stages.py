"""Pre-tokenizers and normalizers of many kinds, each as tokenizers has it."""

import pytest
from sampletexts import RUNS, TEXTS, adversarial_texts, random_texts
from smalltokenizers import byte_level
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

from ffwd import VocabularyError
from ffwd.tokenizer import Bpe, from_huggingface

SEED = 12
BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def split(pattern: str, behavior: str = "isolated", *, invert: bool = False) -> object:
    return pre_tokenizers.Split(Regex(pattern), behavior, invert=invert)


PRE_TOKENIZERS = {
    "gpt2": [pre_tokenizers.ByteLevel(add_prefix_space=False)],
    "gpt2 with a space": [pre_tokenizers.ByteLevel(add_prefix_space=True)],
    "nothing": [BYTES],
    "words": [split(WORDS), BYTES],
    "words, inverted": [split(WORDS, "removed", invert=True), BYTES],
    "digits": [pre_tokenizers.Digits(individual_digits=False), BYTES],
    "each digit": [pre_tokenizers.Digits(individual_digits=True), BYTES],
    "digits, then gpt2": [
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
    ],
    "punctuation": [pre_tokenizers.Punctuation(), BYTES],
    "punctuation joined": [pre_tokenizers.Punctuation("contiguous"), BYTES],
    "punctuation and digits": [
        pre_tokenizers.Punctuation("isolated"),
        pre_tokenizers.Digits(individual_digits=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
    ],
    "three patterns": [
        split(r"\p{N}{1,3}"),
        split("[一-龥\u3040-ゟ\u30a0-ヿ]+"),
        split(WORDS),
        BYTES,
    ],
    "a string": [pre_tokenizers.Split(" ", "isolated"), BYTES],
    "a string with meaning": [pre_tokenizers.Split(".", "isolated"), BYTES],
    "with the next": [pre_tokenizers.Split(" ", "merged_with_next"), BYTES],
    "with the previous": [pre_tokenizers.Split("\n", "merged_with_previous"), BYTES],
    "joined": [pre_tokenizers.Split(" ", "contiguous"), BYTES],
    "letters with the next": [split(r"\s+", "merged_with_next"), BYTES],
    "a bound": [split(r".{1,5}|\n"), BYTES],
}


def trained(pre_tokenizer: pre_tokenizers.PreTokenizer) -> Tokenizer:
    """A tokenizer of 600 tokens that were learnt from the sample texts."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[AddedToken("<end>", special=True, normalized=False)],
    )
    tokenizer.train_from_iterator([*TEXTS.values()] * 3, trainer)
    return tokenizer


@pytest.mark.parametrize("name", [*PRE_TOKENIZERS])
def test_ids_behind_a_pre_tokenizer(name: str) -> None:
    own = trained(pre_tokenizers.Sequence(PRE_TOKENIZERS[name]))
    bpe = Bpe.from_huggingface(own)
    texts = [*TEXTS.values(), *random_texts(SEED, 300), *adversarial_texts(SEED, 600)]
    for text in [*texts, *(run[:300] for run in RUNS.values())]:
        assert bpe.encode(text, special="allowed") == own.encode(text).ids, text


@pytest.mark.parametrize("name", [*PRE_TOKENIZERS])
def test_vocabularies_of_all_of_them(name: str) -> None:
    """What `Bpe` refuses, the engine encodes with the tokenizer itself."""
    own = trained(pre_tokenizers.Sequence(PRE_TOKENIZERS[name]))
    vocabulary = from_huggingface(own, eos_token_ids=[0])
    bare = Tokenizer(own.model)
    steps = PRE_TOKENIZERS[name]
    if name == "gpt2 with a space":  # which is none in the middle of an output
        steps = PRE_TOKENIZERS["gpt2"]
    bare.pre_tokenizer = pre_tokenizers.Sequence(steps)
    for text in [*TEXTS.values(), *adversarial_texts(SEED, 50)]:
        assert vocabulary.encode(text.encode()) == bare.encode(text).ids, text


@pytest.mark.parametrize(
    "normalizer",
    [
        normalizers.NFC(),
        normalizers.Sequence([normalizers.NFC()]),
        normalizers.Sequence([]),
    ],
    ids=["nfc", "nfc in a list", "none"],
)
def test_composing(normalizer: normalizers.Normalizer) -> None:
    own = byte_level()
    own.normalizer = normalizer
    bpe = Bpe.from_huggingface(own)
    text = "e\u0301 \u1100\u1161 \u212b a\u0327\u0301"
    assert bpe.encode(text) == own.encode(text).ids
    assert bpe.encode(text, normalize=False) == list(text.encode())


def test_bytes_written_by_the_normalizer() -> None:
    own = byte_level()
    own.pre_tokenizer = None
    own.normalizer = normalizers.ByteLevel()
    bpe = Bpe.from_huggingface(own)
    for text in TEXTS.values():
        assert bpe.encode(text, special="allowed") == own.encode(text).ids


@pytest.mark.parametrize(
    "normalizer",
    [
        normalizers.Lowercase(),
        normalizers.NFKC(),
        normalizers.NFD(),
        normalizers.StripAccents(),
        normalizers.Replace("a", "b"),
        normalizers.Replace(Regex(" +"), " "),
        normalizers.Sequence([normalizers.NFC(), normalizers.Strip()]),
        normalizers.Prepend("x"),
        normalizers.BertNormalizer(),
        normalizers.Nmt(),
    ],
    ids=str,
)
def test_a_normalizer_that_changes_text(normalizer: normalizers.Normalizer) -> None:
    own = byte_level()
    own.normalizer = normalizer
    with pytest.raises(VocabularyError, match="normalizer changes text"):
        Bpe.from_huggingface(own)


@pytest.mark.parametrize(
    "pre_tokenizer",
    [
        pre_tokenizers.Whitespace(),
        pre_tokenizers.WhitespaceSplit(),
        pre_tokenizers.BertPreTokenizer(),
        pre_tokenizers.Split(" ", "removed"),
        pre_tokenizers.Punctuation("removed"),
        pre_tokenizers.UnicodeScripts(),
        pre_tokenizers.Sequence([pre_tokenizers.CharDelimiterSplit(",")]),
    ],
    ids=str,
)
def test_a_pre_tokenizer_that_drops_text_or_is_not_known(
    pre_tokenizer: pre_tokenizers.PreTokenizer,
) -> None:
    own = byte_level()
    own.pre_tokenizer = pre_tokenizer
    with pytest.raises(VocabularyError, match="pre-tokenizer drops text or is not known"):
        Bpe.from_huggingface(own)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([BYTES, split("a")], "bytes are written as characters"),
        ([split("a"), pre_tokenizers.ByteLevel(add_prefix_space=True)], "puts a space before"),
        ([split("a")], "decoder reads bytes"),
        ([split(r"(?<=a)b"), BYTES], "lookbehind"),
        ([split(r"(a)\1"), BYTES], "backreferences"),
        ([split(r"a(?=bc)"), BYTES], "look-ahead at more than one"),
    ],
    ids=["after the bytes", "space in between", "no bytes", "behind", "back", "ahead"],
)
def test_a_chain_that_cannot_be_followed(steps: list[object], message: str) -> None:
    own = byte_level()
    own.pre_tokenizer = pre_tokenizers.Sequence(steps)
    with pytest.raises(VocabularyError, match=message):
        Bpe.from_huggingface(own)


def test_a_component_written_in_python() -> None:
    class Custom:
        def pre_tokenize(self, text: object) -> None:
            """Do nothing."""

    own = byte_level()
    own.pre_tokenizer = pre_tokenizers.PreTokenizer.custom(Custom())
    with pytest.raises(VocabularyError, match="pre-tokenizer cannot be inspected"):
        Bpe.from_huggingface(own)
