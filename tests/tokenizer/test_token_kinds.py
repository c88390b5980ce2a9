"""Which added tokens are text, and the bytes of pieces in the two writings."""

import pytest
from smalltokenizers import byte_level, fallback
from tokenizers import AddedToken, decoders

from ffwd._native import VocabularyError
from ffwd.tokenizer import TokenKind, TokenTable, text_encoder, token_table
from ffwd.tokenizer.kinds import is_placeholder


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        ("   ", TokenKind.TEXT),
        ("\n\n", TokenKind.TEXT),
        ("covid", TokenKind.TEXT),
        ("new york", TokenKind.TEXT),
        ("<tool_call>", TokenKind.CONTROL),
        ("</think>", TokenKind.CONTROL),
        ("[INST]", TokenKind.CONTROL),
        ("<|EOT|>", TokenKind.CONTROL),
        ("\uff5cDSML\uff5c", TokenKind.CONTROL),
        ("<dsml:", TokenKind.CONTROL),
        ("<unused12>", TokenKind.UNUSED),
        ("[control_9]", TokenKind.UNUSED),
        ("[PAD151700]", TokenKind.UNUSED),
        ("<|reserved_special_token_0|>", TokenKind.UNUSED),
        ("<\uff5cplace▁holder▁no▁7\uff5c>", TokenKind.UNUSED),
        (AddedToken("BEGIN", special=True), TokenKind.SPECIAL),
        (AddedToken("word", lstrip=True), TokenKind.CONTROL),
        # The byte-level decoder reads these as two bytes, which are not what they encode.
        ("éé", TokenKind.CONTROL),
        ("{{", TokenKind.TEXT),
    ],
)
def test_kind_of_an_added_token(token: str | AddedToken, kind: TokenKind) -> None:
    tokenizer = byte_level([token])
    table = token_table(tokenizer)
    content = token if isinstance(token, str) else token.content
    assert table.kinds[257] is kind
    assert table.tokens[257] == (content.encode() if kind is TokenKind.TEXT else None)

    data = f"a{content}b".encode()
    ids = text_encoder(tokenizer)(data)
    assert (257 in ids) is (kind is TokenKind.TEXT)
    assert b"".join(table.tokens[i] or b"" for i in ids) == data


@pytest.mark.parametrize("character", ["é", "{", "["])
def test_adding_a_letter_of_the_byte_alphabet_takes_no_byte_away(character: str) -> None:
    """The library gives the added token the id of the byte that is written so."""
    tokenizer = byte_level([character])
    assert token_table(tokenizer).tokens == token_table(byte_level()).tokens
    encode = text_encoder(tokenizer)
    assert encode(character.encode()) == list(character.encode())
    assert encode("長".encode()) == list("長".encode())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("<extra_id_12>", True),
        ("<|reserved_7|>", True),
        ("[unused3]", True),
        ("[unused]", False),
        ("unused3", False),
        ("[3]", False),
        ("<p>", False),
        ("[i]", False),
        ("<" + "pad" * 100_000, False),
    ],
)
def test_placeholder_names(name: str, expected: bool) -> None:
    assert is_placeholder(name) is expected


def test_a_placeholder_in_the_models_own_vocabulary_is_no_text() -> None:
    table = token_table(fallback(["[control_3]", "[i]"]))
    assert table.kinds[-2:] == (TokenKind.UNUSED, TokenKind.TEXT)


def test_the_unknown_token_is_no_text() -> None:
    table = token_table(fallback())
    assert table.kinds[:4] == (
        TokenKind.UNKNOWN,
        TokenKind.SPECIAL,
        TokenKind.EOS,
        TokenKind.TEXT,
    )


def test_the_decoder_decides_what_a_byte_name_means() -> None:
    tokenizer = fallback()
    assert token_table(tokenizer).tokens[3 + 0x0A] == b"\n"
    tokenizer.decoder = decoders.Replace("▁", " ")
    assert token_table(tokenizer).tokens[3 + 0x0A] == b"<0x0A>"
    assert token_table(tokenizer).tokens[262] == b" a"
    tokenizer.decoder = decoders.Metaspace("▁")
    assert token_table(tokenizer).tokens[262] == b" a"


def test_different_ids_may_have_the_same_bytes() -> None:
    table = token_table(fallback())
    assert table.tokens[3 + ord("a")] == table.tokens[260] == b"a"


@pytest.mark.parametrize(
    ("decoder", "message"),
    [
        (decoders.CTC(), "'CTC'"),
        (decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)]), "beside ByteLevel"),
        (decoders.Sequence([decoders.Strip(" ", 1, 0), decoders.Fuse()]), "'Strip'"),
        (decoders.Sequence([decoders.ByteFallback(), decoders.Replace("a", "b")]), "'Replace'"),
    ],
)
def test_a_decoder_without_bytes_per_token(decoder: decoders.Decoder, message: str) -> None:
    tokenizer = byte_level()
    tokenizer.decoder = decoder
    with pytest.raises(VocabularyError, match=message):
        token_table(tokenizer)


def test_a_missing_decoder() -> None:
    tokenizer = byte_level()
    tokenizer.decoder = None
    with pytest.raises(VocabularyError, match="no decoder"):
        token_table(tokenizer)


@pytest.mark.parametrize(
    ("tokens", "kinds", "ends", "message"),
    [
        ((b"a",), (), (), "1 tokens but 0 kinds"),
        ((b"a", None), (TokenKind.EOS, TokenKind.TEXT), (0,), r"\[0, 1\]"),
        ((b"a", None), (TokenKind.TEXT, TokenKind.EOS), (0,), r"\[0\].*\[1\]"),
        ((b"a",), (TokenKind.TEXT,), (), r"kind EOS are \[\]"),
    ],
)
def test_a_table_that_contradicts_itself(
    tokens: tuple[bytes | None, ...],
    kinds: tuple[TokenKind, ...],
    ends: tuple[int, ...],
    message: str,
) -> None:
    with pytest.raises(VocabularyError, match=message):
        TokenTable(tokens=tokens, kinds=kinds, eos_token_ids=ends)
