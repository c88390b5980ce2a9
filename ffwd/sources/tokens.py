"""A tokenizer by its source, or bytes as tokens, and the names of its tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
        self._names: dict[int, str] = {}
        if source is None:
            self.source = BYTES
            single = [bytes([byte]) for byte in range(256)]
            self.vocabulary = Vocabulary([*single, None], eos_token_ids=[256], encode=list)
            self._names = {256: "<end>"}
        else:
            self.source = source
            self.tokenizer = ffwd.tokenizer.load(source, local_files_only=local_files_only)
            self.vocabulary = self.tokenizer.vocabulary()

    @staticmethod
    def of(given: Any) -> NamedTokens:
        """Return the tokens of a vocabulary, or of what `ffwd.tokenizer.load` takes.

        Raises:
            VocabularyError: The tokenizer cannot be read; nothing is fetched.

        """
        if isinstance(given, (str, Path)):
            return NamedTokens(str(Path(given).expanduser()), local_files_only=True)
        made = NamedTokens(None)
        if isinstance(given, Vocabulary):
            made.source = f"a vocabulary of {given.vocab_size:,} tokens"
            made.vocabulary = given
            made._names = {token: name for name, token in given.token_names.items()}
            return made
        found = given if isinstance(given, Tokenizer) else ffwd.tokenizer.load(given)
        made.source, made.tokenizer, made.vocabulary = found.source, found, found.vocabulary()
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.source!r})"

    def name(self, token_id: int) -> str:
        """Return the name of a control token."""
        name = self._names.get(token_id)
        if self.tokenizer is not None:
            name = self.tokenizer.id_to_token(token_id)
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
