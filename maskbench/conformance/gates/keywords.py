"""A table of keywords and engines: the support of each keyword, found by probes.

A probe is a schema with valid and invalid instances. An engine's result is one of these:

- *exact*: it accepts all valid instances and no invalid one
- *refused*: it rejects the schema
- *widened*: it accepts an invalid instance
- *too narrow*: it rejects a valid instance
"""

from __future__ import annotations

import json
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maskbench.documents import Document, Encoder, Job
from maskbench.verdicts import SchemaRecord, Verdict


@dataclass(frozen=True)
class Probe:
    """A schema that turns on one keyword, with instances as compact JSON text.

    `probes.jsonl` has one a line.
    """

    keyword: str
    schema: Any
    valid: tuple[str, ...]
    invalid: tuple[str, ...]
    property_order: str = "declared"
    """The mode of the engines that have more than one."""


def _read(line: str) -> Probe:
    fields = json.loads(line)
    return Probe(**fields | {name: tuple(fields[name]) for name in ("valid", "invalid")})


_FILE = Path(__file__).with_name("probes.jsonl")
PROBES = tuple(map(_read, _FILE.read_text(encoding="utf-8").splitlines()))


def jobs(encoder: Encoder, property_order: str) -> list[Job]:
    """Return the probes of a property order as jobs for engines."""
    return [
        Job(
            index,
            probe.keyword,
            json.dumps(probe.schema),
            tuple(
                Document(valid, array("i", encoder.encode(text)))
                for valid, texts in ((True, probe.valid), (False, probe.invalid))
                for text in texts
            ),
        )
        for index, probe in enumerate(PROBES)
        if probe.property_order == property_order
    ]


def cell(record: SchemaRecord) -> str:
    """Return an engine's result for a probe, in a word."""
    if record.verdict is not Verdict.WRONG:
        return "exact" if record.verdict is Verdict.PASSED else record.verdict.value
    found = {"widened": record.wrong_accepts, "too narrow": record.wrong_rejects}
    return ", ".join(word for word, count in found.items() if count)


def table(records: dict[str, dict[int, SchemaRecord]]) -> str:
    """Return Markdown: a row for each probe, a column for each engine."""
    lines = [
        f"| keyword | {' | '.join(records)} |",
        f"| --- |{' --- |' * len(records)}",
    ]
    for index, probe in enumerate(PROBES):
        cells = (cell(listed[index]) for listed in records.values())
        lines.append(f"| {probe.keyword} | {' | '.join(cells)} |")
    return "\n".join(lines)
