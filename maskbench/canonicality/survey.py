"""One schema's documents under every mode and variant, and the sums over all schemas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from maskbench.canonicality.counts import Forced, Miss, RefusedTokenError, count_forced
from maskbench.canonicality.forcing import ENGINES, ForcingEngine, ForcingGrammar
from maskbench.canonicality.variants import Mode, Variant
from maskbench.data import DataError, Source, parse_case
from maskbench.documents import UnwritableSchemaError, prepare
from maskbench.engines.base import RefusedError
from maskbench.tokenizer import OutputEncoder, TokenizerSpec

MISSES_KEPT = 20


@dataclass(frozen=True)
class SurveySetup:
    """The arguments of a process."""

    tokenizer: TokenizerSpec
    modes: tuple[Mode, ...]
    variants: tuple[Variant, ...]


@dataclass(frozen=True)
class SurveyTask:
    """One case, by its place among all."""

    index: int
    source: Source


@dataclass
class ModeCount:
    """The result of a mode for one case: per document verdicts and counts."""

    documents: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    """Why an engine took the schema not at all."""
    accepted: dict[str, list[bool]] = field(default_factory=dict)
    forced: dict[str, list[Forced | None]] = field(default_factory=dict)
    """None where the variant's engine does not accept the document, or failed."""
    failed: dict[str, str] = field(default_factory=dict)
    """The first thing that went wrong with a variant."""
    misses: dict[str, list[Miss]] = field(default_factory=dict)


@dataclass(frozen=True)
class CaseCount:
    """All modes of one case; `unusable` says why there are none."""

    id: str
    modes: dict[Mode, ModeCount] = field(default_factory=dict)
    unusable: str | None = None


class Surveyor:
    """Counts case after case, in a worker process."""

    def __init__(self, setup: SurveySetup) -> None:
        self._setup = setup
        self._encoder = OutputEncoder(setup.tokenizer)
        names = dict.fromkeys(variant.engine for variant in setup.variants)
        self._engines: dict[str, ForcingEngine] = {
            name: ENGINES[name](setup.tokenizer) for name in names
        }

    def __call__(self, task: SurveyTask) -> CaseCount:
        """Return all modes of one case."""
        try:
            case = parse_case(task.source)
            modes = {}
            for mode in self._setup.modes:
                job = prepare(case, task.index, self._encoder, mode.whitespace).job
                documents = [document.tokens for document in job.documents if document.valid]
                modes[mode] = self._count(job.schema, documents, mode)
        except (DataError, UnwritableSchemaError) as error:
            return CaseCount(task.source.default_id, unusable=str(error))
        return CaseCount(case.id, modes)

    def _count(self, schema: str, documents: Sequence[Sequence[int]], mode: Mode) -> ModeCount:
        result = ModeCount(documents=len(documents))
        for name, engine in self._engines.items():
            try:
                compiled = engine.compile(schema, mode)
                result.accepted[name] = [compiled.accepts(document) for document in documents]
            except RefusedError as error:  # noqa: PERF203 - each refusal is counted by engine
                result.refused[name] = error.reason
            except (ValueError, RuntimeError) as error:
                result.refused[name] = f"failed: {type(error).__name__}"
        for variant in self._setup.variants:
            if variant.engine in result.accepted:
                # Compiled again, or the second variant would find the first one's caches.
                compiled = self._engines[variant.engine].compile(schema, mode)
                self._count_variant(result, variant, compiled, documents)
        return result

    def _count_variant(
        self,
        result: ModeCount,
        variant: Variant,
        compiled: ForcingGrammar,
        documents: Sequence[Sequence[int]],
    ) -> None:
        counts: list[Forced | None] = []
        for document, accepted in zip(documents, result.accepted[variant.engine], strict=True):
            count = None
            if accepted:
                try:
                    count, misses = count_forced(compiled.walk(variant), document)
                    kept = result.misses.setdefault(variant.name, [])
                    kept += misses[: max(0, 3 - len(kept))]
                except (RefusedTokenError, ValueError, RuntimeError) as error:
                    result.failed.setdefault(variant.name, f"{type(error).__name__}: {error}")
            counts.append(count)
        result.forced[variant.name] = counts


@dataclass
class Total:
    """A variant in a mode, over all cases."""

    own: Forced = field(default_factory=Forced)
    """Over the documents that its engine accepts."""
    common: Forced = field(default_factory=Forced)
    """Over the documents that every variant has a count of."""
    failed: Counter[str] = field(default_factory=Counter)
    misses: list[tuple[str, Miss]] = field(default_factory=list)
    """The first non-canonical sequences, with the case that each is of."""


@dataclass
class ModeTotal:
    """A mode over all cases."""

    documents: int = 0
    common_documents: int = 0
    accepted: Counter[str] = field(default_factory=Counter)
    """Documents by engine."""
    refused: Counter[str] = field(default_factory=Counter)
    """Schemas by engine."""
    variants: dict[str, Total] = field(default_factory=dict)


@dataclass
class Totals:
    """The sums of a run, to which cases are added as they come."""

    modes: dict[Mode, ModeTotal]
    cases: int = 0
    unusable: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """Cases on which a process crashed or did not end."""

    @classmethod
    def of(cls, modes: Sequence[Mode], variants: Sequence[Variant]) -> Totals:
        """Return empty counts."""
        return cls(
            {mode: ModeTotal(variants={v.name: Total() for v in variants}) for mode in modes}
        )

    def add(self, case: CaseCount) -> None:
        """Add the counts of a case."""
        if case.unusable is not None:
            self.unusable.append(case.unusable)
            return
        self.cases += 1
        for mode, count in case.modes.items():
            self._add_mode(self.modes[mode], case.id, count)

    def _add_mode(self, total: ModeTotal, case: str, count: ModeCount) -> None:
        total.documents += count.documents
        total.refused.update(count.refused.keys())
        for engine, accepted in count.accepted.items():
            total.accepted[engine] += sum(accepted)
        everywhere = [
            all(
                name in count.forced and count.forced[name][place] is not None
                for name in total.variants
            )
            for place in range(count.documents)
        ]
        total.common_documents += sum(everywhere)
        for name, counts in count.forced.items():
            sums = total.variants[name]
            for forced, common in zip(counts, everywhere, strict=True):
                if forced is not None:
                    sums.own += forced
                    if common:
                        sums.common += forced
            if name in count.failed:
                sums.failed[count.failed[name]] += 1
            kept = count.misses.get(name, [])[: max(0, MISSES_KEPT - len(sums.misses))]
            sums.misses += [(case, miss) for miss in kept]
