"""What is read from the keys of a GGUF file: kinds, roles, end tokens, templates, and refusals."""

import logging
import re
from typing import Any

import numpy as np
import pytest
from ggufs import BYTES, byte_level, gguf, real

from ffwd import TextError, VocabularyError
from ffwd.tokenizer import CorruptTokenizerError, Tokenizer, TokenKind, UnsupportedTokenizerError
from ffwd.tokenizer.gguf.pretokenizers import NAMES
from ffwd.tokenizer.gguf.read import read_gguf

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


def load(values: dict[str, Any], **options: Any) -> Tokenizer:
    return Tokenizer(read_gguf(gguf(values), **options))


def merged(tokens: list[str], merges: list[str], **keys: Any) -> dict[str, Any]:
    return byte_level(tokens, **keys) | {"tokenizer.ggml.merges": merges}


@pytest.mark.parametrize(
    ("token", "type_", "kind"),
    [
        ("word", NORMAL, TokenKind.TEXT),
        ("<unused7>", NORMAL, TokenKind.UNUSED),
        ("<s>", CONTROL, TokenKind.SPECIAL),
        ("plain", CONTROL, TokenKind.SPECIAL),
        ("<|reserved_special_token_3|>", CONTROL, TokenKind.UNUSED),
        ("<unk>", UNKNOWN, TokenKind.UNKNOWN),
        ("    ", USER_DEFINED, TokenKind.TEXT),
        ("<tool_call>", USER_DEFINED, TokenKind.CONTROL),
        ('<|"|>', USER_DEFINED, TokenKind.CONTROL),
        ("[PAD300]", USER_DEFINED, TokenKind.UNUSED),
        ("[PAD300]", UNKNOWN, TokenKind.UNUSED),
        ("[PAD300]", UNUSED, TokenKind.UNUSED),
        ("word", UNUSED, TokenKind.UNUSED),
        ("word", 0, TokenKind.UNUSED),
        ("word", 77, TokenKind.UNUSED),
    ],
)
def test_kinds(token: str, type_: int, kind: TokenKind) -> None:
    tokenizer = load(byte_level([token], [type_]))
    assert tokenizer.token_kind(256) is kind
    found = 256 in tokenizer.encode(f"a{token}b", special="allowed")
    # What only fills up the vocabulary is never written, whatever a text has.
    assert found == (type_ in (UNKNOWN, CONTROL, USER_DEFINED) and not token.startswith("[PAD"))
    as_text = tokenizer.encode(f"a{token}b")
    assert (256 in as_text) == (found and kind is TokenKind.TEXT)
    assert tokenizer.decode(as_text) == f"a{token}b"


def test_padding_is_never_offered() -> None:
    """All of Qwen's [PADn], of which llama.cpp takes some for text."""
    for name in ("qwen2", "phi-3"):
        tokenizer = Tokenizer(read_gguf(real(name)))
        padding = [
            i
            for i in range(tokenizer.vocab_size)
            if re.fullmatch(r"\[PAD\d+\]", tokenizer.id_to_token(i) or "")
        ]
        assert len(padding) > 50
        assert {tokenizer.token_kind(i) for i in padding} == {TokenKind.UNUSED}
        vocabulary = tokenizer.vocabulary()
        assert all(vocabulary.token_bytes(i) is None for i in padding)
        text = f"a[PAD{padding[0]}]b"
        assert not set(padding) & set(tokenizer.encode(text, special="allowed"))


def test_roles_ends_and_what_is_added() -> None:
    names = ["<s>", "</s>", "<unk>", "<pad>", "<sep>", "<cls>", "<mask>", "<|eot|>", "<|im_end|>"]
    keys = {
        "bos_token_id": 256,
        "eos_token_id": 257,
        "unknown_token_id": 258,
        "padding_token_id": 259,
        "seperator_token_id": 260,
        "cls_token_id": 261,
        "mask_token_id": 262,
        "eot_token_id": 263,
        "add_bos_token": True,
        "add_eos_token": True,
    }
    tokenizer = load(byte_level(names, [CONTROL] * len(names), **keys))
    special = tokenizer.special_tokens
    found = [special.bos, special.eos, special.unk, special.pad, special.sep, special.cls]
    assert [token and token.content for token in [*found, special.mask]] == [
        *names[:4],
        *names[4:7],
    ]
    assert [token.id for token in special.additional] == [263, 264]
    # The file names two, and a third is known by its name.
    assert tokenizer.eos_token_ids == (257, 263, 264)
    assert (tokenizer.add_bos, tokenizer.add_eos) == (True, True)
    a = tokenizer.token_to_id("a")
    assert tokenizer.encode("a", add_special_tokens=True) == [256, a, 257]
    assert tokenizer.encode("a") == [a]


def test_a_role_may_be_missing_or_out_of_range(caplog: pytest.LogCaptureFixture) -> None:
    keys = {"bos_token_id": 2**32 - 1, "eos_token_id": 256, "add_bos_token": True}
    tokenizer = load(byte_level(["</s>"], [CONTROL], **keys))
    assert tokenizer.special_tokens.bos is None
    assert not tokenizer.add_bos
    assert "bos_token_id is 4294967295, which is no token" in caplog.text


@pytest.mark.parametrize(
    ("names", "ends"),
    [
        (["<|end|>"], ["<|end|>"]),
        (["<|end|>", "<|return|>"], ["<|end|>", "<|return|>"]),
        (["<|end|>", "<|return|>", "<|call|>"], ["<|return|>", "<|call|>"]),
        (["<|end|>", "<|calls|>", "<|flush|>"], ["<|calls|>", "<|flush|>"]),
    ],
)
def test_the_end_of_a_message_need_not_end_the_output(names: list[str], ends: list[str]) -> None:
    tokenizer = load(byte_level(names, [CONTROL] * len(names)))
    assert [tokenizer.id_to_token(i) for i in tokenizer.eos_token_ids] == ends


def test_a_plain_token_with_the_name_of_an_end_is_none() -> None:
    """Gemma has `</s>` for HTML."""
    tokenizer = load(byte_level(["</s>", "<eos>"], [NORMAL, CONTROL], eos_token_id=257))
    assert tokenizer.eos_token_ids == (257,)
    assert tokenizer.token_kind(256) is TokenKind.TEXT


def test_chat_templates() -> None:
    keys = {
        "tokenizer.chat_template": "{{ a }}",
        "tokenizer.chat_template.tool_use": "{{ b }}",
        "tokenizer.chat_templates": ["tool_use"],
    }
    tokenizer = load(byte_level() | keys)
    assert tokenizer.chat_templates == {"default": "{{ a }}", "tool_use": "{{ b }}"}
    assert load(byte_level()).chat_templates == {}


def test_the_width_of_the_logits() -> None:
    keys = {"general.architecture": "llama", "llama.vocab_size": 300}
    values = byte_level(["</s>"], [CONTROL], eos_token_id=256) | keys
    tokenizer = load(values)
    assert (tokenizer.vocab_size, tokenizer.vocabulary().vocab_size) == (257, 300)
    assert load(values | {"llama.vocab_size": 3}).vocabulary().vocab_size == 257


def test_merges() -> None:
    tokenizer = load(merged(["ab", "abc"], ["a b", "ab c"]))
    assert [tokenizer.id_to_token(i) for i in tokenizer.encode("abcab")] == ["abc", "ab"]


def test_a_merge_that_begins_with_a_space() -> None:
    """It separates the parts of a merge as well; in GPT-2's alphabet no token has one."""
    values = merged([" x", "ab", "abc"], ["  x", "a b", "ab c"])
    values["tokenizer.ggml.tokens"][0] = " "
    tokenizer = load(values)
    assert [tokenizer.id_to_token(i) for i in tokenizer.encode("abcab x")] == [
        *("abc", "ab", "\u0120", "x")
    ]


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({}, UnsupportedTokenizerError, "has no tokenizer"),
        ({"split.no": np.uint16(2)}, UnsupportedTokenizerError, "part 3 .* the first"),
        ({"tokenizer.ggml.model": "rwkv"}, UnsupportedTokenizerError, "'rwkv'.* gpt2 .*bert"),
        ({"tokenizer.ggml.model": "plamo2"}, UnsupportedTokenizerError, "'plamo2'"),
        ({"tokenizer.ggml.model": 3}, UnsupportedTokenizerError, "model is 3"),
        ({"tokenizer.ggml.model": "gpt2"}, CorruptTokenizerError, "tokens is missing"),
        (byte_level(pre="no-such"), UnsupportedTokenizerError, "'no-such'.*not known.* qwen2"),
        (byte_level(pre="whitespace"), UnsupportedTokenizerError, "'whitespace'"),
        (byte_level() | {"tokenizer.ggml.tokens": []}, CorruptTokenizerError, "has 0 tokens"),
        (byte_level() | {"tokenizer.ggml.tokens": 3}, CorruptTokenizerError, "another type"),
        (
            byte_level(["a"]),
            CorruptTokenizerError,
            r"several ids for the same token: 'a' is \[97, 256\]",
        ),
        (
            byte_level(token_type=np.zeros(3, dtype=np.int32)),
            CorruptTokenizerError,
            "token_type has 3 numbers for 256 tokens",
        ),
        (merged([], ["a b"]), CorruptTokenizerError, 'needs "ab", which is no piece'),
        (merged(["ab"], ["ab"]), CorruptTokenizerError, "does not name two pieces"),
        (byte_level(add_bos_token=3), CorruptTokenizerError, "add_bos_token is 3"),
    ],
)
def test_refusals(values: dict[str, Any], error: type[VocabularyError], message: str) -> None:
    with pytest.raises(error, match=message):
        load(values)


def test_no_merges() -> None:
    values = byte_level()
    del values["tokenizer.ggml.merges"]
    with pytest.raises(CorruptTokenizerError, match="no merges"):
        load(values)


def test_without_a_pre_tokenizer_there_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    values = byte_level()
    del values["tokenizer.ggml.pre"]
    with caplog.at_level(logging.WARNING):
        load(values)
    assert "tokenizer.ggml.pre" in caplog.text
    caplog.clear()
    load(values, pre="gpt-2")
    assert "tokenizer.ggml.pre" not in caplog.text
    with pytest.raises(UnsupportedTokenizerError, match="'x'"):
        load(values, pre="x")


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_a_pre_tokenizer_makes_a_tokenizer(name: str) -> None:
    """Natively, but for five whose patterns look ahead further than one character."""
    values = byte_level(pre=name)
    if name in ("gemma4", "granite-embed-multi-311m", "sarvam-moe"):
        values["tokenizer.ggml.tokens"] = [
            *(f"<0x{byte:02X}>" for byte in range(256)),
            *"▁abcdefgh",
        ]
        values["tokenizer.ggml.token_type"] = np.array([BYTE] * 256 + [NORMAL] * 9, np.int32)
    tokenizer = load(values)
    by_library = {"afmoe", "cohere2moe", "jais-2", "superbpe", "tiny_aya"}
    assert (tokenizer.bpe is None) == (name in by_library)
    for text in ("", "Hello world 12345 67\n\n  'Ll été 日本語!?", "a" * 50, "1234567"):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_digits_are_grouped_from_the_right() -> None:
    """By the names that say so; the library encodes."""
    digits = [f"{n:0{width}}" for width in (1, 2, 3) for n in range(10**width)]
    tokens = [*BYTES, *(d for d in digits if len(d) > 1)]
    merges = [f"{d[:-1]} {d[-1]}" for d in digits if len(d) > 1]
    for name in ("afmoe", "tiny_aya", "superbpe"):
        values = byte_level(pre=name) | {
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": np.array([1] * len(tokens), np.int32),
            "tokenizer.ggml.merges": merges,
        }
        tokenizer = load(values)
        cut = [tokenizer.id_to_token(i) for i in tokenizer.encode("x1234567 12")]
        assert cut[:4] == ["x", "1", "234", "567"]


def test_bytes_without_a_token() -> None:
    """Falcon has none for most control characters: a text with one is refused, not shortened."""
    tokenizer = Tokenizer(read_gguf(real("falcon")))
    assert tokenizer.decode(tokenizer.encode("a\tb")) == "a\tb"
    assert tokenizer.bpe is not None
    for call in (tokenizer.encode, tokenizer.count, lambda t: tokenizer.bpe.split_at(t, 3)):  # type: ignore[union-attr]
        with pytest.raises(TextError, match="byte 0x03, which stands at byte 2") as caught:
            call("ab\x03")
        assert caught.value.byte == 2
    encoder = tokenizer.bpe.append_encoder()
    encoder.push("ab")
    with pytest.raises(TextError, match="byte 3 of the text"):
        encoder.push("c\x03")
    assert encoder.text == b"ab"
    with pytest.raises(TextError, match="0x03"):
        tokenizer.bpe.prepend_encoder().push("\x03")
    with pytest.raises(TextError, match="0x03"):
        tokenizer.bpe.interval_counter("\x03")


def test_special_tokens_that_swallow_spaces() -> None:
    """Phi 3's do, and no key of its file says so."""
    tokenizer = Tokenizer(read_gguf(real("phi-3")))
    user, end = tokenizer.token_to_id("<|user|>"), tokenizer.token_to_id("<|end|>")
    ids = tokenizer.encode("<|user|> \nHi<|end|>", special="allowed")
    assert ids[-1] == end
    assert ids.count(user) == 1
    assert "\n" not in tokenizer.decode(ids)


def test_tied_scores() -> None:
    """Baichuan's first tokens share a score; llama.cpp's order of their merges is kept."""
    tokenizer = Tokenizer(read_gguf(real("baichuan")))
    assert tokenizer.bpe is not None
    text = "a ----> b <!-- c --> ---- -->"
    assert tokenizer.decode(tokenizer.encode(text)) == text
