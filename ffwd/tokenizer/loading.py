"""`load`: a tokenizer from any source, in any format."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ffwd._native import VocabularyError
from ffwd.tokenizer.audit import warn
from ffwd.tokenizer.cache import cache_directory, key_of, read_entry, write_entry
from ffwd.tokenizer.configuration import (
    Configuration,
    chat_templates_of,
    read_configuration,
    read_text,
)
from ffwd.tokenizer.definition import KINDS, Kind, TokenizerParts
from ffwd.tokenizer.description import (
    TokenizerInfo,
    contents_info,
    encoding_info,
    file_info,
    object_info,
)
from ffwd.tokenizer.detect import Found, detect_bytes, detect_file, file_in
from ffwd.tokenizer.errors import FORMATS, TokenizerNotFoundError, UnsupportedTokenizerError
from ffwd.tokenizer.foreign import inner_tokenizer
from ffwd.tokenizer.hub import fetch
from ffwd.tokenizer.huggingface.tokenizer import NAMES, huggingface_tokenizer
from ffwd.tokenizer.ranks.known import KnownRanks, known_names, known_ranks
from ffwd.tokenizer.ranks.openai import encoding_name, read_encoding
from ffwd.tokenizer.ranks.read import Ranks, parse_ranks, parse_tekken, tiktoken_ranks
from ffwd.tokenizer.ranks.tokenizer import TEKKEN_ROLES, rank_tokenizer
from ffwd.tokenizer.roles import END_NAMES, SpecialToken
from ffwd.tokenizer.sentencepiece.model import model_bytes
from ffwd.tokenizer.sentencepiece.tokenizer import sentencepiece_tokenizer
from ffwd.tokenizer.source import parse_source, read_source
from ffwd.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of `load` besides the source."""

    kind: Kind | None = None
    pattern: str | None = None
    special_tokens: Mapping[str, int] | None = None
    encodings: Mapping[str, str] | None = None
    pre: str | None = None
    hub: Mapping[str, Any] = field(default_factory=dict)


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
    _check_kind(kind)
    options = Options(
        kind=kind,
        pattern=pattern,
        special_tokens=special_tokens,
        encodings=encodings,
        pre=pre,
        hub=_hub_options(revision, token, cache_dir, local_files_only=local_files_only),
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
    options: Options,
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


def _cache_key(source: Any, options: Options, eos_token_ids: Sequence[int] | None) -> bytes | None:
    """Return the key of a file or directory in the cache; None for what is not kept there."""
    path = None if isinstance(source, (bytes, bytearray, memoryview)) else _path(source)
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
    _check_kind(kind)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return contents_info(bytes(source), kind)
    path = _path(source)
    if path is not None:
        return file_info(path, kind)
    if not isinstance(source, str):
        return object_info(source, kind)
    known = encoding_info(source, encodings) if kind in (None, "tiktoken") else None
    if known is not None:
        return known
    hub = _hub_options(revision, token, cache_dir, local_files_only=local_files_only)
    return replace(file_info(_fetched(source, kind, hub), kind), source=source)


def _parts(source: Any, options: Options) -> TokenizerParts:
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _read(detect_bytes(bytes(source), "the contents", kind=options.kind), options)
    path = _path(source)
    if path is not None:
        return _read_path(path, options)
    if isinstance(source, str):
        return _read_name(source, options)
    return _read_object(source, options)


def _read_object(source: Any, options: Options) -> TokenizerParts:
    name = type(source).__name__
    inner = inner_tokenizer(source)
    if isinstance(inner, Path):
        parts = _read_path(inner, options)
    elif hasattr(inner, "serialized_model_proto"):
        parts = sentencepiece_tokenizer(model_bytes(inner), source=name)
    elif hasattr(inner, "_mergeable_ranks"):
        given = tiktoken_ranks(inner)
        parts = rank_tokenizer(
            given, kind="tiktoken", source=inner.name, roles=_roles_by_name(given.special_tokens)
        )
    elif hasattr(inner, "backend_tokenizer") or type(inner).__module__.startswith("tokenizers"):
        return huggingface_tokenizer(read_source(inner, models=NAMES))
    else:
        raise UnsupportedTokenizerError(
            f"{name} is not a tokenizer that can be read; supported are {'; '.join(FORMATS)}"
        )
    template = getattr(source, "chat_template", None)
    return replace(parts, chat_templates=chat_templates_of(template, name)) if template else parts


def _read_name(name: str, options: Options) -> TokenizerParts:
    if options.kind in (None, "tiktoken"):
        encoding = encoding_name(name, options.encodings)
        if encoding is not None:
            return _read_object(read_encoding(encoding), options)
    folder = _fetched(name, options.kind, options.hub)
    return replace(_read_path(folder, options), source=name)


def _fetched(name: str, kind: Kind | None, hub: Mapping[str, Any]) -> Path:
    """Return the folder of a model on a hub."""
    if _is_a_path(name):
        raise TokenizerNotFoundError(f"{name}: no such file or directory")
    if kind == "tiktoken":
        raise TokenizerNotFoundError(
            f"{name} is neither a file nor an encoding of tiktoken nor a model of OpenAI that "
            "tiktoken knows: pass its encoding's name, or name it in encodings="
        )
    return fetch(name, options=hub)


def _hub_options(
    revision: str | None,
    token: str | bool | None,
    cache_dir: str | os.PathLike[str] | None,
    *,
    local_files_only: bool,
) -> dict[str, Any]:
    given = {
        "revision": revision,
        "token": token,
        "cache_dir": cache_dir,
        "local_files_only": local_files_only or None,
    }
    return {name: value for name, value in given.items() if value is not None}


def _check_kind(kind: Kind | None) -> None:
    if kind is not None and kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, not {kind!r}")


def _path(source: Any) -> Path | None:
    """Return the path that a source is; a text is one if such a file or directory exists."""
    if isinstance(source, os.PathLike):
        return Path(source)
    if not isinstance(source, str) or "\0" in source:
        return None
    expanded = os.path.expanduser(source)
    return Path(expanded) if os.path.exists(expanded) else None


def _is_a_path(name: str) -> bool:
    """Return whether a name can only be a path, and no model's on a hub."""
    return (
        name.startswith((".", "/", "~", os.sep))
        or name.count("/") > 1
        or "\\" in name
        or name.endswith((".json", ".model", ".tiktoken", ".gguf"))
    )


def _read_path(path: Path, options: Options) -> TokenizerParts:
    if not path.is_dir():
        return _read(detect_file(path, kind=options.kind), options)
    file = file_in(path, kind=options.kind)
    if file.name == "tokenizer.json":
        return huggingface_tokenizer(read_source(path, models=NAMES))
    configuration = read_configuration(path)
    return _configured(_read(detect_file(file, kind=options.kind), options), configuration)


def _read(found: Found, options: Options) -> TokenizerParts:
    if found.kind == "gguf":
        from ffwd.tokenizer.gguf.read import read_gguf  # It needs NumPy, other formats do not.

        return read_gguf(found.data if found.path is None else found.path, pre=options.pre)
    if found.kind == "huggingface":
        return huggingface_tokenizer(parse_source(found.data, found.name, models=NAMES))
    if found.kind == "tekken":
        given = parse_tekken(found.value, found.name)
        return rank_tokenizer(given, kind="tekken", source=found.name, roles=TEKKEN_ROLES)
    if found.kind == "sentencepiece":
        return sentencepiece_tokenizer(found.data, source=found.name)
    return _read_ranks(found, options)


def _read_ranks(found: Found, options: Options) -> TokenizerParts:
    ranks = parse_ranks(found.data, found.name)
    known = known_ranks(hashlib.sha256(found.data).hexdigest())
    if known is None:
        if options.pattern is None:
            raise UnsupportedTokenizerError(
                f"{found.name} has {len(ranks)} ranks, and a file of ranks has neither the pattern "
                "that cuts a text nor the special tokens. Pass pattern= and special_tokens=. (Both "
                f"are known for the files of {', '.join(known_names())}, and this is none of them.)"
            )
        known = KnownRanks(name=found.name, pattern=options.pattern, special_tokens={})
    special = known.special_tokens if options.special_tokens is None else options.special_tokens
    parts = rank_tokenizer(
        Ranks(
            ranks=ranks,
            pattern=known.pattern if options.pattern is None else options.pattern,
            special_tokens=special,
            compose=known.compose,
        ),
        kind="tiktoken",
        source=found.name,
        roles=known.roles or _roles_by_name(special),
    )
    return replace(parts, width=known.width)


def _roles_by_name(special: Mapping[str, int]) -> dict[str, str]:
    """Return the end token if exactly one has a well-known name and no file names another."""
    ends = [name for name in special if name in END_NAMES]
    return {"eos": ends[0]} if len(ends) == 1 else {}


def _configured(parts: TokenizerParts, configuration: Configuration) -> TokenizerParts:
    """Return a definition with the settings of the files beside a tokenizer."""
    by_name = {name: i for i, name in reversed(list(enumerate(parts.names))) if name is not None}
    roles: dict[str, Any] = {
        role: SpecialToken(by_name[content], content)
        for role, content in configuration.roles.items()
        if content in by_name
    }
    special = replace(parts.special_tokens, **roles)
    ends = {*parts.eos_token_ids, *configuration.eos_token_ids}
    ends |= {by_name[content] for content in configuration.ends if content in by_name}
    prefix = parts.prefix_ids
    if configuration.add_bos is not None:
        prefix = [special.bos.id] if configuration.add_bos and special.bos else []
    suffix = parts.suffix_ids
    if configuration.add_eos is not None:
        suffix = [special.eos.id] if configuration.add_eos and special.eos else []
    return replace(
        parts,
        special_tokens=special,
        eos_token_ids=sorted(ends),
        prefix_ids=prefix,
        suffix_ids=suffix,
        chat_templates=configuration.chat_templates or parts.chat_templates,
        width=configuration.width or parts.width,
    )


def _templates(given: str | os.PathLike[str] | Mapping[str, str]) -> dict[str, str]:
    """Return the templates of `chat_template`: a text is a path if it is the name of a file."""
    if isinstance(given, os.PathLike):
        return {"default": read_text(given)}
    if isinstance(given, str) and "{" not in given:
        if not os.path.isfile(given):
            raise TokenizerNotFoundError(
                f"{given}: no such file, and no template either, for nothing in it is in braces"
            )
        return {"default": read_text(given)}
    return chat_templates_of(given, "load")
