"""A case about a random Lark grammar with a lexer: without a recognizer, both must agree.

Under longest match a text has one division into lexemes, which only these two parsers know. A
difference counts if it shows in a whole text, which one accepts and the other does not.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import ffwd
from maskbench.conformance.differential.case import DifferentialCase
from maskbench.conformance.differential.draws import draw_lexed
from maskbench.conformance.differential.reports import CaseReport
from maskbench.conformance.differential.side_by_side import Contestant, Spot
from maskbench.conformance.differential.writers import LarkWriter
from maskbench.conformance.gates import fuzz
from maskbench.conformance.gates.guides import Guide
from maskbench.conformance.gates.walks import Ending, Walker, byte_tokens

_STEPS = 16
_TRIES = 8
_TRY_STEPS = 60
_NO_CHARACTER = "\ue000"


def draw(source: random.Random) -> str:
    """Return a grammar in Lark."""
    return LarkWriter().lexed(draw_lexed(source))


class LexedCase(DifferentialCase):
    """One grammar, which only the two decide."""

    _allowed_by = ()

    def __init__(
        self,
        text: str,
        report: CaseReport,
        source: random.Random,
        peer_of: Callable[[str], Contestant | str],
    ) -> None:
        super().__init__("lark", text, report, source)
        self._peer_of = peer_of

    def walks(self, subject: Contestant, peer: Contestant | None, count: int) -> None:
        """Walk through both masks."""
        together = self._side_by_side(subject, peer)
        guide = Guide(True, subject.tokens.single)
        for _ in range(count):
            together.walk(self._source, guide, _STEPS, free=_STEPS)

    def _examine(self, spot: Spot) -> None:
        assert self._peer is not None
        token = self._subject.tokens.texts[spot.token]
        subject = spot.only == "subject"
        text = self._ended(spot) if subject else self._ended_by_peer(spot, self._peer)
        if text is None:
            return
        refusing = self._peer if subject else self._subject
        if refusing.accepts(text):
            # Not by its own bytes: the masks of bytes show more.
            self._report.add("peer lacks: token" if subject else "no end found")
        elif refusing.accepts(text.rstrip(b" ")) and "%ignore" in self._text:
            self._report.add("ignored at the end")
        elif subject and self._agree_apart(text):
            self._report.add("ignored or lexeme")
        else:
            who = "ffwd" if subject else "the peer"
            self._find("unexplained", spot.prefix, token, f"only {who} accepts {text!r}")

    def _agree_apart(self, text: bytes) -> bool:
        """Return whether both agree on a text if no terminal begins with what is ignored."""
        ignored = re.search("^%ignore /(.*)/$", self._text, re.MULTILINE)
        if ignored is None:
            return False
        # A terminal of which nothing is left matches a character that no text has.
        apart = re.sub(
            r"^(T\d+): (.*)$",
            rf'\1: ((\2) & ~/(?s:{ignored[1]}.*)/) | "{_NO_CHARACTER}"',
            self._text,
            flags=re.MULTILINE,
        )
        peer = self._peer_of(apart)
        if isinstance(peer, str):
            return False
        try:
            grammar = ffwd.compile(ffwd.lark(apart), byte_tokens().vocabulary)
        except ffwd.GrammarError:
            return False
        return fuzz.accepts(grammar, text.decode()) == peer.accepts(text)

    def _ended(self, spot: Spot) -> bytes | None:
        """Return a text of ffwd's with the token."""
        tokens = [*spot.taken] if spot.is_end else [*spot.taken, spot.token]
        session = self._subject.compiled.session()
        for token in tokens:
            session.accept(token)
        assert session.fork is not None
        matcher: Any = session.fork()
        texts = self._subject.tokens.texts
        try:
            tokens += [] if spot.is_end else matcher.shortest_completion()
        except ffwd.LimitExceededError as error:
            self._report.add("ffwd limit", error.limit)
            return None
        except ffwd.FfwdError as error:
            self._find("ffwd has no way on", spot.prefix, texts[spot.token], str(error))
            return None
        return b"".join(texts[token] or b"" for token in tokens)

    def _ended_by_peer(self, spot: Spot, peer: Contestant) -> bytes | None:
        """Return a text of the peer's with the token, or None."""
        if spot.is_end:
            return spot.prefix
        walker = Walker(True, peer.compiled.session, peer.tokens, _TRY_STEPS)
        for _ in range(_TRIES):
            walk = walker.finish(self._source, [*spot.taken, spot.token])
            if walk.ending is Ending.VALID:
                return walk.text
        self._report.add("no end found")
        return None
