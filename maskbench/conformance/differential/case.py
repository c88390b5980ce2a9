"""The common parts of every family's cases: walks through two masks, endings, and findings."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import ffwd
from maskbench.conformance.differential.reports import CaseReport, Finding
from maskbench.conformance.differential.side_by_side import Contestant, SideBySide, Spot, spot_at


class DifferentialCase:
    """One schema or grammar, the subject, and the peer if it takes it."""

    _allowed_by: tuple[str, ...] = ("subject",)
    """Who allows the token of a finding that does not say it."""

    def __init__(self, kind: str, text: str, report: CaseReport, source: random.Random) -> None:
        self._kind = kind
        self._text = text
        self._options: dict[str, str] = {}
        self._report = report
        self._source = source
        self._peer: Contestant | None = None

    def look(
        self, subject: Contestant, peer: Contestant, prefix: bytes, token: bytes | None
    ) -> None:
        """Examine one token, or the end, after a text in single bytes."""
        self._subject = subject
        self._peer = peer
        self._examine(spot_at(subject, peer, prefix, token))

    def _examine(self, spot: Spot) -> None:
        """State who is right about a token."""
        raise NotImplementedError

    def _side_by_side(
        self, subject: Contestant, peer: Contestant | None, drawn: int = 0
    ) -> SideBySide:
        """Walk, and examine the differences and some random tokens at each position."""
        self._subject = subject
        self._peer = peer
        return SideBySide(
            subject,
            peer,
            self._report,
            self._examine,
            examine_drawn=self._examine if drawn else None,
            contradicted=self._contradicted,
            stuck=lambda prefix: self._find("ffwd has no way on", prefix, None, "an empty mask"),
            drawn=drawn,
        )

    def _completed(self, taken: Sequence[int]) -> bytes | None:
        """Return the text with a short ending that the subject finds, or None."""
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
            return self._completed_otherwise(taken, prefix)
        except ffwd.FfwdError as error:
            self._find("ffwd has no way on", prefix, None, str(error))
            return None
        if not matcher.accept_tokens(rest) or not matcher.is_terminated():
            self._find("ffwd contradicts itself", prefix, None, f"its completion {rest} fails")
        return prefix + b"".join(texts[token] or b"" for token in rest)

    def _completed_otherwise(self, taken: Sequence[int], prefix: bytes) -> bytes | None:
        """Return the text with an ending if the search for a short one exceeds a limit."""
        return None

    def _contradicted(self, spot: Spot, detail: str) -> None:
        token = self._subject.tokens.texts[spot.token]
        self._find("ffwd contradicts itself", spot.prefix, token, f"{spot.token}: {detail}")

    def _find(
        self,
        what: str,
        prefix: bytes,
        token: bytes | None,
        detail: str,
        allowed_by: tuple[str, ...] | None = None,
        options: dict[str, str] | None = None,
    ) -> None:
        about = (self._kind, self._text, options or self._options)
        if allowed_by is None:
            allowed_by = self._allowed_by
        finding = Finding(what, *about, prefix, token, allowed_by, detail)
        self._report.findings.append(finding)
