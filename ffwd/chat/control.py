"""The control tokens of a vocabulary by name, and their positions in a template's text."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from ffwd.tokenizer.table import TokenKind

# Names that are always control tokens: a template that writes one does not fit a vocabulary that
# lacks it. `[INST]` and `<think>` are text to some models.
_NAME = re.compile(
    r"<\|[A-Za-z0-9_./:-]+\|>|<\uff5c[^<>\uff5c\s]+\uff5c>|</?s>|<(?:bos|eos|start_of_turn|end_of_turn)>"
)


@dataclass(frozen=True)
class ControlTokens:
    """The control tokens of a vocabulary: their ids by name."""

    ids: Mapping[str, int]
    kinds: Mapping[str, TokenKind]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Finds them; of several at one position, the longest."""
        names = sorted(filter(None, self.ids), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, names)) or r"(?!)")

    @cached_property
    def longest(self) -> int:
        """The length of the longest name."""
        return max(map(len, self.ids), default=0)

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Return their positions in a text: start, end, name."""
        for found in self.pattern.finditer(text):
            yield found.start(), found.end(), found.group()


def missing_names(text: str) -> list[str]:
    """Return the names that look like control tokens in a text without any, each once."""
    return list(dict.fromkeys(_NAME.findall(text)))


_KNOWN: "WeakKeyDictionary[Any, ControlTokens]" = WeakKeyDictionary()


def control_tokens(tokenizer: Any) -> ControlTokens:
    """Return the control tokens of a tokenizer: all tokens with a name and without text.

    Tokens that are not flagged as special count as well (`<tool_call>`, `<think>`).
    Found once for each tokenizer.
    """
    known = _KNOWN.get(tokenizer)
    if known is None:
        ids: dict[str, int] = {}
        kinds: dict[str, TokenKind] = {}
        for token_id in range(tokenizer.vocab_size):
            kind = tokenizer.token_kind(token_id)
            if kind is TokenKind.TEXT or kind is TokenKind.PADDING:
                continue
            name = tokenizer.id_to_token(token_id)
            if name and name not in ids:
                ids[name] = token_id
                kinds[name] = kind
        known = _KNOWN[tokenizer] = ControlTokens(ids, kinds)
    return known


def special_token_variables(tokenizer: Any) -> dict[str, str]:
    """Return the variables that templates read as `bos_token`, `eos_token` and so on."""
    tokens = tokenizer.special_tokens
    found = {
        f"{role}_token": getattr(tokens, role, None)
        for role in ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
    }
    return {name: token.content for name, token in found.items() if token is not None}
