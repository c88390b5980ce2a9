"""The pieces of a Hugging Face model: from its file, natively, or from the library's list.

The library takes half a second to read a file with 128,000 pieces, because it also makes the
tables with which it encodes. `read_model_file` reads ordinary files of BPE without it, and leaves
the others to the library. Both ways give the same tokenizer.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ffwd._native import BpeModel, ModelFile
from ffwd.tokenizer.kinds import AddedToken
from ffwd.tokenizer.pieces import PieceWriting


class ListedPieces:
    """Pieces that a library lists."""

    def __init__(self, ids: Mapping[str, int]) -> None:
        """Take the pieces with their ids."""
        self._ids = ids

    @property
    def size(self) -> int:
        """One more than the largest id."""
        return 1 + max(self._ids.values(), default=-1)

    def share_ids(self) -> bool:
        """Return whether several pieces have the same id."""
        return len(set(self._ids.values())) != len(self._ids)

    def find(self, names: Iterable[str]) -> dict[str, int]:
        """Return the ids of those names that are pieces."""
        return {name: self._ids[name] for name in names if name in self._ids}

    def beginning_with(self, characters: str) -> list[tuple[str, int]]:
        """Return the pieces that begin with one of these characters."""
        begins = tuple(characters)
        return [(piece, i) for piece, i in self._ids.items() if piece.startswith(begins)]

    def containing(self, text: str) -> list[int]:
        """Return the ids of the pieces that contain a text."""
        return [i for piece, i in self._ids.items() if text in piece]

    def names(self, size: int) -> list[str | None]:
        """Return the pieces by id."""
        names: list[str | None] = [None] * size
        for piece, token_id in self._ids.items():
            names[token_id] = piece
        return names

    def texts(self, writing: PieceWriting, size: int) -> list[bytes | None]:
        """Return the bytes of each piece by id; None where there are none."""
        texts: list[bytes | None] = [None] * size
        for token_id, data in zip(self._ids.values(), writing.to_bytes(self._ids), strict=True):
            texts[token_id] = data or None
        return texts


class FilePieces:
    """Pieces of a file."""

    def __init__(self, file: ModelFile) -> None:
        """Take the file."""
        self._file = file

    @property
    def size(self) -> int:
        """One more than the largest id."""
        return self._file.size

    def share_ids(self) -> bool:
        """Return whether several pieces have the same id: such a file is not read natively."""
        return False

    def find(self, names: Iterable[str]) -> dict[str, int]:
        """Return the ids of those names that are pieces."""
        return self._file.find(frozenset(names))

    def beginning_with(self, characters: str) -> list[tuple[str, int]]:
        """Return the pieces that begin with one of these characters."""
        return self._file.beginning_with(characters)

    def containing(self, text: str) -> list[int]:
        """Return the ids of the pieces that contain a text."""
        return self._file.containing(text)

    def names(self, size: int) -> list[str | None]:
        """Return the pieces by id."""
        return self._file.names(size)

    def texts(self, writing: PieceWriting, size: int) -> list[bytes | None]:
        """Return the bytes of each piece by id; None where there are none."""
        if writing.words is not None:
            return ListedPieces(self._file.pieces()).texts(writing, size)
        return self._file.texts(
            size,
            byte_level=writing.byte_level,
            replacements=writing.replacements,
            byte_fallback=writing.byte_fallback,
        )

    def compile(
        self, writing: PieceWriting, *, exclude: list[int], missing_from: int | None
    ) -> BpeModel:
        """Compile pieces and merges; the parameters are those of `BpeModel.from_json`."""
        return self._file.compile(
            byte_level=writing.byte_level,
            replacements=writing.replacements,
            exclude=exclude,
            missing_from=missing_from,
        )


@dataclass(frozen=True)
class ReadFile:
    """A tokenizer.json without its library."""

    shell: str
    """The file without any tokens: its normalizer, pre-tokenizer and so on, for the library."""
    added: dict[int, AddedToken]
    pieces: FilePieces


def read_model_file(data: bytes) -> ReadFile | None:
    """Read a tokenizer.json; None if it is not BPE, or has anything out of the ordinary."""
    file = ModelFile.read(data)
    if file is None:
        return None
    shell = json.loads(file.shell())
    added = _added_tokens(shell.get("added_tokens"), file)
    if added is None:
        return None
    shell["added_tokens"] = []
    return ReadFile(json.dumps(shell), added, FilePieces(file))


_FLAGS = frozenset({"single_word", "lstrip", "rstrip", "normalized", "special"})


def _added_tokens(listed: Any, file: ModelFile) -> dict[int, AddedToken] | None:
    """Return the added tokens by id; None if the library could number them otherwise.

    The library keeps the ids of those that are pieces, and numbers others from the number of pieces
    on, whatever ids the file has.
    """
    if not isinstance(listed, list):
        return None
    for token in listed:
        if not isinstance(token, dict) or token.keys() != {"id", "content", *_FLAGS}:
            return None
        flags = (token[flag] for flag in _FLAGS)
        if not all(isinstance(flag, bool) for flag in flags) or type(token["id"]) is not int:
            return None
        if not isinstance(token["content"], str) or not token["content"]:
            return None
    contents = [token["content"] for token in listed]
    pieces = file.find(frozenset(contents))
    if len(set(contents)) != len(contents) or file.size != len(file):
        return None
    free = file.size
    added: dict[int, AddedToken] = {}
    for token in listed:
        expected = pieces.get(token["content"], free)
        free += expected == free
        if token["id"] != expected:
            return None
        added[expected] = AddedToken(
            content=token["content"], **{flag: token[flag] for flag in _FLAGS}
        )
    return dict(sorted(added.items()))
