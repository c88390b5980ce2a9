"""For each real template a small tokenizer that has the control tokens which it writes."""

import re
import sys
from functools import cache
from pathlib import Path

import reference
from conversations import CONVERSATIONS, OPTIONS
from tokenizers import AddedToken, Tokenizer

import ffwd.tokenizer
from ffwd.chat import ChatError, ChatTemplate

sys.path.append(str(Path(__file__).resolve().parents[1] / "tokenizer"))
from smalltokenizers import byte_level

_NAME = re.compile(
    r"<\|[^|<>'\" ]+\|>|<\|[^|<>'\" ]+>|<[^|<>'\" ]+\|>|<\|\"\|>|<\uff5c[^\uff5c<>]+\uff5c>"
    r"|\[/?[A-Z_]+\]|</?[a-z]+(?:[_:][a-z]+)*(?::opensource)?>|</s>|\]<\]minimax\[>\["
)


@cache
def control_names(path: Path) -> tuple[str, ...]:
    """What looks like a control token in a template's source, or in what it writes."""
    source = path.read_text(encoding="utf-8")
    names = dict.fromkeys([*reference.SPECIAL.values(), *_NAME.findall(source)])
    template = ChatTemplate(source, special_tokens=reference.SPECIAL)
    for option in ("plain", "tools-prompt", "functions", "documents"):
        for name in ("system-turns", "user", "result", "call", "reasoning"):
            try:
                text = template.render_text(
                    CONVERSATIONS[name], now=reference.NOW, **OPTIONS[option]
                )
            except ChatError:
                continue
            names |= dict.fromkeys(_NAME.findall(text))
    # These are made of what the conversations and tools have in them.
    return tuple(
        name
        for name in names
        if not re.fullmatch(r"</?([bxy]|default|enum|items|required|place|days|tags)>", name)
    )


@cache
def library_tokenizer(path: Path) -> Tokenizer:
    """Bytes, and the control tokens; what is written like an XML tag is not flagged as special."""
    names = control_names(path)
    tags = [n for n in names if re.fullmatch(r"</?[a-z_:]+>", n) and n not in ("<s>", "</s>")]
    made = byte_level([AddedToken(n, special=False, normalized=False) for n in tags], end=None)
    made.add_special_tokens(
        [AddedToken(n, special=True, normalized=False) for n in names if n not in tags]
    )
    return made


@cache
def tokenizer(path: Path) -> ffwd.tokenizer.Tokenizer:
    """The same, as this library reads it."""
    return ffwd.tokenizer.load(library_tokenizer(path))
