"""Regular expressions whose texts stand within a JSON string.

Each character has one way to be written there: `json.dumps` escapes the quote, the backslash and
the control characters. So the texts of the result are those of the expression, one for one.
"""

import json
import re
from dataclasses import dataclass, field
from functools import cache, lru_cache

from ffwd._bitmask import allocate_bitmask
from ffwd._compile import compile as compile_grammar
from ffwd._native import GrammarError, Vocabulary
from ffwd.grammar import regex

SPECIAL = frozenset({'"', "\\", *map(chr, range(32))})
"""The characters that are escaped."""
MAX_CLASSES = 256
"""Each is compiled alone."""
_PUNCTUATION = frozenset("!#$%&'()*+,-./:;=?@[]^_`{|}~ ")
"""Characters that mean themselves behind a backslash and are no special ones."""
ANY = r"[\x00-\x{10FFFF}]"
_SPECIAL_CLASS = r'["\\\x00-\x1F]'
_ESCAPE = re.compile(
    r"\\(?:[pP](?:\{[^}]*\}|.)|[xuU]\{[^}]*\}|x.{2}|u.{4}|U.{8}|b\{[^}]*\}|.)", re.DOTALL
)
_FLAGS = re.compile(r"\(\?([A-Za-z-]*)([:)])")
_NAMED = re.compile(r"\(\?P?<[^>]*>")
_COUNT = re.compile(r"\{[^}]*\}")


@cache
def byte_vocabulary() -> Vocabulary:
    """Return a vocabulary for trial compilations, whose success does not depend on it."""
    return Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])


def escaped(text: str) -> str:
    """Return a text as it stands within a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


@dataclass(frozen=True)
class Classes:
    """The classes of an expression or of all those of a grammar.

    Attributes:
        sources: The classes, as they are written.
        special: The special characters of each that has some.

    """

    sources: set[str] = field(default_factory=set)
    special: set[frozenset[str]] = field(default_factory=set)

    def members(self, source: str, ignore_case: bool) -> tuple[tuple[str, ...], bool]:
        """Return the special characters in a class, and whether it has others.

        Raises:
            GrammarError: There are more classes than are looked at.

        """
        self.sources.add(source)
        if len(self.sources) > MAX_CLASSES:
            raise refused(f"more than {MAX_CLASSES} different classes of characters", "a grammar")
        special, others = _members(source, ignore_case)
        if special:
            self.special.add(frozenset(special))
        return special, others


def escaped_regex(pattern: str, flags: str = "", classes: Classes | None = None) -> str:
    """Return the expression of the escaped texts, in the dialect `rust`, without flags.

    Args:
        pattern: In the dialect `rust`.
        flags: Flags by their letters.
        classes: Receives its classes.

    Raises:
        GrammarError: The expression cannot be parsed, or has a part whose escaped texts no
            expression describes.
        LimitExceededError: A limit was exceeded.

    """
    compile_grammar(regex(pattern, flags="".join(set(flags) - {"u"})), byte_vocabulary())
    return _Escaping(pattern, frozenset(flags), classes or Classes()).all()


class _Escaping:
    """One expression, which is known to be valid."""

    def __init__(self, pattern: str, flags: frozenset[str], classes: Classes) -> None:
        self._pattern = pattern
        self._at = 0
        self._flags = flags
        self._groups: list[frozenset[str]] = []
        self._classes = classes

    def all(self) -> str:
        """Return the whole expression."""
        self._check_flags()
        parts: list[str] = []
        while self._at < len(self._pattern):
            parts.append(self._next())
        # A flag in the expression may stand beside alternatives.
        return f"(?:{''.join(parts)})"

    def _next(self) -> str:
        first = self._pattern[self._at]
        if first == "(":
            return self._open()
        if first == "[":
            return self._class(self._take(self._end_of_class()))
        if first == "\\":
            return self._escape()
        if first == "{":
            return self._taken(_COUNT)
        self._at += 1
        if first == ")":
            self._flags = self._groups.pop()
        elif first == ".":
            return self._class(ANY if "s" in self._flags else r"[^\n]")
        elif first in "^$" and "m" in self._flags:
            raise self._refused(f"`{first}` of lines")
        elif first not in "|*+?^$":
            return self._class(re.escape(first)) if first in SPECIAL else self._cased(first)
        return first

    def _open(self) -> str:
        flags = _FLAGS.match(self._pattern, self._at)
        if flags is None:
            named = _NAMED.match(self._pattern, self._at)
            self._at += 1 if named is None else len(named[0])
            self._groups.append(self._flags)
            return "(?:"
        self._at = flags.end()
        if flags[2] == ":":
            self._groups.append(self._flags)
        on, _, off = flags[1].partition("-")
        self._flags = (self._flags | frozenset(on)) - frozenset(off)
        self._check_flags()
        return "(?:" if flags[2] == ":" else ""

    def _escape(self) -> str:
        taken = self._taken(_ESCAPE)
        if taken in ("\\A", "\\z"):
            return taken
        if taken[1] in _PUNCTUATION:
            return taken
        if taken[1] in "bB<>":
            raise self._refused(f"the word boundary `{taken}`")
        return self._class(taken)

    def _class(self, source: str) -> str:
        """Return a class without what is escaped, and the escapes of the rest."""
        members, others = self._classes.members(source, "i" in self._flags)
        if not members:
            return self._cased(source)
        escapes = _escapes(members)
        if not others:
            return escapes
        return f"(?:{self._cased(f'[{source}--{_SPECIAL_CLASS}]')}|{escapes})"

    def _cased(self, source: str) -> str:
        return f"(?i:{source})" if "i" in self._flags else source

    def _end_of_class(self) -> int:
        """Return the end of the class that begins here; classes nest."""
        pattern, at, depth = self._pattern, self._at, 0
        while at < len(pattern):
            if pattern[at] == "[":
                depth += 1
                at += 2 if pattern.startswith("^", at + 1) else 1
                # At its beginning it is a member.
                at += pattern.startswith("]", at)
                continue
            if pattern[at] == "]":
                depth -= 1
                if not depth:
                    return at + 1
            at += 2 if pattern[at] == "\\" else 1
        raise self._refused("this way to write a class")

    def _take(self, end: int) -> str:
        begin, self._at = self._at, end
        return self._pattern[begin:end]

    def _taken(self, kind: re.Pattern[str]) -> str:
        found = kind.match(self._pattern, self._at)
        if found is None:
            raise self._refused(repr(self._pattern[self._at]))
        return self._take(found.end())

    def _check_flags(self) -> None:
        for flag, name in (("x", "whitespace that is ignored"), ("R", "line ends of CRLF")):
            if flag in self._flags:
                raise self._refused(f"the flag `{flag}` ({name})")

    def _refused(self, what: str) -> GrammarError:
        return refused(what, "the regular expression")


def refused(what: str, where: str) -> GrammarError:
    """Return the error for a part that has no escaped form."""
    return GrammarError(
        f"{what} is not supported in {where} of a custom tool, whose input stands in a JSON "
        "string: write it otherwise"
    )


@lru_cache(maxsize=4096)
def _escapes(members: tuple[str, ...]) -> str:
    """Return the escapes of special characters: a letter or sign, or the end of a number."""
    written = [escaped(member)[1:] for member in members]
    short = "".join(re.escape(each) for each in written if len(each) == 1)
    numbers = [each for each in written if len(each) > 1]
    options = [f"[{short}]"] * bool(short)
    if numbers:
        options.append(f"u00(?:{'|'.join(each[3:] for each in numbers)})")
    return rf"(?:\\(?:{'|'.join(options)}))"


@lru_cache(maxsize=4096)
def _members(source: str, ignore_case: bool) -> tuple[tuple[str, ...], bool]:
    """Return the special characters in a class, and whether it has others."""
    grammar = compile_grammar(regex(source, flags="i" if ignore_case else ""), byte_vocabulary())
    bits = allocate_bitmask(1, 257)
    grammar.matcher().fill_bitmask(bits, 0)
    allowed = [byte for byte in range(256) if int(bits[0, byte // 32]) >> byte % 32 & 1]
    special = tuple(chr(byte) for byte in allowed if chr(byte) in SPECIAL)
    return special, len(special) < len(allowed)
