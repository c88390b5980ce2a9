"""The parts of a `Bpe` from a SentencePiece model.

The file is a protocol buffer. It is read here, without SentencePiece's own module, which exposes
neither the algorithm nor the user-defined pieces.
"""

import os
import struct
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ffwd._native import BpeModel
from ffwd.tokenizer.errors import CorruptTokenizerError, UnsupportedTokenizerError
from ffwd.tokenizer.kinds import AddedToken, kind_of_added
from ffwd.tokenizer.parts import BpeParts, FoundToken, found_token
from ffwd.tokenizer.pieces import byte_of_piece
from ffwd.tokenizer.ranks.read import read_file
from ffwd.tokenizer.table import MAX_WIDTH, TokenKind
from ffwd.tokenizer.tied_scores import order_of_ties

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

_ALGORITHMS = {1: "Unigram", 2: "BPE", 3: "Word", 4: "Char"}
_BPE = 2
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""The types of pieces."""
_SPACE = "▁"


@dataclass(frozen=True, kw_only=True)
class SentencePieceModel:
    """The relevant contents of a model file."""

    pieces: tuple[tuple[str, float, int], ...]
    """Piece, score and type (1 to 6) by id."""
    algorithm: int
    """1 Unigram, 2 BPE, 3 Word, 4 Char."""
    rule: str
    """The name of the rule by which text is normalized."""
    normalizes: bool
    """Whether that rule changes any text."""
    dummy_prefix: bool
    removes_spaces: bool
    escapes: bool
    """Whether spaces are written as `▁`."""
    spaces_last: bool
    """Whether they are written at the end of words."""
    unknown_surface: str
    """What is decoded for the unknown piece."""
    roles: Mapping[str, str]
    """The piece of each of bos, eos, unk and pad."""

    @property
    def algorithm_name(self) -> str:
        """The algorithm in words."""
        return _ALGORITHMS.get(self.algorithm, str(self.algorithm))


def parse_sentencepiece(data: bytes, name: str = "the model") -> SentencePieceModel:
    """Parse the contents of a model file; `name` is for messages.

    Raises `CorruptTokenizerError` for what is not such a file.
    """
    pieces: list[tuple[str, float, int]] = []
    trainer: dict[int, Any] = {}
    normalizer: dict[int, Any] = {}
    try:
        for number, value in _fields(data):
            if number == 1:
                fields = dict(_fields(value))
                (score,) = struct.unpack("<f", fields.get(2, b"\0\0\0\0"))
                pieces.append((_text(fields[1]), score, fields.get(3, NORMAL)))
            elif number == 2:
                trainer = dict(_fields(value))
            elif number == 3:
                normalizer = dict(_fields(value))
        if not 0 < len(pieces) <= MAX_WIDTH:
            raise ValueError(f"it has {len(pieces)} pieces")
        defaults = {"unk": "<unk>", "bos": "<s>", "eos": "</s>", "pad": "<pad>"}
        return SentencePieceModel(
            pieces=tuple(pieces),
            algorithm=trainer.get(3, 1),
            rule=_text(normalizer.get(1, b""), errors="replace"),
            normalizes=bool(normalizer.get(2)),
            dummy_prefix=bool(normalizer.get(3, 1)),
            removes_spaces=bool(normalizer.get(4, 1)),
            escapes=bool(normalizer.get(5, 1)),
            spaces_last=bool(trainer.get(24)),
            unknown_surface=_text(trainer.get(44, " ⁇ ".encode())),
            roles={
                role: _text(trainer[field]) if field in trainer else piece
                for field, (role, piece) in enumerate(defaults.items(), 45)
            },
        )
    except (IndexError, KeyError, ValueError, TypeError, struct.error) as error:
        raise CorruptTokenizerError(
            f"{name} is not a SentencePiece model that can be read: {error}"
        ) from error


def _text(value: Any, errors: str = "strict") -> str:
    """Return the text of a field.

    A field of the other kind is a number, of which `bytes` would be that many zeros.
    """
    if isinstance(value, int):
        raise ValueError("a number stands where a text belongs")
    return bytes(value).decode(errors=errors)


def begins_like_sentencepiece(data: bytes) -> bool:
    """Return whether this begins with a piece, as a model file does."""
    try:
        number, value = next(_fields(data))
        fields = dict(_fields(value))
        return number == 1 and bool(_text(fields[1])) and fields.keys() <= {1, 2, 3}
    except (StopIteration, IndexError, KeyError, ValueError, TypeError):
        return False


def count_pieces(data: bytes, name: str) -> tuple[str, int]:
    """Return the algorithm and the number of pieces of a file, without reading the pieces."""
    pieces = 0
    algorithm = 1
    try:
        for number, value in _fields(data):
            if number == 1:
                pieces += 1
            elif number == 2:
                algorithm = dict(_fields(value)).get(3, 1)
    except (IndexError, ValueError, TypeError) as error:
        raise CorruptTokenizerError(
            f"{name} is not a SentencePiece model that can be read: {error}"
        ) from error
    return _ALGORITHMS.get(algorithm, str(algorithm)), pieces


def read_sentencepiece(
    source: "str | os.PathLike[str] | bytes | SentencePieceProcessor",
) -> SentencePieceModel:
    """Read a model, given as the path of its file, its bytes, or a processor."""
    return parse_sentencepiece(model_bytes(source))


def sentencepiece_parts(model: SentencePieceModel) -> BpeParts:
    """Return the parts of a `Bpe` from a model.

    Raises `UnsupportedTokenizerError` for one that is not BPE or that normalizes text.
    """
    _check(model)
    return piece_parts(model.pieces, escapes=model.escapes, dummy_prefix=model.dummy_prefix)


def _check(model: SentencePieceModel) -> None:
    """Refuse models that are not BPE or that change text."""
    if model.algorithm != _BPE:
        raise UnsupportedTokenizerError(
            f"the SentencePiece model is {model.algorithm_name}: supported is BPE"
        )
    if model.normalizes:
        raise UnsupportedTokenizerError(
            f"the SentencePiece model's normalizer changes text ({model.rule}): supported is "
            "identity"
        )
    if model.removes_spaces:
        raise UnsupportedTokenizerError(
            "the SentencePiece model's normalizer removes spaces (remove_extra_whitespaces)"
        )
    if model.spaces_last:
        raise UnsupportedTokenizerError(
            "the SentencePiece model writes spaces at the end of words (treat_whitespace_as_suffix)"
        )
    if any(kind == UNUSED for *_, kind in model.pieces):
        raise UnsupportedTokenizerError(
            "the SentencePiece model has unused pieces, which it cuts up again"
        )


def piece_parts(
    pieces: Sequence[tuple[str, float, int]], *, escapes: bool, dummy_prefix: bool
) -> BpeParts:
    """Return the parts of a BPE model with these pieces: text, score and type of each, by id.

    `escapes`: a space is written as `▁`; `dummy_prefix`: one is put before a text.

    Raises `UnsupportedTokenizerError` where scores leave open which merge comes first.
    """
    ties = order_of_ties({piece: score for piece, score, kind in pieces if kind == NORMAL})
    byte_tokens: list[int | None] = [None] * 256
    normal: list[tuple[float, int, int, bytes]] = []
    found: list[FoundToken] = []
    for token_id, (piece, score, kind) in enumerate(pieces):
        text = piece.replace(_SPACE, " ") if escapes else piece
        never_written = escapes and " " in piece
        if kind == NORMAL:
            if not never_written:
                normal.append((-score, ties.get(piece, -1), token_id, text.encode()))
        elif kind == BYTE:
            byte = byte_of_piece(piece)
            if byte is None:
                raise CorruptTokenizerError(f"the SentencePiece model has a byte piece {piece!r}")
            byte_tokens[byte] = token_id
        elif text and not never_written:
            added = AddedToken(content=text, special=kind != USER_DEFINED)
            kind_of_it = kind_of_added(added, text.encode(), in_model=False)
            found.append(found_token(token_id, added, text=kind_of_it is TokenKind.TEXT))
    return BpeParts(
        model=BpeModel.ranked(
            [(text, token_id) for *_, token_id, text in sorted(normal)],
            characters=True,
            byte_tokens=byte_tokens if any(i is not None for i in byte_tokens) else None,
            whole_pieces=False,
        ),
        added_tokens=found,
        dummy_space="text" if dummy_prefix else "never",
        replaced=[(_SPACE, " ")] if escapes else [],
        vocab_size=len(pieces),
    )


def without_dummy_prefix(data: bytes) -> bytes:
    """Return a model file that adds no space before a text."""
    # If a message is given twice, its parts are merged, and the last value of a field counts.
    return data + bytes((3 << 3 | 2, 2, 3 << 3, 0))


def with_control_pieces(data: bytes, ids: Container[int]) -> bytes:
    """Return a model file in which these pieces are control pieces, which no text produces."""
    out = bytearray()
    token_id = 0
    for number, value in _fields(data):
        if number == 1:
            if token_id in ids:
                value += bytes((3 << 3, CONTROL))
            token_id += 1
        if isinstance(value, int):
            out += _varint(number << 3) + _varint(value)
        else:
            out += _varint(number << 3 | 2) + _varint(len(value)) + value
    return bytes(out)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def model_bytes(source: Any) -> bytes:
    """Return the contents of a model file, given as its path, its bytes or a processor."""
    if isinstance(source, bytes):
        return source
    if hasattr(source, "serialized_model_proto"):
        return bytes(source.serialized_model_proto())
    if not isinstance(source, (str, os.PathLike)):
        raise UnsupportedTokenizerError(
            f"{type(source).__name__} is not a SentencePiece model: pass the path of a file, its "
            "bytes or a processor"
        )
    return read_file(source)


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the (number, value) pairs of a protocol buffer message; a valid one has no rest."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 63:
                raise ValueError("a number of more than 64 bits")

    while at < len(message):
        key = varint()
        wire = key & 7
        if wire == 0:
            yield key >> 3, varint()
            continue
        if wire not in (1, 2, 5):
            raise ValueError(f"a field of type {wire}")
        length = varint() if wire == 2 else 8 if wire == 1 else 4
        if length > len(message) - at:
            raise ValueError("a field goes on past the end")
        yield key >> 3, message[at : at + length]
        at += length
