"""The cases of a run, a line each, so that an interrupted run can be resumed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from maskbench.conformance.differential.reports import CaseReport, Finding
from maskbench.errors import InputError

FORMAT = "maskbench-differential-1"


class CaseJournalError(InputError, ValueError):
    """A file that a run cannot continue; the message says why and what would work."""


class CaseJournal:
    """A file of JSON lines: first what the run is, then its cases by tokenizer and number."""

    def __init__(self, file: Path | None, about: Mapping[str, Any]) -> None:
        """Read the existing records and write nothing if there is no file.

        Raises `CaseJournalError`.
        """
        self.done: dict[str, list[CaseReport]] = {}
        """By tokenizer; the number of a case is its position."""

        self._file = None
        if file is None:
            return
        head = json.dumps({"format": FORMAT, **about})
        lines = file.read_bytes().split(b"\n") if file.is_file() else [b""]
        # Anything after the last line break was incomplete when the run ended.
        whole = [line.decode() for line in lines[:-1]]
        if whole and whole[0] != head:
            raise CaseJournalError(
                f"{file} is of another run: {whole[0][:300]}. "
                "Give the same options, or another file"
            )
        for line in whole[1:]:
            entry = json.loads(line)
            self.done.setdefault(entry["tokenizer"], []).append(_report(entry["case"]))
        file.parent.mkdir(parents=True, exist_ok=True)
        self._file = file.open("ab")
        self._file.truncate(sum(len(line) + 1 for line in lines[:-1]))
        if not whole:
            self._write(head)

    def add(self, tokenizer: str, report: CaseReport) -> None:
        """Append the next case."""
        self.done.setdefault(tokenizer, []).append(report)
        if self._file is not None:
            self._write(json.dumps({"tokenizer": tokenizer, "case": plain(report)}))

    def _write(self, line: str) -> None:
        assert self._file is not None
        self._file.write(line.encode() + b"\n")
        self._file.flush()


def plain(report: CaseReport) -> dict[str, Any]:
    """Return a report as JSON values."""
    found = {field.name: getattr(report, field.name) for field in fields(report)}
    found["findings"] = [finding.plain() for finding in report.findings]
    return found


def _report(entry: dict[str, Any]) -> CaseReport:
    findings = [
        Finding(
            **{
                **finding,
                "prefix": finding["prefix"].encode(errors="surrogateescape"),
                "token": None
                if finding["token"] is None
                else finding["token"].encode(errors="surrogateescape"),
                "allowed_by": tuple(finding["allowed_by"]),
            }
        )
        for finding in entry["findings"]
    ]
    return CaseReport(**{**entry, "findings": findings, "classes": Counter(entry["classes"])})
