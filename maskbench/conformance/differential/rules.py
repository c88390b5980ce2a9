"""The names of subjects of cases, of known differences and their owners, and of findings.

A rule never decides alone. Validators, or a recognizer of the grammar, judge before a rule is
looked up, and a rule that excuses the subject is tested on the text.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """The owner of a difference, and the reason."""

    owner: str
    """`peer`, `ffwd` (and then it is documented) or `judges`."""

    reason: str


FAMILIES = {
    "schema": 56,
    "regex": 10,
    "terminal": 8,
    "rules": 10,
    "lexed": 10,
    "corpus": 6,
}
"""What cases are about, with how often each is drawn, of 100 cases."""

RULES: dict[str, Rule] = {
    # A token that only ffwd allows, and the text that it leads to is valid.
    "peer lacks: number": Rule(
        "peer", "another spelling of the same number is accepted: 1.0 or 1e2 for an integer"
    ),
    "peer lacks: character": Rule("peer", "the same strings with other escapes are accepted"),
    "peer lacks: whitespace": Rule("peer", "the same text with other whitespace is accepted"),
    "peer lacks: value": Rule("peer", "the value is valid, and refused in every spelling tried"),
    "peer lacks: token": Rule("peer", "the same text is accepted in other tokens"),
    # A token that only the peer allows.
    "peer wrong: invalid": Rule("peer", "the text that it leads to is invalid by both validators"),
    "peer wrong: key twice": Rule("peer", "the text that it leads to has a name twice"),
    "peer wrong: not JSON": Rule("peer", "the text that it leads to is not JSON"),
    "peer wrong: dead end": Rule("peer", "its own masks leave no way on behind it"),
    "peer wrong: gave up": Rule("peer", "it reports an error of its own behind it"),
    "ffwd narrower: exponent": Rule(
        "ffwd", "of numbers with bounds or steps only normalised exponents are written"
    ),
    "ffwd narrower: escape": Rule(
        "ffwd", "each character of a string has one form, in half of the schemas"
    ),
    "ffwd narrower: whitespace": Rule(
        "ffwd", "none before and after the root; runs have a greatest length"
    ),
    "ffwd narrower: order": Rule(
        "ffwd", "with the declared order; the text is accepted in any order"
    ),
    "ffwd narrower: format": Rule(
        "ffwd", "hostname, email, idn-hostname, idn-email and regex have less than is valid"
    ),
    "ffwd narrower: dialect": Rule(
        "ffwd", "the formats of 2020-12 are asserted in every dialect, validators' in theirs"
    ),
    # Grammars.
    "peer lacks: text": Rule("peer", "a recogniser says that the token leads to a text"),
    "peer wrong: no text": Rule("peer", "a recogniser says that the token leads to none"),
    "peer wrong: not UTF-8": Rule(
        "peer", "the complement of a terminal holds bytes that no text has"
    ),
    "peer gave up": Rule("peer", "a limit or an error of its own"),
    "peer lost": Rule("peer", "its process dies or hangs; the subject alone does not"),
    "ignored at the end": Rule(
        "ffwd", "docs/lark.md says behind which last lexemes what is ignored may come"
    ),
    "ignored or lexeme": Rule(
        "ffwd", "docs/lark.md says that ignored text may also be a lexeme, or follow an empty one"
    ),
    "corpus": Rule(
        "peer", "a case of maskbench/conformance/grammars whose difference is named there"
    ),
    # Undecided.
    "judges differ": Rule("judges", "one validator accepts the text and the other refuses it"),
    "not judged": Rule(
        "judges", "they cannot be asked: numbers that are too long, long texts of ambiguous rules"
    ),
    "no end found": Rule("judges", "no text was found to which the token leads"),
    "ffwd limit": Rule("ffwd", "a LimitExceededError, which is documented"),
}

FINDINGS: dict[str, str] = {
    "ffwd accepts what is invalid": "a token or text that leads to an invalid document",
    "ffwd refuses what is valid": "a token or text of a valid document, and no rule says why",
    "ffwd has no way on": "an empty mask, or a place from which no end is found",
    "ffwd writes no JSON": "the end of a walk is not JSON, or has a name twice",
    "ffwd contradicts itself": "a bit that `accept`, `validate` or the token's bytes contradict",
    "ffwd raises": "an error that is not documented",
    "both are wrong": "a recogniser contradicts what both engines say",
    "unexplained": "a difference of which nobody says who is right",
    "case lost": "the process died or was killed, also without the peer",
}
