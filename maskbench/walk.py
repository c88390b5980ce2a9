"""Walking an engine through a schema's documents: verdicts and times, and the forced share.

This runs in the worker process. An `Exception` from the engine is recorded as a failure, but for
`MemoryError`, which ends the process, and so does what is only called so elsewhere. Anything
else, such as a Rust panic (a `BaseException`), ends the process, and the parent records a crash.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from time import perf_counter_ns

from maskbench.canonicality.counts import ForcedCount, ForcedWalk, count_forced
from maskbench.documents import Document, Job
from maskbench.engines.base import Compiled, Engine, FailedError, RefusedError, Session


class Outcome(str, Enum):
    """The result of an engine for one document."""

    ACCEPTED = "accepted"
    """Every token allowed by its mask and accepted, and the last mask allows the end."""

    REJECTED = "rejected"
    FAILED = "failed"
    """The engine gave up, or refused a token that its mask allows."""


@dataclass(frozen=True)
class DocumentResult:
    """One document: its outcome and the number of masks that were computed for it."""

    outcome: Outcome
    masks: int
    problem: str | None = None


@dataclass(frozen=True)
class Measured:
    """One schema: times in microseconds, outcomes per document.

    `first_mask_us` is compile + matcher + first mask, and None if there was no first mask.
    `mask_us` has one value per mask: the mask and, where the mask allows the token, its accept.
    """

    refused: tuple[str, str] | None = None
    failed: str | None = None
    first_mask_us: float | None = None
    mask_us: array[float] = field(default_factory=lambda: array("f"))
    documents: tuple[DocumentResult, ...] = ()


class MaskTimer:
    """Measures one schema after another with one engine."""

    def __init__(self, engine: Engine, eos_token_ids: Sequence[int]) -> None:
        self._engine = engine
        self._eos = tuple(eos_token_ids)
        # Indexing a memoryview is several times cheaper than indexing an array.
        self._words = engine.bitmask.data.cast("B").cast("I")

    def measure(self, job: Job) -> tuple[Measured, Compiled | None]:
        """Compile the schema and walks all documents, timing each mask. Raises `MemoryError`."""
        engine = self._engine
        try:
            start = perf_counter_ns()
            compiled = engine.compile(job.schema)
            session = compiled.session()
            session.fill()
            stop = perf_counter_ns()
        except RefusedError as refusal:
            raise_if_out_of_memory(refusal)
            return Measured(refused=(refusal.reason, refusal.detail)), None
        except Exception as error:
            raise_if_out_of_memory(error)
            return Measured(failed=describe_error(error)), None
        first_mask_us = (stop - start) / 1000
        problem = session.problem()
        if problem is not None:
            return Measured(failed=problem, first_mask_us=first_mask_us), None
        samples: list[int] = []
        documents = [self._walk(compiled, document, samples) for document in job.documents]
        measured = Measured(
            first_mask_us=first_mask_us,
            mask_us=array("f", [ns / 1000 for ns in samples]),
            documents=tuple(documents),
        )
        return measured, compiled

    def count_forced(
        self, compiled: Compiled, documents: Sequence[Document], measured: Measured
    ) -> ForcedCount | None:
        """Count forced tokens over the valid documents that `measure` found accepted.

        None if the engine has no forced tokens. Raises `FailedError` if the walk contradicts it.
        """
        if compiled.session().forced is None:
            return None
        total = ForcedCount()
        for document, result in zip(documents, measured.documents, strict=True):
            if document.valid and result.outcome is Outcome.ACCEPTED:
                session = compiled.session()
                assert session.forced is not None
                count, _ = count_forced(ForcedWalk(session.accept, session.forced), document.tokens)
                total += ForcedCount(*(getattr(count, each.name) for each in fields(total)))
        return total

    def _walk(self, compiled: Compiled, document: Document, samples: list[int]) -> DocumentResult:
        before = len(samples)
        try:
            session = compiled.session()
            outcome = self._walk_session(session, document.tokens, samples)
            # Asked in the end, since a mask of an engine in an error state means nothing.
            problem = session.problem() if outcome is Outcome.ACCEPTED else None
            if problem is not None:
                raise FailedError(problem)
        except Exception as error:
            raise_if_out_of_memory(error)
            return DocumentResult(Outcome.FAILED, len(samples) - before, describe_error(error))
        return DocumentResult(outcome, len(samples) - before)

    def _walk_session(self, session: Session, tokens: array[int], samples: list[int]) -> Outcome:
        fill = session.fill
        accept = session.accept
        words = self._words
        now = perf_counter_ns
        for position, token in enumerate(tokens):
            start = now()
            fill()
            filled = now()
            if not words[token >> 5] >> (token & 31) & 1:
                samples.append(filled - start)
                problem = session.problem()
                if problem is not None:
                    raise FailedError(problem)
                return Outcome.REJECTED
            checked = now()
            accepted = accept(token)
            stop = now()
            samples.append(filled - start + stop - checked)
            if not accepted:
                raise FailedError(
                    session.problem()
                    or f"the mask allows token {token} at position {position}, accept refuses it"
                )
        start = now()
        fill()
        samples.append(now() - start)
        ends = any(words[token >> 5] >> (token & 31) & 1 for token in self._eos)
        return Outcome.ACCEPTED if ends else Outcome.REJECTED


def raise_if_out_of_memory(error: Exception) -> None:
    """Raise `MemoryError` if the error means that, by its type or by C++'s message."""
    if isinstance(error, MemoryError) or "bad_alloc" in str(error):
        raise MemoryError(str(error)) from error


def describe_error(error: Exception) -> str:
    """Return an error as one text for the record."""
    if isinstance(error, FailedError):
        return str(error)
    return f"{type(error).__name__}: {error}"
