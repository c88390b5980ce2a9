"""What formats need of a tokenizer."""

from typing import Protocol

from ffwd.chat.control import control_tokens
from ffwd.chat.prompt import PromptTokenizer
from ffwd.tokenizer.table import TokenKind


class FormatTokenizer(PromptTokenizer, Protocol):
    """What formats need of a tokenizer: `ffwd.tokenizer.Tokenizer` has it."""

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        """The ids that end an answer."""
        ...

    @property
    def prefix_ids(self) -> tuple[int, ...]:
        """What the tokenizer puts before a text by itself: the beginning token, or nothing."""
        ...

    def encode(self, text: str, /) -> list[int]:
        """The ids of a text on its own, without special tokens."""
        ...

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        ...

    def id_to_token(self, token_id: int, /) -> str | None:
        """A token's name."""
        ...

    def token_to_id(self, content: str, /) -> int | None:
        """The id of a token by its name."""
        ...

    def token_kind(self, token_id: int, /) -> TokenKind:
        """What a token stands for."""
        ...


def control_id(tokenizer: FormatTokenizer, name: str) -> int | None:
    """The id of the control token of that name; None where there is none.

    A token of text that is spelled like it is none: a message's text would get it too.
    """
    return control_tokens(tokenizer).ids.get(name)
