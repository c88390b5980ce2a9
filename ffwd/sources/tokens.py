"""A tokenizer by its source, or bytes as tokens, and the names of its tokens."""

from __future__ import annotations

from pathlib import Path

import ffwd.tokenizer
from ffwd._native import Vocabulary
from ffwd.tokenizer import Tokenizer

BYTES = "each byte a token"
"""The source of the vocabulary without a tokenizer."""


class NamedTokens:
    """A vocabulary and the names of its tokens.

    Args:
        source: What `ffwd.tokenizer.load` takes as text; without one each byte is a token.
        local_files_only: Whether a source that is no path is refused instead of fetched.

    Attributes:
        source: The source.
        tokenizer: The tokenizer; None for bytes.
        vocabulary: The vocabulary for grammars.

    Raises:
        VocabularyError: The tokenizer cannot be read.

    """

    def __init__(self, source: str | None, *, local_files_only: bool = False) -> None:
        self.tokenizer: Tokenizer | None = None
        if source is None:
            self.source = BYTES
            single = [bytes([byte]) for byte in range(256)]
            self.vocabulary = Vocabulary([*single, None], eos_token_ids=[256], encode=list)
        else:
            self.source = source
            self.tokenizer = ffwd.tokenizer.load(source, local_files_only=local_files_only)
            self.vocabulary = self.tokenizer.vocabulary()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.source!r})"

    def name(self, token_id: int) -> str:
        """Return the name of a control token."""
        if token_id in self.vocabulary.eos_token_ids and self.tokenizer is None:
            return "<end>"
        name = None if self.tokenizer is None else self.tokenizer.id_to_token(token_id)
        return name or f"<{token_id}>"

    def definition(self) -> Path | None:
        """Return the path of the source's tokenizer.json, which other engines read, if it has one.

        The source is a directory with that file, or the file.
        """
        if self.tokenizer is None:
            return None
        path = Path(self.source).expanduser()
        path = path / "tokenizer.json" if path.is_dir() else path
        return path if path.name == "tokenizer.json" and path.is_file() else None
