"""Tokenizers for a run: a Hugging Face folder, a known package's, or one trained on the spot."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import tokenizers

from maskbench import packaged
from maskbench.data import builtin_cases
from maskbench.documents import Whitespace, write_instance
from maskbench.errors import InputError

BUILTIN_NAME = "builtin"
BUILTIN_VOCAB_SIZE = 4096
WIDE_NAME = "builtin-128k"
WIDE_VOCAB_SIZE = 128_256
"""As wide as Llama 3's, where no package carries a vocabulary of that size."""

BYTES_NAME = "bytes"
"""One token for each byte and an end, which makes walks as free as they can be."""

_END = "<|end|>"

# Splits words with one leading non-letter, runs of up to three digits, punctuation, whitespace.
_WORDS = (
    r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class TokenizerError(InputError, ValueError):
    """A tokenizer that cannot be used; the message says which and why."""


@dataclass(frozen=True)
class TokenizerSpec:
    """The properties of the tokenizer for every engine.

    `directory` is a Hugging Face folder with `tokenizer.json` and `tokenizer_config.json`,
    `vocab_size` the number of ids (the width of a mask in bits).
    """

    name: str
    directory: Path
    vocab_size: int
    eos_token_ids: tuple[int, ...]
    sha256: str

    def plain(self) -> dict[str, Any]:
        """Return its description for results."""
        return {
            "name": self.name,
            "vocab_size": self.vocab_size,
            "eos_token_ids": list(self.eos_token_ids),
            "sha256": self.sha256,
        }


class HuggingFaceEncoder:
    """The tokenizer's own encoding, without special tokens."""

    def __init__(self, spec: TokenizerSpec) -> None:
        self._tokenizer = tokenizers.Tokenizer.from_file(str(spec.directory / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def encode(self, text: str) -> list[int]:
        """Return the token ids of the text."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids


class OutputEncoder:
    """The tokenizer's own encoding of text in the middle of an output.

    It differs from that of a prompt in three points. No space is added before the text, and special
    tokens are text like any other. No character is composed (NFC), so that no byte is lost.
    """

    def __init__(self, spec: TokenizerSpec) -> None:
        state = _read_object(spec.directory / "tokenizer.json")
        state |= {"truncation": None, "padding": None, "post_processor": None, "added_tokens": []}
        for part, steps in (("normalizer", "normalizers"), ("pre_tokenizer", "pretokenizers")):
            state[part] = _without_changes(state.get(part), steps)
        self._tokenizer = tokenizers.Tokenizer.from_str(json.dumps(state))

    def encode(self, text: str) -> list[int]:
        """Return the token ids of the text."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids


def _without_changes(state: dict[str, Any] | None, steps: str) -> dict[str, Any] | None:
    """Return a normalizer or pre-tokenizer that neither composes characters nor adds a space."""
    if state is None or state["type"] in ("NFC", "Prepend"):
        return None
    if state["type"] == "Sequence":
        kept = [_without_changes(step, steps) for step in state[steps]]
        return state | {steps: [step for step in kept if step is not None]}
    if state["type"] == "Metaspace":
        return state | {"prepend_scheme": "never"}
    if "add_prefix_space" in state:
        return state | {"add_prefix_space": False}
    return state


def resolve(name: str, scratch: Path) -> TokenizerSpec:
    """Find the tokenizer called `name`: `builtin`, `bytes`, a package's name, or a folder.

    The built-in one is trained and written below `scratch`. Raises `TokenizerError`. Lists bytes
    without a token on standard error.
    """
    spec = _resolve(name, scratch)
    problem = unspelled(spec)
    if problem is not None:
        click.echo(f"warning: tokenizer {spec.name!r}: {problem}", err=True)
    return spec


def unspelled(spec: TokenizerSpec) -> str | None:
    """Return the bytes of text that no token encodes, or why they are unknown; or None.

    ffwd refuses such a tokenizer; other engines may take it, and have masks with no way on.
    """
    model = _read_object(spec.directory / "tokenizer.json").get("model")
    pieces = model.get("vocab") if isinstance(model, dict) else None
    # Large vocabularies take seconds to read in full, and most are plainly complete.
    if isinstance(pieces, dict) and (
        all(character in pieces for character in packaged.byte_characters())
        or all(f"<0x{byte:02X}>" in pieces for byte in range(256))
    ):
        return None
    # Here, for the processes of other engines do not need it.
    import ffwd
    import ffwd.tokenizer

    try:
        ffwd.tokenizer.from_huggingface(spec.directory, vocab_size=spec.vocab_size)
    except ffwd.FfwdError as error:
        return str(error)
    return None


def _resolve(name: str, scratch: Path) -> TokenizerSpec:
    if name == BUILTIN_NAME:
        directory = scratch / "builtin-tokenizer"
        train_builtin(directory)
        return describe(directory, name)
    if name == WIDE_NAME:
        directory = scratch / "builtin-wide-tokenizer"
        train_builtin(scratch / "builtin-tokenizer")
        _widen(scratch / "builtin-tokenizer", directory)
        return describe(directory, name)
    if name == BYTES_NAME:
        directory = scratch / "bytes-tokenizer"
        _write_bytes(directory)
        return describe(directory, name)
    if name in packaged.NAMES:
        try:
            return describe(packaged.folder(name, scratch), name)
        except packaged.MissingPackageError as error:
            raise TokenizerError(f"tokenizer {name!r} {error}") from error
    directory = Path(name)
    if directory.name == "tokenizer.json":
        directory = directory.parent
    if not directory.is_dir():
        known = ", ".join([BUILTIN_NAME, WIDE_NAME, BYTES_NAME, *packaged.NAMES])
        raise TokenizerError(f"tokenizer {name!r}: neither a folder nor one of {known}")
    return describe(directory, directory.name)


def describe(directory: Path, name: str) -> TokenizerSpec:
    """Read vocabulary size and end tokens of a Hugging Face folder."""
    file = directory / "tokenizer.json"
    if not file.is_file():
        raise TokenizerError(f"tokenizer {name!r}: no tokenizer.json in {directory}")
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(file))
    except Exception as error:  # the tokenizers package raises bare Exception
        raise TokenizerError(f"{file}: {error}") from error
    ids = tokenizer.get_vocab(with_added_tokens=True).values()
    eos = tuple(sorted(set(_end_tokens(directory, tokenizer))))
    if not eos:
        raise TokenizerError(f"tokenizer {name!r}: no end token is named in {directory}")
    return TokenizerSpec(
        name=name,
        directory=directory,
        vocab_size=max(max(ids), max(eos)) + 1,
        eos_token_ids=eos,
        sha256=hashlib.sha256(file.read_bytes()).hexdigest(),
    )


def train_builtin(directory: Path) -> None:
    """Train a small byte-level BPE tokenizer on the built-in corpus, always the same one."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Split(tokenizers.Regex(_WORDS), "isolated"),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=BUILTIN_VOCAB_SIZE,
        min_frequency=1,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[_END],
        show_progress=False,
    )
    tokenizer.train_from_iterator(_training_texts(), trainer)
    _write(tokenizer, directory)


def _widen(narrow: Path, directory: Path) -> None:
    """Write a tokenizer with more tokens: each joins two of letters, the commonest first."""
    state = _read_object(narrow / "tokenizer.json")
    vocabulary, merges = state["model"]["vocab"], state["model"]["merges"]
    # `Ġ` is a space.
    words = [p for p in vocabulary if p.removeprefix("Ġ").isascii() and p[1:].isalpha()]
    ends = [piece for piece in words if piece.isascii() and piece.isalpha()]
    for total in range(len(words) + len(ends)):
        for first in range(max(0, total - len(ends) + 1), min(total + 1, len(words))):
            left, right = words[first], ends[total - first]
            if left + right not in vocabulary:
                vocabulary[left + right] = len(vocabulary)
                merges.append([left, right])
                if len(vocabulary) == WIDE_VOCAB_SIZE:
                    _write(tokenizers.Tokenizer.from_str(json.dumps(state)), directory)
                    return
    raise TokenizerError(f"the built-in corpus has too few words for {WIDE_VOCAB_SIZE} tokens")


def _write_bytes(directory: Path) -> None:
    """Write a byte-level tokenizer without merges."""
    alphabet = packaged.byte_characters()
    vocabulary = {character: byte for byte, character in enumerate(alphabet)}
    model = tokenizers.models.BPE(vocabulary | {_END: len(vocabulary)}, [])
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(
        add_prefix_space=False, use_regex=False
    )
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens([_END])
    _write(tokenizer, directory)


def _write(tokenizer: tokenizers.Tokenizer, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(directory / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": _END}
    (directory / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def _training_texts() -> Iterator[str]:
    for case in builtin_cases():
        yield json.dumps(case.schema, indent=2)
        for test in case.tests:
            for whitespace in (Whitespace.COMPACT, Whitespace.SINGLE_SPACE):
                yield write_instance(test.data, whitespace)


def _end_tokens(directory: Path, tokenizer: tokenizers.Tokenizer) -> Iterator[int]:
    text = _read_object(directory / "tokenizer_config.json").get("eos_token")
    if isinstance(text, dict):
        text = text.get("content")
    if isinstance(text, str):
        token_id = tokenizer.token_to_id(text)
        if token_id is None:
            raise TokenizerError(f"{directory}: end token {text!r} is not in the vocabulary")
        yield token_id
    ids = _read_object(directory / "generation_config.json").get("eos_token_id", [])
    for value in ids if isinstance(ids, list) else [ids]:
        if isinstance(value, int):
            yield value


def _read_object(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TokenizerError(f"{file}: {error}") from error
    if not isinstance(value, dict):
        raise TokenizerError(f"{file}: expected an object")
    return value
