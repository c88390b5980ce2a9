"""The tables of a run: which there are, and what is in them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from maskbench.comparison import Comparison
from maskbench.goals import judge
from maskbench.report.run import Run
from maskbench.report.table import Column, Table, Unit, Value, columns
from maskbench.statistics import STATISTICS, Scope, refusal_reasons
from maskbench.verdicts import SchemaRecord, Verdict

_REASONS = 8
_EXAMPLES = 5
_ENGINE = Column("engine")
# The keys of tables that have nothing but times begin so.
_OF_TIMES = ("mask_", "first_mask_", "goals", "slowest_")
OWN = "over what each engine passes"
COMMON = "over what all engines pass"


def tables_of(run: Run, *, lists: bool = True) -> list[Table]:
    """Return all tables. Without `lists`, those that go through single schemas are left out."""
    found = [verdicts(run)]
    if reasons := refusals(run):
        found.append(reasons)
    found += times(run, "own")
    if run.peers:
        found += times(run, "common")
    found.append(forced(run, "own"))
    if run.peers:
        found.append(forced(run, "common"))
    found.append(memory(run))
    found += minima(run, lists=lists)
    # Goals are beside other engines, not beside the same one with another option.
    found += [goals(run, comparison) for comparison in run.pairs if comparison.rivals]
    if run.peers:
        found.append(difference_patterns(run))
    if lists:
        found += [slowest_masks(run), slowest_first_masks(run)]
        if run.peers:
            found.append(differences(run))
    return found


def minima(run: Run, *, lists: bool = True) -> list[Table]:
    """Return the tables of times with each call's minimum over the rounds; none for one round."""
    if run.minima is None:
        return []
    suffix = f": each call's minimum of {run.rounds} rounds"
    return [
        replace(table, key=f"min_{table.key}", title=table.title + suffix)
        for table in tables_of(run.minima, lists=lists)
        if table.key.startswith(_OF_TIMES)
    ]


def verdicts(run: Run) -> Table:
    """Return how many schemas met which fate; a count that older results lack is missing."""
    names = ("passed", "refused", "wrong_reject_schemas", "wrong_accept_schemas",
             "failed", "crashed", "timed_out", "out_of_memory",
             "wrong_reject_instances", "wrong_accept_instances")  # fmt: skip
    layout = run.document.get("settings", {}).get("whitespace")
    rows = []
    for engine in run.engines:
        counts = run.engine(engine)["counts"]
        share = counts["passed"] / counts["schemas"] if counts["schemas"] else None
        values = [counts.get(name) for name in names]
        rows.append((engine, counts["schemas"], counts["instances"], values[0], share, *values[1:]))
    return Table(
        "verdicts",
        "Verdicts: schemas, and how many instances were judged wrongly",
        (
            _ENGINE,
            *columns(Unit.COUNT, ("schemas", "instances", "passing")),
            Column("share", Unit.SHARE),
            *columns(
                Unit.COUNT,
                ("refused", "wrong reject", "wrong accept", "failed", "crash", "timeout",
                 "out of memory", "rejected instances", "accepted instances"),
            ),
        ),
        tuple(rows),
        (
            "A schema with wrong rejects and wrong accepts counts in both columns.",
            *([f"Whitespace that schemas allow: {layout}."] if layout else []),
        ),
    )  # fmt: skip


def refusals(run: Run) -> Table | None:
    """Why engines refused; None if none did."""
    rows: list[tuple[Value, ...]] = []
    for engine, log in run.logs.items():
        reasons = refusal_reasons(log.records)
        rows += [(engine, reason, count) for reason, count in reasons[:_REASONS]]
        if rest := reasons[_REASONS:]:
            rows.append((engine, f"{len(rest):,} other reasons", sum(n for _, n in rest)))
    if not rows:
        return None
    named = (_ENGINE, Column("reason"), Column("schemas", Unit.COUNT))
    return Table("refusals", "Refused because", named, tuple(rows))


def times(run: Run, scope: str) -> list[Table]:
    """Masks, and compile + first mask, by percentiles; `scope` is `own` or `common`.

    Common are the masks that all engines filled, not only the schemas that all pass: one engine
    rejects a document earlier than another.
    """
    masks: list[tuple[Value, ...]] = []
    first: list[tuple[Value, ...]] = []
    for summary in run.summaries:
        schemas, count = summary.own.schemas, summary.own.masks
        mask_us, first_us = summary.own.mask_us, summary.own.first_mask_us
        if scope == "common" and run.common is not None:
            schemas, count = run.common.schemas, run.common.masks
            mask_us = run.common.times[summary.name].mask_us
            first_us = run.common.times[summary.name].first_mask_us
        masks.append(
            (
                summary.name,
                schemas,
                count,
                *_statistics(mask_us),
                _per_second(count, mask_us, schemas, None),
                _per_second(count, mask_us, schemas, first_us),
            )
        )
        first.append((summary.name, schemas, *_statistics(first_us)))
    over = COMMON if scope == "common" else OWN
    statistics = columns(Unit.MICROSECONDS, STATISTICS)
    return [
        Table(
            f"mask_{scope}",
            f"Mask + accept in µs, {over}",
            (
                _ENGINE,
                *columns(Unit.COUNT, ("schemas", "masks")),
                *statistics,
                *columns(Unit.PER_SECOND, ("tokens/s", "with compile")),
            ),
            tuple(masks),
            ("Tokens per second through the mask, without and with compile + first mask.",),
        ),
        Table(
            f"first_mask_{scope}",
            f"Compile + first mask in µs, {over}",
            (_ENGINE, Column("schemas", Unit.COUNT), *statistics),
            tuple(first),
        ),
    ]


def _statistics(values: dict[str, float] | None) -> list[Value]:
    return [None if values is None else values[name] for name in STATISTICS]


def _per_second(
    masks: int, mask_us: dict[str, float] | None, schemas: int, first_us: dict[str, float] | None
) -> float | None:
    """Return steps per second of their time and, if given, the compilation's."""
    if mask_us is None:
        return None
    spent = masks * mask_us["avg"] + (0 if first_us is None else schemas * first_us["avg"])
    return masks * 1e6 / spent if spent else None


def forced(run: Run, scope: str) -> Table:
    """Return forced tokens and non-canonical sequences; `scope` is `own` or `common`."""
    is_common = scope == "common"
    return Table(
        f"forced_{scope}",
        f"Forced share and non-canonical sequences, {COMMON if is_common else OWN}",
        (
            _ENGINE,
            Column("tokens", Unit.COUNT),
            Column("forced share", Unit.SHARE),
            *columns(Unit.COUNT, ("sequences", "non-canonical")),
        ),
        tuple((s.name, *_forced(s.common if is_common else s.own)) for s in run.summaries),
    )


def _forced(scope: Scope) -> tuple[Value, ...]:
    count = scope.forced
    if count is None:
        return (None, None, None, None)
    share = count.forced / count.tokens if count.tokens else None
    return (count.tokens, share, count.sequences, count.noncanonical)


def memory(run: Run) -> Table:
    """Return resident memory of the engines' processes, as far as it was recorded."""
    rows = []
    for engine in run.engines:
        about = run.engine(engine)
        peaks = [
            peak
            for schema in about["schemas"]
            if (peak := schema.get("peak_memory_bytes")) is not None
        ]
        ranked = np.sort(np.array(peaks, dtype=np.int64))
        nearest = [int(ranked[-(-p * len(ranked) // 100) - 1]) if peaks else None for p in (50, 99)]
        rows.append(
            (
                engine,
                about.get("start_seconds"),
                about.get("start_memory_bytes"),
                about.get("peak_memory_bytes"),
                *nearest,
            )
        )
    return Table(
        "memory",
        "Memory of the engine's process, and its start",
        (
            _ENGINE,
            Column("start in s", Unit.SECONDS),
            *columns(Unit.BYTES, ("after start", "peak", "schema p50", "schema p99")),
        ),
        tuple(rows),
    )


def goals(run: Run, comparison: Comparison) -> Table:
    """Return one comparison beside the project's goals, and what is not in it."""
    rows = [
        (
            judgement.goal.title,
            judgement.own,
            *judgement.peers,
            judgement.ratio,
            f"{judgement.goal.must}: {'met' if judgement.must else 'missed'}",
            f"{judgement.goal.aim}: {'met' if judgement.aim else 'missed'}",
        )
        for judgement in judge(comparison)
    ]
    several = len(comparison.peers) > 1
    return Table(
        "goals_all" if several else f"goals_{comparison.peers[0]}",
        f"Times in µs over the schemas that {comparison.name} pass: "
        f"{comparison.schemas:,} schemas, {comparison.masks:,} masks",
        (
            Column("µs"),
            *columns(Unit.MICROSECONDS, (comparison.subject, *comparison.peers)),
            Column("ratio", Unit.RATIO),
            Column("must"),
            Column("aim"),
        ),
        tuple(rows),
        tuple(f"left out, {why}: {len(ids):,}" for why, ids in comparison.left_out.items()),
    )


def slowest_masks(run: Run) -> Table:
    """Return the slowest masks of each engine, at most one per schema, with their positions."""
    title = "Slowest masks of each engine, at most one a schema"
    note = "Documents and positions in tokens count from 0."
    return _slowest(run, "slowest_masks", title, ("document", "position"), (note,))


def slowest_first_masks(run: Run) -> Table:
    """Return the schemas that each engine takes longest to compile."""
    return _slowest(run, "slowest_first_masks", "Slowest compile + first mask of each engine")


def _slowest(
    run: Run, key: str, title: str, more: tuple[str, ...] = (), notes: tuple[str, ...] = ()
) -> Table:
    rows = [
        (engine, rank, found["us"], found["id"], *(found[name] for name in more))
        for engine in run.engines
        for rank, found in enumerate(run.engine(engine)[key], 1)
    ]
    rank, us = Column("rank", Unit.COUNT), Column("µs", Unit.MICROSECONDS)
    named = (_ENGINE, rank, us, Column("schema"), *columns(Unit.COUNT, more))
    return Table(key, title, named, tuple(rows), notes)


def _verdicts_by_schema(run: Run) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Return the schemas on which engines differ, in the run's order, with a verdict per engine."""
    found: defaultdict[int, dict[str, str]] = defaultdict(dict)
    ids: dict[int, str] = {}
    for engine, log in run.logs.items():
        for record in log.records:
            found[record.index][engine] = _verdict(record)
            ids[record.index] = record.id
    for index in sorted(found):
        verdicts = found[index]
        if len(set(verdicts.values())) > 1:
            yield ids[index], tuple(verdicts.get(engine, "not given") for engine in run.engines)


def _verdict(record: SchemaRecord) -> str:
    """Return the worse of the two ways to be wrong, if both hold."""
    if record.verdict is Verdict.WRONG:
        return "wrong accept" if record.wrong_accepts else "wrong reject"
    return str(record.verdict.value)


def difference_patterns(run: Run) -> Table:
    """Return on how many schemas the engines differ in which way, most frequent first."""
    counts: Counter[tuple[str, ...]] = Counter()
    examples: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for schema, pattern in _verdicts_by_schema(run):
        counts[pattern] += 1
        if len(examples[pattern]) < _EXAMPLES:
            examples[pattern].append(schema)
    rows: list[tuple[Value, ...]] = []
    for pattern, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        more = " …" if count > _EXAMPLES else ""
        rows.append((*pattern, count, ", ".join(examples[pattern]) + more))
    return Table(
        "difference_patterns",
        "Where verdicts differ",
        (*columns(Unit.TEXT, run.engines), Column("schemas", Unit.COUNT), Column("such as")),
        tuple(rows),
    )


def differences(run: Run) -> Table:
    """Return every schema on which engines differ."""
    return Table(
        "differences",
        "Verdicts by schema, where they differ",
        (Column("schema"), *columns(Unit.TEXT, run.engines)),
        tuple((schema, *pattern) for schema, pattern in _verdicts_by_schema(run)),
    )
