"""`load`: a tokenizer from any source, in any format, or from the cache of compiled ones."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ffwd._native import VocabularyError
from ffwd.tokenizer.audit import warn
from ffwd.tokenizer.cache import cache_directory, key_of, read_entry, write_entry
from ffwd.tokenizer.definition import Kind, ReadOptions, TokenizerParts, check_kind
from ffwd.tokenizer.detect import file_in, path_of
from ffwd.tokenizer.hub import hub_options
from ffwd.tokenizer.tokenizer import Tokenizer


def load(
    source: Any,
    *,
    kind: Kind | None = None,
    chat_template: str | os.PathLike[str] | Mapping[str, str] | None = None,
    eos_token_ids: Sequence[int] | None = None,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
    encodings: Mapping[str, str] | None = None,
    pre: str | None = None,
    revision: str | None = None,
    token: str | bool | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    local_files_only: bool = False,
    cache: str | os.PathLike[str] | None = None,
) -> Tokenizer:
    """Load a tokenizer.

    `source` is one of these; an existing path takes precedence over a name:

    - a path of a file or a directory, or the contents of a file
    - a tokenizer object of transformers, tokenizers, tiktoken, SentencePiece or mistral-common
    - the name of an encoding of tiktoken, of a model of OpenAI, or of a model on a hub

    The format is detected from the contents; `kind` sets it: "huggingface",
    "tiktoken", "sentencepiece", "tekken" or "gguf".

    `chat_template`: instead of the source's own: the path of a `.jinja` file, a template, or
    templates by name. `eos_token_ids`: the tokens that end an output, instead of the source's.

    For files of ranks: `pattern`, which splits a text into pieces, and `special_tokens`, by name.
    Both are built in for the files of Llama 3 and 4, Qwen and OpenAI. `encodings`: further names of
    OpenAI's models, or prefixes of them with a `*`, and their encodings. For a GGUF: `pre`, the
    name of its pre-tokenizer, if the file's is missing or wrong.

    For models on a hub: `revision`, `token` (by default HF_TOKEN), `cache_dir` and
    `local_files_only` as in huggingface_hub, whose environment variables apply.

    `cache`: a directory for compiled tokenizers, by default that of the environment variable
    FFWD_CACHE_DIR, and none without it. A byte-level BPE tokenizer of a file or directory is
    written there, and loaded from there while its files and the options stay the same.

    Each of `Tokenizer.findings` is logged as a warning.

    Raises `TokenizerNotFoundError`, `UnsupportedTokenizerError` or `CorruptTokenizerError`; all are
    `VocabularyError`s.
    """
    check_kind(kind)
    options = ReadOptions(
        kind=kind,
        pattern=pattern,
        special_tokens=special_tokens,
        encodings=encodings,
        pre=pre,
        hub=hub_options(revision, token, cache_dir, local_files_only=local_files_only),
    )
    return _load(
        source,
        options,
        chat_template=chat_template,
        eos_token_ids=eos_token_ids,
        cache=cache_directory(cache),
    )


def _load(
    source: Any,
    options: ReadOptions,
    *,
    chat_template: str | os.PathLike[str] | Mapping[str, str] | None,
    eos_token_ids: Sequence[int] | None,
    cache: Path | None,
) -> Tokenizer:
    # `ffwd.metrics` replaces this function by one that measures.
    key = None if cache is None else _cache_key(source, options, eos_token_ids)
    known = None if cache is None or key is None else read_entry(cache, key, str(source))
    read, findings = known or (_parts(source, options), None)
    parts = read
    if chat_template is not None:
        parts = replace(parts, chat_templates=_templates(chat_template))
    if eos_token_ids is not None:
        parts = replace(parts, eos_token_ids=tuple(eos_token_ids))
    tokenizer = Tokenizer(parts, findings=findings)
    warn(tokenizer.findings, tokenizer.source)
    if cache is not None and key is not None and known is None:
        write_entry(cache, key, read, tokenizer.findings)
    return tokenizer


def _parts(source: Any, options: ReadOptions) -> TokenizerParts:
    from ffwd.tokenizer.reading import read_parts  # The readers; a cached tokenizer needs none.

    return read_parts(source, options)


def _templates(given: str | os.PathLike[str] | Mapping[str, str]) -> dict[str, str]:
    from ffwd.tokenizer.reading import read_templates

    return read_templates(given)


def _cache_key(
    source: Any, options: ReadOptions, eos_token_ids: Sequence[int] | None
) -> bytes | None:
    """Return the key of a file or directory in the cache; None for what is not kept there."""
    path = None if isinstance(source, (bytes, bytearray, memoryview)) else path_of(source)
    if path is None or options.kind in ("gguf", "sentencepiece"):
        return None
    try:
        file = file_in(path, kind=options.kind) if path.is_dir() else path
    except VocabularyError:
        return None
    if file.suffix == ".gguf":
        return None
    read_with = {
        "folder": path.is_dir(),
        "kind": options.kind,
        "pattern": options.pattern,
        "special_tokens": options.special_tokens and dict(options.special_tokens),
        "eos_token_ids": None if eos_token_ids is None else list(eos_token_ids),
    }
    return key_of(file, read_with)


async def load_async(source: Any, **options: Any) -> Tokenizer:
    """Run `load` on a thread, so that the event loop stays responsive."""
    import asyncio  # Its caller has loaded it, and `load` does not need it.

    return await asyncio.to_thread(load, source, **options)
