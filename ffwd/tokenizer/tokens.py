"""The ids of a Hugging Face tokenizer, with their texts and kinds."""

import json
from dataclasses import dataclass

from ffwd._native import VocabularyError
from ffwd.tokenizer.kinds import AddedToken, is_placeholder, kind_of_added
from ffwd.tokenizer.model_pieces import FilePieces, ListedPieces
from ffwd.tokenizer.pieces import PieceWriting, read_decoder
from ffwd.tokenizer.source import Source, component_state
from ffwd.tokenizer.table import MAX_WIDTH, TokenKind


@dataclass(frozen=True, kw_only=True)
class TokenList:
    """A tokenizer's own ids, before its end tokens are decided."""

    tokens: list[bytes | None]
    """By id; None for what is no text."""
    kinds: list[TokenKind]
    pieces: FilePieces | ListedPieces
    """The model's own vocabulary, as it is written."""
    added_text: dict[int, AddedToken]
    """The added tokens that are text."""
    added_other: dict[int, AddedToken]
    """The added tokens that are not."""
    writing: PieceWriting
    unknown_id: int | None
    """What the tokenizer puts where it has no token."""


def read_tokens(read: Source) -> TokenList:
    """Return the tokens of a source; `ffwd.tokenizer.kinds` decides which are text.

    Raises `VocabularyError` for an unsupported decoder and for invalid ids.
    """
    parts = read.parts
    writing = read_decoder(component_state(parts.decoder, "decoder"), parts.decoder)
    pieces = read.pieces
    size = max(pieces.size, 1 + max(read.added, default=-1))
    if not 0 < size <= MAX_WIDTH:
        raise VocabularyError(
            f"the tokenizer has ids up to {size - 1}: 0 to {MAX_WIDTH - 1} can be"
        )

    if pieces.share_ids():
        raise VocabularyError("the tokenizer's vocabulary has several tokens with the same id")
    tokens = pieces.texts(writing, size)
    text_kind, unused = TokenKind.TEXT, TokenKind.UNUSED
    kinds = [unused if data is None else text_kind for data in tokens]

    for piece, token_id in pieces.beginning_with("<["):
        if is_placeholder(piece):
            kinds[token_id] = unused
    contents = [added.content for added in read.added.values()]
    decoded = writing.to_bytes(contents)
    in_model = pieces.find(contents)
    added_text: dict[int, AddedToken] = {}
    added_other: dict[int, AddedToken] = {}
    for (token_id, added), data in zip(read.added.items(), decoded, strict=True):
        kind = kind_of_added(added, data, in_model=in_model.get(added.content) == token_id)
        if kind is None:
            continue
        kinds[token_id] = kind
        tokens[token_id] = data
        (added_text if kind is text_kind else added_other)[token_id] = added
    unknown_id = _unknown_id(read)
    if unknown_id is not None:
        kinds[unknown_id] = TokenKind.UNKNOWN

    for token_id in [i for i, kind in enumerate(kinds) if kind is not text_kind]:
        tokens[token_id] = None
    return TokenList(
        tokens=tokens,
        kinds=kinds,
        pieces=pieces,
        added_text=added_text,
        added_other=added_other,
        writing=writing,
        unknown_id=unknown_id,
    )


def _unknown_id(read: Source) -> int | None:
    """Return the id for text without a token; None if the tokenizer has no such id."""
    model = read.parts.model
    if type(model).__name__ == "Unigram":
        # The library tells it in no other way.
        unknown_id = json.loads(model.__getstate__())["unk_id"]
        return unknown_id if isinstance(unknown_id, int) else None
    unknown = getattr(model, "unk_token", None)
    return None if unknown is None else read.token_to_id(unknown)
