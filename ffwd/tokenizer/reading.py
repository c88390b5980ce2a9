"""A tokenizer's parts from any source, in any format."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ffwd.tokenizer.configuration import (
    Configuration,
    chat_templates_of,
    read_configuration,
    read_text,
)
from ffwd.tokenizer.definition import Kind, ReadOptions, TokenizerParts
from ffwd.tokenizer.detect import Found, detect_bytes, detect_file, file_in, path_of
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


def read_parts(source: Any, options: ReadOptions) -> TokenizerParts:
    """Return the parts of `ffwd.tokenizer.load`'s source."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _read(detect_bytes(bytes(source), "the contents", kind=options.kind), options)
    path = path_of(source)
    if path is not None:
        return _read_path(path, options)
    if isinstance(source, str):
        return _read_name(source, options)
    return _read_object(source, options)


def _read_object(source: Any, options: ReadOptions) -> TokenizerParts:
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


def _read_name(name: str, options: ReadOptions) -> TokenizerParts:
    if options.kind in (None, "tiktoken"):
        encoding = encoding_name(name, options.encodings)
        if encoding is not None:
            return _read_object(read_encoding(encoding), options)
    folder = fetched(name, options.kind, options.hub)
    return replace(_read_path(folder, options), source=name)


def fetched(name: str, kind: Kind | None, hub: Mapping[str, Any]) -> Path:
    """Return the folder of a model on a hub; `hub`: the options of `fetch`."""
    if _is_a_path(name):
        raise TokenizerNotFoundError(f"{name}: no such file or directory")
    if kind == "tiktoken":
        raise TokenizerNotFoundError(
            f"{name} is neither a file nor an encoding of tiktoken nor a model of OpenAI that "
            "tiktoken knows: pass its encoding's name, or name it in encodings="
        )
    return fetch(name, options=hub)


def _is_a_path(name: str) -> bool:
    """Return whether a name can only be a path, and no model's on a hub."""
    return (
        name.startswith((".", "/", "~", os.sep))
        or name.count("/") > 1
        or "\\" in name
        or name.endswith((".json", ".model", ".tiktoken", ".gguf"))
    )


def _read_path(path: Path, options: ReadOptions) -> TokenizerParts:
    if not path.is_dir():
        return _read(detect_file(path, kind=options.kind), options)
    file = file_in(path, kind=options.kind)
    if file.name == "tokenizer.json":
        return huggingface_tokenizer(read_source(path, models=NAMES))
    configuration = read_configuration(path)
    return _configured(_read(detect_file(file, kind=options.kind), options), configuration)


def _read(found: Found, options: ReadOptions) -> TokenizerParts:
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


def _read_ranks(found: Found, options: ReadOptions) -> TokenizerParts:
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
    wanted = {*configuration.roles.values(), *configuration.ends}
    known: dict[str, int] = {}
    if wanted:
        for i, name in enumerate(parts.names):
            if name in wanted:
                known.setdefault(name, i)
    roles: dict[str, Any] = {
        role: SpecialToken(known[content], content)
        for role, content in configuration.roles.items()
        if content in known
    }
    special = replace(parts.special_tokens, **roles)
    ends = {*parts.eos_token_ids, *configuration.eos_token_ids}
    ends |= {known[content] for content in configuration.ends if content in known}
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


def read_templates(given: str | os.PathLike[str] | Mapping[str, str]) -> dict[str, str]:
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
