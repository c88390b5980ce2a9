"""Texts of a case as tokens, and texts that differ a little from those that it accepts.

In texts of cases with the tag `special` the character U+E000 + n stands for a special token, as
Llama 3's files name them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

from maskbench.conformance.grammars.cases import GrammarCase
from maskbench.tokenizer import OutputEncoder, TokenizerSpec

SPECIAL = "special"
TOKENS = "tokens"
"""Tags: names special tokens; names tokens by ids, which spell the examples as bytes only."""

_PLACEHOLDERS = {
    0xE000 + number: name
    for number, name in enumerate(
        (
            "<|begin_of_text|>",
            "<|end_of_text|>",
            *(f"<|reserved_special_token_{number}|>" for number in range(2, 8)),
            "<|eom_id|>",
        )
    )
}


class ContinuationEncoder:
    """Texts as a tokenizer writes them in the middle of an output."""

    def __init__(self, spec: TokenizerSpec) -> None:
        self._encoder = OutputEncoder(spec)
        self._special = _special_tokens(spec.directory)

    def knows(self, case: GrammarCase) -> bool:
        """Return whether the vocabulary has the special tokens of the case."""
        used = {ord(char) for text in case.accepted for char in text} & set(_PLACEHOLDERS)
        return SPECIAL not in case.tags or all(_PLACEHOLDERS[u] in self._special for u in used)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, placeholders included."""
        ids: list[int] = []
        start = 0
        for at, char in enumerate(text):
            token = self._special.get(_PLACEHOLDERS.get(ord(char), ""))
            if token is not None:
                ids += [*self._encoder.encode(text[start:at]), token]
                start = at + 1
        return ids + self._encoder.encode(text[start:])


def mutated(source: random.Random, texts: Sequence[str]) -> str:
    """Return a text with one to three changes: characters removed, added, swapped or replaced."""
    text = source.choice(texts)
    for _ in range(source.randint(1, 3)):
        other = source.choice(texts)
        at = source.randint(0, len(text))
        end = min(len(text), at + source.choice((1, 1, 1, 2, 5)))
        from_ = source.randint(0, len(other))
        piece = other[from_ : from_ + source.choice((1, 1, 2, 4, 8))]
        change = source.randrange(5)
        if change == 0:
            text = text[:at] + text[end:]
        elif change == 1:
            text = text[:at] + piece + text[at:]
        elif change == 2:
            text = text[:at] + piece + text[end:]
        elif change == 3:
            text = text[:at] + text[at:end] * 2 + text[end:]
        else:
            text = text[:at] + source.choice(" \n\"'()x0é,;-") + text[end:]
    return text


def _special_tokens(directory: Path) -> dict[str, int]:
    tokenizer = json.loads((directory / "tokenizer.json").read_text(encoding="utf-8"))
    return {token["content"]: token["id"] for token in tokenizer.get("added_tokens", ())}
