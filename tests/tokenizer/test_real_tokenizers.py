"""Tables and encoders of real tokenizers, against the tokenizers themselves."""

import unicodedata
from itertools import product

import pytest
import sentencepiece
from realtokenizers import (
    NAMES,
    SENTENCEPIECE_FILES,
    RealTokenizer,
    directories,
    load,
    sentencepiece_file,
)
from sampletexts import TEXTS, random_texts
from tokenizers import Tokenizer

from ffwd.tokenizer import TextEncoder, TokenKind, TokenTable, text_encoder, token_table

SEED = 20250703


def _directory(path: str) -> RealTokenizer:
    tokenizer = Tokenizer.from_file(f"{path}/tokenizer.json")
    table = token_table(path)
    dummy_space = len(tokenizer.decode(tokenizer.encode("a", add_special_tokens=False).ids)) > 1
    return RealTokenizer(
        name=path,
        tokenizer=tokenizer,
        reference=None,
        eos_token_ids=table.eos_token_ids,
        width=table.width,
        dummy_space=dummy_space,
    )


@pytest.fixture(scope="module", params=[*NAMES, *map(str, directories())])
def real(request: pytest.FixtureRequest) -> RealTokenizer:
    return load(request.param) if request.param in NAMES else _directory(request.param)


@pytest.fixture(scope="module")
def table(real: RealTokenizer) -> TokenTable:
    return token_table(real.tokenizer, vocab_size=real.width, eos_token_ids=real.eos_token_ids)


@pytest.fixture(scope="module")
def encode(real: RealTokenizer) -> TextEncoder:
    return text_encoder(real.tokenizer)


def completed(data: bytes) -> tuple[bytes, bytes] | None:
    """What to put before and after bytes so that the whole is UTF-8; None if nothing helps."""
    following = 0
    while following < len(data) and data[following] & 0xC0 == 0x80:
        following += 1
    before = [b"", b"\xc3", b"\xe1", b"\xf1"][following] if following < 4 else b""
    endings = [bytes(p) for n in range(4) for p in product((0x80, 0x90, 0xA0), repeat=n)]
    # A piece of one to three bytes may be the middle of a character.
    for start in (before, b"\xe1", b"\xf1", b"\xf1\x80") if following == len(data) else (before,):
        for end in endings:
            try:
                (start + data + end).decode()
            except UnicodeDecodeError:
                continue
            return start, end
    return None


def test_every_id_decodes_to_its_bytes(real: RealTokenizer, table: TokenTable) -> None:
    """The tokenizer's own decoder, given each token completed to UTF-8, gives the same text."""
    byte_ids = {token[0]: i for i, token in enumerate(table.tokens) if token and len(token) == 1}
    anchor = byte_ids[ord("x")]  # decoders drop a space at the start of a text
    sequences, expected, impossible = [], [], []
    for i, token in enumerate(table.tokens):
        if token is None:
            continue
        around = completed(token)
        if around is None or not byte_ids.keys() >= {*around[0], *around[1]}:
            impossible.append(token)
            continue
        before, after = around
        sequences.append([anchor, *(byte_ids[b] for b in before), i, *(byte_ids[b] for b in after)])
        expected.append("x" + (before + token + after).decode())
    assert real.tokenizer.decode_batch(sequences, skip_special_tokens=False) == expected
    # Bytes that no UTF-8 text contains; the reference below covers them.
    never = {bytes((b,)) for b in (0xC0, 0xC1, *range(0xF5, 0x100))}
    assert set(impossible) <= never


def test_every_id_has_the_bytes_of_its_source(real: RealTokenizer, table: TokenTable) -> None:
    if real.reference is None:
        pytest.skip("the tokenizer.json is the only source")
    assert table.tokens == real.reference


def test_ids_without_bytes(real: RealTokenizer, table: TokenTable) -> None:
    """Special, control, unknown, unused, padding and end ids are no text; all others are."""
    size = real.tokenizer.get_vocab_size(with_added_tokens=True)
    added = real.tokenizer.get_added_tokens_decoder()
    assert table.width == real.width == len(table.tokens)
    assert table.eos_token_ids == real.eos_token_ids
    for i, kind in enumerate(table.kinds):
        if i in real.eos_token_ids:
            assert kind is TokenKind.EOS
        elif i >= size:
            assert kind is TokenKind.PADDING
        elif i in added:
            assert kind not in (TokenKind.TEXT, TokenKind.EOS, TokenKind.PADDING)
        else:
            assert kind is TokenKind.TEXT
            assert table.tokens[i]


@pytest.mark.parametrize("text", [*TEXTS.values()], ids=[*TEXTS])
def test_encoding_is_lossless_text(
    real: RealTokenizer, table: TokenTable, encode: TextEncoder, text: str
) -> None:
    ids = encode(text.encode())
    assert all(table.kinds[i] is TokenKind.TEXT for i in ids)
    assert b"".join(table.tokens[i] or b"" for i in ids) == text.encode()


def test_encoding_random_text_is_lossless(table: TokenTable, encode: TextEncoder) -> None:
    for text in random_texts(SEED, 400):
        ids = encode(text.encode())
        assert b"".join(table.tokens[i] or b"" for i in ids) == text.encode(), (SEED, text)


def test_encoding_is_the_tokenizers_own(real: RealTokenizer, encode: TextEncoder) -> None:
    """Where the text names no added token, is composed, and (for a dummy space) begins with one."""
    texts = [t for name, t in TEXTS.items() if name not in ("special names", "empty", "rare")]
    compared = 0
    for text in texts + random_texts(SEED + 1, 400):
        composed = unicodedata.normalize("NFC", text)
        if real.dummy_space and composed.startswith((" ", "▁")):
            continue
        own = real.tokenizer.encode(composed, add_special_tokens=False).ids
        data = composed.encode()
        assert encode(b" " + data if real.dummy_space else data) == own, (SEED, composed)
        compared += 1
    assert compared > 300


@pytest.mark.parametrize("name", [*SENTENCEPIECE_FILES])
def test_encoding_is_that_of_sentencepiece(name: str) -> None:
    """The conversion to a tokenizer.json, which the other tests rest on, loses nothing."""
    model = sentencepiece.SentencePieceProcessor(
        model_file=str(sentencepiece_file(SENTENCEPIECE_FILES[name]))
    )
    encode = text_encoder(load(name).tokenizer)
    for text in [*TEXTS.values(), *random_texts(SEED + 2, 200)]:
        if text and "▁" not in text and "\0" not in text:
            assert encode(b" " + text.encode()) == model.encode(text), (SEED, text)


def test_names_of_all_added_tokens_are_encoded_as_text(
    real: RealTokenizer, table: TokenTable, encode: TextEncoder
) -> None:
    """A client's text may name a control token; it must not become one."""
    for added in real.tokenizer.get_added_tokens_decoder().values():
        data = f"a{added.content} b".encode()
        ids = encode(data)
        assert b"".join(table.tokens[i] or b"" for i in ids) == data


def test_the_given_tokenizer_is_left_alone() -> None:
    tokenizer = load("deepseek").tokenizer
    before = tokenizer.to_str()
    encode = text_encoder(tokenizer)
    encode(b"<think>")
    assert tokenizer.to_str() == before
    assert len(tokenizer.encode("<think>", add_special_tokens=False).ids) == 1
