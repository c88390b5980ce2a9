"""Runs that nobody ran: records with the times and verdicts that a test wants."""

from array import array

import numpy as np

from maskbench.canonicality.counts import ForcedCount
from maskbench.report.run import Run
from maskbench.runner import EngineLog
from maskbench.verdicts import SchemaRecord, Verdict
from maskbench.walk import DocumentResult, Outcome

ABOUT = {
    "command": "python -m maskbench run --engine one,two",
    "started": "2026-01-01T00:00:00Z",
    "seconds": 1.5,
    "complete": True,
    "machine": {"platform": "some", "processor": "a fast one", "cores": 8, "python": "3.12"},
    "settings": {
        "whitespace": "flexible",
        "cold_store": True,
        "forced": True,
        "memory_limit_bytes": 2**32,
    },
    "tokenizer": {"name": "bytes", "vocab_size": 257, "sha256": "00ff"},
    "data": {"name": "some.jsonl", "schemas": 9, "chosen": 9},
}


def record(index, verdict=Verdict.PASSED, *, documents=(), first=None, **more):
    """`documents` has the times of the masks of each; the first document is valid."""
    outcomes = [Outcome.REJECTED if number else Outcome.ACCEPTED for number in range(9)]
    return SchemaRecord(
        index, more.pop("id", f"id{index}"), verdict,
        tuple(number == 0 for number in range(len(documents))),
        tuple(DocumentResult(outcome, len(masks))
              for outcome, masks in zip(more.pop("outcomes", outcomes), documents, strict=False)),
        first_mask_us=first, mask_us=array("f", [us for masks in documents for us in masks]),
        **more,
    )  # fmt: skip


def wrong(index, outcome, **more):
    """A schema whose valid document is rejected, or whose invalid one is accepted."""
    outcomes = [Outcome.ACCEPTED, outcome] if outcome is Outcome.ACCEPTED else [outcome]
    return record(
        index, Verdict.WRONG, documents=[[1.0]] * len(outcomes), outcomes=outcomes, **more
    )


def logs():
    """Three engines on four schemas; the third is given only one."""
    return {
        "one": EngineLog({"fake": "1"}, records=[
            record(0, documents=[[1, 2], [3, 4, 50]], first=10, forced=ForcedCount(4, 2, 1, 0)),
            record(1, documents=[[5]], first=20),
            record(2, Verdict.WRONG, documents=[[900]], first=900),
            record(3, documents=[[6]], first=30),
        ]),
        "two": EngineLog({"fake": "1"}, records=[
            record(0, documents=[[10, 20], [30, 40]], first=100),
            record(1, Verdict.REFUSED, reason="unsupported: x", detail="x at /y"),
            record(2, documents=[[1]], first=1),
            record(3, documents=[[60]], first=300),
        ]),
        "three": EngineLog({"fake": "1"}, records=[
            record(0, documents=[[9, 19], [29]], first=90),
        ]),
    }  # fmt: skip


def many(schemas, *, prefix="schema-", seed=0):
    """Two engines on so many schemas, the second slower and refusing every seventh."""
    random = np.random.default_rng(seed)
    found = {"ffwd": EngineLog({"ffwd": "0"}), "peer": EngineLog({"peer": "1"})}
    for index in range(schemas):
        for factor, (name, log) in zip((1.0, 8.0), found.items(), strict=True):
            if name == "peer" and index % 7 == 3:
                log.records.append(record(index, Verdict.REFUSED, id=f"{prefix}{index}",
                                          reason="unsupported: seven"))  # fmt: skip
                continue
            masks = factor * random.lognormal(1.0, 1.2, size=20)
            first = factor * float(random.lognormal(5.0, 1.0))
            log.records.append(
                record(index, id=f"{prefix}{index}", documents=[masks.tolist()], first=first)
            )
    return found


def run_of(found, name="run.json"):
    """The run that has these logs."""
    return Run.finished(name, ABOUT, found)
