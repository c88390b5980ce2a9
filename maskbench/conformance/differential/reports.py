"""The results of a case, and their names."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from maskbench.conformance.differential.rules import FINDINGS, RULES
from maskbench.sums import added


@dataclass(frozen=True)
class Finding:
    """A difference that is the subject's fault or unexplained, with all data to repeat it."""

    what: str
    """One of `FINDINGS`."""

    kind: str
    """`json_schema`, or the format of the grammar."""

    source: str
    """The schema's or grammar's text."""

    options: dict[str, str]
    """Of the schema: `whitespace`, `property_order`."""

    prefix: bytes
    """What had come before."""

    token: bytes | None
    """The token that is in question; None for the end, or where it is the text as a whole."""

    allowed_by: tuple[str, ...]
    detail: str

    def __post_init__(self) -> None:
        assert self.what in FINDINGS, self.what

    def plain(self) -> dict[str, Any]:
        """Return JSON values; bytes become text, with lone surrogates for invalid UTF-8."""
        found = asdict(self)
        found["prefix"] = self.prefix.decode(errors="surrogateescape")
        if self.token is not None:
            found["token"] = self.token.decode(errors="surrogateescape")
        return found


@dataclass
class CaseReport:
    """All figures of one case."""

    seed: int
    family: str
    name: str = ""
    refused: dict[str, str] = field(default_factory=dict)
    """By the engine: why it does not take the schema or grammar."""

    walks: int = 0
    states: int = 0
    """Places at which both masks were compared; `alone` are those of the subject without a peer."""

    alone: int = 0
    bits: int = 0
    differing_states: int = 0
    differing_bits: int = 0
    examined: int = 0
    """Tokens that only one allows, or drawn ones, of which somebody else said who is right."""

    verdicts: int = 0
    """Documents on which the subject's verdict was compared with two validators'."""

    classes: Counter[str] = field(default_factory=Counter)
    """Rules by name, with what they were applied to in brackets."""

    findings: list[Finding] = field(default_factory=list)
    lost: str | None = None

    def add(self, rule: str, about: str = "") -> None:
        """Count a difference that a rule explains."""
        assert rule in RULES, rule
        self.classes[f"{rule} ({about})" if about else rule] += 1


OF_ONE = frozenset(("seed", "family", "name", "refused", "lost"))
"""What a case has that a sum of cases has not."""


def merged(reports: list[CaseReport]) -> CaseReport:
    """Return the sums of many cases."""
    total = CaseReport(0, "all")
    for report in reports:
        total = added(total, report, OF_ONE)
    return total
