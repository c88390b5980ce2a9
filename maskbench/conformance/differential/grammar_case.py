"""A case about a drawn grammar: masks beside the peer's, and a recogniser to say who is right."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from maskbench.conformance.differential.case import DifferentialCase
from maskbench.conformance.differential.draws import draw_regular, draw_rules, draw_terminal
from maskbench.conformance.differential.recognisers import (
    AutomatonRecogniser,
    EarleyRecogniser,
    Recogniser,
    TooManyStatesError,
    is_utf8,
)
from maskbench.conformance.differential.reports import CaseReport
from maskbench.conformance.differential.side_by_side import Contestant, Spot
from maskbench.conformance.differential.writers import (
    GbnfWriter,
    LarkWriter,
    SingleWriter,
    as_regex,
)
from maskbench.conformance.gates.guides import Guide

_STEPS = 24
# The same where the recogniser can only be asked about short texts.
_SHORT_STEPS = 8
# How many tokens of each sort the recogniser checks at each position although both engines agree.
_DRAWN = 2


@dataclass(frozen=True)
class DrawnGrammar:
    """A grammar and the recogniser of its texts."""

    kind: str
    """`regex`, `lark` or `gbnf`."""

    text: str
    recogniser: Recogniser


def draw(source: random.Random, family: str) -> DrawnGrammar:
    """Return a grammar of a family: `regex`, `terminal` or `rules`."""
    if family == "rules":
        rules = draw_rules(source)
        kind = source.choice(("lark", "gbnf"))
        text = SingleWriter().rules(rules) if kind == "lark" else GbnfWriter().rules(rules)
        return DrawnGrammar(kind, text, EarleyRecogniser(rules))
    while True:
        if family == "regex":
            node = draw_regular(source)
            kind, text = "regex", as_regex(node)
        else:
            node = draw_terminal(source)
            kind, text = "lark", LarkWriter().terminal(node)
        try:
            recogniser = AutomatonRecogniser(node)
        except TooManyStatesError:
            continue
        if not recogniser.is_empty:
            return DrawnGrammar(kind, text, recogniser)


class RecognisedCase(DifferentialCase):
    """One grammar, whose recogniser decides."""

    def __init__(self, drawn: DrawnGrammar, report: CaseReport, source: random.Random) -> None:
        super().__init__(drawn.kind, drawn.text, report, source)
        self._drawn = drawn

    def walks(self, subject: Contestant, peer: Contestant | None, count: int) -> None:
        """Walk through both masks; the recognizer decides differences, and checks samples.

        Each walk is brought to its end in the subject.
        """
        together = self._side_by_side(subject, peer, _DRAWN)
        guide = Guide(True, subject.tokens.single)
        # Half of the longest text, because an ending follows.
        longest = self._drawn.recogniser.longest / 2
        steps = _STEPS if longest == math.inf else _SHORT_STEPS
        for _ in range(count):
            taken = together.walk(self._source, guide, steps, free=steps, longest=longest)
            self._finish(taken)

    def _finish(self, taken: list[int]) -> None:
        """Check that the end of a walk leads to an accepted text."""
        text = self._completed(taken)
        if text is None or not self._can_be_judged(text):
            return
        self._report.verdicts += 1
        if not self._accepts(text):
            self._find("ffwd accepts what is invalid", text, None, "no text of the grammar")

    def _accepts(self, text: bytes) -> bool:
        try:
            return self._drawn.recogniser.accepts(text.decode())
        except UnicodeDecodeError:
            return False

    def _can_be_judged(self, text: bytes) -> bool:
        if len(text) <= self._drawn.recogniser.longest:
            return True
        self._report.add("not judged", "a long text of ambiguous rules")
        return False

    def _examine(self, spot: Spot) -> None:
        token = self._subject.tokens.texts[spot.token]
        if not self._can_be_judged(spot.prefix + (token or b"")):
            return
        if spot.is_end:
            right = self._accepts(spot.prefix)
        elif token is None:
            right = False
        else:
            right = self._drawn.recogniser.allows(spot.prefix + token)
        allowed_by = {"subject": ("subject",), "peer": ("peer",), "both": ("subject", "peer")}
        subject = spot.only in ("subject", "both")
        if spot.only in ("both", "neither"):
            if subject is not right:
                detail = f"the recogniser says {right}"
                self._find(
                    "both are wrong", spot.prefix, token, detail, allowed_by.get(spot.only, ())
                )
        elif subject is not right:
            what = "ffwd refuses what is valid" if right else "ffwd accepts what is invalid"
            self._find(
                what, spot.prefix, token, f"the recogniser says {right}", allowed_by[spot.only]
            )
        elif right:
            self._report.add("peer lacks: text", self._drawn.kind)
        elif token is not None and not is_utf8(spot.prefix + token):
            self._report.add("peer wrong: not UTF-8", self._drawn.kind)
        else:
            self._report.add("peer wrong: no text", self._drawn.kind)
