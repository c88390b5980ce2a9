"""A run's results: everything that is known, as one JSON file, and the samples beside it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sys
import time
from array import array
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from maskbench.canonicality.counts import ForcedCount
from maskbench.comparison import Comparison
from maskbench.goals import judge
from maskbench.runner import EngineLog
from maskbench.statistics import (
    Counts,
    Scope,
    count_verdicts,
    describe_scope,
    mask_samples,
    passing,
    refusal_reasons,
    slowest_first_masks,
    slowest_masks,
)
from maskbench.verdicts import SchemaRecord, Verdict
from maskbench.walk import DocumentResult, Outcome

FORMAT = "maskbench-results-1"
PACKAGES = ("ffwd", "llguidance", "xgrammar", "outlines-core", "tokenizers", "tiktoken", "torch")
"""What figures depend on beside the machine."""

_SLOWEST = 20
_TIMES = ("mask_us", "first_mask_us", "min_mask_us", "min_first_mask_us")


@dataclass(frozen=True)
class EngineSummary:
    """The figures of one engine in the tables."""

    name: str
    versions: dict[str, str]
    counts: Counts
    refused_reasons: list[tuple[str, int]]
    own: Scope
    """Over the schemas that this engine passes."""

    common: Scope
    """Over the schemas that all engines of the run pass."""


def summarise(logs: dict[str, EngineLog]) -> list[EngineSummary]:
    """Return summaries in the order of the logs."""
    own = {name: passing(log.records) for name, log in logs.items()}
    common = frozenset.intersection(*own.values())
    return [
        EngineSummary(
            name=name,
            versions=log.versions,
            counts=count_verdicts(log.records),
            refused_reasons=refusal_reasons(log.records),
            own=describe_scope(log.records, own[name]),
            common=describe_scope(log.records, common),
        )
        for name, log in logs.items()
    ]


def describe(
    about: dict[str, Any],
    logs: dict[str, EngineLog],
    summaries: list[EngineSummary],
    pairs: Sequence[Comparison] = (),
) -> dict[str, Any]:
    """Return everything but the samples: what `write` puts into the JSON file."""
    return {
        "format": FORMAT,
        **about,
        "comparisons": [_comparison(pair) for pair in pairs],
        "engines": {summary.name: _engine(summary, logs[summary.name]) for summary in summaries},
    }


def write(path: Path, document: dict[str, Any], logs: dict[str, EngineLog]) -> Path:
    """Write `path` (JSON) and, next to it, the samples (`.samples.npz`); return the latter's path.

    The samples of each engine are these:

    - `NAME.mask_us` (float32): every mask in the order of the walk
    - `NAME.mask_schema` (int32): the position of its schema in the JSON's list
    - `NAME.first_mask_us` (float32): one per schema, NaN for a missing one

    A run of several rounds has `NAME.min_mask_us` and `NAME.min_first_mask_us` too: each call's
    minimum over the rounds.
    """
    samples = path.with_suffix(".samples.npz")
    document = document | {"samples": samples.name}
    arrays: dict[str, Any] = {}
    for name, log in logs.items():
        records = log.records
        arrays |= _times(name, log, "")
        if log.has_minima:
            arrays |= _times(name, log.minima, "min_")
        arrays[f"{name}.mask_schema"] = np.repeat(
            np.arange(len(records), dtype=np.int32), [len(r.mask_us) for r in records]
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(samples, **arrays)
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return samples


def _times(name: str, log: EngineLog, prefix: str) -> dict[str, NDArray[np.float32]]:
    return {
        f"{name}.{prefix}mask_us": mask_samples(log.records),
        f"{name}.{prefix}first_mask_us": np.array(
            [np.nan if r.first_mask_us is None else r.first_mask_us for r in log.records],
            dtype=np.float32,
        ),
    }


class ResultsError(ValueError):
    """A file that holds no results; the message names it."""


def read(path: Path) -> tuple[dict[str, Any], dict[str, EngineLog]]:
    """Read the output of `write`: the JSON document, and the logs. Raises `ResultsError`."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise ResultsError(f"{path}: the format is {document['format']!r}, not {FORMAT!r}")
        with np.load(path.with_name(document["samples"])) as samples:
            logs = {
                name: EngineLog(
                    versions=engine["versions"],
                    start_seconds=engine["start_seconds"],
                    start_memory_bytes=engine.get("start_memory_bytes"),
                    peak_memory_bytes=engine.get("peak_memory_bytes"),
                    records=_records(
                        engine["schemas"],
                        {
                            part: samples[key]
                            for part in _TIMES
                            if (key := f"{name}.{part}") in samples
                        },
                    ),
                )
                for name, engine in document["engines"].items()
            }
    except (OSError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise ResultsError(f"{path}: {error!r}") from error
    except json.JSONDecodeError as error:
        raise ResultsError(f"{path}: not JSON: {error}") from error
    except (ValueError, BadZipFile) as error:
        if isinstance(error, ResultsError):
            raise
        raise ResultsError(f"{path}: {error}") from error
    return document, logs


def _records(
    schemas: list[dict[str, Any]], times: dict[str, NDArray[np.float32]]
) -> list[SchemaRecord]:
    mask_us, first_mask_us = times["mask_us"], times["first_mask_us"]
    min_mask_us, min_first_mask_us = times.get("min_mask_us"), times.get("min_first_mask_us")
    records = []
    start = 0
    for position, schema in enumerate(schemas):
        stop = start + schema.get("masks", 0)
        documents = schema.get("documents", ())
        records.append(
            SchemaRecord(
                index=schema.get("index", position),
                id=schema["id"],
                verdict=Verdict(schema["verdict"]),
                labels=tuple(document["valid"] for document in documents),
                documents=tuple(
                    DocumentResult(Outcome(d["outcome"]), d["masks"], d.get("problem"))
                    for d in documents
                ),
                reason=schema.get("reason"),
                detail=schema.get("detail"),
                first_mask_us=None
                if np.isnan(first_mask_us[position])
                else float(first_mask_us[position]),
                mask_us=array("f", mask_us[start:stop].tobytes()),
                forced=ForcedCount(**schema["forced"]) if "forced" in schema else None,
                peak_memory_bytes=schema.get("peak_memory_bytes"),
                min_first_mask_us=None
                if min_first_mask_us is None or np.isnan(min_first_mask_us[position])
                else float(min_first_mask_us[position]),
                min_mask_us=array("f")
                if min_mask_us is None
                else array("f", min_mask_us[start:stop].tobytes()),
            )
        )
        start = stop
    return records


def utc_now() -> str:
    """Return the time as ISO 8601, for the record."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def machine() -> dict[str, Any]:
    """Return the description of the machine that times depend on."""
    return {
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": sys.version.split()[0],
    }


def packages() -> dict[str, str]:
    """Return the versions of ffwd and of the peers that are installed."""
    found = {}
    for name in PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _engine(summary: EngineSummary, log: EngineLog) -> dict[str, Any]:
    return {
        "versions": summary.versions,
        "start_seconds": round(log.start_seconds, 3),
        "start_memory_bytes": log.start_memory_bytes,
        "peak_memory_bytes": log.peak_memory_bytes,
        "counts": asdict(summary.counts),
        "refused_reasons": dict(summary.refused_reasons),
        "own": asdict(summary.own),
        "common": asdict(summary.common),
        "slowest_masks": [asdict(mask) for mask in slowest_masks(log.records, _SLOWEST)],
        "slowest_first_masks": [
            {"us": us, "id": case} for us, case in slowest_first_masks(log.records, _SLOWEST)
        ],
        "schemas": [_schema(record) for record in log.records],
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return asdict(comparison) | {
        "goals": [
            {
                "goal": judgement.goal.title,
                "own_us": judgement.own,
                "peer_us": dict(zip(comparison.peers, judgement.peers, strict=True)),
                "ratio": judgement.ratio,
                "must": {"limit": str(judgement.goal.must), "met": judgement.must},
                "aim": {"limit": str(judgement.goal.aim), "met": judgement.aim},
            }
            for judgement in judge(comparison)
        ],
    }


def _schema(record: SchemaRecord) -> dict[str, Any]:
    result: dict[str, Any] = {
        "index": record.index,
        "id": record.id,
        "verdict": record.verdict.value,
        "peak_memory_bytes": record.peak_memory_bytes,
    }
    said = {"reason": record.reason, "detail": record.detail}
    result |= {name: text for name, text in said.items() if text is not None}
    if record.documents:
        result["documents"] = [
            {
                "valid": label,
                "outcome": document.outcome.value,
                "masks": document.masks,
                **({"problem": document.problem} if document.problem else {}),
            }
            for label, document in zip(record.labels, record.documents, strict=True)
        ]
    if record.first_mask_us is not None:
        result["first_mask_us"] = round(record.first_mask_us, 3)
    if record.mask_us:
        times = mask_samples([record])
        result["masks"] = len(times)
        result["mask_us_avg"] = round(float(np.mean(times, dtype=np.float64)), 3)
        result["mask_us_max"] = round(float(times.max()), 3)
    if record.forced is not None:
        result["forced"] = asdict(record.forced)
    return result


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not a Linux machine
    return platform.processor()
