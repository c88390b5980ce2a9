"""What the self-audit finds: in small tokenizers that are broken on purpose, and in real ones."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import realencodings
import realtokenizers
from ggufs import BYTES, byte_level, gguf, real
from hypothesis import given
from hypothesis import strategies as st
from realtokenizers import sentencepiece_file

from ffwd._native import survey_tokens
from ffwd.tokenizer import Finding, Tokenizer, TokenizerParts, load
from ffwd.tokenizer.audit import KINDS
from ffwd.tokenizer.gguf.read import read_gguf
from ffwd.tokenizer.table import TokenKind

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
END = 256


def parts(
    tokens: Sequence[str] = (), types: Sequence[int] = (), merges: Sequence[str] = (), **keys: Any
) -> TokenizerParts:
    """A byte-level tokenizer: 256 bytes, `</s>`, and these tokens from id 257 on."""
    values = byte_level(["</s>", *tokens], [CONTROL, *types], **{"eos_token_id": END, **keys})
    return read_gguf(gguf(values | {"tokenizer.ggml.merges": list(merges)}))


def found(of: TokenizerParts, kind: str) -> Finding | None:
    """The finding of a kind; there is at most one."""
    assert kind in KINDS
    findings = [finding for finding in Tokenizer(of).findings if finding.kind == kind]
    assert len(findings) <= 1
    return findings[0] if findings else None


def ids(of: TokenizerParts, kind: str) -> tuple[int, ...]:
    finding = found(of, kind)
    assert finding is not None, kind
    for token_id in finding.token_ids[:4]:
        assert f"{token_id} {of.names[token_id]!r}" in finding.message
    return finding.token_ids


def test_nothing_is_found_where_nothing_is_odd() -> None:
    assert Tokenizer(parts()).findings == ()
    assert Tokenizer(parts(["ab"], [NORMAL], ["a b"])).findings == ()


@given(
    tokens=st.lists(
        st.tuples(
            st.one_of(st.none(), st.text("<[ ab", max_size=3).map(str.encode)),
            st.sampled_from([TokenKind.TEXT, TokenKind.TEXT, TokenKind.SPECIAL]),
        ),
        max_size=30,
    ),
    ends=st.frozensets(st.integers(0, 30), max_size=3),
)
def test_the_survey_is_what_each_token_says(
    tokens: list[tuple[bytes | None, TokenKind]], ends: frozenset[int]
) -> None:
    texts = {
        i: data
        for i, (data, kind) in enumerate(tokens)
        if kind is TokenKind.TEXT and data and i not in ends
    }
    others, bracketed, same, missing = survey_tokens(
        [data for data, _ in tokens], [kind for _, kind in tokens], TokenKind.TEXT, ends
    )
    assert others == [i for i, (_, kind) in enumerate(tokens) if kind is not TokenKind.TEXT]
    assert bracketed == [
        i for i, data in texts.items() if data.startswith((b"<", b"[", b" <", b" ["))
    ]
    alike = {data: [i for i, other in texts.items() if other == data] for data in texts.values()}
    assert same == sorted(group for group in alike.values() if len(group) > 1)
    assert missing == [byte for byte in range(256) if bytes([byte]) not in texts.values()]


def test_ends() -> None:
    values = byte_level(["</s>", "<|im_end|>"], [CONTROL, CONTROL])
    assert ids(read_gguf(gguf(values)), "several-ends") == (256, 257)
    nothing = found(replace(parts(), eos_token_ids=()), "no-end")
    assert nothing is not None
    assert "eos_token_ids" in nothing.message


def test_padding() -> None:
    padded = parts(["[PAD257]", "[PAD258]"], [USER_DEFINED, UNUSED])
    assert ids(padded, "padding") == (257, 258)
    gaps = replace(padded, names=[*padded.names[:257], None, None])
    assert found(gaps, "padding") is not None
    assert ids(parts(padding_token_id=97), "padding-is-text") == (97,)
    assert ids(parts(padding_token_id=END), "padding-is-end") == (END,)
    assert found(parts(["<pad>"], [CONTROL], padding_token_id=257), "padding") is None


@pytest.mark.parametrize(
    "name",
    [
        *("<|im_start|>", "<|eot_id|>", "[INST]", "[/INST]", "[TOOL_CALLS]", "<tool_call>"),
        *("</s>", "<think>", "<pad>", "<start_of_turn>", "<EOT>", "[gMASK]"),
        "<\uff5cUser\uff5c>",
    ],
)
def test_control_tokens_among_text(name: str) -> None:
    names = ["<end>", name] if name == "</s>" else ["</s>", name]
    values = byte_level(names, [CONTROL, NORMAL], eos_token_id=256)
    assert ids(read_gguf(gguf(values)), "control-as-text") == (257,)


@pytest.mark.parametrize("name", ["<<", "[]", "<p>", "<table>", "[0]", "[a", "<div", "[THE]"])
def test_text_that_only_has_brackets(name: str) -> None:
    assert found(parts([name]), "control-as-text") is None


def test_missing_bytes() -> None:
    values = byte_level(["</s>"], [CONTROL], eos_token_id=256)
    tokens = values["tokenizer.ggml.tokens"]
    for byte in (0x0B, 0xC3, 0xC0, 0xFF):
        tokens[byte] = f"x{byte}"
    finding = found(read_gguf(gguf(values)), "missing-bytes")
    assert finding is not None
    # No text has the two others.
    assert finding.message.startswith("2 bytes have no tokens")
    assert finding.message.endswith("0x0B, 0xC3")


def sentencepiece(pieces: dict[str, float], **keys: Any) -> TokenizerParts:
    """The special tokens, the bytes, and these pieces from id 259 on."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *pieces]
    types = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, *[NORMAL] * len(pieces)]
    return read_gguf(
        gguf(
            {
                "tokenizer.ggml.model": "llama",
                "tokenizer.ggml.tokens": tokens,
                "tokenizer.ggml.token_type": np.array(types, np.int32),
                "tokenizer.ggml.scores": np.array([0.0] * 259 + [*pieces.values()], np.float32),
            }
            | {f"tokenizer.ggml.{key}": value for key, value in keys.items()}
        )
    )


def test_duplicates() -> None:
    of = sentencepiece({"A": -1.0, "▁": -2.0, "é": -3.0})
    assert ids(of, "duplicates") == (3 + 0x20, 3 + 0x41, 259, 260)
    assert found(sentencepiece({"é": -3.0}), "duplicates") is None


def test_tokens_that_no_merge_makes() -> None:
    """Where whole pieces are looked up first, texts have them; otherwise none has."""
    of = parts(["abc", "ab"], merges=["a b"], pre="llama-bpe")
    assert ids(of, "unmerged") == (257,)
    assert found(of, "unreachable") is None
    of = parts(["abc", "ab"], merges=["a b"])
    assert ids(of, "unmerged") == (257,)
    assert ids(of, "unreachable") == (257,)


def test_tokens_that_the_pre_tokenizer_cuts() -> None:
    of = parts(["aĠ", "aĠb", "Ġb"], merges=["a Ġ", "aĠ b", "Ġ b"])
    assert found(of, "unmerged") is None
    assert ids(of, "unreachable") == (257, 258)


def test_a_token_that_is_whole_only_beside_others() -> None:
    """` I'` of o200k is in ` I'm`, and cut in two by itself."""
    of = parts(["ĠI", "ĠI'"], merges=["Ġ I", "ĠI '"], pre="gpt-4o")
    assert Tokenizer(of).encode(" I'") == [257, ord("'")]
    assert found(of, "unreachable") is None


def test_wrong_bytes_and_round_trips() -> None:
    of = parts()
    a, b = of.names.index("a"), of.names.index("b")
    tokens = list(of.tokens)
    tokens[a] = b"A"
    wrong = replace(of, tokens=tokens)
    assert ids(wrong, "wrong-bytes") == (a,)
    kinds = [finding.kind for finding in Tokenizer(wrong).findings]
    assert kinds.count("round-trip") == 2
    messages = [f.message for f in Tokenizer(wrong).findings if f.kind == "round-trip"]
    assert "are not decoded as they were encoded" in messages[0]
    assert f"{a} 'a'" in messages[1]
    assert b not in [i for f in Tokenizer(wrong).findings for i in f.token_ids]


def test_all_characters_when_asked() -> None:
    of = parts()
    assert Tokenizer(of).audit(full=True) == ()
    tokens = list(of.tokens)
    tokens[of.names.index(BYTES[0xF3])] = b"?"  # in no character of the sample
    lost = Tokenizer(replace(of, tokens=tokens)).audit(full=True)
    assert {f.kind for f in lost} >= {"round-trip", "wrong-bytes"}


def test_loading_warns_and_names_ids(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "model.gguf"
    values = byte_level(["</s>", "<tool_call>", "a b"], [CONTROL], padding_token_id=97)
    path.write_bytes(gguf(values))
    with caplog.at_level(logging.WARNING, logger="ffwd.tokenizer.audit"):
        tokenizer = load(path)
    logged = [r.getMessage() for r in caplog.records if r.name == "ffwd.tokenizer.audit"]
    assert logged == [f"{path}: {finding.message}" for finding in tokenizer.findings]
    assert {f.kind for f in tokenizer.findings} == {
        *("padding-is-text", "control-as-text", "unmerged", "unreachable"),
    }
    assert any("257 '<tool_call>'" in message for message in logged)


THAI = 1_673
"""Qwen's tokens that its pattern cuts, which are mostly Thai."""

REAL: dict[str, tuple[Callable[[], Any], dict[str, int]]] = {
    "llama3": (
        lambda: realencodings.load("llama3"),
        {"several-ends": 3, "unmerged": 588},
    ),
    "gpt2": (lambda: realtokenizers.load("gpt2").tokenizer, {}),
    "qwen": (
        lambda: realencodings.load("qwen"),
        {"several-ends": 2, "control-as-text": 3, "unreachable": THAI},
    ),
    "qwen2": (
        # It composes text, so that tokens that are not composed are in none.
        lambda: real("qwen2"),
        {
            "several-ends": 2,
            "padding": 290,
            "padding-is-end": 1,
            "control-as-text": 3,
            "unreachable": THAI + 236,
        },
    ),
    "deepseek": (lambda: realtokenizers.load("deepseek").tokenizer, {}),
    "mistral-v3": (
        lambda: sentencepiece_file(realtokenizers.SENTENCEPIECE_FILES["mistral-v3"]),
        {"duplicates": 250},
    ),
    "gemma-4": (
        lambda: real("gemma-4"),
        {
            "several-ends": 2,
            "control-as-text": 2,
            "duplicates": 220,
            "unmerged": 75,
            "unreachable": 75,
        },
    ),
    "falcon": (lambda: real("falcon"), {"missing-bytes": 0}),
    "bert": (lambda: real("bert-bge"), {"no-end": 0, "missing-bytes": 0, "round-trip": 0}),
}
"""Tokenizers, and for each kind of finding about them the number of tokens."""


@pytest.mark.parametrize("name", REAL)
def test_real_tokenizers(name: str) -> None:
    source, expected = REAL[name]
    tokenizer = load(source())
    assert {f.kind: len(f.token_ids) for f in tokenizer.findings} == expected
    if name == "llama3":
        assert "' việc'" in next(f.message for f in tokenizer.findings if f.kind == "unmerged")
