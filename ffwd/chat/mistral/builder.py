"""Collects the parts of a Mistral prompt, with the ids of each."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from ffwd._native import TextError
from ffwd.chat.errors import ConversationError, MissingControlTokensError
from ffwd.chat.formats.tokenizer import FormatTokenizer, control_id
from ffwd.chat.mistral.messages import Piece
from ffwd.chat.mistral.version import MistralVersion
from ffwd.chat.prompt import ControlPart, Part, TextPart

# SentencePiece's notation of a space.
_MARK = "\u2581"


class Builder:
    """Parts and the ids of each, in order.

    Raises `MissingControlTokensError` unless the vocabulary has the control tokens of the version.
    """

    def __init__(self, tokenizer: FormatTokenizer, version: MistralVersion) -> None:
        self.tokenizer = tokenizer
        self.version = version
        self.parts: list[Part] = []
        self.ids: list[tuple[int, ...]] = []
        self._controls: dict[str, int] = {}
        mark = b"".join(tokenizer.token_bytes(i) or b"" for i in tokenizer.encode(_MARK))
        self._marks_spaces = _MARK.encode() not in mark
        self.require(version.control_tokens)

    def require(self, names: Sequence[str]) -> None:
        """Raise `MissingControlTokensError` unless the vocabulary has all of these tokens."""
        missing = []
        for name in names:
            token_id = control_id(self.tokenizer, name)
            if token_id is None:
                missing.append(name)
            else:
                self._controls[name] = token_id
        if missing:
            raise MissingControlTokensError(
                f"the vocabulary has no {', '.join(missing)}, which prompts of Mistral's version "
                f"{self.version.value} need",
                tokens=tuple(missing),
            )

    def control(self, name: str) -> None:
        """Add one control token, which `require` has checked."""
        token_id = self._controls[name]
        self.parts.append(ControlPart(token_id, name))
        self.ids.append((token_id,))

    def text(self, pieces: Sequence[Piece]) -> None:
        """Add pieces that are encoded as one text, apart from their surroundings."""
        self.encoded(pieces, self.tokenize(pieces))

    def tokenize(self, pieces: Sequence[Piece]) -> list[int]:
        """Return the ids of pieces as one text, as SentencePiece or tiktoken encodes it."""
        try:
            return self.tokenizer.encode("".join(piece.text for piece in pieces))
        except (TextError, UnicodeEncodeError) as error:
            index = next((p.message for p in pieces if p.message is not None), None)
            what = "the tools or settings" if index is None else f"message {index}"
            raise ConversationError(
                f"{what}: the text cannot be encoded: {error}", index=index
            ) from error

    def encoded(self, pieces: Sequence[Piece], ids: Sequence[int]) -> None:
        """Add pieces with the ids that they have as one text."""
        pieces = [piece for piece in pieces if piece.text]
        spaced = self._has_space_before(pieces, ids)
        if spaced:
            pieces = [Piece(" ", None), *pieces]
        self.parts += [TextPart(piece.text, piece.message) for piece in pieces]
        if len(pieces) == 1 + spaced:
            # The space is a separate token, or part of the text's first token.
            alone = int(spaced and self.tokenizer.token_bytes(ids[0]) == b" ")
            self.ids += [tuple(ids[:alone])] * spaced + [tuple(ids[alone:])]
            return
        sizes = [len(self._as_written(piece.text).encode()) for piece in pieces]
        lengths = [len(self.tokenizer.token_bytes(i) or b"") for i in ids]
        self.ids += _shared(pieces, sizes, ids, lengths)

    def _as_written(self, text: str) -> str:
        """Return the decoding of a text."""
        return text.replace(_MARK, " ") if self._marks_spaces else text

    def _has_space_before(self, pieces: Sequence[Piece], ids: Sequence[int]) -> bool:
        """Return whether the tokens start with a space that the text lacks: SentencePiece's."""
        spaces = 0
        for token_id in ids:
            token = self.tokenizer.token_bytes(token_id) or b""
            rest = token.lstrip(b" ")
            spaces += len(token) - len(rest)
            if rest:
                break
        if not spaces:
            return False
        for piece in pieces:
            text = self._as_written(piece.text)
            rest_of_text = text.lstrip(" ")
            spaces -= len(text) - len(rest_of_text)
            if rest_of_text:
                break
        return spaces > 0


def _shared(
    pieces: Sequence[Piece], sizes: Sequence[int], ids: Sequence[int], lengths: Sequence[int]
) -> list[tuple[int, ...]]:
    """Return the ids of each piece; a shared token belongs to the first of a message's own.

    `sizes` and `lengths` are in bytes, of the pieces and of the tokens.
    """
    found: list[list[int]] = [[] for _ in pieces]
    ends = list(accumulate(sizes))
    at = 0
    for token_id, length in zip(ids, lengths, strict=True):
        first = min(bisect_right(ends, at), len(pieces) - 1)
        at += length
        last = first
        while last + 1 < len(pieces) and ends[last] < at:
            last += 1
        owned = (i for i in range(first, last + 1) if pieces[i].message is not None)
        found[next(owned, first)].append(token_id)
    return [tuple(ids) for ids in found]
