"""The parts of a `Tokenizer`, as the readers of the formats provide them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from ffwd.tokenizer.bpe import Bpe
from ffwd.tokenizer.parts import BpeParts
from ffwd.tokenizer.roles import SpecialTokens
from ffwd.tokenizer.table import TokenKind

Kind = Literal["huggingface", "tiktoken", "sentencepiece", "tekken", "gguf"]
"""Where a tokenizer comes from."""

KINDS: tuple[Kind, ...] = ("huggingface", "tiktoken", "sentencepiece", "tekken", "gguf")


def check_kind(kind: Kind | None) -> None:
    """Raise `ValueError` for another kind."""
    if kind is not None and kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, not {kind!r}")


Model = Literal["bpe", "unigram", "wordpiece", "wordlevel"]
"""By which algorithm it encodes."""

Special = str | Iterable[str]
"""What the name of a special token in a text is: "text", "forbidden", "allowed", or the names of
those that are found while the others are text."""


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """The options with which a source is read."""

    kind: Kind | None = None
    pattern: str | None = None
    special_tokens: Mapping[str, int] | None = None
    encodings: Mapping[str, str] | None = None
    pre: str | None = None
    hub: Mapping[str, Any] = field(default_factory=dict)


class Library(Protocol):
    """A tokenizer that only its own library can follow.

    Texts are encoded without the special tokens around them. Safe to call from several threads.
    """

    def encode(self, text: str, *, special: Special, first: bool) -> list[int]:
        """Return the ids of a text; `first` is false for one in the middle of a longer text."""

    def encode_batch(self, texts: Sequence[str], *, special: Special) -> list[list[int]]:
        """Return the ids of each text."""

    def encode_with_offsets(
        self, text: str, *, special: Special
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the ids and the range of each in the text, in characters."""

    def encode_exactly(self, data: bytes, *, tokens: Sequence[bytes | None]) -> list[int]:
        """Return ids with exactly these bytes, for a stretch in the middle of a text.

        Raises `VocabularyError` for what the tokenizer cannot express.
        """


@dataclass(frozen=True, kw_only=True)
class TokenizerParts:
    """The properties of a tokenizer in its source.

    Exactly one of `bpe` and `library` encodes.
    """

    kind: Kind
    model: Model
    tokens: Sequence[bytes | None]
    """By id, what decoding gives: the content of a special token too. None: there is no token."""
    names: Sequence[str | None]
    """By id, the token as the source writes it, such as `Ġthe`. None: there is no token."""
    kinds: Sequence[TokenKind]
    """By id; `EOS` is not among them, for `eos_token_ids` says it."""
    special_ids: Sequence[int] = ()
    """The ids that `skip_special_tokens` leaves out."""
    bpe: Bpe | None = None
    bpe_parts: BpeParts | None = None
    """The parts of `bpe`, of readers whose tokenizers can be kept in a cache."""
    library: Library | None = None
    special_tokens: SpecialTokens = field(default_factory=SpecialTokens)
    eos_token_ids: Sequence[int] = ()
    """Every id that the source says ends an output; may be empty."""
    prefix_ids: Sequence[int] = ()
    """What the source puts before a text by itself."""
    suffix_ids: Sequence[int] = ()
    """What it puts after a text."""
    chat_templates: Mapping[str, str] = field(default_factory=dict)
    """By name; an only one is "default"."""
    strip_first_space: bool = False
    """Whether decoding leaves out one space at the beginning of a text."""
    strip_every_first_space: bool = False
    """Whether it leaves out one more for each token until there is any text."""
    first_tokens: Mapping[int, bytes] = field(default_factory=dict)
    """What decoding gives for a token that a text begins with, where it is not what it gives
    elsewhere (but for a space that is left out)."""
    width: int | None = None
    """The number of the model's logits, where the source states it."""
    limits: Sequence[str] = ()
    """What is not as in the source, or what of a text it loses, in words."""
    source: str = ""
    """Where it comes from, for messages."""
