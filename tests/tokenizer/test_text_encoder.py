"""What the encoder refuses, and that it never returns other bytes than it was given."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from smalltokenizers import byte_level, fallback
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
)

from ffwd._native import VocabularyError
from ffwd.tokenizer import text_encoder


@pytest.mark.parametrize(
    ("data", "place"),
    [(b"\xff", "byte 0 of 1"), (b"ab\xe2\x82", "byte 2 of 4"), (b"a\x80b", "byte 1 of 3")],
)
def test_bytes_that_are_not_utf8(data: bytes, place: str) -> None:
    with pytest.raises(VocabularyError, match=place):
        text_encoder(byte_level())(data)


def test_text_without_tokens() -> None:
    """The tokenizer would drop the character, or write the unknown token."""
    encode = text_encoder(fallback(bytes_too=False))
    assert encode(b"a a") == [4, 6]
    for text in ("ac", "▁"):
        with pytest.raises(VocabularyError, match="cannot express"):
            encode(text.encode())


def test_the_space_character_of_the_pieces_is_written_in_bytes() -> None:
    assert text_encoder(fallback())("a▁a".encode()) == [260, 3 + 0xE2, 3 + 0x96, 3 + 0x81, 260]


def test_no_space_is_put_before_the_text() -> None:
    tokenizer = byte_level()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    assert text_encoder(tokenizer)(b"ab") == [256]
    for scheme in ("always", "first", "never"):
        spaced = fallback()
        spaced.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme=scheme, split=True)
        assert text_encoder(spaced)(b"a") == [260]
        assert text_encoder(spaced)(b" a") == [262]
    legacy = fallback()
    legacy.pre_tokenizer = None
    legacy.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    assert text_encoder(legacy)(b"a a") == [260, 262]


def test_truncation_and_padding_are_not_taken_over() -> None:
    tokenizer = byte_level()
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=9)
    assert text_encoder(tokenizer)(b"cccc") == [ord("c")] * 4


def test_added_text_tokens_keep_their_ids() -> None:
    """The control token between them is left out of the encoder; its id stays unused."""
    tokenizer = byte_level(["xyz", "<think>", "12"], end=None)
    assert text_encoder(tokenizer)(b"xyz12") == [257, 259]


def test_added_tokens_beyond_gaps_in_the_vocabulary() -> None:
    tokenizer = Tokenizer(models.BPE(vocab={"a": 0, "b": 2, "c": 3}, merges=[]))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens(["<think>"])
    tokenizer.add_tokens(["words"])
    with pytest.raises(VocabularyError, match="gaps"):
        text_encoder(tokenizer)


@pytest.mark.parametrize(
    "normalizer",
    [
        normalizers.Lowercase(),
        normalizers.NFKC(),
        normalizers.StripAccents(),
        normalizers.Replace("a", "b"),
        normalizers.Replace(Regex(" +"), " "),
        normalizers.Sequence([normalizers.NFC(), normalizers.Strip()]),
        normalizers.Prepend("x"),
    ],
    ids=str,
)
def test_a_normalizer_that_changes_text(normalizer: normalizers.Normalizer) -> None:
    tokenizer = byte_level()
    tokenizer.normalizer = normalizer
    with pytest.raises(VocabularyError, match="normalizer changes text"):
        text_encoder(tokenizer)


def test_composing_is_left_out() -> None:
    tokenizer = byte_level()
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC()])
    data = "e\u0301".encode()
    assert text_encoder(tokenizer)(data) == list(data)


@pytest.mark.parametrize(
    "pre_tokenizer",
    [
        pre_tokenizers.Whitespace(),
        pre_tokenizers.WhitespaceSplit(),
        pre_tokenizers.BertPreTokenizer(),
        pre_tokenizers.Split(" ", "removed"),
        pre_tokenizers.Sequence([pre_tokenizers.CharDelimiterSplit(",")]),
    ],
    ids=str,
)
def test_a_pre_tokenizer_that_drops_text(pre_tokenizer: pre_tokenizers.PreTokenizer) -> None:
    tokenizer = byte_level()
    tokenizer.pre_tokenizer = pre_tokenizer
    with pytest.raises(VocabularyError, match="pre-tokenizer drops text"):
        text_encoder(tokenizer)


def test_a_pattern_that_removes_what_does_not_match() -> None:
    """So are patterns written that match everything; where one does not, nothing is lost."""
    tokenizer = byte_level()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex("[a-z]+"), "removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    encode = text_encoder(tokenizer)
    assert encode(b"abc") == [256, ord("c")]
    with pytest.raises(VocabularyError, match="cannot express 'a b'"):
        encode(b"a b")


def test_a_component_written_in_python() -> None:
    class Custom:
        def pre_tokenize(self, text: object) -> None:
            """Do nothing."""

    tokenizer = byte_level()
    tokenizer.pre_tokenizer = pre_tokenizers.PreTokenizer.custom(Custom())
    with pytest.raises(VocabularyError, match="pre-tokenizer cannot be inspected"):
        text_encoder(tokenizer)


def test_a_word_token_is_found_only_as_a_word() -> None:
    encode = text_encoder(byte_level([AddedToken("cd", single_word=True, normalized=False)]))
    assert encode(b"cd cde") == [257, ord(" "), ord("c"), ord("d"), ord("e")]


def test_several_threads() -> None:
    encode = text_encoder(byte_level())
    texts = [f"ab {i} ab".encode() for i in range(300)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(encode, texts)) == [encode(text) for text in texts]
