"""All hostile cases."""

from __future__ import annotations

from maskbench.hostile.case import HostileCase
from maskbench.hostile.grammars import GRAMMARS
from maskbench.hostile.patterns import PATTERNS
from maskbench.hostile.schemas import SCHEMAS

CASES: dict[str, HostileCase] = {case.name: case for case in (*SCHEMAS, *PATTERNS, *GRAMMARS)}
