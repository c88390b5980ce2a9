"""Encoding by SentencePiece itself, for models that no native tokenizer can follow."""

from collections.abc import Container, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ffwd._native import TextError
from ffwd.tokenizer.definition import Special
from ffwd.tokenizer.errors import CorruptTokenizerError, UnsupportedTokenizerError
from ffwd.tokenizer.library import encode_exactly
from ffwd.tokenizer.sentencepiece.model import with_control_pieces, without_dummy_prefix

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor


class SentencePieceLibrary:
    """Encodes by SentencePiece. Safe to call from several threads.

    The library finds user-defined pieces in every text and control pieces in none.
    """

    def __init__(self, data: bytes, *, control: dict[str, int], name: str) -> None:
        """Take the contents of a model file.

        `control`: the user-defined pieces that are found only where they are allowed, and their
        ids; `name`: for messages.
        """
        self._data = data
        self._control = control
        self._name = name
        self._text = self._processor(control.values())

    def encode(self, text: str, *, special: Special, first: bool) -> list[int]:
        """Return the ids of a text; `first` is false for one in the middle of a longer text."""
        processor = self._for(text, special) if first else self._middle
        ids: list[int] = processor.encode(text)
        return ids

    def encode_batch(self, texts: Sequence[str], *, special: Special) -> list[list[int]]:
        """Return the ids of each text, encoded on the library's own threads."""
        if special == "forbidden":
            return [self.encode(text, special=special, first=True) for text in texts]
        ids: list[list[int]] = self._for("", special).encode(list(texts))
        return ids

    def encode_with_offsets(
        self, text: str, *, special: Special
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the ids and the range of each in the text, in characters."""
        processor: Any = self._for(text, special)
        if hasattr(processor, "encode_as_offset_mapping"):
            mapping = processor.encode_as_offset_mapping(text)
            return list(mapping["ids"]), [(start, end) for start, end in mapping["offsets"]]
        pieces = processor.encode(text, out_type="immutable_proto").pieces
        return [piece.id for piece in pieces], [(piece.begin, piece.end) for piece in pieces]

    def encode_exactly(self, data: bytes, *, tokens: Sequence[bytes | None]) -> list[int]:
        """Return ids with exactly these bytes, for a stretch in the middle of a text.

        Raises `VocabularyError` for what the model cannot express.
        """
        return encode_exactly(data, self._middle.encode, tokens)

    def _for(self, text: str, special: Special) -> "SentencePieceProcessor":
        if special == "allowed":
            return self._all
        if special == "forbidden":
            found = [(text.find(name), name) for name in self._control if name in text]
            if found:
                at, name = min(found)
                error = TextError(
                    f"the special token {name!r} stands at character {at} of the text, and special "
                    "tokens are forbidden: allow it by name, or have it encoded as text"
                )
                error.byte = len(text[:at].encode())
                raise error
        elif not isinstance(special, str):
            names = set(special)
            unknown = sorted(names - self._control.keys())
            if unknown:
                raise TextError(f"the tokenizer has no special token {unknown[0]!r}")
            return self._processor([i for name, i in self._control.items() if name not in names])
        elif special != "text":
            raise ValueError(
                f'special must be "text", "forbidden", "allowed" or a set of names, not {special!r}'
            )
        return self._text

    @cached_property
    def _all(self) -> "SentencePieceProcessor":
        return self._processor(())

    @cached_property
    def _middle(self) -> "SentencePieceProcessor":
        return self._processor(self._control.values(), dummy_prefix=False)

    def _processor(
        self, hidden: Container[int], *, dummy_prefix: bool = True
    ) -> "SentencePieceProcessor":
        try:
            from sentencepiece import SentencePieceProcessor
        except ImportError as error:
            raise UnsupportedTokenizerError(
                f"{self._name}: only SentencePiece itself can follow this model: install "
                "sentencepiece"
            ) from error
        data = with_control_pieces(self._data, hidden)
        if not dummy_prefix:
            data = without_dummy_prefix(data)
        try:
            return SentencePieceProcessor(model_proto=data)
        except Exception as error:
            raise CorruptTokenizerError(
                f"{self._name} is not a model that SentencePiece can read: {error}"
            ) from error
