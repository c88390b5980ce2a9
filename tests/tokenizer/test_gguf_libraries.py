"""GGUF vocabularies that libraries follow: WordPiece, Unigram, scores that leave an order open."""

import random
import struct
from typing import Any

import numpy as np
import pytest
from ggufs import byte_level, gguf, real
from sampletexts import TEXTS, adversarial_texts

from ffwd import FfwdError, VocabularyError
from ffwd.tokenizer import CorruptTokenizerError, Tokenizer, TokenKind
from ffwd.tokenizer.gguf.header import read_header
from ffwd.tokenizer.gguf.read import read_gguf
from ffwd.tokenizer.gguf.sentencepiece import sentencepiece_library
from ffwd.tokenizer.gguf.vocabulary import read_vocabulary

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


def vocabulary(model: str, rows: list[tuple[str, float, int]], **keys: Any) -> dict[str, Any]:
    """The keys of a vocabulary of tokens, scores and types."""
    return {
        "tokenizer.ggml.model": model,
        "tokenizer.ggml.tokens": [token for token, *_ in rows],
        "tokenizer.ggml.scores": np.array([score for _, score, _ in rows], np.float32),
        "tokenizer.ggml.token_type": np.array([kind for *_, kind in rows], np.int32),
        **{f"tokenizer.ggml.{key}": value for key, value in keys.items()},
    }


SPECIAL = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
BYTES = [(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)]
UNIGRAM = {"unknown_token_id": 0, "eos_token_id": 2, "padding_token_id": 0}


def load(values: dict[str, Any]) -> Tokenizer:
    return Tokenizer(read_gguf(gguf(values)))


def test_unigram() -> None:
    pieces = {"▁": -4.0, "a": -3.0, "b": -3.0, "ab": -2.0, "▁ab": -1.0}
    rows = [*SPECIAL, *((piece, score, NORMAL) for piece, score in pieces.items())]
    tokenizer = load(vocabulary("t5", rows, **UNIGRAM))
    assert (tokenizer.model, tokenizer.bpe) == ("unigram", None)
    assert [tokenizer.id_to_token(i) for i in tokenizer.encode("ab aab")] == ["▁ab", "▁", "a", "ab"]
    assert tokenizer.decode(tokenizer.encode("ab ab")) == "ab ab"
    assert tokenizer.encode("x</s>", special="allowed")[-1] == 2
    assert 2 not in tokenizer.encode("x</s>")
    assert tokenizer.add_eos  # unless the file says otherwise
    assert any("unknown" in limit for limit in tokenizer.limits)


def test_unigram_options() -> None:
    rows = [*SPECIAL, ("▁", -1.0, NORMAL), ("a", -2.0, NORMAL), ("[PAD5]", 0.0, UNUSED)]
    spaced = load(vocabulary("t5", rows, **UNIGRAM))
    assert [spaced.id_to_token(i) for i in spaced.encode(" a  a")] == ["▁", "▁", "a", "▁", "▁", "a"]
    bare = load(
        vocabulary(
            "t5",
            rows,
            **UNIGRAM,
            add_space_prefix=False,
            remove_extra_whitespaces=True,
            add_eos_token=False,
        )
    )
    assert [bare.id_to_token(i) for i in bare.encode(" a  a ")] == ["a", "▁", "a"]
    assert not bare.add_eos
    assert bare.token_kind(5) is TokenKind.UNUSED
    assert 5 not in bare.encode("[PAD5]", special="allowed")


def test_scores_that_leave_the_order_open() -> None:
    """`ab` and `ba` contend for `aba` and `bab`: whichever is on the left comes first."""
    rows = [*SPECIAL, *BYTES, ("▁", -9.0, NORMAL), ("a", -8.0, NORMAL), ("b", -7.0, NORMAL)]
    values = vocabulary("llama", [*rows, ("ab", -1.0, NORMAL), ("ba", -1.0, NORMAL)])
    tokenizer = load(values | {"tokenizer.ggml.add_space_prefix": False})
    assert tokenizer.bpe is None
    assert "depends on the text" in tokenizer.limits[0]
    tokens = [tokenizer.id_to_token(i) for i in tokenizer.encode("aba bab")]
    assert tokens == ["ab", "a", "▁", "ba", "b"]


def test_only_a_piece_loses_its_first_space() -> None:
    rows = [*SPECIAL, *BYTES, ("▁", -1.0, NORMAL), ("a", -2.0, NORMAL)]
    tokenizer = load(vocabulary("llama", rows))
    space, byte = tokenizer.token_to_id("▁"), tokenizer.token_to_id("<0x20>")
    assert space is not None
    assert byte is not None
    assert tokenizer.encode("a") == [space, tokenizer.token_to_id("a")]
    assert tokenizer.decode(tokenizer.encode("a")) == "a"
    assert tokenizer.decode([space]) == ""
    assert tokenizer.decode([byte]) == " "


@pytest.mark.parametrize(
    ("pieces", "native"),
    [
        # Whose merges cannot contend.
        ({"ab": -1.0, "cd": -1.0}, True),
        # Runs of one character.
        ({"aa": -1.0, "aaaa": -1.0, "aaa": -1.0}, True),
        # No merge makes one of them.
        ({"ab": -1.0, "xyz": -1.0}, True),
        # One of them is always on the left: `---` of `---->` and so on.
        ({"--": -3.0, "->": -2.0, "---": -1.0, "-->": -1.0}, True),
        ({"ab": -1.0, "bc": -1.0}, True),
        # Each may be on the left.
        ({"ab": -1.0, "ba": -1.0}, False),
        # One makes another possible.
        ({"ab": -1.0, "abc": -1.0}, False),
        # One makes something more urgent possible.
        ({"ab": -2.0, "cd": -2.0, "abe": -1.0}, False),
    ],
)
def test_ties_that_an_order_settles(pieces: dict[str, float], native: bool) -> None:
    """Where the native tokenizer takes them, its ids are SentencePiece's own."""
    characters = {c: -9.0 - n for n, c in enumerate("▁-abcdexyz>")}
    rows = [(piece, score, NORMAL) for piece, score in (characters | pieces).items()]
    data = gguf(vocabulary("llama", [*SPECIAL, *BYTES, *rows], add_space_prefix=False))
    tokenizer = Tokenizer(read_gguf(data))
    assert (tokenizer.bpe is not None) == native
    library = sentencepiece_library(read_vocabulary(read_header(data), "the file"))
    rng = random.Random(5)
    alphabet = sorted(set("".join(pieces)))
    for _ in range(400):
        text = "".join(rng.choices(alphabet, k=rng.randrange(1, 14)))
        expected = library.encode(text, special="text", first=True)
        assert tokenizer.encode(text) == expected, text


def test_wordpiece() -> None:
    """The file writes `▁the` for `the` and `ing` for `##ing`."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "▁the", "▁sing", "ing"]
    types = [CONTROL] * 5 + [NORMAL] * 4
    rows = [(token, 0.0, kind) for token, kind in zip(tokens, types, strict=True)]
    ids = {"unknown_token_id": 1, "seperator_token_id": 3, "cls_token_id": 2}
    tokenizer = load(vocabulary("bert", rows, padding_token_id=0, mask_token_id=4, **ids))
    assert (tokenizer.model, tokenizer.bpe) == ("wordpiece", None)
    assert tokenizer.encode("The singing") == [6, 7, 8]
    assert tokenizer.encode("The singing", add_special_tokens=True) == [2, 6, 7, 8, 3]
    assert tokenizer.decode([6, 7, 8]) == "the singing"
    assert tokenizer.encode("the thing") == [6, 1]
    assert tokenizer.token_kind(5) is TokenKind.UNUSED
    assert tokenizer.encode("[MASK]", special="allowed") == [4]
    cased = load(vocabulary("bert", rows, **ids, **{"normalizer.lowercase": False}))
    assert cased.encode("The the") == [1, 6]


def charsmap() -> np.ndarray:
    header = read_header(real("nomic-bert-moe"), lambda key: key.endswith("charsmap"))
    value = header.values["tokenizer.ggml.precompiled_charsmap"]
    assert isinstance(value, np.ndarray)
    return value


def test_tables_of_replacements_that_lead_out_of_themselves() -> None:
    """SentencePiece would read what is not its own."""
    rows = [*SPECIAL, ("▁", -1.0, NORMAL), ("a", -2.0, NORMAL)]
    whole = charsmap().astype(np.uint8)
    keys: dict[str, Any] = {**UNIGRAM}
    good = load(vocabulary("t5", rows, **keys, precompiled_charsmap=whole))
    assert good.encode("\uff41") == good.encode("a")  # full width

    size = int.from_bytes(whole[:4].tobytes(), "little")
    far = whole.copy()
    far[4:8] = np.frombuffer(struct.pack("<I", 0x7FFFFC00), np.uint8)
    not_text = whole.copy()
    not_text[4 + size] = 0xFF
    unended = whole.copy()
    unended[-1] = ord("x")
    bad = [whole[:2], whole[: 4 + size], whole[:5000], far, not_text, unended, whole[:0]]
    for table in bad:
        with pytest.raises(CorruptTokenizerError, match="precompiled_charsmap"):
            load(vocabulary("t5", rows, **keys, precompiled_charsmap=table))


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        ("t5", {"unknown_token_id": 9_999}, "no unknown token"),
        ("bert", {"unknown_token_id": 9_999}, "no unknown token"),
        ("t5", {"scores": np.array([np.nan] * 5, np.float32)}, "not a finite number"),
        ("t5", {"scores": np.array([0.0] * 4, np.float32)}, "4 numbers for 5 tokens"),
        ("llama", {"scores": np.array([np.inf] * 5, np.float32)}, "not a finite number"),
        ("llama", {"scores": np.array([0.0, 1.0, 2.0, np.nan, 3.0], np.float32)}, "finite"),
        ("gpt2", {"token_type": np.array([0.5] * 5, np.float32)}, "no whole numbers"),
    ],
)
def test_refusals(model: str, change: dict[str, Any], message: str) -> None:
    rows = [*SPECIAL, ("▁", -1.0, NORMAL), ("a", -2.0, NORMAL)]
    values = vocabulary(model, rows, **UNIGRAM)
    with pytest.raises(VocabularyError, match=message):
        load(values | {f"tokenizer.ggml.{key}": value for key, value in change.items()})


def test_damaged_vocabularies() -> None:
    """Of every model: a tokenizer, or an error that is expected."""
    pieces = [("▁", -1.0, NORMAL), ("a", -2.0, NORMAL), ("ab", -3.0, NORMAL), ("b", -4.0, NORMAL)]
    values = [
        byte_level(["ab", "</s>"], [NORMAL, CONTROL], eos_token_id=257)
        | {"tokenizer.ggml.merges": ["a b"]},
        vocabulary("llama", [*SPECIAL, *BYTES, *pieces]),
        vocabulary("t5", [*SPECIAL, *pieces], **UNIGRAM),
        vocabulary("bert", [*SPECIAL, *pieces], unknown_token_id=0, seperator_token_id=2),
    ]
    rng = random.Random(17)
    readable = 0
    for data in map(gguf, values):
        for _ in range(250):
            damaged = bytearray(data)
            for _ in range(rng.choice((1, 2, 6))):
                damaged[rng.randrange(24, len(damaged))] = rng.choice(
                    (0, 1, 0xFF, rng.randrange(256))
                )
            try:
                tokenizer = Tokenizer(read_gguf(bytes(damaged)))
                for text in ("ab a", TEXTS["emoji"], *adversarial_texts(rng.randrange(99), 2)):
                    tokenizer.encode(text)
                assert len(tokenizer.findings) >= 0
                readable += 1
            except FfwdError:
                pass
    assert 100 < readable < 1_000
