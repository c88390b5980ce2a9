"""Differences between engines that are known, each with its reason."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from maskbench.conformance.grammars.cases import CORPUS, CorpusError

DIFFERENCES = CORPUS / "differences.json"


@dataclass(frozen=True)
class Expected:
    """A known difference between a case and a peer, with the reason."""

    case: str
    peer: str
    what: str
    """`masks`, `refused` (the peer does not take the grammar) or `gave up`."""

    reason: str


def read_expected(file: Path = DIFFERENCES) -> dict[str, Expected]:
    """Read the expected differences by the name of the case. Raises `CorpusError`."""
    found: dict[str, Expected] = {}
    for entry in json.loads(file.read_text(encoding="utf-8")):
        expected = Expected(**entry)
        if expected.what not in ("masks", "refused", "gave up") or not expected.reason:
            raise CorpusError(f"{file.name}: {expected}")
        if expected.case in found:
            raise CorpusError(f"{file.name}: {expected.case!r} is there twice")
        found[expected.case] = expected
    return found
