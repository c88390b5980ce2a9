"""A case about a drawn grammar: masks beside the peer's, and a recogniser to say who is right."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import ffwd
from maskbench.conformance.differential.draws import draw_regular, draw_rules, draw_terminal
from maskbench.conformance.differential.recognisers import (
    AutomatonRecogniser,
    EarleyRecogniser,
    Recogniser,
    is_utf8,
)
from maskbench.conformance.differential.reports import CaseReport, Finding
from maskbench.conformance.differential.side_by_side import Contestant, SideBySide, Spot, spot_at
from maskbench.conformance.differential.writers import GbnfWriter, LarkWriter, as_regex
from maskbench.conformance.gates.guides import Guide

_STEPS = 24
# Of rules, where deciding about a text takes long when it is.
_RULE_STEPS = 8
# Tokens on which both agree, and the recogniser is asked all the same: of each sort at each place.
_DRAWN = 2


@dataclass(frozen=True)
class DrawnGrammar:
    """A grammar and who knows its texts."""

    kind: str
    """`regex`, `lark` or `gbnf`."""

    text: str
    recogniser: Recogniser


def draw(source: random.Random, family: str) -> DrawnGrammar:
    """A grammar of a family: `regex`, `terminal` or `rules`."""
    if family == "rules":
        rules = draw_rules(source)
        kind = source.choice(("lark", "gbnf"))
        text = LarkWriter().rules(rules) if kind == "lark" else GbnfWriter().rules(rules)
        return DrawnGrammar(kind, text, EarleyRecogniser(rules))
    while True:
        if family == "regex":
            node = draw_regular(source)
            kind, text = "regex", as_regex(node)
        else:
            node = draw_terminal(source)
            kind, text = "lark", LarkWriter().terminal(node)
        recogniser = AutomatonRecogniser(node)
        if not recogniser.is_empty:
            return DrawnGrammar(kind, text, recogniser)


class GrammarCase:
    """One grammar, the subject, and the peer if it takes the grammar."""

    def __init__(self, drawn: DrawnGrammar, report: CaseReport, source: random.Random) -> None:
        self._drawn = drawn
        self._report = report
        self._source = source

    def look(
        self, subject: Contestant, peer: Contestant, prefix: bytes, token: bytes | None
    ) -> None:
        """Examines one token, or the end, behind a text in single bytes."""
        self._subject = subject
        self._examine(spot_at(subject, peer, prefix, token))

    def walks(self, subject: Contestant, peer: Contestant | None, count: int) -> None:
        """Walks through the masks of both; the recogniser is asked where they differ, and beside.

        Each walk is brought to its end in the subject.
        """
        self._subject = subject
        together = SideBySide(
            subject,
            peer,
            self._report,
            self._examine,
            examine_drawn=self._examine,
            contradicted=self._contradicted,
            stuck=lambda prefix: self._find("ffwd has no way on", prefix, None, "an empty mask"),
            drawn=_DRAWN,
        )
        guide = Guide(True, subject.tokens.single)
        for _ in range(count):
            steps = _RULE_STEPS if self._drawn.recogniser.is_slow else _STEPS
            taken = together.walk(self._source, guide, steps, free=steps)
            self._finish(taken)

    def _finish(self, taken: list[int]) -> None:
        """The place where a walk ended leads to a text of the grammar."""
        session = self._subject.compiled.session()
        for token in taken:
            session.accept(token)
        texts = self._subject.tokens.texts
        prefix = b"".join(texts[token] or b"" for token in taken)
        assert session.fork is not None
        matcher: Any = session.fork()
        try:
            rest = matcher.shortest_completion()
        except ffwd.LimitExceededError as error:
            self._report.add("ffwd limit", error.limit)
            return
        except ffwd.FfwdError as error:
            self._find("ffwd has no way on", prefix, None, str(error))
            return
        if not matcher.accept_tokens(rest) or not matcher.is_terminated():
            self._find("ffwd contradicts itself", prefix, None, f"its completion {rest} fails")
        text = prefix + b"".join(texts[token] or b"" for token in rest)
        self._report.verdicts += 1
        if not self._accepts(text):
            self._find("ffwd accepts what is invalid", text, None, "no text of the grammar")

    def _accepts(self, text: bytes) -> bool:
        try:
            return self._drawn.recogniser.accepts(text.decode())
        except UnicodeDecodeError:
            return False

    def _examine(self, spot: Spot) -> None:
        token = self._subject.tokens.texts[spot.token]
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

    def _contradicted(self, spot: Spot, detail: str) -> None:
        token = self._subject.tokens.texts[spot.token]
        self._find("ffwd contradicts itself", spot.prefix, token, f"{spot.token}: {detail}")

    def _find(
        self,
        what: str,
        prefix: bytes,
        token: bytes | None,
        detail: str,
        allowed_by: tuple[str, ...] = ("subject",),
    ) -> None:
        self._report.findings.append(
            Finding(what, self._drawn.kind, self._drawn.text, {}, prefix, token, allowed_by, detail)
        )
