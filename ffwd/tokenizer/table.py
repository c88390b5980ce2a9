"""The token table: the bytes and the kind of each token id."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import compress, count, repeat
from operator import is_, is_not
from typing import Any

from ffwd._native import VocabularyError

MAX_WIDTH = 1 << 22
"""The most token ids a table may have: several times the largest vocabulary in use."""


NEVER_IN_UTF8 = frozenset({0xC0, 0xC1, *range(0xF5, 0x100)})
"""The bytes that no text has."""


class TokenKind(Enum):
    """The kind of a token id; grammars allow only `TEXT` as text."""

    TEXT = "text"
    """Bytes of the output."""
    EOS = "eos"
    """Ends the output; offered only where the grammar accepts."""
    SPECIAL = "special"
    """Flagged as special by the tokenizer: beginning of text, headers, roles."""
    CONTROL = "control"
    """Added to the tokenizer, not flagged as special, and yet not plain text: `<tool_call>`."""
    UNKNOWN = "unknown"
    """What the tokenizer puts where it has no token: `<unk>`."""
    UNUSED = "unused"
    """Reserved for later (`<|reserved_special_token_7|>`, `[PAD3]`), or an id without a token."""
    PADDING = "padding"
    """An id past the tokenizer's last, there because the logits are wider."""


@dataclass(frozen=True, kw_only=True)
class TokenTable:
    """For every column of a model's logits: the token's bytes and its kind.

    `tokens[i]` is the exact bytes of token i, and None if i has no text. `kinds[i]` is its kind; it
    is `TEXT` exactly if `tokens[i]` is not None. `eos_token_ids` is ascending, without repetition,
    and not empty. Several ids may have the same bytes.

    Raises `VocabularyError` if the parts contradict each other.
    """

    tokens: tuple[bytes | None, ...]
    kinds: tuple[TokenKind, ...]
    eos_token_ids: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.tokens) != len(self.kinds):
            raise VocabularyError(
                f"{len(self.tokens)} tokens but {len(self.kinds)} kinds: there must be one per id"
            )
        has_bytes = list(map(is_not, self.tokens, repeat(None)))
        is_text = list(map(is_, self.kinds, repeat(TokenKind.TEXT)))
        if has_bytes != is_text:
            wrong = [i for i, (a, b) in enumerate(zip(has_bytes, is_text, strict=True)) if a != b]
            raise VocabularyError(
                f"bytes and kind disagree for token ids {shown(wrong)}: "
                "a token has bytes exactly when its kind is TEXT"
            )
        ends = list(compress(count(), map(is_, self.kinds, repeat(TokenKind.EOS))))
        if not ends or tuple(ends) != self.eos_token_ids:
            raise VocabularyError(
                f"eos_token_ids is {shown(self.eos_token_ids)}, "
                f"but the ids of kind EOS are {shown(ends)}"
            )

    @property
    def width(self) -> int:
        """The number of columns of the model's logits: `len(tokens)`."""
        return len(self.tokens)


def shown(token_ids: list[int] | tuple[int, ...], most: int = 8) -> str:
    """Return the ids as text for a message, the first `most` of them."""
    head = ", ".join(str(i) for i in token_ids[:most])
    rest = len(token_ids) - most
    return f"[{head}, and {rest} more]" if rest > 0 else f"[{head}]"


def other_than_text(kinds: Sequence[TokenKind]) -> Iterator[int]:
    """Return the ids of the tokens that are no text."""
    return compress(count(), map(is_not, kinds, repeat(TokenKind.TEXT)))


def make_table(
    tokens: Sequence[bytes | None],
    kinds: Sequence[TokenKind],
    width: Any,
    eos_token_ids: Sequence[int],
) -> TokenTable:
    """Make a table of `width` columns from the tokens of a tokenizer.

    Raises `VocabularyError` for an invalid width, and for ids past it.
    """
    size = len(tokens)
    if isinstance(width, bool) or not isinstance(width, int) or not 0 < width <= MAX_WIDTH:
        raise VocabularyError(f"vocab_size must be 1 to {MAX_WIDTH}, not {width!r}")
    text = TokenKind.TEXT
    lost = [i for i in range(width, size) if kinds[i] is text]
    if lost:
        raise VocabularyError(
            f"the tokenizer has text tokens past the model's logits: vocab_size is {width}, the "
            f"token ids are {shown(lost)}; pass the width of the logits as vocab_size"
        )
    padding = max(0, width - size)
    row = [*tokens[:width], *[None] * padding]
    for i in other_than_text(kinds[:width]):
        row[i] = None
    row_kinds = [*kinds[:width], *[TokenKind.PADDING] * padding]
    outside = [i for i in eos_token_ids if not 0 <= i < width]
    if outside:
        raise VocabularyError(
            f"end token ids {shown(outside)} are outside the vocabulary of {width} ids"
        )
    for token_id in eos_token_ids:
        row[token_id] = None
        row_kinds[token_id] = TokenKind.EOS
    return TokenTable(
        tokens=tuple(row), kinds=tuple(row_kinds), eos_token_ids=tuple(sorted(set(eos_token_ids)))
    )


def control_names(names: Mapping[int, str | None], kinds: Sequence[TokenKind]) -> dict[str, int]:
    """Return the ids of tokens without text by the names that grammars use for them.

    `kinds`: of every column of the model's logits; ids past them are ignored.
    """
    named = (TokenKind.EOS, TokenKind.SPECIAL, TokenKind.CONTROL, TokenKind.UNUSED)
    text, size = TokenKind.TEXT, len(kinds)
    # Nearly all are text, and hashing a kind takes longer than comparing it.
    return {
        name: token_id
        for token_id, name in names.items()
        if token_id < size and kinds[token_id] is not text and name and kinds[token_id] in named
    }


def refuse_end_that_is_text(
    token_id: int, data: bytes, encode: Callable[[bytes], Sequence[int]]
) -> None:
    """Raise `VocabularyError` for an end token that is the encoding of its own text."""
    if list(encode(data)) == [token_id]:
        raise VocabularyError(
            f"token id {token_id} cannot end the output, for it is how the tokenizer encodes "
            f"the text {data!r}"
        )


def is_utf8(data: bytes) -> bool:
    """Return whether these bytes are UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
