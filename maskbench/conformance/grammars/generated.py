"""Cases whose grammars are long, and are made rather than kept."""

from __future__ import annotations

import random
from collections.abc import Iterator

from maskbench.conformance.grammars.cases import GrammarCase

_SYLLABLES = ("ba", "ce", "di", "fo", "gu", "lam", "mer", "nil", "pos", "rut", "sta", "tre", "vi")


def words(count: int, seed: str) -> list[str]:
    """Return this many different words, many with common prefixes."""
    source = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(source.choices(_SYLLABLES, k=source.randint(1, 5)))] = None
    return list(found)


def generated() -> Iterator[GrammarCase]:
    """Return large alternations, long chains, and many rules."""
    keywords = words(1000, "keywords")
    quoted = " | ".join(f'"{word}"' for word in keywords)
    some = keywords[17], keywords[500], keywords[999]
    spaced = " ".join(some)
    yield GrammarCase(
        "thousand_keywords",
        "lark",
        f'start: KW (" " KW)*\nKW: {quoted}\n',
        frozenset({"alternation", "large"}),
        (spaced,),
        ("zzz",),
    )
    yield GrammarCase(
        "thousand_literals",
        "lark",
        f'start: kw+\nkw: {quoted}\n%ignore " "\n',
        frozenset({"alternation", "large", "ignore"}),
        (spaced,),
        ("zzz",),
    )
    yield GrammarCase(
        "thousand_keywords_and_names",
        "lark",
        f'start: (KW | NAME ";")+\nKW: {quoted}\nNAME: /[a-z]+/\n%ignore " "\n',
        frozenset({"alternation", "large", "ignore", "keywords"}),
        (spaced, f"{some[0]} zz;"),
        ("zz",),
    )
    yield GrammarCase(
        "g_thousand_keywords",
        "gbnf",
        f'root ::= word (" " word)*\nword ::= {quoted}\n',
        frozenset({"alternation", "large"}),
        (spaced,),
        ("zzz",),
    )
    yield GrammarCase(
        "rx_thousand_keywords",
        "regex",
        f"({'|'.join(keywords)})( ({'|'.join(keywords)}))*",
        frozenset({"alternation", "large"}),
        (spaced,),
        ("zzz",),
    )
    chain = "".join(f'r{i}: r{i + 1} | "<{i}" r0 ">"\n' for i in range(60))
    yield GrammarCase(
        "chain_of_sixty_rules",
        "lark",
        f'start: r0\n{chain}r60: "x"\n',
        frozenset({"unit-rules", "large", "center-recursion"}),
        ("x", "<3<59x>>"),
        ("<60x>",),
    )
    left = "".join(f'e{i}: e{i} "{op}" e{i + 1} | e{i + 1}\n' for i, op in enumerate("|^&=<+*/%@"))
    yield GrammarCase(
        "ten_levels_left",
        "lark",
        f'start: e0\n{left}e10: /[a-z]/ | "(" e0 ")"\n',
        frozenset({"left-recursion", "arithmetic", "large"}),
        ("a|b^c&(d@e%f)/g",),
        ("a||b",),
    )
    depth = 12
    yield GrammarCase(
        "nested_groups",
        "lark",
        "start: " + '("a" ' * depth + '"x"' + ' "b")?' * depth + "\n",
        frozenset({"nullable", "large"}),
        ("", "a" * depth + "x" + "b" * depth),
        ("ax",),
    )
    members = ' "," '.join(f'"{word}=" value' for word in keywords[:80])
    yield GrammarCase(
        "eighty_members",
        "lark",
        f'start: "{{" {members} "}}"\nvalue: /[0-9]+/ | "[" [value ("," value)*] "]"\n',
        frozenset({"large"}),
        ("{" + ",".join(f"{word}={i}" for i, word in enumerate(keywords[:80])) + "}",),
        ("{}",),
    )
    optional = " ".join(f'("{word};")?' for word in keywords[:200])
    yield GrammarCase(
        "two_hundred_optional",
        "lark",
        f'start: {optional} "."\n',
        frozenset({"nullable", "large"}),
        (".", f"{keywords[3]};{keywords[150]};."),
        (f"{keywords[150]};{keywords[3]};.",),
    )
