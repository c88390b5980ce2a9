"""All hostile cases."""

from __future__ import annotations

from maskbench.conformance.hostile.case import HostileCase
from maskbench.conformance.hostile.grammars import GRAMMARS
from maskbench.conformance.hostile.patterns import PATTERNS
from maskbench.conformance.hostile.schemas import SCHEMAS

CASES: dict[str, HostileCase] = {case.name: case for case in (*SCHEMAS, *PATTERNS, *GRAMMARS)}
