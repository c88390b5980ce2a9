"""The configuration, special tokens and templates in the files beside a tokenizer."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ffwd.tokenizer.errors import CorruptTokenizerError
from ffwd.tokenizer.kinds import AddedToken
from ffwd.tokenizer.roles import ROLES

_MAX_TEMPLATE_BYTES = 16 << 20


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """The settings of a tokenizer outside its own file; empty without such files."""

    added: Mapping[int, AddedToken] = field(default_factory=dict)
    """The tokens that tokenizer_config.json adds, or flags anew, by id."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """The content of the token with each of `ROLES` that is named."""
    ends: Mapping[str, str] = field(default_factory=dict)
    """Every content that is named as the end token, and the file that does."""
    eos_token_ids: tuple[int, ...] = ()
    """What generation_config.json states, or config.json where that file is missing."""
    width: int | None = None
    """The `vocab_size` of config.json."""
    add_bos: bool | None = None
    add_eos: bool | None = None
    chat_templates: Mapping[str, str] = field(default_factory=dict)


def read_configuration(folder: Path) -> Configuration:
    """Read the files of a directory; missing ones are empty.

    Raises `CorruptTokenizerError` for a malformed file.
    """
    config_file = folder / "tokenizer_config.json"
    config = read_json(config_file)
    roles: dict[str, str] = {}
    named_ends: dict[str, str] = {}
    # The tokenizer's own configuration wins over the older file.
    for origin in (folder / "special_tokens_map.json", config_file):
        stated = read_json(origin)
        for role in ROLES:
            name = token_name(stated.get(f"{role}_token"))
            if name is not None:
                roles[role] = name
                if role == "eos":
                    named_ends[name] = str(origin)

    model = read_json(folder / "config.json")
    text_model = model.get("text_config")
    models = [model, text_model] if isinstance(text_model, dict) else [model]
    ends: list[int] = []
    generation_file = folder / "generation_config.json"
    if generation_file.is_file():
        # As in transformers, config.json speaks of generation only where this file is missing.
        stated_ends = read_json(generation_file).get("eos_token_id")
        ends += token_ids(stated_ends, f"{generation_file}: eos_token_id")
    else:
        for part in models:
            ends += token_ids(part.get("eos_token_id"), f"{folder / 'config.json'}: eos_token_id")
    widths = [part["vocab_size"] for part in models if is_integer(part.get("vocab_size"))]
    return Configuration(
        added=_added_tokens(config_file, config),
        roles=roles,
        ends=named_ends,
        eos_token_ids=tuple(ends),
        width=widths[0] if widths else None,
        add_bos=_flag(config, "add_bos_token"),
        add_eos=_flag(config, "add_eos_token"),
        chat_templates=_chat_templates(folder, config_file, config),
    )


def chat_templates_of(stated: Any, where: str) -> dict[str, str]:
    """Return templates by name from the value of a `chat_template`: a text, a list or an object."""
    if stated is None:
        return {}
    if isinstance(stated, str):
        return {"default": stated}
    if isinstance(stated, list) and all(isinstance(entry, dict) for entry in stated):
        stated = {entry.get("name"): entry.get("template") for entry in stated}
    if isinstance(stated, Mapping) and all(
        isinstance(name, str) and isinstance(text, str) for name, text in stated.items()
    ):
        return dict(stated)
    raise CorruptTokenizerError(
        f"{where}: chat_template is neither a text nor texts with their names"
    )


def _chat_templates(folder: Path, config_file: Path, config: Mapping[str, Any]) -> dict[str, str]:
    # Files of their own win over entries of a configuration, as in transformers.
    files = {"default": folder / "chat_template.jinja"}
    additional = folder / "additional_chat_templates"
    if additional.is_dir():
        files |= {file.stem: file for file in sorted(additional.glob("*.jinja"))}
    found = {name: read_text(file) for name, file in files.items() if file.is_file()}
    if found:
        return found
    stated = config.get("chat_template")
    if stated is not None:
        return chat_templates_of(stated, str(config_file))
    older = folder / "chat_template.json"
    return chat_templates_of(read_json(older).get("chat_template"), str(older))


def _added_tokens(file: Path, config: Mapping[str, Any]) -> dict[int, AddedToken]:
    added: dict[int, AddedToken] = {}
    stated = config.get("added_tokens_decoder") or {}
    if not isinstance(stated, dict):
        raise CorruptTokenizerError(f"{file}: added_tokens_decoder is not an object")
    for key, token in stated.items():
        name = token_name(token)
        if not (key.isascii() and key.isdigit() and isinstance(token, dict) and name):
            raise CorruptTokenizerError(
                f"{file}: added_tokens_decoder has a malformed entry {key!r}"
            )
        added[int(key)] = AddedToken(
            content=name,
            special=bool(token.get("special")),
            lstrip=bool(token.get("lstrip")),
            rstrip=bool(token.get("rstrip")),
            normalized=bool(token.get("normalized")),
            single_word=bool(token.get("single_word")),
        )
    return added


def _flag(config: Mapping[str, Any], name: str) -> bool | None:
    value = config.get(name)
    return value if isinstance(value, bool) else None


def is_integer(value: Any) -> bool:
    """Return whether this is a number, and not true or false."""
    return isinstance(value, int) and not isinstance(value, bool)


def token_ids(value: Any, what: str) -> tuple[int, ...]:
    """Return one id, a list of ids or None as a tuple."""
    ids = value if isinstance(value, (list, tuple)) else [] if value is None else [value]
    if not all(map(is_integer, ids)):
        raise CorruptTokenizerError(f"{what} is neither a token id nor a list of them: {value!r}")
    return tuple(ids)


def token_name(token: Any) -> str | None:
    """Return the name of a token in a configuration file: a string, or an object's content."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) and token else None


def read_json(file: Path) -> dict[str, Any]:
    """Return the object in a file, {} without such a file."""
    if not file.is_file():
        return {}
    try:
        value = json.loads(file.read_bytes())
    except (ValueError, RecursionError, OSError) as error:
        raise CorruptTokenizerError(f"{file} is not JSON that can be read: {error}") from error
    if not isinstance(value, dict):
        raise CorruptTokenizerError(f"{file} is not a JSON object")
    return value


def read_text(file: str | os.PathLike[str]) -> str:
    """Return a template's text, of no more than 16 MiB."""
    try:
        with Path(file).open("rb") as opened:
            data = opened.read(_MAX_TEMPLATE_BYTES + 1)
        if len(data) > _MAX_TEMPLATE_BYTES:
            raise CorruptTokenizerError(f"{file} has more than {_MAX_TEMPLATE_BYTES} bytes")
        # As text files are read everywhere else: one kind of line end.
        return data.decode().replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CorruptTokenizerError(f"{file} cannot be read: {error}") from error
