"""Detection of a file's format from its contents; its name does not matter."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ffwd.tokenizer.definition import Kind
from ffwd.tokenizer.errors import (
    FORMATS,
    CorruptTokenizerError,
    TokenizerNotFoundError,
    UnsupportedTokenizerError,
)

MAX_BYTES = 1 << 29
"""Files that are larger are not read as a whole: a GGUF, of which only the header is, may be."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

DIRECTORY_FILES: tuple[str, ...] = (
    "tokenizer.json",
    "tekken.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "spm.model",
    "tiktoken.model",
    "*.tiktoken",
    "tokenizer.model.*",
    "*.model.v*",
    "tekken_*.json",
    "*.model",
    "*.gguf",
)
"""What a tokenizer's file in a directory is called, the best first."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A file's format and the contents read so far."""

    kind: Kind
    name: str
    """For messages."""
    path: Path | None = None
    data: bytes = b""
    """Its contents; empty for the path of a GGUF, of which its reader reads what it needs."""
    value: Any = None
    """The value of a JSON file."""


def path_of(source: Any) -> Path | None:
    """Return the path that a source is; a text is one if such a file or directory exists."""
    if isinstance(source, os.PathLike):
        return Path(source)
    if not isinstance(source, str) or "\0" in source:
        return None
    expanded = os.path.expanduser(source)
    return Path(expanded) if os.path.exists(expanded) else None


def detect_file(path: Path, *, kind: Kind | None = None) -> Found:
    """Return the format of a file; `kind`: the format to assume.

    Raises `TokenizerNotFoundError`, `UnsupportedTokenizerError` for another kind of file and
    `CorruptTokenizerError` for one that begins like a tokenizer and cannot be read.
    """
    try:
        with path.open("rb") as file:
            head = file.read(4)
            if kind == "gguf" or (kind is None and head == b"GGUF"):
                return Found(kind="gguf", name=str(path), path=path)
            data = head + file.read(MAX_BYTES)
    except FileNotFoundError as error:
        raise TokenizerNotFoundError(f"{path}: no such file or directory") from error
    except OSError as error:
        raise CorruptTokenizerError(f"{path} cannot be read: {error}") from error
    if len(data) > MAX_BYTES:
        raise UnsupportedTokenizerError(
            f"{path} has more than {MAX_BYTES} bytes, which no tokenizer but a GGUF has"
        )
    return detect_bytes(data, str(path), kind=kind, path=path)


def detect_bytes(
    data: bytes, name: str, *, kind: Kind | None = None, path: Path | None = None
) -> Found:
    """Return the format of a file's contents; as `detect_file`."""
    if kind is None and data.startswith(b"GGUF"):
        kind = "gguf"
    if kind in ("sentencepiece", "tiktoken", "gguf"):
        return Found(kind=kind, name=name, path=path, data=data)
    text = data.removeprefix(_BYTE_ORDER_MARK)
    if kind is not None or text.lstrip()[:1] in (b"{", b"["):
        value = _json(text, name)
        return Found(
            kind=kind or _kind_of_json(value, name), name=name, path=path, data=text, value=value
        )
    # The readers are imported where one is needed: not for the file of a cached tokenizer.
    from ffwd.tokenizer.ranks.read import is_rank_line
    from ffwd.tokenizer.sentencepiece.model import begins_like_sentencepiece

    first_line = text.split(b"\n", 1)[0]
    if is_rank_line(first_line):
        return Found(kind="tiktoken", name=name, path=path, data=text)
    if begins_like_sentencepiece(data):
        return Found(kind="sentencepiece", name=name, path=path, data=data)
    what = "is empty" if not data else f"begins with {data[:16]!r}"
    raise UnsupportedTokenizerError(
        f"{name} {what}, which is none of the formats that are supported: {'; '.join(FORMATS)}. "
        "Pass kind= to have it read as one of them all the same."
    )


def file_in(folder: Path, *, kind: Kind | None = None) -> Path:
    """Return the file of a directory that contains the tokenizer.

    Raises `TokenizerNotFoundError` without one, and `UnsupportedTokenizerError` if several files
    qualify.
    """
    wanted = {
        "huggingface": ("tokenizer.json",),
        "tekken": ("tekken.json", "tekken_*.json"),
        "gguf": ("*.gguf",),
    }
    patterns = DIRECTORY_FILES if kind is None else wanted.get(kind, DIRECTORY_FILES)
    for pattern in patterns:
        if kind in ("sentencepiece", "tiktoken") and pattern.endswith((".json", ".gguf")):
            continue
        files = sorted(file for file in folder.glob(pattern) if file.is_file())
        if pattern == "*.gguf":
            # If a model has several files, the first has the tokenizer.
            files = [f for f in files if "-of-" not in f.stem or "-00001-of-" in f.stem]
            # Half of a vision model, without a tokenizer.
            files = [f for f in files if not f.name.startswith("mmproj")] or files
        if len(files) > 1:
            listed = ", ".join(file.name for file in files[:8])
            raise UnsupportedTokenizerError(
                f"{folder} has several files that may have the tokenizer ({listed}): pass the path "
                "of one"
            )
        if files:
            return files[0]
    hint = ""
    if (folder / "vocab.json").is_file() or (folder / "vocab.txt").is_file():
        hint = (
            "; it has a vocabulary in an older form: load it with transformers and save it with "
            "save_pretrained, which writes a tokenizer.json"
        )
    raise TokenizerNotFoundError(
        f"{folder} has none of {', '.join(patterns)}{hint}. Formats that are supported: "
        f"{'; '.join(FORMATS)}"
    )


def _json(data: bytes, name: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptTokenizerError(f"{name} is not JSON that can be read: {error}") from error


def _kind_of_json(value: Any, name: str) -> Kind:
    if isinstance(value, Mapping):
        if isinstance(value.get("model"), Mapping) and "vocab" in value["model"]:
            return "huggingface"
        if isinstance(value.get("config"), Mapping) and isinstance(value.get("vocab"), list):
            return "tekken"
    raise UnsupportedTokenizerError(f"{name} is JSON, but {_description(value)}")


def _description(value: Any) -> str:
    """Return the kind of a JSON file that is no tokenizer, and what to do."""
    supported = "neither a tokenizer.json nor a tekken.json"
    if not isinstance(value, Mapping):
        return f"{supported}: it has {type(value).__name__} and no object"
    if value and all(isinstance(number, int) for number in value.values()):
        return (
            f"{supported}: it is a bare vocabulary, which lacks the merges; load the directory "
            "with transformers and save it with save_pretrained, which writes a tokenizer.json"
        )
    if {"tokenizer_class", "chat_template", "added_tokens_decoder"} & value.keys():
        return f"{supported}: it is a configuration that stands beside one; pass the directory"
    if {"architectures", "model_type"} & value.keys():
        return f"{supported}: it is a model's configuration; pass the directory"
    keys = ", ".join(map(repr, list(value)[:8]))
    return f"{supported}: it has the keys {keys or '(none)'}"
