"""Where texts are cut, against `tokenizers` and `tiktoken`.

A cut is seen by its tokens: every piece that the judge cuts is made a token of a vocabulary without
merges, beside the bytes. A text that is cut in another way has other tokens.
"""

import random
from collections.abc import Iterable

import pytest
import tiktoken
from realtokenizers import NAMES, byte_characters, load
from tiktoken_ext import openai_public
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

from ffwd.tokenizer import Bpe

SEED = 31
BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
BYTE_LEVEL = [name for name in NAMES if not name.startswith("mistral")]

ALPHABET = (
    "aabstrevmldASLT\u017f\u212a\u01c5\u02b0é''\u02bc  \t\r\n\x85\u2028\xa0\u300012\u0663\u2167"
    '\u0345\u0301中龥あー・\u3099\u309b!"/{--😀\u200d$\u2581\u0378\ufffd\U0010ffff\0'
)
"""What patterns treat alike in one place and not in another, and what depends on what follows."""


def texts(count: int) -> list[str]:
    rng = random.Random(SEED)

    def text() -> str:
        few = rng.choices(ALPHABET, k=rng.randrange(2, 7))
        return "".join(
            rng.choice(ALPHABET if rng.random() < 0.12 else few) for _ in range(rng.randrange(14))
        )

    return [text() for _ in range(count)]


def every_code_point() -> list[str]:
    """All that are assigned, and some of the planes without characters."""
    ranges = [range(0xD800), range(0xE000, 0x40000), range(0xE0000, 0xE1000)]
    ranges += [range(0x40000, 0x110000, 997), range(0x10FFC0, 0x110000)]
    points = [chr(point) for points in ranges for point in points]
    return ["".join(points[at : at + 64]) for at in range(0, len(points), 64)]


PATTERNS_OF_TIKTOKEN = {
    "r50k_base": openai_public.r50k_pat_str,
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
        r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "o200k_base": (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
}


def with_pieces(pre_tokenizer: pre_tokenizers.PreTokenizer, sample: Iterable[str]) -> Tokenizer:
    """A tokenizer whose tokens are the bytes, and all pieces of the sample."""
    vocabulary = {letter: byte for byte, letter in enumerate(byte_characters())}
    for text in sample:
        for piece, _ in pre_tokenizer.pre_tokenize_str(text):
            vocabulary.setdefault(piece, len(vocabulary))
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def assert_cut_alike(pre_tokenizer: pre_tokenizers.PreTokenizer, sample: list[str]) -> None:
    own = with_pieces(pre_tokenizer, sample)
    bpe = Bpe.from_huggingface(own)
    for text, encoding in zip(sample, own.encode_batch(sample), strict=True):
        assert bpe.encode(text) == encoding.ids, text


@pytest.mark.parametrize("name", BYTE_LEVEL)
def test_cuts_of_real_tokenizers(name: str) -> None:
    assert_cut_alike(load(name).tokenizer.pre_tokenizer, texts(2_000))


@pytest.mark.parametrize("name", BYTE_LEVEL)
def test_every_code_point(name: str) -> None:
    """Each is of the same classes for both, whatever version of Unicode they know."""
    assert_cut_alike(load(name).tokenizer.pre_tokenizer, every_code_point())


@pytest.mark.parametrize(
    "stage",
    [
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.Digits(individual_digits=False),
        pre_tokenizers.Punctuation(),
    ],
    ids=["digits", "runs of digits", "punctuation"],
)
def test_every_code_point_of_stages(stage: pre_tokenizers.PreTokenizer) -> None:
    sample = [*every_code_point(), *texts(1_000)]
    assert_cut_alike(pre_tokenizers.Sequence([stage, BYTES]), sample)


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize(
    "behavior", ["isolated", "merged_with_previous", "merged_with_next", "contiguous"]
)
@pytest.mark.parametrize(
    "pattern",
    [
        "-|a",
        "--",
        r"\s+",
        r"'s|'t|'re|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
        r"a(?=b)|b(?!a)a?|\d+$",
        r"a+?b??a|[^a ]{1,2}?",
        r"\p{N}{1,3}+|(?i:'s|K)",
    ],
)
def test_behaviors(pattern: str, behavior: str, invert: bool) -> None:
    stage = pre_tokenizers.Split(Regex(pattern), behavior, invert=invert)
    assert_cut_alike(pre_tokenizers.Sequence([stage, BYTES]), texts(500))


def test_stages_in_sequence() -> None:
    stages = [
        pre_tokenizers.Split(Regex("-|a"), "merged_with_next"),
        pre_tokenizers.Split(Regex(r"\s+"), "merged_with_previous", invert=True),
        pre_tokenizers.Punctuation("contiguous"),
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
    ]
    assert_cut_alike(pre_tokenizers.Sequence(stages), texts(2_000))


@pytest.mark.parametrize("name", [*PATTERNS_OF_TIKTOKEN])
def test_patterns_of_tiktoken(name: str) -> None:
    """Every short piece that there may be is a token, so that each cut shows."""
    pattern = PATTERNS_OF_TIKTOKEN[name]
    for batch in range(10):
        sample = texts(2_000)[batch * 200 : batch * 200 + 200]
        ranks = {bytes((byte,)): byte for byte in range(256)}
        for text in sample:
            for start in range(len(text)):
                for end in range(start + 1, len(text) + 1):
                    ranks.setdefault(text[start:end].encode(), len(ranks))
        encoding = tiktoken.Encoding(
            name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={}
        )
        bpe = Bpe.from_tiktoken(encoding)
        for text in sample:
            assert bpe.encode(text) == encoding.encode_ordinary(text), text


@pytest.mark.parametrize("name", BYTE_LEVEL)
def test_bytes_that_are_not_utf8(name: str) -> None:
    """Whatever the bytes, the tokens spell them."""
    bpe = Bpe.from_huggingface(load(name).tokenizer)
    rng = random.Random(SEED)
    for _ in range(300):
        data = rng.randbytes(rng.randrange(40))
        assert bpe.decode(bpe.encode(data, normalize=False)) == data
