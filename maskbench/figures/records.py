"""Recorded summaries of measurements: what a page may quote, with its date, machine and versions.

A record is a small JSON file in `recorded/`, made from the file that a command's `--out` wrote.
Results have megabytes of single times; a record has only what pages show of them.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "recorded"
FORMAT = "maskbench-record-1"
# The common fields of all records. `versions` has the engines' packages.
ABOUT = ("format", "command", "measured", "machine", "versions", "tokenizer")

Document = Mapping[str, Any]


class FiguresError(ValueError):
    """A record, a template or a page that does not fit; the message names it."""


def read_records(folder: Path = RECORDED) -> dict[str, dict[str, Any]]:
    """Return all records by name. Raises `FiguresError`."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise FiguresError(f"{path}: {error}") from error
        missing = [name for name in ABOUT if name not in record]
        if missing or record["format"] != FORMAT:
            raise FiguresError(f"{path}: not a {FORMAT}; missing: {', '.join(missing)}")
        found[path.stem] = record
    if not found:
        raise FiguresError(f"{folder}: no record")
    return found


def record_of(path: Path) -> dict[str, Any]:
    """Summarise what a command's `--out` wrote. Raises `FiguresError`."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FiguresError(f"{path}: {error}") from error
    form = document.get("format") if isinstance(document, dict) else None
    if form not in SUMMARIES:
        known = ", ".join(SUMMARIES)
        raise FiguresError(f"{path}: no figures are recorded of {form!r}; known formats: {known}")
    if not document.get("complete", True):
        raise FiguresError(f"{path}: the run was interrupted; finish it with --resume")
    try:
        return _about(document) | SUMMARIES[form](document)
    except (KeyError, TypeError, IndexError) as error:
        raise FiguresError(f"{path}: not the figures of a {form}: {error!r}") from error


def write_record(name: str, record: Document, folder: Path = RECORDED) -> Path:
    """Write a record and return its path."""
    path = folder / f"{name}.json"
    text = json.dumps(record, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def _about(document: Document) -> dict[str, Any]:
    machine = document["machine"]
    return {
        "format": FORMAT,
        "command": _portable(document["command"]),
        "measured": document["started"][:10],
        "machine": f"{machine['processor']}, {machine['cores']} cores",
        "versions": _versions(document),
        "tokenizer": _tokenizer(document),
    }


def _portable(command: str) -> str:
    """Return the command without folders outside the checkout."""
    parts = shlex.split(command)
    return shlex.join(Path(p).name if p.startswith(("/", "../", "~")) else p for p in parts)


def _tokenizer(document: Document) -> str:
    """Its name; a record is of one tokenizer."""
    if "runs" in document:
        (run,) = document["runs"]
        return _tokenizer(run)
    named = document["tokenizer"]
    return str(named["name"] if isinstance(named, dict) else named)


def _versions(document: Document) -> dict[str, str]:
    """Return the packages of the engines, or those that were installed."""
    if "engines" in document:
        found = [engine["versions"] for engine in document["engines"].values()]
    elif "versions" in document:
        named = document["versions"].items()
        found = [said if isinstance(said, dict) else {name: said} for name, said in named]
    elif "engine" in document:
        found = [document["engine"]]
    else:
        found = [document["packages"]]
    return {
        package: version
        for versions in found
        for package, version in versions.items()
        if package != "options"
    }


def _run(document: Document) -> dict[str, Any]:
    """Verdicts and times of each engine, and of the subject beside each peer.

    Times of a run of several rounds are each call's minimum over them.
    """
    minima = document.get("minima", document)
    return {
        "rounds": document["settings"].get("rounds", 1),
        "data": {"schemas": document["data"]["schemas"], "chosen": document["data"]["chosen"]},
        "engines": {
            name: {
                **engine["counts"],
                "measured_schemas": engine["own"]["schemas"],
                "mask_us": _rounded(minima["engines"][name]["own"]["mask_us"]),
                "first_mask_us": _rounded(minima["engines"][name]["own"]["first_mask_us"]),
                "peak_memory_bytes": engine["peak_memory_bytes"],
            }
            for name, engine in document["engines"].items()
        },
        "beside": {
            pair["peers"][0]: {
                "schemas": pair["schemas"],
                "masks": pair["masks"],
                **{
                    name: {part: _rounded(times[part]) for part in ("mask_us", "first_mask_us")}
                    for name, times in pair["times"].items()
                },
            }
            for pair in minima["comparisons"]
            if len(pair["peers"]) == 1
        },
    }


def _canonicality(document: Document) -> dict[str, Any]:
    """Return forced shares and non-canonical sequences over common documents, by mode."""
    return {
        "data": {"schemas": document["data"]["schemas"], "chosen": document["data"]["chosen"]},
        "modes": {
            mode: {
                "documents": found["common_documents"],
                "variants": {
                    name: {
                        "share": round(counts["common"]["share"], 5),
                        "noncanonical": counts["common"]["noncanonical"],
                    }
                    for name, counts in found["variants"].items()
                },
            }
            for mode, found in document["modes"].items()
        },
    }


def _operations(document: Document) -> dict[str, Any]:
    """Average, p50 and p99 of one call, in microseconds, by engine, walk and operation."""
    return {"documents": document["documents"], "microseconds": document["microseconds"]}


def _batches(document: Document) -> dict[str, Any]:
    """Microseconds of one call by rows, masks and grammars, with one thread and more."""
    calls: dict[str, Any] = {}
    for call in document["calls"]:
        of_rows = calls.setdefault(str(call["rows"]), {})
        of_rows.setdefault(call["masks"], {})[call["grammars"]] = [
            round(seconds * 1e6, 1) for seconds in call["seconds"]
        ]
    return {"calls": calls}


def _growth(document: Document) -> dict[str, Any]:
    """Return first and last tenths of each output, and the cost of a schema ten times larger."""
    return {
        "outputs": {
            output["name"]: {
                "first": round(output["cold"][0], 3),
                "last": round(output["cold"][-1], 3),
                "again": round(output["known"][-1] / output["known"][0], 3),
            }
            for output in document["outputs"]
        },
        "tenfold": {
            schema["name"]: round(schema["per_tenfold"][-1], 1)
            for schema in document["schemas"]
            if schema["per_tenfold"]
        },
    }


def _grammars(document: Document) -> dict[str, Any]:
    """Both passes by grammar and engine, in microseconds."""
    (run,) = document["runs"]
    return {
        "grammars": {
            grammar: {
                contestant.replace(":", " "): {
                    "compile_us": round(found["compile_us"], 3),
                    "first": _rounded(found["first"]),
                    "second": _rounded(found["second"]),
                }
                for contestant, found in contestants.items()
                if found["problem"] is None
            }
            for grammar, contestants in run["grammars"].items()
        }
    }


def _logits(document: Document) -> dict[str, Any]:
    """Medians in microseconds by type, masks, rows and way, of the narrowest width."""
    width = min(cell["width"] for cell in document["cells"])
    cells: dict[str, Any] = {}
    for cell in document["cells"]:
        if cell["width"] == width or cell["masks"].startswith("grammars"):
            rows = cells.setdefault(cell["dtype"], {}).setdefault(cell["masks"], {})
            rows[str(cell["rows"])] = {
                way: round(timing["median"], 1) for way, timing in cell["us"].items()
            }
    return {"width": width, "statistic": "median", "cells": cells}


def _serving(document: Document) -> dict[str, Any]:
    """Medians by group, work and library, and bytes of memory by library."""
    figures: dict[str, Any] = {}
    for figure in document["figures"]:
        figures.setdefault(figure["group"], {})[figure["what"]] = {
            peer: round(value, 1) for peer, value in figure["values"].items()
        }
    return {"figures": figures, "memory": document["memory"]}


def _hard(document: Document) -> dict[str, Any]:
    """Return the slowest mask of each case by engine, in microseconds, as far as it passes."""
    return {
        "count": len(document["cases"]),
        "slowest_us": {
            case["name"]: {
                name: round(found["mask_us"]["max"], 1)
                for name, found in case["engines"].items()
                if found["verdict"] == "passed" and found["mask_us"]
            }
            for case in document["cases"]
        },
    }


def _rounded(times: Mapping[str, float] | None) -> dict[str, float] | None:
    return None if times is None else {name: round(us, 3) for name, us in times.items()}


SUMMARIES: dict[str, Callable[[Document], dict[str, Any]]] = {
    "maskbench-results-1": _run,
    "maskbench-canonicality-1": _canonicality,
    "maskbench-operations-1": _operations,
    "maskbench-batches-1": _batches,
    "maskbench-growth-1": _growth,
    "maskbench-grammars-speed-1": _grammars,
    "maskbench-logits-1": _logits,
    "maskbench-serving-1": _serving,
    "maskbench-hard-1": _hard,
}
