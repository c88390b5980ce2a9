"""Reading of a Hugging Face fast tokenizer, with the files beside it."""

import json
import os
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ffwd._native import BpeModel, VocabularyError
from ffwd.tokenizer.configuration import chat_templates_of, read_configuration, token_ids
from ffwd.tokenizer.errors import (
    CorruptTokenizerError,
    TokenizerNotFoundError,
    UnsupportedTokenizerError,
    as_error,
)
from ffwd.tokenizer.kinds import AddedToken
from ffwd.tokenizer.model_pieces import FilePieces, ListedPieces, read_model_file
from ffwd.tokenizer.pieces import PieceWriting
from ffwd.tokenizer.roles import END_NAMES, ROLES

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_SUPPORTED = "supported is BPE (byte-level, or with ▁ for spaces and byte fallback)"


@dataclass(frozen=True, kw_only=True)
class Source:
    """A tokenizer and its settings."""

    parts: "Tokenizer"
    """The tokenizer, or one with its normalizer, pre-tokenizer, decoder and post-processor, and the
    flags of its model, without any token."""
    added: dict[int, AddedToken]
    """Every added token by id."""
    eos_token_ids: tuple[int, ...]
    """From the configuration; empty where it names none."""
    width: int | None
    """The logits' width that the model's configuration states."""
    text: bytes | None = None
    """The tokenizer.json, where there is one."""
    file: FilePieces | None = None
    """Its pieces and merges, if `parts` has none."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """The contents of the tokens with a role, where that is stated."""
    chat_templates: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    """For messages."""

    @cached_property
    def tokenizer(self) -> "Tokenizer":
        """The library's tokenizer; read here if nothing before has needed it."""
        if self.file is None:
            return self.parts
        assert self.text is not None
        return parse_tokenizer(self.text, self.name)

    @cached_property
    def pieces(self) -> FilePieces | ListedPieces:
        """The model's own vocabulary."""
        if self.file is not None:
            return self.file
        return ListedPieces(self.parts.get_vocab(with_added_tokens=False))

    def compile_model(
        self, writing: PieceWriting, *, exclude: list[int], missing_from: int | None
    ) -> BpeModel:
        """Compile pieces and merges; the parameters are those of `BpeModel.from_json`."""
        if self.file is not None:
            return self.file.compile(writing, exclude=exclude, missing_from=missing_from)
        # Serializing a file again takes longer than everything else.
        state = self.parts.model.__getstate__() if self.text is None else self.text
        return BpeModel.from_json(
            state,
            byte_level=writing.byte_level,
            replacements=writing.replacements,
            exclude=exclude,
            missing_from=missing_from,
        )

    def token_to_id(self, name: str) -> int | None:
        """Return the id of an added token or a piece."""
        for token_id, added in self.added.items():
            if added.content == name:
                return token_id
        return self.pieces.find([name]).get(name)

    def id_to_token(self, token_id: int) -> str | None:
        """Return the content of an added token, or a piece."""
        if self.file is None:
            return self.parts.id_to_token(token_id)
        if token_id in self.added:
            return self.added[token_id].content
        return self.file.names(token_id + 1)[token_id]

    def end_ids_by_name(self) -> tuple[int, ...]:
        """Return the added tokens whose well-known name ends the output."""
        return tuple(i for i, added in self.added.items() if added.content in END_NAMES)


BPE = frozenset({"BPE"})
"""The models that byte-pair encoding is."""


def read_source(source: Any, *, models: Container[str] = BPE) -> Source:
    """Read a transformers fast tokenizer, a `tokenizers.Tokenizer`, a directory or a file.

    `models`: the names of the accepted models.

    Raises `UnsupportedTokenizerError` for another object and another model,
    `TokenizerNotFoundError` for a missing file, and `CorruptTokenizerError` for an unreadable one;
    all are `VocabularyError`s.
    """
    if isinstance(source, (str, os.PathLike)):
        read = _read_path(Path(source))
    elif hasattr(source, "backend_tokenizer"):
        read = _read_transformers(source)
    else:
        from tokenizers import Tokenizer

        if not isinstance(source, Tokenizer):
            raise UnsupportedTokenizerError(
                f"{type(source).__name__} is not a tokenizer that can be read: pass a fast "
                "tokenizer of transformers, a tokenizers.Tokenizer, a directory or the path of a "
                "tokenizer.json"
            )
        read = _read_tokenizer(source)
    _check_model(read.parts, models)
    return read


def parse_source(data: bytes, name: str, *, models: Container[str] = BPE) -> Source:
    """Read the contents of a tokenizer.json; `name` is for messages."""
    read = _of_file(data, name)
    _check_model(read.parts, models)
    return read


def _of_file(data: bytes, name: str) -> Source:
    read = read_model_file(data)
    if read is None:
        return replace(_read_tokenizer(parse_tokenizer(data, name)), text=data, name=name)
    return Source(
        parts=parse_tokenizer(read.shell.encode(), name),
        added=read.added,
        eos_token_ids=(),
        width=None,
        text=data,
        file=read.pieces,
        name=name,
    )


def component_state(component: Any, name: str) -> dict[str, Any] | None:
    """Return a part of a tokenizer (its decoder, normalizer…) as tokenizer.json has it."""
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
    """Return the state of a component, for a message."""
    text = json.dumps(state, ensure_ascii=False)
    return text if len(text) <= most else text[:most] + "…"


def _check_model(tokenizer: "Tokenizer", models: Container[str]) -> None:
    model = tokenizer.model
    kind = type(model).__name__
    if kind not in models:
        raise UnsupportedTokenizerError(f"the tokenizer's model is {kind}: {_SUPPORTED}")
    if kind != "BPE":
        return
    affixes = model.continuing_subword_prefix, model.end_of_word_suffix
    if any(affixes):
        raise UnsupportedTokenizerError(
            f"the tokenizer marks parts of words with {'…'.join(a or '' for a in affixes)!r}: "
            f"{_SUPPORTED}"
        )
    if model.dropout:
        raise UnsupportedTokenizerError(
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
    return Source(parts=tokenizer, added=added, eos_token_ids=(), width=None)


def _read_transformers(source: Any) -> Source:
    from tokenizers import Tokenizer

    backend = source.backend_tokenizer
    if not isinstance(backend, Tokenizer):
        raise UnsupportedTokenizerError(
            f"{type(source).__name__} is not backed by the tokenizers library: load it with "
            "use_fast=True"
        )
    read = _read_tokenizer(backend, source.all_special_ids)
    ends = token_ids(source.eos_token_id, "eos_token_id of the tokenizer")
    roles = {role: getattr(source, f"{role}_token", None) for role in ROLES}
    return replace(
        read,
        eos_token_ids=ends,
        roles={role: str(name) for role, name in roles.items() if name is not None},
        chat_templates=chat_templates_of(
            getattr(source, "chat_template", None), type(source).__name__
        ),
        name=str(getattr(source, "name_or_path", "")) or type(source).__name__,
    )


def _read_path(path: Path) -> Source:
    if path.is_dir():
        return _read_directory(path)
    if not path.is_file():
        raise TokenizerNotFoundError(
            f"{path}: no such file or directory; ffwd.tokenizer.load finds models of a hub, too"
        )
    return _load(path)


def _load(path: Path) -> Source:
    """Return what a file has, without the settings beside it."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise CorruptTokenizerError(
            f"{path} is not a tokenizer.json that can be read: {error}"
        ) from error
    return _of_file(text, str(path))


def parse_tokenizer(data: bytes, name: str) -> "Tokenizer":
    """Return the contents of a tokenizer.json; `name` is for messages."""
    from tokenizers import Tokenizer

    def corrupt(message: str) -> CorruptTokenizerError:
        return CorruptTokenizerError(f"{name} is not a tokenizer.json that can be read: {message}")

    with as_error(corrupt):
        return Tokenizer.from_buffer(data)


def _read_directory(path: Path) -> Source:
    file = path / "tokenizer.json"
    if not file.is_file():
        raise UnsupportedTokenizerError(
            f"{path} has no tokenizer.json: ffwd.tokenizer.load reads the other formats"
        )
    read = _load(file)
    configuration = read_configuration(path)
    added = {**read.added, **configuration.added}

    ends: list[int] = []
    for name, origin in configuration.ends.items():
        found = [i for i, token in added.items() if token.content == name]
        token_id = found[0] if found else read.token_to_id(name)
        if token_id is None:
            raise CorruptTokenizerError(
                f"{origin}: the tokenizer has no token {name!r} (eos_token)"
            )
        ends.append(token_id)
    return replace(
        read,
        added=added,
        eos_token_ids=(*ends, *configuration.eos_token_ids),
        width=configuration.width,
        roles=configuration.roles,
        chat_templates=configuration.chat_templates,
        name=str(path),
    )
