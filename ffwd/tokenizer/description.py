"""`info`: the kind and size of a tokenizer, without loading it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ffwd.tokenizer.configuration import is_integer
from ffwd.tokenizer.definition import Kind, check_kind
from ffwd.tokenizer.detect import Found, detect_bytes, detect_file, file_in, path_of
from ffwd.tokenizer.errors import CorruptTokenizerError, TokenizerNotFoundError
from ffwd.tokenizer.foreign import inner_tokenizer
from ffwd.tokenizer.hub import hub_options
from ffwd.tokenizer.ranks.openai import encoding_name
from ffwd.tokenizer.sentencepiece.model import count_pieces


@dataclass(frozen=True, kw_only=True)
class TokenizerInfo:
    """The information that a source has about its tokenizer."""

    kind: Kind
    model: str
    """By which algorithm it encodes, as the source calls it: "BPE", "Unigram", "WordPiece"."""
    vocab_size: int | None
    """The number of its ids; None for what would have to be downloaded first, and without the
    special tokens for a file of ranks, which has none."""
    source: str
    """Where it is, for people."""
    path: Path | None = None
    """Its file."""
    size_bytes: int | None = None
    """The size of its file."""


def info(
    source: Any,
    *,
    kind: Kind | None = None,
    encodings: Mapping[str, str] | None = None,
    revision: str | None = None,
    token: str | bool | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    local_files_only: bool = False,
) -> TokenizerInfo:
    """Return the kind and the number of ids of a tokenizer, without loading it.

    The parameters and errors are those of `load`. Nothing is built: only the header of a GGUF is
    read, or the file in another format, and an encoding of tiktoken is not downloaded. (The small
    files of a model on a hub are.)
    """
    check_kind(kind)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return contents_info(bytes(source), kind)
    path = path_of(source)
    if path is not None:
        return file_info(path, kind)
    if not isinstance(source, str):
        return object_info(source, kind)
    known = encoding_info(source, encodings) if kind in (None, "tiktoken") else None
    if known is not None:
        return known
    from ffwd.tokenizer.reading import fetched  # The readers, of which nothing else is needed.

    hub = hub_options(revision, token, cache_dir, local_files_only=local_files_only)
    return replace(file_info(fetched(source, kind, hub), kind), source=source)


def file_info(path: Path, kind: Kind | None) -> TokenizerInfo:
    """Return the information about a file or a directory."""
    file = file_in(path, kind=kind) if path.is_dir() else path
    found = detect_file(file, kind=kind)
    return replace(_of(found), source=str(path), path=file, size_bytes=os.stat(file).st_size)


def contents_info(data: bytes, kind: Kind | None) -> TokenizerInfo:
    """Return the information about a file's contents."""
    return replace(_of(detect_bytes(data, "the contents", kind=kind)), size_bytes=len(data))


def encoding_info(name: str, encodings: Mapping[str, str] | None) -> TokenizerInfo | None:
    """Return that about an encoding of tiktoken, without a download; None for another name."""
    encoding = encoding_name(name, encodings)
    if encoding is None:
        return None
    return TokenizerInfo(kind="tiktoken", model="BPE", vocab_size=None, source=encoding)


def object_info(source: Any, kind: Kind | None) -> TokenizerInfo:
    """Return the information about a tokenizer object."""
    inner = inner_tokenizer(source)
    name = type(source).__name__
    if isinstance(inner, Path):
        return replace(file_info(inner, kind), source=name)
    if hasattr(inner, "serialized_model_proto"):
        return replace(contents_info(inner.serialized_model_proto(), None), source=name)
    if hasattr(inner, "_mergeable_ranks"):
        return TokenizerInfo(
            kind="tiktoken", model="BPE", vocab_size=inner.n_vocab, source=inner.name
        )
    backend = getattr(inner, "backend_tokenizer", inner)
    return TokenizerInfo(
        kind="huggingface",
        model=type(backend.model).__name__,
        vocab_size=1 + max(backend.get_vocab(with_added_tokens=True).values(), default=-1),
        source=name,
    )


def _of(found: Found) -> TokenizerInfo:
    model, size = _SIZES[found.kind](found)
    return TokenizerInfo(kind=found.kind, model=model, vocab_size=size, source=found.name)


def _huggingface(found: Found) -> tuple[str, int]:
    try:
        model, added = found.value["model"], found.value.get("added_tokens") or []
        vocabulary = model["vocab"]
        # Unigram's is a list.
        ids = vocabulary.values() if isinstance(vocabulary, Mapping) else [len(vocabulary) - 1]
        largest = max([*ids, *(token["id"] for token in added)], default=-1)
        name = model.get("type") or ("BPE" if "merges" in model else "WordPiece")
        return str(name), int(largest) + 1
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CorruptTokenizerError(f"{found.name} is not a tokenizer.json: {error!r}") from error


def _tekken(found: Found) -> tuple[str, int]:
    try:
        size = found.value["config"]["default_vocab_size"]
    except (KeyError, TypeError) as error:
        raise CorruptTokenizerError(f"{found.name} is not a tekken.json: {error!r}") from error
    if not is_integer(size):
        raise CorruptTokenizerError(f"{found.name}: default_vocab_size is {size!r}")
    return "BPE", size


def _tiktoken(found: Found) -> tuple[str, int]:
    return "BPE", sum(1 for line in found.data.splitlines() if line)


def _sentencepiece(found: Found) -> tuple[str, int]:
    return count_pieces(found.data, found.name)


def _gguf(found: Found) -> tuple[str, int]:
    from ffwd.tokenizer.gguf.header import read_header  # It needs NumPy, other formats do not.

    prefix = "tokenizer.ggml."
    header = read_header(
        found.data if found.path is None else found.path,
        lambda key: key in (prefix + "model", prefix + "tokens"),
    )
    tokens = header.values.get(prefix + "tokens")
    if tokens is None or not hasattr(tokens, "__len__"):
        raise TokenizerNotFoundError(f"{found.name} has no tokenizer (tokenizer.ggml.tokens)")
    return str(header.values.get(prefix + "model")), len(tokens)


_SIZES = {
    "huggingface": _huggingface,
    "tekken": _tekken,
    "tiktoken": _tiktoken,
    "sentencepiece": _sentencepiece,
    "gguf": _gguf,
}
