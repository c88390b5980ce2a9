"""From outcomes to verdicts: the result of one engine on one schema."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from maskbench.canonicality.counts import ForcedCount
from maskbench.documents import Job
from maskbench.walk import DocumentResult, Measured, Outcome


class Ended(str, Enum):
    """How a worker process ended before it had answered."""

    CRASHED = "crashed"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"


class Verdict(str, Enum):
    """Exactly one holds for an engine and a schema."""

    PASSED = "passed"
    """Every valid instance accepted, every invalid one rejected."""

    REFUSED = "refused"
    """The engine said that it cannot enforce the schema."""

    WRONG = "wrong"
    """A valid instance rejected or an invalid one accepted."""

    FAILED = "failed"
    """The engine gave up on a schema that it had taken."""

    CRASHED = "crashed"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    """Killed at the memory limit or by the system, or an allocation failed."""


@dataclass(frozen=True)
class SchemaRecord:
    """One engine, one schema. Times are in microseconds."""

    index: int
    id: str
    verdict: Verdict
    labels: tuple[bool, ...]
    """Of the instances, in order: whether each is valid."""

    documents: tuple[DocumentResult, ...] = ()
    """As `labels`, or empty if no instance was walked."""

    reason: str | None = None
    """A category for counting: why refused."""

    detail: str | None = None
    first_mask_us: float | None = None
    mask_us: array[float] = field(default_factory=lambda: array("f"))
    forced: ForcedCount | None = None
    peak_memory_bytes: int | None = None
    """The largest resident size of the engine's process while it compiled and walked the schema.

    What the process held before is in it: the tokenizer, and what the engine keeps."""

    min_first_mask_us: float | None = None
    """The minimum over the run's rounds; None after one round, and where rounds differ."""

    min_mask_us: array[float] = field(default_factory=lambda: array("f"))
    """Each mask's minimum over the run's rounds; empty after one round, and where rounds differ."""

    @classmethod
    def ended_early(
        cls, job: Job, ended: Ended, detail: str, peak_memory_bytes: int | None = None
    ) -> SchemaRecord:
        """Return the record of a process that crashed or was killed, without its times."""
        verdict = Verdict(ended.value)
        labels = _labels(job)
        return cls(
            job.index, job.id, verdict, labels, detail=detail, peak_memory_bytes=peak_memory_bytes
        )

    @classmethod
    def measured(
        cls,
        job: Job,
        measured: Measured,
        forced: ForcedCount | None,
        forced_problem: str | None = None,
        *,
        peak_memory_bytes: int | None = None,
    ) -> SchemaRecord:
        """Return the verdict on a measurement."""
        reason = detail = None
        labels = _labels(job)
        problems = [d.problem for d in measured.documents if d.problem is not None]
        if measured.refused is not None:
            verdict = Verdict.REFUSED
            reason, detail = measured.refused
        elif measured.failed is not None:
            verdict, detail = Verdict.FAILED, measured.failed
        elif any(
            _is_wrong_reject(label, document) or _is_wrong_accept(label, document)
            for label, document in zip(labels, measured.documents, strict=True)
        ):
            verdict = Verdict.WRONG
        elif problems:
            verdict, detail = Verdict.FAILED, problems[0]
        elif forced_problem is not None:
            verdict, detail = Verdict.FAILED, f"while counting forced tokens: {forced_problem}"
        else:
            verdict = Verdict.PASSED
        return cls(
            job.index,
            job.id,
            verdict,
            labels,
            measured.documents,
            reason,
            detail,
            measured.first_mask_us,
            measured.mask_us,
            forced,
            peak_memory_bytes,
        )

    @classmethod
    def of_rounds(cls, rounds: Sequence[SchemaRecord]) -> SchemaRecord:
        """Return the first round's record with the minima of all of them.

        Rounds are the same work in different processes. If one of them came to another result, its
        record stands for all, without minima.
        """
        first = rounds[0]
        if len(rounds) == 1:
            return first
        peaks = [r.peak_memory_bytes for r in rounds if r.peak_memory_bytes is not None]
        first = replace(first, peak_memory_bytes=max(peaks, default=None))
        for other in rounds[1:]:
            if (other.verdict, other.documents) != (first.verdict, first.documents):
                return other if first.verdict is Verdict.PASSED else first
        firsts = [r.first_mask_us for r in rounds if r.first_mask_us is not None]
        return replace(
            first,
            min_first_mask_us=min(firsts, default=None),
            min_mask_us=array("f", map(min, *(r.mask_us for r in rounds))),
        )

    @property
    def minima(self) -> SchemaRecord:
        """The record with each call's minimum as its time, where it has one."""
        if self.min_first_mask_us is None:
            return self
        return replace(
            self,
            first_mask_us=self.min_first_mask_us,
            mask_us=self.min_mask_us,
            min_first_mask_us=None,
            min_mask_us=array("f"),
        )

    @property
    def wrong_rejects(self) -> int:
        """How many valid instances were rejected."""
        pairs = zip(self.labels, self.documents, strict=False)
        return sum(_is_wrong_reject(label, document) for label, document in pairs)

    @property
    def wrong_accepts(self) -> int:
        """How many invalid instances were accepted."""
        pairs = zip(self.labels, self.documents, strict=False)
        return sum(_is_wrong_accept(label, document) for label, document in pairs)

    @property
    def failed_documents(self) -> int:
        """How many instances the engine gave up on."""
        return sum(document.outcome is Outcome.FAILED for document in self.documents)

    def place_of_mask(self, number: int) -> tuple[int, int]:
        """Return the document and the position in it of the mask with this number in `mask_us`."""
        for index, document in enumerate(self.documents):
            if number < document.masks:
                return index, number
            number -= document.masks
        raise IndexError(number)


def _labels(job: Job) -> tuple[bool, ...]:
    return tuple(document.valid for document in job.documents)


def _is_wrong_reject(label: bool, document: DocumentResult) -> bool:
    return label and document.outcome is Outcome.REJECTED


def _is_wrong_accept(label: bool, document: DocumentResult) -> bool:
    return not label and document.outcome is Outcome.ACCEPTED
