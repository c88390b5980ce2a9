"""The parts of a `Tokenizer` from a SentencePiece model."""

from collections.abc import Sequence

from ffwd.tokenizer.bpe import Bpe
from ffwd.tokenizer.definition import Library, Model, TokenizerParts
from ffwd.tokenizer.errors import CorruptTokenizerError, UnsupportedTokenizerError
from ffwd.tokenizer.kinds import AddedToken, is_placeholder, kind_of_added
from ffwd.tokenizer.pieces import byte_of_piece
from ffwd.tokenizer.roles import SpecialToken, SpecialTokens
from ffwd.tokenizer.sentencepiece.library import SentencePieceLibrary
from ffwd.tokenizer.sentencepiece.model import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    SentencePieceModel,
    parse_sentencepiece,
    sentencepiece_parts,
)
from ffwd.tokenizer.table import TokenKind

_MODELS: dict[int, Model] = {1: "unigram", 2: "bpe"}


def sentencepiece_tokenizer(data: bytes, *, source: str) -> TokenizerParts:
    """Return everything about the contents of a SentencePiece model's file.

    Raises `VocabularyError` for one that cannot be read, or that is neither BPE nor Unigram.
    """
    model = parse_sentencepiece(data, source)
    table = [_token(model, *piece) for piece in model.pieces]
    kinds = [kind for _, kind in table]
    special = [i for i, (*_, kind) in enumerate(model.pieces) if kind == CONTROL]
    by_name = {model.pieces[i][0]: i for i in reversed(special)}
    by_name |= {piece: i for i, (piece, _, kind) in enumerate(model.pieces) if kind == UNKNOWN}
    found = {
        role: SpecialToken(by_name[piece], piece)
        for role, piece in model.roles.items()
        if piece in by_name
    }
    named = {token.id for token in found.values()}
    additional = tuple(
        SpecialToken(i, piece)
        for i, (piece, *_) in enumerate(model.pieces)
        if i not in named and kinds[i] in (TokenKind.SPECIAL, TokenKind.CONTROL)
    )
    bpe, library, limits = _encoder(model, data, kinds, source)
    strips = model.dummy_prefix or model.removes_spaces
    first: dict[int, bytes] = {}
    if strips:
        # Only a space at the start of a piece is dropped, never one in a byte token or the unknown
        # token.
        first = {
            i: data
            for i, ((*_, kind), (data, _)) in enumerate(zip(model.pieces, table, strict=True))
            if kind in (BYTE, UNKNOWN) and data.startswith(b" ")
        }
    return TokenizerParts(
        kind="sentencepiece",
        model=_MODELS[model.algorithm],
        tokens=[data for data, _ in table],
        names=[piece for piece, *_ in model.pieces],
        kinds=kinds,
        special_ids=special,
        bpe=bpe,
        library=library,
        limits=limits,
        special_tokens=SpecialTokens(**found, additional=additional),
        eos_token_ids=[found["eos"].id] if "eos" in found else [],
        strip_first_space=strips,
        strip_every_first_space=model.removes_spaces,
        first_tokens=first,
        source=source,
    )


def _encoder(
    model: SentencePieceModel, data: bytes, kinds: Sequence[TokenKind], source: str
) -> tuple[Bpe | None, Library | None, list[str]]:
    """Return the native encoder if it is exact, otherwise SentencePiece itself, and why."""
    if model.algorithm not in _MODELS:
        raise UnsupportedTokenizerError(
            f"{source}: the SentencePiece model is {model.algorithm_name}: supported are BPE and "
            "Unigram"
        )
    try:
        return Bpe(**sentencepiece_parts(model)), None, []
    except UnsupportedTokenizerError as error:
        limits = [str(error)]
    if model.normalizes:
        limits.append(
            f"the model's normalizer changes text ({model.rule}), so that decoding need not give "
            "back what was encoded"
        )
    if model.removes_spaces:
        limits.append("spaces at the ends of a text and next to others are lost")
    if not any(kind == BYTE for *_, kind in model.pieces):
        limits.append("characters without a piece are lost: they are encoded as the unknown piece")
    control = {
        piece.replace("▁", " ") if model.escapes else piece: i
        for i, (piece, _, kind) in enumerate(model.pieces)
        if kind == USER_DEFINED and kinds[i] is not TokenKind.TEXT
    }
    return None, SentencePieceLibrary(data, control=control, name=source), limits


def _token(
    model: SentencePieceModel, piece: str, _score: float, kind: int
) -> tuple[bytes, TokenKind]:
    """Return the decoding and the kind of a piece."""
    text = (piece.replace("▁", " ") if model.escapes else piece).encode()
    if kind == NORMAL:
        # If spaces have another notation, no text uses a piece with a space.
        written = text and not (model.escapes and " " in piece)
        return text, TokenKind.TEXT if written else TokenKind.UNUSED
    if kind == BYTE:
        byte = byte_of_piece(piece)
        if byte is None:
            raise CorruptTokenizerError(f"the SentencePiece model has a byte piece {piece!r}")
        return bytes((byte,)), TokenKind.TEXT
    if kind == UNKNOWN:
        return model.unknown_surface.encode(), TokenKind.UNKNOWN
    if kind == UNUSED or is_placeholder(piece):
        return text, TokenKind.UNUSED
    if kind == CONTROL:
        return piece.encode(), TokenKind.SPECIAL
    added = AddedToken(content=text.decode(), special=False)
    return text, kind_of_added(added, text, in_model=False) or TokenKind.CONTROL
