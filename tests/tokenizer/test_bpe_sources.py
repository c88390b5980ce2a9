"""Where a `Bpe` is read from, and what is refused."""

import base64
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import realencodings
import tiktoken
from realtokenizers import package_file
from sampletexts import TEXTS
from smalltokenizers import LETTERS, byte_level, fallback
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from ffwd import TextError, TokenError, VocabularyError, _native
from ffwd.tokenizer import Bpe

BYTES = {bytes((byte,)): byte for byte in range(256)}
PATTERN = r" ?[a-z]+|\s+|[^a-z\s]+"


def test_all_sources_of_hugging_face_give_the_same(tmp_path: Path) -> None:
    own = byte_level(["<think>", "word"])
    file = tmp_path / "tokenizer.json"
    own.save(str(file))
    fast = PreTrainedTokenizerFast(tokenizer_object=own, eos_token="</s>")
    for source in (own, tmp_path, str(tmp_path), file, str(file), fast):
        bpe = Bpe.from_huggingface(source)
        assert bpe.vocab_size == 260
        assert bpe.encode("ab<think>word", special="allowed") == [256, 257, 258]


def test_ranks_of_a_file_and_of_an_encoding() -> None:
    encoding = realencodings.load("llama3")
    file = package_file("llama_models", "llama3", "tokenizer.model")
    specials = encoding._special_tokens
    for source in (file, str(file), encoding._mergeable_ranks):
        bpe = Bpe.from_ranks(source, encoding._pat_str, specials)
        assert bpe.vocab_size == encoding.n_vocab
        for text in TEXTS.values():
            allowed = encoding.encode(text, allowed_special="all")
            assert bpe.encode(text, special="allowed") == allowed


def test_a_tekken_file_that_lists_its_special_tokens(tmp_path: Path) -> None:
    vocabulary = [
        {"rank": rank, "token_bytes": base64.b64encode(text).decode(), "token_str": None}
        for text, rank in (BYTES | {b"ab": 256, b"abab": 257}).items()
    ]
    config = {
        "pattern": PATTERN,
        "num_vocab_tokens": 258,
        "default_vocab_size": 260,  # the last text does not fit
        "default_num_special_tokens": 3,
    }
    special = [{"rank": 1, "token_str": "<s>", "is_control": True}]
    file = tmp_path / "tekken.json"
    file.write_text(
        json.dumps({"config": config, "vocab": vocabulary, "special_tokens": special}),
        encoding="utf-8",
    )
    bpe = Bpe.from_tekken(file)
    assert bpe.vocab_size == 260
    assert bpe.encode("abab") == [259, 259]
    assert bpe.encode("<s><SPECIAL_2>", special="allowed") == [1, 2]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"config": {}}', '{"config": 3, "vocab": []}', "[" * 100_000]
)
def test_a_file_that_is_no_tekken(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tekken.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(VocabularyError, match=r"tekken\.json"):
        Bpe.from_tekken(file)
    with pytest.raises(VocabularyError, match="gone"):
        Bpe.from_tekken(tmp_path / "gone")


@pytest.mark.parametrize(
    "tokens",
    [
        [{"rank": 0, "token_bytes": "?"}],
        [{"rank": "0", "token_bytes": "YQ=="}],
        [{"rank": -1, "token_bytes": "YQ=="}],
        [{"rank": 0, "token_bytes": 3}],
        [{"rank": 0}],
        [{"rank": 0, "token_bytes": "YQ=="}, {"rank": 1, "token_bytes": "YQ=="}],
        3,
        [3],
    ],
)
def test_a_tekken_with_a_vocabulary_that_is_none(tmp_path: Path, tokens: Any) -> None:
    file = tmp_path / "tekken.json"
    config = {"pattern": "a", "default_vocab_size": 9, "default_num_special_tokens": 0}
    special = [{"rank": 0, "token_str": "<s>"}]
    file.write_text(json.dumps({"config": config, "vocab": tokens, "special_tokens": special}))
    with pytest.raises(VocabularyError):
        Bpe.from_tekken(file)


@pytest.mark.parametrize(
    "model",
    [
        models.WordPiece({"a": 0, "[UNK]": 1}, unk_token="[UNK]"),
        models.Unigram([("a", 0.0)], 0, False),
        models.WordLevel({"a": 0}, unk_token="a"),
    ],
    ids=["WordPiece", "Unigram", "WordLevel"],
)
def test_models_that_are_not_bpe(model: Any) -> None:
    own = Tokenizer(model)
    own.decoder = decoders.ByteLevel()
    with pytest.raises(VocabularyError, match=type(model).__name__):
        Bpe.from_huggingface(own)


def test_options_of_the_model_that_are_refused() -> None:
    with pytest.raises(VocabularyError, match="at random"):
        Bpe.from_huggingface(byte_level(dropout=0.5))
    with pytest.raises(VocabularyError, match="marks parts of words"):
        Bpe.from_huggingface(byte_level(end_of_word_suffix="</w>"))


@pytest.mark.parametrize(
    ("ranks", "pattern", "special", "message"),
    [
        (BYTES | {b"": 256}, PATTERN, {}, "not empty"),
        (BYTES | {"ab": 256}, PATTERN, {}, "ranks must be of bytes"),
        (BYTES | {b"ab": -1}, PATTERN, {}, "the rank of b'ab' must be"),
        (BYTES | {b"ab": True}, PATTERN, {}, "the rank of b'ab' must be"),
        (BYTES | {b"ab": 1.5}, PATTERN, {}, "the rank of b'ab' must be"),
        (BYTES | {b"ab": 1 << 40}, PATTERN, {}, "the rank of b'ab' must be"),
        (BYTES | {b"ab": 255}, PATTERN, {}, "each needs its own"),
        (BYTES, PATTERN, {"<s>": 3}, "special tokens have the ids of text"),
        (BYTES, PATTERN, {"<s>": "x"}, "the id of '<s>' must be"),
        (BYTES, PATTERN, {"": 256}, "special tokens must be"),
        (BYTES, b"a", {}, "pattern must be a string"),
        (BYTES, "(", {}, "unclosed group"),
        (BYTES, r"(?<!a)b", {}, "lookbehind"),
        ({b"a": 0}, PATTERN, {}, "no token encodes the byte 0x00"),
        ({}, PATTERN, {}, "ids up to"),
    ],
)
def test_ranks_that_are_none(ranks: Any, pattern: Any, special: Any, message: str) -> None:
    with pytest.raises(VocabularyError, match=message):
        Bpe.from_ranks(ranks, pattern, special)


@pytest.mark.parametrize("line", [b"YQ==", b"YQ== a", b"? 1", b"YQ== 1 2", b"\xff 1"])
def test_a_file_of_ranks_that_is_none(tmp_path: Path, line: bytes) -> None:
    file = tmp_path / "ranks"
    file.write_bytes(b"Yg== 0\n\n" + line + b"\n")
    with pytest.raises(VocabularyError, match="line 3"):
        Bpe.from_ranks(file, PATTERN)
    file.write_bytes(b"\n")
    with pytest.raises(VocabularyError, match="no ranks"):
        Bpe.from_ranks(file, PATTERN)
    with pytest.raises(VocabularyError, match="gone"):
        Bpe.from_ranks(tmp_path / "gone", PATTERN)


@pytest.mark.parametrize("source", [None, 3, object(), {"a": 1}])
def test_objects_that_are_no_tokenizer(source: Any) -> None:
    with pytest.raises(VocabularyError, match="not a tokenizer"):
        Bpe.from_huggingface(source)
    with pytest.raises(VocabularyError, match="not an encoding of tiktoken"):
        Bpe.from_tiktoken(source)


def test_bytes_that_no_token_covers() -> None:
    """Of a byte-level model with gaps, and of characters without byte tokens: no count is right."""
    ranks = {bytes((byte,)): byte for byte in range(128)} | {"é".encode(): 128}
    with pytest.raises(VocabularyError, match="no token encodes the byte 0x80"):
        Bpe.from_ranks(ranks, PATTERN)
    with pytest.raises(VocabularyError, match="no token encodes the byte 0x00"):
        Bpe.from_huggingface(fallback(bytes_too=False))


def test_bytes_that_no_text_has_may_be_missing() -> None:
    """As in GPT-NeoX's vocabulary; for any other byte the library drops what it cannot encode."""
    kept = [b for b in range(256) if b not in (0xC0, 0xC1) and b < 0xF5]
    vocabulary = {LETTERS[byte]: i for i, byte in enumerate(kept)}
    for left_out in (None, "x"):
        pieces = {letter: i for letter, i in vocabulary.items() if letter != left_out}
        tokenizer = Tokenizer(models.BPE(vocab=pieces, merges=[]))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        if left_out is not None:
            with pytest.raises(VocabularyError, match="no token encodes the byte"):
                Bpe.from_huggingface(tokenizer)
            continue
        bpe = Bpe.from_huggingface(tokenizer)
        assert (bpe.exact, bpe.vocab_size) == (True, len(kept))
        for text in TEXTS.values():
            assert bpe.encode(text) == tokenizer.encode(text).ids
            assert bpe.decode(bpe.encode(text)) == text.encode()
        with pytest.raises(TextError, match="byte 0xC0, which stands at byte 1") as caught:
            bpe.encode(b"a\xc0")
        assert caught.value.byte == 1
        assert bpe.is_canonical(bpe.encode("ab"))


@pytest.mark.parametrize("token_id", [-1, 258, 1 << 31, 1 << 40])
def test_ids_out_of_range(token_id: int) -> None:
    bpe = Bpe.from_huggingface(byte_level())
    errors = TokenError if 0 <= token_id < 1 << 32 else (TokenError, OverflowError)
    with pytest.raises(errors):
        bpe.decode([97, token_id])
    with pytest.raises(errors):
        bpe.token_bytes(token_id)


@pytest.mark.parametrize("text", ["\ud800", "a\udc00b", "é日\udfff\ud800", "🙂" * 300 + "\udbff"])
def test_text_that_is_none(text: str) -> None:
    """Whatever takes a text says where a lone surrogate stands."""
    bpe = Bpe.from_huggingface(byte_level())
    append, prepend = bpe.append_encoder(), bpe.prepend_encoder()
    calls: list[Callable[[str], object]] = [
        bpe.encode,
        bpe.count,
        partial(bpe.count_up_to, limit=0),
        partial(bpe.split_at, num_tokens=1),
        bpe.interval_counter,
        append.push,
        prepend.push,
        partial(_native.encode_with_offsets, bpe),
        lambda text: _native.encode_batch(bpe, ["ok", text]),
        lambda text: _native.encode_parts(bpe, ["ok", 97, text]),
    ]
    index = next(i for i, character in enumerate(text) if "\ud800" <= character <= "\udfff")
    place = len(text[:index].encode())
    told = rf"character at index {index} .*U\+{ord(text[index]):04X}"
    for call in calls:
        with pytest.raises(TextError, match=told) as raised:
            call(text)
        assert raised.value.byte == place
    append.push("é")
    with pytest.raises(TextError, match=told) as raised:
        append.push(text)
    assert raised.value.byte == 2 + place
    assert (append.text, prepend.text) == ("é".encode(), b"")
    with pytest.raises(TextError, match="no special token"):
        bpe.encode("a", special={text})
    with pytest.raises(ValueError, match="special must be"):
        bpe.encode("a", special=text)


@pytest.mark.parametrize("text", [None, 3, ["a"]])
def test_what_is_no_text(text: Any) -> None:
    with pytest.raises(TypeError):
        Bpe.from_huggingface(byte_level()).encode(text)


def test_control_tokens_that_merges_lead_to() -> None:
    """In a conversion that lists `</s>` as an ordinary piece. Its text never becomes the token."""
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    names += ["▁", "<", "/", "s", ">", "</", "s>"]
    own = Tokenizer(
        models.BPE(
            vocab={name: i for i, name in enumerate(names)},
            merges=[("<", "/"), ("s", ">"), ("</", "s>")],
            unk_token="<unk>",
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    model = fallback()
    own.pre_tokenizer, own.decoder = model.pre_tokenizer, model.decoder
    own.add_special_tokens(["<unk>", "<s>", "</s>"])
    bpe = Bpe.from_huggingface(own)
    ids = bpe.encode("</s>", prefix_space=False)
    assert ids == [own.token_to_id("</"), own.token_to_id("s>")]
    assert bpe.encode("</s>", special="allowed") == [2]


def test_pieces_that_no_text_is_written_as() -> None:
    """A literal space where spaces are written as `▁`."""
    own = fallback([" a", " ", "b b"])
    bpe = Bpe.from_huggingface(own)
    for text in (" a", "b b", " ", "a  a"):
        assert bpe.encode(text) == own.encode(text).ids


def test_an_encoding_of_tiktoken_with_gaps() -> None:
    encoding = tiktoken.Encoding(
        "gaps",
        pat_str=PATTERN,
        mergeable_ranks=BYTES | {b"ab": 300, b" ab": 310},
        special_tokens={"<s>": 400},
    )
    bpe = Bpe.from_tiktoken(encoding)
    assert bpe.vocab_size == encoding.n_vocab == 401
    assert bpe.encode("ab ab<s>", special="allowed") == encoding.encode(
        "ab ab<s>", allowed_special="all"
    )
    assert bpe.token_bytes(299) == bpe.decode([299]) == b""
    assert bpe.decode([300, 400]) == b"ab<s>"


def test_reading_ranks_imports_no_other_library() -> None:
    """Neither tiktoken nor sentencepiece is needed for their files."""
    code = (
        "import sys, ffwd.tokenizer as t\n"
        f"bpe = t.Bpe.from_ranks({{bytes((b,)): b for b in range(256)}}, {PATTERN!r})\n"
        "assert bpe.encode('ab') == [97, 98]\n"
        "names = 'tokenizers', 'transformers', 'torch', 'tiktoken', 'sentencepiece'\n"
        "print([m for m in names if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
