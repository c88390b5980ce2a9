"""Lark grammars whose texts stand within a JSON string.

Strings and patterns are escaped, each in its place; rules stay as they are. All escapes begin with
a backslash, where a lexer cannot know yet which character comes, and a lexeme that could continue
with one of them would not end before another. So a grammar is refused unless all of its strings and
patterns have the same escaped characters at each position, or none: then the longest matches are
those of the grammar as it was.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ffwd._compile import compile as compile_grammar
from ffwd._native import GrammarError
from ffwd.grammar import lark
from ffwd.tools.escaped_regex import (
    SPECIAL,
    Classes,
    byte_vocabulary,
    escaped,
    escaped_regex,
    refused,
)

_WHERE = "the Lark grammar"
_TOKEN = re.compile(
    r"""(?P<blank>[ \t]+|\#[^\r\n]*|//[^\r\n]*)
      |(?P<newline>\r?\n)
      |"(?P<text>(?:[^"\\\n]|\\.)*)"(?P<case>i?)
      |/(?P<pattern>(?:[^/\\]|\\[\s\S])*)/(?P<flags>[a-z]*)
      |(?P<special><[^<>\s]+>)
      |(?P<directive>%\w+)
      |(?P<reference>@[\w-]+)
      |(?P<number>-?[0-9][0-9A-Za-z]*)
      |(?P<name>_?[A-Za-z](?:\w|-(?!>))*)
      |(?P<sign>->|::|\.\.|.)
    """,
    re.VERBOSE,
)
_COPIED = ("%ignore", "%if")
_IMPORTED = re.compile(r"common\s*(?:\.\s*(?P<one>\w+)(?:\s*->\s*(?P<alias>\w+))?|\((?P<all>.*)\))")
# The terminals of Lark's library that have texts with escapes, by Lark's own definitions.
_COMMON = {
    "ESCAPED_STRING": r'"([^"\\]|\\.)*"',
    "WS_INLINE": r"[ \t]+",
    "WS": r"[ \t\f\r\n]+",
    "CR": r"\r",
    "LF": r"\n",
    "NEWLINE": r"(\r?\n)+",
    "SH_COMMENT": r"#[^\n]*",
    "CPP_COMMENT": r"//[^\n]*",
    "C_COMMENT": r"/\*([^*]|\*+[^*/])*\*+/",
    "SQL_COMMENT": r"--[^\n]*",
}


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    match: re.Match[str]


def escaped_lark(text: str) -> str:
    """Return the grammar of the escaped texts.

    Raises:
        GrammarError: The grammar cannot be parsed, or has a part whose escaped texts no grammar
            describes: JSON values, tokens, nested grammars, attributes, complements.
        LimitExceededError: A limit was exceeded.

    """
    compile_grammar(lark(text), byte_vocabulary())
    tokens = list(_tokens(text))
    parts: list[str] = []
    classes = Classes()
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.kind == "newline" and _has_attributes(tokens, at + 1):
            raise refused("an attribute of a rule", _WHERE)
        if token.text == "%import":
            end = at + 1
            while end < len(tokens) and tokens[end].kind != "newline":
                end += 1
            parts.append(_imported("".join(each.text for each in tokens[at + 1 : end]), classes))
            at = end
        elif _is_range(tokens, at):
            bounds = [_value(tokens[place]) for place in (at, at + 2)]
            first, last = (f"\\x{{{ord(bound):X}}}" for bound in bounds)
            parts.append(_pattern(escaped_regex(f"[{first}-{last}]", "", classes)))
            at += 3
        else:
            following = tokens[at + 1] if at + 1 < len(tokens) else None
            parts.append(_escaped(token, following, classes))
            at += 1
    if len(classes.special) > 1:
        several = sorted(frozenset().union(*classes.special))
        shown = ", ".join(repr(special) for special in several[-4:])
        raise refused(f"more than one set of characters that JSON escapes ({shown})", _WHERE)
    return " ".join(parts)


def _tokens(text: str) -> Iterator[_Token]:
    """Return the tokens of a grammar that is known to be valid, without blanks and comments."""
    # A line end before the first rule makes all definitions begin behind one.
    for match in _TOKEN.finditer("\n" + text):
        kind = match.lastgroup or ""
        kind = {"case": "text", "flags": "pattern"}.get(kind, kind)
        if kind != "blank":
            yield _Token(kind, match[0], match)


def _has_attributes(tokens: list[_Token], at: int) -> bool:
    """Return whether a definition begins here that has `[…]` before its colon."""
    for token in tokens[at:]:
        if token.kind in ("newline", "directive") or token.text in (":", "|"):
            return False
        if token.text == "[":
            return True
    return False


def _is_range(tokens: list[_Token], at: int) -> bool:
    return (
        at + 2 < len(tokens)
        and tokens[at].kind == tokens[at + 2].kind == "text"
        and tokens[at + 1].text == ".."
    )


def _escaped(token: _Token, following: _Token | None, classes: Classes) -> str:
    if token.kind == "text":
        value = _value(token)
        classes.special.update(frozenset(special) for special in SPECIAL.intersection(value))
        if token.match["case"]:
            return _pattern(escaped_regex(re.escape(value), "i", classes))
        return json.dumps(escaped(value))
    if token.kind == "pattern":
        flags = "".join(set(token.match["flags"]) - {"u"})
        pattern = token.match["pattern"].replace("\\/", "/")
        return _pattern(escaped_regex(pattern, flags, classes))
    if token.kind in ("special", "reference") or (
        token.kind == "directive" and token.text not in _COPIED
    ):
        raise refused(f"`{token.text}`", _WHERE)
    if token.text == "~" and (following is None or following.kind != "number"):
        raise refused("a complement", _WHERE)
    return token.text


def _imported(text: str, classes: Classes) -> str:
    found = _IMPORTED.fullmatch(text.strip())
    if found is None:
        raise refused(f"`%import {text}`", _WHERE)
    names = [found["one"]] if found["one"] else [name.strip() for name in found["all"].split(",")]
    lines = []
    for name in names:
        alias = found["alias"] or name
        if name in _COMMON:
            lines.append(f"{alias}: {_pattern(escaped_regex(_COMMON[name], '', classes))}")
        else:
            lines.append(f"%import common.{name} -> {alias}")
    return "\n".join(lines)


def _value(token: _Token) -> str:
    """Return the text of a string: JSON's escapes and two hexadecimal digits."""
    written = re.sub(
        r"\\(?:x([0-9A-Fa-f]{2})|[\s\S])",
        lambda escape: f"\\u00{escape[1]}" if escape[1] else escape[0],
        token.match["text"],
    )
    value = json.loads(f'"{written}"')
    if not isinstance(value, str):
        raise GrammarError(f"{token.text} is no string")
    return value


def _pattern(pattern: str) -> str:
    """Return a pattern between slashes; an escaped slash stays one."""
    return "/" + re.sub(r"\\[\s\S]|/", lambda m: "\\/" if m[0] == "/" else m[0], pattern) + "/"
