"""Hostile regular expressions, choices and runs of a text."""

from __future__ import annotations

from collections.abc import Callable

import ffwd
from ffwd import Grammar
from maskbench.conformance.hostile.case import HostileCase
from maskbench.conformance.hostile.schemas import WORDS


def _regex(name: str, what: str, pattern: str, begin: bytes = b"") -> HostileCase:
    return HostileCase(name, what, lambda: ffwd.regex(pattern), begin)


def _python(name: str, what: str, pattern: str, begin: bytes = b"") -> HostileCase:
    return HostileCase(name, what, lambda: ffwd.regex(pattern, dialect="python"), begin)


def _made(name: str, what: str, grammar: Callable[[], Grammar], begin: bytes = b"") -> HostileCase:
    return HostileCase(name, what, grammar, begin)


PATTERNS = (
    _regex(
        "powers", "counted repeats of counted repeats", "(?:(?:a{1000}){1000}){1000}", b"a" * 100
    ),
    _regex("ambiguity", "one text in very many ways", "(a|aa)*{1000}", b"a" * 100),
    _regex("million", "a repeat of a group", "(?:ab?){1000000000}", b"ab" * 100),
    _regex(
        "options",
        "counted options of counted options",
        "((((a{0,99}){0,99}){0,99}){0,99})b",
        b"a" * 100,
    ),
    _regex("exponential", "the classic of backtracking", "(a?){5000}a{5000}", b"a" * 100),
    _regex("suffix", "the 40th letter from the end", "(a|b)*a(a|b){40}", b"ab" * 60),
    _regex("echo", "the 1,000th character from the end", ".*a.{1000}", b"ab" * 60),
    _regex("stars", "stars of stars of stars", "(((((a*b?)*c?)*d?)*e?)*f?)*g", b"abcdef" * 10),
    _regex("characters", "3,000 large classes", "\\p{L}" * 3000, b"a" * 60),
    _regex("alphabets", "classes beside each other", "(\\w\\W\\p{Greek}?){300}", b"a-" * 30),
    _regex("dictionary", "10,000 words", "|".join(WORDS[:10_000]), b"a"),
    _regex(
        "lists", "a list of words, 1,000 times", "(?:" + "|".join(WORDS[:1000]) + "){1000}", b"aaw"
    ),
    _regex("literal", "a text of 500,000 characters", "a" * 500_000, b"a"),
    _regex("groups", "groups in groups", "(" * 50_000 + "a" + ")" * 50_000, b"a"),
    _regex("alternatives", "alternatives in alternatives", "(a|" * 190 + "b" + ")" * 190, b"b"),
    _python(
        "lookaheads",
        "30 of them at the beginning",
        "".join(f"(?=.*{c}.{{{n}}})" for n, c in enumerate("abcdefghijklmnopqrstuvwxyzABCD"))
        + ".*",
        b"abc",
    ),
    _python(
        "lookbehinds", "in a repeat", "(?:\\w(?<!ab)(?<!bc)(?<!cd)(?<=[a-z]{3}|^.{0,3}))*", b"abc"
    ),
    _python("boundaries", "everywhere", "(?:\\b\\w+\\b\\W+\\B?){50}", b"ab cd "),
    _made(
        "intersection",
        "texts with the sequence of all letters",
        lambda: ffwd.intersection(
            *(
                ffwd.regex(f"(?s:.*{a}.{{{n}}}{b}.*)")
                for n, (a, b) in enumerate(zip("abcdefghijkl", "mnopqrstuvwx", strict=True))
            )
        ),
        b"am",
    ),
    _made(
        "complement",
        "not one of many counted runs",
        lambda: ffwd.complement(ffwd.regex("(?s:.*(a.{17}|b.{19}|c.{23})x.*)")),
        b"abc",
    ),
    _made(
        "paradox",
        "what is and is not",
        lambda: ffwd.intersection(
            ffwd.regex("(ab|c)*"), ffwd.complement(ffwd.regex("(a|b|c){0,500}"))
        ),
        b"abc",
    ),
    _made(
        "choice", "a million texts", lambda: ffwd.choice([str(n) for n in range(1_000_000)]), b"12"
    ),
    _made(
        "novel",
        "any run of the words of a long text",
        lambda: ffwd.substring_of(
            " ".join(WORDS[n * n % 10_007 % len(WORDS)] for n in range(100_000))
        ),
        b"aaw",
    ),
    _made(
        "shards",
        "any run of the characters of a text",
        lambda: ffwd.substring_of("ab" * 100_000 + "c", by="chars"),
        b"abab",
    ),
)
