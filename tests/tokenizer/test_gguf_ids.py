"""The ids of llama.cpp's vocabularies are those of the tokenizers that the files were made from."""

import ctypes
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import realencodings
import realtokenizers
from ggufs import SEPARATOR, expected, gguf, real
from llamacpp import vocabularies
from sampletexts import RUNS, TEXTS, adversarial_texts, long_texts, random_texts

from ffwd.tokenizer import Bpe, Tokenizer, TokenKind
from ffwd.tokenizer.gguf.header import read_header
from ffwd.tokenizer.gguf.read import read_gguf

SEED = 7

NAMES = [path.name.removeprefix("ggml-vocab-").removesuffix(".gguf") for path in vocabularies()]
WITH_IDS = [name for name in NAMES if real(name).with_suffix(".gguf.out").exists()]

NATIVE = [name for name in NAMES if name not in ("bert-bge", "nomic-bert-moe")]
"""The others are WordPiece and Unigram, which libraries encode."""


@pytest.fixture(scope="module")
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return Tokenizer(read_gguf(real(request.param)))


def name_of(tokenizer: Tokenizer) -> str:
    return tokenizer.source.rpartition("ggml-vocab-")[2].removesuffix(".gguf")


def of(*names: str) -> pytest.MarkDecorator:
    """A test of these vocabularies, each of which is loaded once for all tests."""
    return pytest.mark.parametrize("tokenizer", names, indirect=True)


def test_the_vocabularies_are_all_there() -> None:
    assert (len(NAMES), len(WITH_IDS)) == (19, 15)


@of(*NAMES)
def test_bpe_is_native(tokenizer: Tokenizer) -> None:
    assert (tokenizer.bpe is not None) == (name_of(tokenizer) in NATIVE)


@of(*WITH_IDS)
def test_ids_are_those_that_are_expected(tokenizer: Tokenizer) -> None:
    """As the file beside the vocabulary lists them, which the original tokenizer wrote."""
    cases = expected(name_of(tokenizer))
    assert len(cases) >= 46
    assert not any(SEPARATOR.strip() in text for text, _ in cases)
    for text, ids in cases:
        assert tokenizer.encode(text) == ids, repr(text)
        assert tokenizer.count(text) == len(ids)


@of(*NATIVE)
def test_text_comes_back(tokenizer: Tokenizer) -> None:
    name = name_of(tokenizer)
    for text in [*TEXTS.values(), *long_texts().values(), *RUNS.values()]:
        if not spelled(tokenizer, text) or "\u2581" in text:
            continue  # which bytes have no token is tested elsewhere
        if unicodedata.is_normalized("NFC", text) or name not in COMPOSED:
            assert tokenizer.decode(tokenizer.encode(text)) == text


COMPOSED = {"command-r", "mpt", "qwen2"}
"""Whose original tokenizers compose text. llama.cpp does not."""


def spelled(tokenizer: Tokenizer, text: str) -> bool:
    """Whether the vocabulary has a token for each byte; llama.cpp drops bytes without one."""
    return not missing(tokenizer).intersection(text.encode())


@cache
def missing(tokenizer: Tokenizer) -> frozenset[int]:
    """The bytes without a token."""
    if tokenizer.bpe is None:
        return frozenset()  # there it is characters
    tokens = {tokenizer.token_bytes(i) for i in range(tokenizer.vocab_size)}
    return frozenset(byte for byte in range(256) if bytes((byte,)) not in tokens)


@cache
def texts() -> list[str]:
    """Prose, code, JSON, many languages, MaskBench's instances, random and adversarial ones."""
    return [
        *TEXTS.values(),
        *long_texts().values(),
        *RUNS.values(),
        *random_texts(SEED, 300),
        *adversarial_texts(SEED, 600),
    ]


# --------------------------------------------------------------------------- llama.cpp's own ids


@contextmanager
def llama_cpp_encoder(name: str) -> Iterator[Callable[[str], list[int]]]:
    """llama.cpp itself, where it is installed, without the tokens that are control tokens to it."""
    llama_cpp: Any = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    quiet = llama_cpp.llama_log_callback(lambda *_: None)
    llama_cpp.llama_log_set(quiet, ctypes.c_void_p(0))
    _KEPT.append(quiet)
    model = llama_cpp.Llama(str(real(name)), vocab_only=True, verbose=False)
    try:
        yield lambda text: list(model.tokenize(text.encode(), add_bos=False, special=False))
    finally:
        model.close()


_KEPT: list[Any] = []
"""Callbacks that llama.cpp has the address of."""


def found_by_llama_cpp(tokenizer: Tokenizer) -> set[str]:
    """User-defined tokens, which llama.cpp finds in every text unless they end an output."""
    special = tokenizer.special_tokens
    roles = [special.bos, special.eos, special.unk, special.pad, special.mask, special.cls]
    hidden = {*tokenizer.special_ids, *tokenizer.eos_token_ids}
    tokens = [token for token in [*roles, *special.additional] if token is not None]
    return {token.content for token in tokens if token.id not in hidden}


DIFFERS: dict[str, Callable[[str], bool]] = {
    # Composed by the original tokenizer and not by llama.cpp.
    **dict.fromkeys(COMPOSED, lambda text: not unicodedata.is_normalized("NFC", text)),
    # Of white space beyond ASCII, llama.cpp takes U+3000 for no punctuation.
    "deepseek-llm": lambda text: "\u3000" in text,
    # llama.cpp decomposes a character into its first part only, drops vowel signs, takes some
    # control characters for spaces, and has no limit on the length of a word.
    "bert-bge": lambda text: not is_plain(text) or any(len(word) > 100 for word in text.split()),
}
"""Where llama.cpp differs from the tokenizer that the file was made from, which is followed."""


_ODD = ("Mc", "Me", "Cc", "Cf", "Cn", "Co")


def is_plain(text: str) -> bool:
    """Whether decomposing changes no character but Latin ones with one accent.

    All of them are in old versions of Unicode.
    """
    return all(
        len(unicodedata.normalize("NFD", c)) <= 1 + ("LATIN" in unicodedata.name(c, ""))
        and (unicodedata.ucd_3_2_0.category(c) not in _ODD or c in "\t\r\n")
        for c in text
    )


@of(*NAMES)
def test_ids_are_those_of_llama_cpp(tokenizer: Tokenizer) -> None:
    name = name_of(tokenizer)
    special = found_by_llama_cpp(tokenizer) or "text"
    differs = DIFFERS.get(name, lambda _: False)
    same = 0
    with llama_cpp_encoder(name) as encode:
        for text in texts():
            if not text or not spelled(tokenizer, text) or differs(text):
                continue
            assert tokenizer.encode(text, special=special) == encode(text), repr(text)
            same += 1
    assert same > 300


# ------------------------------------------------------------------- the same from other formats


OTHERS = {
    "llama-bpe": {
        "ranks": lambda: Bpe.from_tiktoken(realencodings.load("llama3")),
    },
    "qwen2": {
        "huggingface": lambda: Bpe.from_huggingface(realtokenizers.load("qwen").tokenizer),
    },
    "gpt-2": {
        "huggingface": lambda: Bpe.from_huggingface(realtokenizers.load("gpt2").tokenizer),
    },
}


@of(*OTHERS)
def test_ids_are_those_of_the_same_tokenizer_from_another_format(tokenizer: Tokenizer) -> None:
    for kind, other in OTHERS[name_of(tokenizer)].items():
        bpe = other()
        for text in texts():
            assert tokenizer.encode(text) == bpe.encode(text), (kind, text)
        for token_id in range(0, bpe.vocab_size, 7):
            if tokenizer.token_kind(token_id) is TokenKind.TEXT:
                assert tokenizer.token_bytes(token_id) == bpe.token_bytes(token_id), kind


def test_the_other_byte_order(tmp_path: Path) -> None:
    """A whole vocabulary, written for machines that have the most significant byte first."""
    own = read_header(real("gpt-2"))
    path = tmp_path / "big.gguf"
    path.write_bytes(gguf(own.values, order=">"))
    tokenizer, big = Tokenizer(read_gguf(real("gpt-2"))), Tokenizer(read_gguf(path))
    assert read_header(path).byte_order == "big"
    assert big.fingerprint == tokenizer.fingerprint
    for text, ids in expected("gpt-2"):
        assert big.encode(text) == ids
