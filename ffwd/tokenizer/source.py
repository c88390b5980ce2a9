"""Reading a Hugging Face fast tokenizer from wherever it is, with what stands beside it."""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ffwd._native import VocabularyError
from ffwd.tokenizer.kinds import AddedToken

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_SUPPORTED = "supported is BPE (byte-level, or with ▁ for spaces and byte fallback)"

_END_NAMES = frozenset(
    {
        "</s>",
        "<eos>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<end_of_turn>",
        "<|END_OF_TURN_TOKEN|>",
        "<\uff5cend▁of▁sentence\uff5c>",
    }
)
"""Names under which published models end their output, where nothing else says so."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A tokenizer and what its surroundings say about it."""

    tokenizer: "Tokenizer"
    added: dict[int, AddedToken]
    """Every added token by id."""
    eos_token_ids: tuple[int, ...]
    """From the configuration; empty where it names none."""
    width: int | None
    """The logits' width that the model's configuration states."""
    text: bytes | None = None
    """The tokenizer.json, where there is one."""

    def model_json(self) -> bytes:
        """The model's vocabulary and merges: a tokenizer.json, or its part that has them."""
        # Writing it anew takes longer than anything else that is done with it.
        state: bytes = self.tokenizer.model.__getstate__() if self.text is None else self.text
        return state

    def end_ids_by_name(self) -> tuple[int, ...]:
        """The added tokens with a name that is well known for ending the output."""
        return tuple(i for i, added in self.added.items() if added.content in _END_NAMES)


def read_source(source: Any) -> Source:
    """Reads a transformers fast tokenizer, a `tokenizers.Tokenizer`, a directory or a file.

    Raises `VocabularyError` for anything else, for a file that cannot be read and for a model
    that is not BPE.
    """
    if isinstance(source, (str, os.PathLike)):
        read = _read_path(Path(source))
    elif hasattr(source, "backend_tokenizer"):
        read = _read_transformers(source)
    else:
        from tokenizers import Tokenizer

        if not isinstance(source, Tokenizer):
            raise VocabularyError(
                f"{type(source).__name__} is not a tokenizer that can be read: pass a fast "
                "tokenizer of transformers, a tokenizers.Tokenizer, a directory or the path of a "
                "tokenizer.json"
            )
        read = _read_tokenizer(source)
    _check_model(read.tokenizer)
    return read


def component_state(component: Any, name: str) -> dict[str, Any] | None:
    """A part of a tokenizer (its decoder, normalizer…) as tokenizer.json writes it."""
    if component is None:
        return None
    try:
        state = json.loads(component.__getstate__())
    except Exception as error:
        # tokenizers raises bare Exception, here for a part that was written in Python.
        raise VocabularyError(f"the tokenizer's {name} cannot be inspected: {error}") from error
    if not isinstance(state, dict):
        raise VocabularyError(f"the tokenizer's {name} cannot be inspected: {state!r}")
    return state


def summary(state: dict[str, Any], most: int = 120) -> str:
    """The state of a component, for a message."""
    text = json.dumps(state, ensure_ascii=False)
    return text if len(text) <= most else text[:most] + "…"


def token_ids(value: Any, what: str) -> tuple[int, ...]:
    """One id, a list of ids or None, as a tuple."""
    ids = value if isinstance(value, (list, tuple)) else [] if value is None else [value]
    if any(isinstance(i, bool) or not isinstance(i, int) for i in ids):
        raise VocabularyError(f"{what} is neither a token id nor a list of them: {value!r}")
    return tuple(ids)


def _check_model(tokenizer: "Tokenizer") -> None:
    model = tokenizer.model
    kind = type(model).__name__
    if kind != "BPE":
        raise VocabularyError(f"the tokenizer's model is {kind}: {_SUPPORTED}")
    affixes = model.continuing_subword_prefix, model.end_of_word_suffix
    if any(affixes):
        raise VocabularyError(
            f"the tokenizer marks parts of words with {'…'.join(a or '' for a in affixes)!r}: "
            f"{_SUPPORTED}"
        )
    if model.dropout:
        raise VocabularyError(
            f"the tokenizer drops merges at random (dropout {model.dropout}): its encoding of a "
            "text is not unique; set tokenizer.model.dropout to None"
        )


def _read_tokenizer(tokenizer: "Tokenizer", special_ids: Iterable[int] = ()) -> Source:
    special = frozenset(special_ids)
    added = {
        token_id: AddedToken(
            content=token.content,
            special=token.special or token_id in special,
            lstrip=token.lstrip,
            rstrip=token.rstrip,
            normalized=token.normalized,
            single_word=token.single_word,
        )
        for token_id, token in tokenizer.get_added_tokens_decoder().items()
    }
    for token_id in special - added.keys():
        # Named as special by transformers, yet only in the model's own vocabulary.
        name = tokenizer.id_to_token(token_id)
        if name is not None:
            added[token_id] = AddedToken(content=name, special=True)
    return Source(tokenizer=tokenizer, added=added, eos_token_ids=(), width=None)


def _read_transformers(source: Any) -> Source:
    from tokenizers import Tokenizer

    backend = source.backend_tokenizer
    if not isinstance(backend, Tokenizer):
        raise VocabularyError(
            f"{type(source).__name__} is not backed by the tokenizers library: load it with "
            "use_fast=True"
        )
    read = _read_tokenizer(backend, source.all_special_ids)
    ends = token_ids(source.eos_token_id, "eos_token_id of the tokenizer")
    return Source(tokenizer=backend, added=read.added, eos_token_ids=ends, width=None)


def _read_path(path: Path) -> Source:
    if path.is_dir():
        return _read_directory(path)
    if not path.is_file():
        raise VocabularyError(
            f"{path}: no such file or directory; only local files are read, so for a model on a "
            "hub pass the tokenizer object that transformers loads"
        )
    tokenizer, text = _load(path)
    return replace(_read_tokenizer(tokenizer), text=text)


def _load(path: Path) -> tuple["Tokenizer", bytes]:
    """A tokenizer, and the file that it was read from."""
    from tokenizers import Tokenizer

    try:
        text = path.read_bytes()
        return Tokenizer.from_buffer(text), text
    except Exception as error:
        # tokenizers raises bare Exception for everything that can be wrong with a file.
        raise VocabularyError(
            f"{path} is not a tokenizer.json that can be read: {error}"
        ) from error


def _read_directory(path: Path) -> Source:
    file = path / "tokenizer.json"
    if not file.is_file():
        raise VocabularyError(
            f"{path} has no tokenizer.json; other formats of a tokenizer are not supported yet"
        )
    tokenizer, text = _load(file)
    config_file = path / "tokenizer_config.json"
    added = _read_tokenizer(tokenizer).added | _config_tokens(config_file)

    ends: list[int] = []
    for origin in (config_file, path / "special_tokens_map.json"):
        name = _token_name(_read_json(origin).get("eos_token"))
        if name is None:
            continue
        found = [i for i, token in added.items() if token.content == name]
        token_id = found[0] if found else tokenizer.token_to_id(name)
        if token_id is None:
            raise VocabularyError(f"{origin}: the tokenizer has no token {name!r} (eos_token)")
        ends.append(token_id)

    model = _read_json(path / "config.json")
    text_model = model.get("text_config")
    models = [model, text_model] if isinstance(text_model, dict) else [model]
    generation_file = path / "generation_config.json"
    if generation_file.is_file():
        # As in transformers, config.json speaks of generation only where this file is missing.
        stated = _read_json(generation_file).get("eos_token_id")
        ends += token_ids(stated, f"{generation_file}: eos_token_id")
    else:
        for part in models:
            ends += token_ids(part.get("eos_token_id"), f"{path / 'config.json'}: eos_token_id")

    widths = [part["vocab_size"] for part in models if isinstance(part.get("vocab_size"), int)]
    return Source(
        tokenizer=tokenizer,
        added=added,
        eos_token_ids=tuple(ends),
        width=widths[0] if widths else None,
        text=text,
    )


def _config_tokens(file: Path) -> dict[int, AddedToken]:
    """The tokens that tokenizer_config.json adds to those of tokenizer.json, or flags anew."""
    added: dict[int, AddedToken] = {}
    stated = _read_json(file).get("added_tokens_decoder") or {}
    if not isinstance(stated, dict):
        raise VocabularyError(f"{file}: added_tokens_decoder is not an object")
    for key, token in stated.items():
        name = _token_name(token)
        if not (key.isascii() and key.isdigit() and isinstance(token, dict) and name):
            raise VocabularyError(f"{file}: added_tokens_decoder has a malformed entry {key!r}")
        added[int(key)] = AddedToken(
            content=name,
            special=bool(token.get("special")),
            lstrip=bool(token.get("lstrip")),
            rstrip=bool(token.get("rstrip")),
            normalized=bool(token.get("normalized")),
            single_word=bool(token.get("single_word")),
        )
    return added


def _token_name(token: Any) -> str | None:
    """A token as configuration files write it: a string, or an object with its content."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) and token else None


def _read_json(file: Path) -> dict[str, Any]:
    """The object in a file, {} where there is no such file."""
    if not file.is_file():
        return {}
    try:
        value = json.loads(file.read_bytes())
    except (ValueError, RecursionError, OSError) as error:
        raise VocabularyError(f"{file} is not JSON that can be read: {error}") from error
    if not isinstance(value, dict):
        raise VocabularyError(f"{file} is not a JSON object")
    return value
