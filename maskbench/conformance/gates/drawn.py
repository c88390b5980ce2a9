"""The counts of every gate on generated schemas, and their output."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click

import ffwd


@dataclass(frozen=True)
class Failure:
    """A mask or a verdict that is wrong."""

    schema: Any
    text: str
    expected: bool | None = None
    """The validators' verdict, where there is one."""

    detail: str = ""


@dataclass
class DrawnReport:
    """The schemas that were compared, those that could not be, and what went wrong."""

    schemas: int = 0
    unsatisfiable: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[Any] = field(default_factory=list)
    """Of each gate's kind, with `schema`, `text` and `detail`."""

    def refuse(self, error: ffwd.FfwdError) -> None:
        """Count a schema that ffwd refuses, by the reason."""
        self.refused[f"{type(error).__name__}: {str(error)[:60]}"] += 1

    def conclude(self, show: int, out: Path | None = None) -> None:
        """Print reasons and failures, and write these; exit with 1 if there are any."""
        click.echo(f"schemas refused: {self.refused.total()}")
        for reason, count in self.refused.most_common():
            click.echo(f"  {count:6} {reason}")
        click.echo(f"failures: {len(self.failures)}")
        for failure in self.failures[:show]:
            schema = json.dumps(failure.schema, ensure_ascii=False)
            click.echo(f"  {schema[:300]}  <-  {failure.text[:200]!r}  {failure.detail[:200]}")
        if out is not None:
            document = json.dumps(self.as_json(), indent=1, ensure_ascii=False)
            out.write_text(document, encoding="utf-8")
        if self.failures:
            raise SystemExit(1)

    def as_json(self) -> Any:
        """Return all counts for the output file."""
        return vars(self) | {"failures": [asdict(failure) for failure in self.failures]}
