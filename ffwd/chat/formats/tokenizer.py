"""The members of a tokenizer that formats use."""

from typing import Protocol

from ffwd.chat.control import control_tokens
from ffwd.chat.prompt import PromptTokenizer
from ffwd.tokenizer.table import TokenKind


class FormatTokenizer(PromptTokenizer, Protocol):
    """The members of a tokenizer that formats use; `ffwd.tokenizer.Tokenizer` has them."""

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        """The ids that end an answer."""
        ...

    @property
    def prefix_ids(self) -> tuple[int, ...]:
        """The ids that the tokenizer adds before a text: the beginning token, or none."""
        ...

    def encode(self, text: str, /) -> list[int]:
        """Return the ids of a text alone, without special tokens."""
        ...

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        ...

    def id_to_token(self, token_id: int, /) -> str | None:
        """Return a token's name."""
        ...

    def token_to_id(self, content: str, /) -> int | None:
        """Return the id of a token by its name."""
        ...

    def token_kind(self, token_id: int, /) -> TokenKind:
        """Return the kind of a token."""
        ...


def control_id(tokenizer: FormatTokenizer, name: str) -> int | None:
    """Return the id of the control token of that name, or None.

    A text token with the same characters does not count: a message's text would produce it too.
    """
    return control_tokens(tokenizer).ids.get(name)
