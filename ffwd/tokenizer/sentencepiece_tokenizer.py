"""The parts of a `Tokenizer` from a SentencePiece model."""

from ffwd.tokenizer.bpe import Bpe
from ffwd.tokenizer.definition import TokenizerParts
from ffwd.tokenizer.errors import CorruptTokenizerError
from ffwd.tokenizer.kinds import AddedToken, is_placeholder, kind_of_added
from ffwd.tokenizer.pieces import byte_of_piece
from ffwd.tokenizer.roles import SpecialToken, SpecialTokens
from ffwd.tokenizer.sentencepiece_model import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    UNUSED,
    SentencePieceModel,
    sentencepiece_parts,
)
from ffwd.tokenizer.table import TokenKind


def sentencepiece_tokenizer(model: SentencePieceModel, *, source: str) -> TokenizerParts:
    """Everything about a SentencePiece model.

    Raises `VocabularyError` for one that is not supported.
    """
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
    strips = model.dummy_prefix or model.removes_spaces
    space = next(
        (
            i
            for i, (piece, _, kind) in enumerate(model.pieces)
            if piece == "<0x20>" and kind == BYTE
        ),
        None,
    )
    return TokenizerParts(
        kind="sentencepiece",
        model="bpe",
        tokens=[data for data, _ in table],
        names=[piece for piece, *_ in model.pieces],
        kinds=kinds,
        special_ids=special,
        bpe=Bpe(**sentencepiece_parts(model)),
        special_tokens=SpecialTokens(**found, additional=additional),
        eos_token_ids=[found["eos"].id] if "eos" in found else [],
        strip_first_space=strips,
        # Only the space that a piece begins with is left out, and not one that is a byte.
        first_tokens={space: b" "} if strips and space is not None else {},
        source=source,
    )


def _token(
    model: SentencePieceModel, piece: str, _score: float, kind: int
) -> tuple[bytes, TokenKind]:
    """What is decoded for a piece, and what it is."""
    text = (piece.replace("▁", " ") if model.escapes else piece).encode()
    if kind == NORMAL:
        # No text is written with a space in it where spaces are written otherwise.
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
