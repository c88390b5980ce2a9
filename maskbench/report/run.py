"""A run as reports see it: what was written of it, and its records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from maskbench import results
from maskbench.comparison import Comparison, comparisons
from maskbench.results import EngineSummary
from maskbench.runner import EngineLog

_DERIVED = ("format", "samples", "comparisons", "engines", "minima")
# What the document has of each engine's minima.
_OF_TIMES = ("own", "common", "slowest_masks", "slowest_first_masks")


@dataclass
class Run:
    """`document` is what the JSON file of the run holds; a run that was not written has one too."""

    name: str
    document: dict[str, Any]
    logs: dict[str, EngineLog]
    subject: str
    """The engine that the others are compared with."""

    @classmethod
    def read(cls, path: Path, subject: str | None = None) -> Run:
        """Read the output of `run --out`. Raises `ResultsError`, also if `subject` did not run."""
        document, logs = results.read(path)
        if subject is not None and subject not in logs:
            raise results.ResultsError(f"{path}: no engine {subject!r}; it has {', '.join(logs)}")
        return cls(path.name, document, logs, subject or default_subject(logs))

    @classmethod
    def finished(cls, name: str, about: dict[str, Any], logs: dict[str, EngineLog]) -> Run:
        """Return a run that has just ended; `about` is the document's part besides the engines."""
        run = cls(name, {}, logs, default_subject(logs))
        run.document = run._described(about)
        return run

    def write(self, path: Path) -> Path:
        """Write results for `read`; return the path of the samples beside them."""
        return results.write(path, self._described(self._about), self.logs)

    @property
    def _about(self) -> dict[str, Any]:
        return {key: value for key, value in self.document.items() if key not in _DERIVED}

    def _described(self, about: dict[str, Any]) -> dict[str, Any]:
        document = results.describe(about, self.logs, self.summaries, self.pairs)
        if (least := self._minima_with(about)) is not None:
            engines = least.document["engines"]
            document["minima"] = {
                "comparisons": least.document["comparisons"],
                "engines": {name: {k: engines[name][k] for k in _OF_TIMES} for name in engines},
            }
        return document

    def _minima_with(self, about: dict[str, Any]) -> Run | None:
        if not any(log.has_minima for log in self.logs.values()):
            return None
        logs = {name: log.minima for name, log in self.logs.items()}
        least = Run(self.name, {}, logs, self.subject)
        least.document = results.describe(about, logs, least.summaries, least.pairs)
        return least

    @property
    def engines(self) -> list[str]:
        """Their names, in the order of the run."""
        return list(self.logs)

    @property
    def peers(self) -> list[str]:
        """All engines but the subject."""
        return [name for name in self.logs if name != self.subject]

    @property
    def rivals(self) -> list[str]:
        """The peers that are not the subject with another option."""
        return list(self.pairs[-1].rivals) if self.pairs else []

    @cached_property
    def summaries(self) -> list[EngineSummary]:
        """Return the results of each engine, in the order of the run."""
        return results.summarise(self.logs)

    @cached_property
    def pairs(self) -> list[Comparison]:
        """The subject beside each peer, and beside all of them if there are several."""
        return comparisons(self.logs, self.subject)

    @cached_property
    def common(self) -> Comparison | None:
        """All engines on the schemas that all pass, and the masks that all made; None for one."""
        if not self.peers:
            return None
        return self.pairs[-1]

    @cached_property
    def minima(self) -> Run | None:
        """The same with each call's minimum over the rounds as its time; None for one round."""
        return self._minima_with(self._about)

    @property
    def rounds(self) -> int:
        """How often each engine did the same work."""
        return int(self.document.get("settings", {}).get("rounds", 1))

    def engine(self, name: str) -> dict[str, Any]:
        """Return the document's part about an engine."""
        found: dict[str, Any] = self.document["engines"][name]
        return found

    @property
    def title(self) -> str:
        """The tokenizer, and what distinguishes the run from others."""
        settings = self.document.get("settings", {})
        store = "emptied before each schema" if settings.get("cold_store") else "kept"
        return f"{self.document['tokenizer']['name']}, store {store}, {self.name}"


def default_subject(logs: dict[str, EngineLog]) -> str:
    """Return ffwd, or the first engine if ffwd did not run."""
    return "ffwd" if "ffwd" in logs else next(iter(logs))
