"""Comparison of engines on equal work: the schemas that all pass, and the masks that all computed.

Engines reject an invalid document at different tokens. A document's masks only count up to the last
that every one of the engines has filled.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskbench.runner import EngineLog
from maskbench.statistics import describe_times
from maskbench.verdicts import SchemaRecord, Verdict


@dataclass(frozen=True)
class Times:
    """One engine's statistics, in microseconds; None where there is no sample."""

    mask_us: dict[str, float] | None
    first_mask_us: dict[str, float] | None


@dataclass(frozen=True)
class Comparison:
    """The subject beside one or more peers."""

    subject: str
    peers: tuple[str, ...]
    schemas: int
    masks: int
    times: dict[str, Times]
    """Of the subject and of each peer."""

    left_out: dict[str, tuple[str, ...]]
    """The schemas that do not count, by why: `llguidance refused`, `not given to xgrammar`.
    One that does not count for several engines is listed for the first of them."""

    @property
    def name(self) -> str:
        """Its name in tables."""
        return f"{self.subject} and {' and '.join(self.peers)}"

    @property
    def rivals(self) -> tuple[str, ...]:
        """The peers that are not the subject with another option, as `ffwd-any` is `ffwd`."""
        return tuple(peer for peer in self.peers if not peer.startswith(f"{self.subject}-"))

    def better_peer(self, part: str, statistic: str) -> float | None:
        """Return the least time of a rival: `part` is `mask_us` or `first_mask_us`."""
        values = [self.time(peer, part, statistic) for peer in self.rivals]
        return min((value for value in values if value is not None), default=None)

    def own(self, part: str, statistic: str) -> float | None:
        """Return the subject's time."""
        return self.time(self.subject, part, statistic)

    def time(self, engine: str, part: str, statistic: str) -> float | None:
        """Return an engine's time."""
        values = getattr(self.times[engine], part)
        return None if values is None else float(values[statistic])


def comparisons(logs: dict[str, EngineLog], subject: str) -> list[Comparison]:
    """Compare the subject with each other engine, and with all of them if there are several."""
    peers = [name for name in logs if name != subject]
    groups: list[tuple[str, ...]] = [(peer,) for peer in peers]
    if len(peers) > 1:
        groups.append(tuple(peers))
    return [compare(logs, subject, group) for group in groups]


def compare(logs: dict[str, EngineLog], subject: str, peers: Sequence[str]) -> Comparison:
    """Compare over the schemas that the subject and all of the peers pass."""
    names = (subject, *peers)
    records = {name: {record.index: record for record in logs[name].records} for name in names}
    common, left_out = common_schemas(logs, names)
    masks: dict[str, list[NDArray[np.float32]]] = {name: [] for name in names}
    for index in common:
        chosen = [records[name][index] for name in names]
        lengths = [
            min(document.masks for document in documents)
            for documents in zip(*(record.documents for record in chosen), strict=True)
        ]
        for name, record in zip(names, chosen, strict=True):
            masks[name].extend(prefixes(record, lengths))
    times = {}
    for name in names:
        first = [records[name][index].first_mask_us for index in common]
        samples = np.concatenate(masks[name]) if masks[name] else np.zeros(0, dtype=np.float32)
        times[name] = Times(
            mask_us=describe_times(samples),
            first_mask_us=describe_times(
                np.array([us for us in first if us is not None], dtype=np.float32)
            ),
        )
    return Comparison(
        subject=subject,
        peers=tuple(peers),
        schemas=len(common),
        masks=sum(len(part) for part in masks[subject]),
        times=times,
        left_out=left_out,
    )


def common_schemas(
    logs: dict[str, EngineLog], names: Sequence[str]
) -> tuple[list[int], dict[str, tuple[str, ...]]]:
    """Return the indices of the schemas that all engines pass, and the ids of others by reason."""
    records = {name: {record.index: record for record in logs[name].records} for name in names}
    everything = {r.index: r.id for name in names for r in logs[name].records}
    left_out: defaultdict[str, list[str]] = defaultdict(list)
    common = []
    for index in sorted(everything):
        fate = next(
            (why for name in names if (why := _why_not(name, records[name].get(index)))), None
        )
        if fate is None:
            common.append(index)
        else:
            left_out[fate].append(everything[index])
    return common, {why: tuple(ids) for why, ids in sorted(left_out.items())}


def _why_not(name: str, record: SchemaRecord | None) -> str | None:
    if record is None:
        return f"not given to {name}"
    return None if record.verdict is Verdict.PASSED else f"{name}: {record.verdict.value}"


def prefixes(record: SchemaRecord, lengths: Sequence[int]) -> list[NDArray[np.float32]]:
    """Return the first masks of each document."""
    samples = np.frombuffer(record.mask_us, dtype=np.float32)
    parts = []
    start = 0
    for document, length in zip(record.documents, lengths, strict=True):
        parts.append(samples[start : start + length])
        start += document.masks
    return parts
