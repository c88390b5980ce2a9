"""Files that are read without their library, and as the library reads them."""

import json
from pathlib import Path
from typing import Any

import pytest
import realtokenizers
from smalltokenizers import byte_level, fallback
from tokenizers import AddedToken, Tokenizer

from ffwd._native import ModelFile, read_ranks
from ffwd.tokenizer import CorruptTokenizerError
from ffwd.tokenizer.huggingface.bpe import huggingface_parts
from ffwd.tokenizer.huggingface.tokenizer import huggingface_tokenizer
from ffwd.tokenizer.model_pieces import ListedPieces, read_model_file
from ffwd.tokenizer.ranks.read import parse_lines, parse_ranks
from ffwd.tokenizer.source import Source, _read_tokenizer, parse_source
from ffwd.tokenizer.tokens import read_tokens


def small() -> dict[str, Tokenizer]:
    """Tokenizers with unusual tokens."""
    words = [AddedToken("foo", normalized=True), AddedToken("<tool>", normalized=False)]
    return {
        "byte-level": byte_level(words),
        "pieces that are added": byte_level([AddedToken("ab", normalized=False)]),
        "byte fallback": fallback(["<0x0a>", "</s>x", "▁▁", "<|reserved_1|>", "[PAD1]"]),
        "no bytes": fallback(bytes_too=False),
    }


def both(tokenizer: Tokenizer) -> tuple[Source, Source]:
    """A tokenizer from its file, and from the library."""
    data = tokenizer.to_str().encode()
    read = parse_source(data, "a file")
    assert read.file is not None, "the file is ordinary"
    return read, _read_tokenizer(tokenizer)


def assert_same(tokenizer: Tokenizer) -> None:
    read, slow = both(tokenizer)
    assert list(read.added.items()) == list(slow.added.items())
    fast_tokens, slow_tokens = read_tokens(read), read_tokens(slow)
    assert fast_tokens.tokens == slow_tokens.tokens
    assert fast_tokens.kinds == slow_tokens.kinds
    assert fast_tokens.added_text == slow_tokens.added_text
    assert fast_tokens.added_other == slow_tokens.added_other
    assert fast_tokens.unknown_id == slow_tokens.unknown_id
    assert fast_tokens.writing.replacements == slow_tokens.writing.replacements
    pieces, listed = fast_tokens.pieces, slow_tokens.pieces
    assert isinstance(listed, ListedPieces)
    assert pieces.size == listed.size
    size = len(fast_tokens.tokens)
    assert pieces.names(size) == listed.names(size)
    assert pieces.texts(fast_tokens.writing, size) == listed.texts(slow_tokens.writing, size)
    assert sorted(pieces.beginning_with("<[a")) == sorted(listed.beginning_with("<[a"))
    assert sorted(pieces.containing("a")) == sorted(listed.containing("a"))
    names = ["a", "ab", "not a piece", "▁a"]
    assert pieces.find(names) == listed.find(names)
    for name in names:
        assert read.token_to_id(name) == tokenizer.token_to_id(name)
    for token_id in (0, size // 2, size - 1):
        assert read.id_to_token(token_id) == tokenizer.id_to_token(token_id)

    fast, other = huggingface_tokenizer(read), huggingface_tokenizer(slow)
    assert (fast.bpe is None) == (other.bpe is None)
    for field in ("tokens", "names", "kinds", "special_ids", "special_tokens", "first_tokens"):
        assert getattr(fast, field) == getattr(other, field), field
    if fast.bpe is not None and other.bpe is not None:
        model = huggingface_parts(read, fast_tokens)["model"]
        slow_model = huggingface_parts(slow, slow_tokens)["model"]
        reachable = [(model.is_reachable(i), model.token_bytes(i)) for i in range(size)]
        assert reachable == [
            (slow_model.is_reachable(i), slow_model.token_bytes(i)) for i in range(size)
        ]
        text = "The abba, foo\tab<tool> déjà </s>x \u2581 <0x0a> 12345 日本"
        assert fast.bpe.encode(text) == other.bpe.encode(text)


@pytest.mark.parametrize("name", list(small()))
def test_a_small_file_is_read_as_by_the_library(name: str) -> None:
    assert_same(small()[name])


@pytest.mark.parametrize("name", ["llama3", "qwen", "gpt2", "deepseek"])
def test_a_real_file_is_read_as_by_the_library(name: str) -> None:
    assert_same(realtokenizers.load(name).tokenizer)


def changed(**changes: Any) -> bytes:
    """A small file with other values."""
    file = json.loads(byte_level([AddedToken("foo")]).to_str())
    model = changes.pop("model", {})
    return json.dumps(file | changes | {"model": file["model"] | model}).encode()


def added(**changes: Any) -> list[dict[str, Any]]:
    tokens: list[dict[str, Any]] = json.loads(byte_level([AddedToken("foo")]).to_str())[
        "added_tokens"
    ]
    return [tokens[0] | changes, *tokens[1:]]


def test_an_ordinary_file_is_read() -> None:
    assert read_model_file(changed()) is not None
    assert read_model_file(changed(model={"merges": ["a b"]})) is not None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"model": 1}',
        changed()[:-1],
        changed() + b"{}",
        changed().replace(b'"model"', b'"model": {}, "model"'),
        changed(model={"type": None}),
        changed(model={"type": "Unigram"}),
        changed(model={"vocab": {}}),
        changed(model={"vocab": [["a", 1]]}),
        changed(model={"vocab": {"a": -1}}),
        changed(model={"vocab": {"a": 1 << 22}}),
        changed(model={"merges": [["a", "nothing"]]}),
        changed(model={"merges": [["a"]]}),
        changed(model={"merges": ["ab"]}),
        changed().replace(b'"ab":', b'"a":'),
        changed().replace(b'"ab": 256', b'"ab": 255'),
        changed(added_tokens=None),
        changed(added_tokens=added(id=300)),
        changed(added_tokens=added(id=True)),
        changed(added_tokens=added(content="")),
        changed(added_tokens=added(content="</s>")),
        changed(added_tokens=added(content="ab")),
        changed(added_tokens=added(special=1)),
        changed(added_tokens=added(more=False)),
    ],
)
def test_what_is_out_of_the_ordinary_is_left_to_the_library(data: bytes) -> None:
    assert read_model_file(data) is None


def test_errors_are_those_of_the_library() -> None:
    with pytest.raises(CorruptTokenizerError, match="a file is not a tokenizer"):
        parse_source(changed(model={"merges": [["a", "nothing"]]}), "a file")
    with pytest.raises(CorruptTokenizerError, match="a file is not a tokenizer"):
        parse_source(changed(normalizer={"type": "Nothing"}), "a file")


def test_a_file_has_a_repr() -> None:
    assert repr(ModelFile.read(changed())) == "ModelFile(257 pieces)"


def test_ranks_are_parsed_as_line_by_line(tmp_path: Path) -> None:
    usual = b"IQ== 0\nIiM= 1\n\n4pyT 7\n"
    assert read_ranks(usual) == parse_lines(usual, "x") == {b"!": 0, b'"#': 1, "✓".encode(): 7}
    for unusual in (b"IQ==  0\r\nIiM= +1", b"\tIQ== 00000000012\n", b"IR== 1\n"):
        assert read_ranks(unusual) is None
        assert parse_ranks(unusual, "x") == parse_lines(unusual, "x")
    with pytest.raises(CorruptTokenizerError, match="line 2"):
        parse_ranks(b"IQ== 0\nIQ= 1\n", "x")
