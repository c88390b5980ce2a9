"""The classification of tokens as text or control, which decides what grammars may allow as text.

A control token that is classified as text is a hole: the model writes `<tool_call>` inside a JSON
string, the grammar sees harmless characters, and the server sees a tool call. A text token that is
classified as control costs only length, because other tokens encode the same text. An added token
is therefore text only if all of this holds:

1. It is not flagged as special.
2. Its name has no brackets or bars (`<think>`, `[INST]`, `<|EOT|>`, `<table>` are control; runs of
   spaces, `{{`, and words that a fine-tune added are text).
3. The decoder returns its content, and it does not consume the whitespace around it.

Tokens of the model's own vocabulary are text unless their name is a placeholder's. If one of them
was added once more and only 3 fails, it stays text: GPT-2's `é`, for example, is the byte 0xE9,
which no other token has.
"""

import re
from dataclasses import dataclass

from ffwd.tokenizer.table import TokenKind

_BRACKET = re.compile(r"[<>\[\]{}|\uff5c\uff1c\uff1e\u3010\u3011]")

_PLACEHOLDER = re.compile(
    r"""
    (?: <[|\uff5c]? | \[ )
    [^<>\[\]]* (?: reserved | unused | control | pad | extra_id | place.?holder | dummy )
    [^<>\[\]0-9]* [0-9]+ [^<>\[\]0-9]*
    (?: [|\uff5c]?> | \] )
    """,
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class AddedToken:
    """The relevant properties of a token that was added to the model's vocabulary."""

    content: str
    special: bool
    lstrip: bool = False
    """Whether it swallows whitespace to its left."""
    rstrip: bool = False
    """Whether it swallows whitespace to its right."""
    normalized: bool = False
    """Whether it is looked for in the normalized text rather than in the text as it is."""
    single_word: bool = False
    """Whether it is found only where no letter or digit adjoins it."""

    @property
    def strips(self) -> bool:
        """Whether it consumes whitespace on any side."""
        return self.lstrip or self.rstrip


def is_placeholder(name: str) -> bool:
    """Return whether this is the name of an unused id, such as `[control_12]`."""
    # No such name is long, and the pattern takes quadratic time on a hostile one.
    return len(name) <= 64 and _PLACEHOLDER.fullmatch(name) is not None


def looks_like_control(name: str) -> bool:
    """Return whether a name has brackets or bars: `<think>`, `[INST]`, Gemma's `<|"|>`."""
    if name.startswith("<|") and name.endswith("|>") and len(name) > len("<||>"):
        return True
    return _BRACKET.search(name) is not None and any(map(str.isalnum, name))


def kind_of_added(added: AddedToken, decoded: bytes, *, in_model: bool) -> TokenKind | None:
    """Return the kind of an added token, or None if it only repeats one of the model's vocabulary.

    `decoded` is the tokenizer's decoding of it; `in_model`: whether the model's own
    vocabulary has it too.
    """
    if is_placeholder(added.content):
        return TokenKind.UNUSED
    if added.special:
        return TokenKind.SPECIAL
    if looks_like_control(added.content):
        return TokenKind.CONTROL
    if decoded and decoded == added.content.encode() and not added.strips:
        return TokenKind.TEXT
    return None if in_model else TokenKind.CONTROL
