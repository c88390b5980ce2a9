"""Which tokens are text, and which a grammar must never offer as text.

A token that is wrongly held to be text is a hole: the model writes `<tool_call>` inside a JSON
string, the grammar sees harmless characters, and the server sees a tool call. A token that is
wrongly held to be control costs nothing but length, for the same text can be spelled with other
tokens. So an added token is text only if it plainly is:

1. it is not flagged as special;
2. it is not a name with a bracket or bar in it (`<think>`, `[INST]`, `<|EOT|>`, `<table>` are
   control; runs of spaces, `{{`, and words that a fine-tune added are text);
3. it stands for itself: the decoder gives back its content, and it does not swallow the
   whitespace around it.

Tokens of the model's own vocabulary are text unless their name is a placeholder's. Where one of
them was added once more and only 3 fails, it remains what it is without that: GPT-2's `é`, for
example, is the byte 0xE9, and no text with that byte could do without it.
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
    """What matters here of a token that was added to a tokenizer beside its model's vocabulary."""

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
        """Whether it swallows whitespace on any side."""
        return self.lstrip or self.rstrip


def is_placeholder(name: str) -> bool:
    """Whether this is the name of an id that is kept free, such as `[control_12]`."""
    # No such name is long, and the pattern takes quadratic time on a hostile one.
    return len(name) <= 64 and _PLACEHOLDER.fullmatch(name) is not None


def looks_like_control(name: str) -> bool:
    """Whether a name is one with a bracket or bar in it: `<think>`, `[INST]`, Gemma's `<|"|>`."""
    if name.startswith("<|") and name.endswith("|>") and len(name) > len("<||>"):
        return True
    return _BRACKET.search(name) is not None and any(map(str.isalnum, name))


def kind_of_added(added: AddedToken, decoded: bytes, *, in_model: bool) -> TokenKind | None:
    """The kind of an added token, or None where it is none but a token of the model's vocabulary.

    `decoded` is what the tokenizer's decoder makes of it; `in_model`: whether the model's own
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
