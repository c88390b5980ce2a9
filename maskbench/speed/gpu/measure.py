"""All measurements on a device, in turn, until the time is over; and their tables."""

from __future__ import annotations

import gc
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import PreTrainedTokenizerFast

import ffwd
import ffwd.tokenizer
from maskbench import commands, results
from maskbench.errors import InputError
from maskbench.report.figures import Curves, percentile_curves
from maskbench.report.table import Column, Table, Unit, columns
from maskbench.speed.gpu import kernels
from maskbench.speed.gpu.decoding import (
    Unconstrained,
    Written,
    WrongTokenError,
    forced_share,
    percentile,
    ways,
    widths,
    write,
)
from maskbench.speed.gpu.goals import goals
from maskbench.speed.gpu.joining import joining, most_columns
from maskbench.speed.gpu.models import Passes, random_model
from maskbench.speed.logits.masks import grammar_masks
from maskbench.speed.processors.measure import TokenizedDocument, texts
from maskbench.speed.processors.rows import Peers
from maskbench.tokenizer import HuggingFaceEncoder, TokenizerSpec

_SHARES = (0.0, 0.1, 0.25, 0.5)
_WARM = 31
_DOCUMENT = 128
"""The most tokens of a document whose whole time is measured."""


@dataclass(frozen=True)
class Plan:
    """The measurements, and when they end (in `time.monotonic`)."""

    shapes: Sequence[str]
    batches: Sequence[int]
    mask_batches: Sequence[int]
    steps: int
    joins: int
    graphs: bool
    threads: int
    rounds: int
    until: float

    def plain(self) -> dict[str, Any]:
        """Return the settings for results."""
        return {name: value for name, value in asdict(self).items() if name != "until"}


@dataclass
class Measured:
    """Tables, and the curves of steps by percentile."""

    tables: list[Table] = field(default_factory=list)
    plots: list[Curves] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    """Parts that ended with an error, and the error; notes below the tables name them too."""


def facts(device: torch.device, spec: TokenizerSpec) -> dict[str, str]:
    """Return the device, its driver, versions and the date."""
    cuda = device.type == "cuda"
    name = torch.cuda.get_device_name(device) if cuda else results.machine()["processor"]
    driver = ""
    if cuda:
        import subprocess

        asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        try:
            driver = subprocess.run(
                asked, capture_output=True, text=True, timeout=20
            ).stdout.strip()
        except (OSError, subprocess.TimeoutExpired):
            driver = "unknown"
    versions = {name: v for name, v in results.packages().items() if v}
    versions |= {"torch": torch.__version__, "transformers": transformers.__version__}
    found = {
        "device": str(name),
        "driver": driver,
        "CUDA": (torch.version.cuda or "") if cuda else "",
        "date": results.utc_now(),
        "Python": platform.python_version(),
        "vocabulary": f"{spec.name}, {spec.vocab_size:,} tokens",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "command": commands.command_line(),
    }
    return {name: value for name, value in found.items() if value}


class _TimeOverError(Exception):
    """The time is over before a part has a figure."""


class _Bench:
    def __init__(self, plan: Plan, spec: TokenizerSpec, data: Path, device: torch.device) -> None:
        self.plan, self.spec, self.data, self.device = plan, spec, data, device
        self.measured = Measured()
        self.left_out: list[str] = []
        self.until = self.end = plan.until
        loaded = PreTrainedTokenizerFast.from_pretrained(str(spec.directory))

        def peers(**options: Any) -> Peers:
            vocabulary = ffwd.tokenizer.from_huggingface(spec.directory, vocab_size=spec.vocab_size)
            return Peers(vocabulary, loaded, spec.vocab_size, plan.threads, **options)

        self.peers = peers()
        # Other engines look at the newcomers, so that no schema of theirs is known to the first.
        scout = peers()
        jobs = commands.jobs(data, None, 0, HuggingFaceEncoder(spec))
        short = max(plan.steps // 3, 2)
        fresh = texts(jobs[::-1], scout, short, plan.joins * len(plan.shapes))
        unseen = {text.schema for text in fresh}
        rest = [job for job in jobs if job.schema not in unseen]
        taken = texts(rest, self.peers, plan.steps, max(*plan.batches, _WARM + 1))
        self.texts = [text for text in taken if forced_share(self.peers, text) is not None]
        # What one model's newcomers have compiled is known to the engines when the next one's come.
        count = len(plan.shapes)
        self.fresh = {shape: fresh[place::count] for place, shape in enumerate(plan.shapes)}
        if not self.texts or not all(self.fresh.values()):
            raise InputError(
                f"{data} has too few documents of {plan.steps} tokens that every engine accepts: "
                "take fewer --steps"
            )
        # With optional white space no document of the built-in corpus is forced by half.
        self.compact = peers(engines=("ffwd",), whitespace="compact")
        self.whole: list[tuple[float, TokenizedDocument]] = []
        for job in rest:
            for document in job.documents:
                tokens = document.tokens.tolist()
                text = TokenizedDocument(job.schema, tokens[:_DOCUMENT])
                if document.valid and len(tokens) >= plan.steps // 2:
                    share = forced_share(self.compact, text)
                    if share is not None:
                        self.whole.append((share, text))
                        break

    def part(self, name: str, measure: Callable[[], None]) -> None:
        """Measure something, unless the time is over or the memory does not suffice."""
        try:
            self.check_time()
            measure()
        except _TimeOverError:
            self.left_out.append(f"{name}: the time was over (--minutes)")
        except torch.OutOfMemoryError:
            self.left_out.append(f"{name}: the device has too little memory")
        # Figures of the other parts are worth having; the command fails when it has written them.
        except Exception as error:
            line = str(error).partition("\n")[0]
            self.measured.failed.append(f"{name}: {type(error).__name__}: {line}")
            self.left_out.append(self.measured.failed[-1])
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def parts(self, parts: Sequence[tuple[str, Callable[[], None]]]) -> None:
        """Measure the parts of a table, each in its share of the time that is left for all.

        A part whose share is over takes no more rounds. It is left out if the table's time is over
        before it has a figure.
        """
        self.end = self.until
        for place, (name, measure) in enumerate(parts):
            self.take_share(1 / (len(parts) - place), self.end)
            self.part(name, measure)
        self.until = self.end

    def over(self) -> bool:
        """Whether the time of the current part is over."""
        return time.monotonic() >= self.until

    def take_share(self, share: float, end: float) -> None:
        """Give what comes next a share of the time that is left until `end`."""
        now = time.monotonic()
        self.until = now + share * (end - now)

    def check_time(self) -> None:
        if time.monotonic() >= self.end:
            raise _TimeOverError

    def table(self, key: str, title: str, heads: Sequence[Column], rows: list[Any]) -> None:
        notes, self.left_out = self.left_out, []
        self.measured.tables.append(
            Table(key, title, tuple(heads), tuple(map(tuple, rows)), tuple(notes))
        )

    def plot(self, key: str, title: str, steps: dict[str, Any]) -> None:
        plot = percentile_curves(key, title, steps, "steps")
        if plot is not None:
            self.measured.plots.append(plot)

    # ---------------------------------------------------------------------------- masks onto logits

    def kernels(self) -> None:
        plan, device = self.plan, self.device
        limit = kernels.bandwidth(device, plan.rounds)
        pool = grammar_masks(self.spec, self.data, schemas=60, count=max(plan.mask_batches))
        found: list[tuple[str, int, dict[str, float], int]] = []
        missing: dict[str, str] = {}
        parts: list[tuple[str, Callable[[], None]]] = []
        for dtype in (torch.float32, torch.bfloat16):
            for rows in plan.mask_batches:

                def one(rows: int = rows, dtype: torch.dtype = dtype) -> None:
                    times, size, gone = kernels.measure(
                        pool[:rows], self.spec.vocab_size, dtype, device, rounds=plan.rounds
                    )
                    missing.update(gone)
                    found.append((str(dtype).removeprefix("torch."), rows, times, size))

                parts.append((f"{dtype}, {rows} rows", one))
        self.parts(parts)
        self.left_out += [f"{name}: {reason}" for name, reason in missing.items()]
        names = list(dict.fromkeys(name for _, _, times, _ in found for name in times))
        self.table(
            "kernels",
            f"Masks onto logits; a copy on the device moves {limit / 1e9:,.0f} GB/s",
            (Column("logits"), Column("rows", Unit.COUNT), Column("limit", Unit.MICROSECONDS),
             *columns(Unit.MICROSECONDS, names), Column("ffwd, GB/s", Unit.COUNT),
             Column("ffwd / limit", Unit.RATIO)),
            [
                (dtype, rows, size / limit * 1e6, *(times.get(name) for name in names),
                 size / times["ffwd"] / 1e3, times["ffwd"] / (size / limit * 1e6))
                for dtype, rows, times, size in found
            ],
        )  # fmt: skip

    # --------------------------------------------------------------------------------- with a model

    def shape(self, shape: str) -> None:
        dtype = torch.float32 if self.device.type == "cpu" else torch.bfloat16
        model = random_model(shape, self.spec.vocab_size, self.device, dtype)
        # Each table has a share of the time that is left, so that none uses up the others'.
        end = self.until
        for measure, share in ((self.tokens, 0.5), (self.documents, 0.5), (self.joined, 1.0)):
            self.take_share(share, end)
            measure(shape, model)
        self.until = end

    def passes(
        self, model: Any, batch: Sequence[TokenizedDocument], peers: Peers
    ) -> tuple[Passes, list[str]]:
        """Return passes over a cache that is as long as the way with the most columns needs.

        And the engines whose forced tokens are those of the documents.
        """
        wide = {"ffwd": widths(peers, batch)}
        for engine in peers.names[1:]:
            found = self.peer_widths(peers, batch, engine)
            if found is not None:
                wide[engine] = found
        columns = max([len(text.tokens) for text in batch] + [sum(each) for each in wide.values()])
        passes = Passes(model, len(batch), columns + 2, graphs=self.plan.graphs)
        passes.warm([1, *(width for each in wide.values() for width in each)])
        return passes, list(wide)

    def peer_widths(
        self, peers: Peers, batch: Sequence[TokenizedDocument], engine: str
    ) -> list[int] | None:
        try:
            return widths(peers, batch, engine)
        except WrongTokenError as error:
            self.left_out.append(f"{engine}, forced, {len(batch)} rows: {error}")
            return None

    def best(
        self, what: str, passes: Passes, make: Callable[[], Sequence[Unconstrained]]
    ) -> dict[str, Written]:
        """Write the documents by every way in turns, and return the rounds of each as one.

        When the time is over, there are fewer rounds.
        """
        found: dict[str, Written] = {}
        # The first round fills caches and compiles kernels.
        for turn in range(self.plan.rounds + 1):
            if turn > 1 and self.over():
                self.left_out.append(f"{what}: {turn - 1} of {self.plan.rounds} rounds (--minutes)")
                break
            for way in make():
                if turn <= 1:
                    self.check_time()
                written = write(passes, way)
                if turn:
                    whole = found.setdefault(way.name, Written(rounds=0))
                    whole.steps += written.steps
                    whole.tokens += written.tokens
                    whole.rounds += 1
        return found

    def tokens(self, shape: str, model: Any) -> None:
        rows: list[Any] = []
        parts: list[tuple[str, Callable[[], None]]] = []
        for count in self.plan.batches:
            batch = [self.texts[row % len(self.texts)] for row in range(count)]

            def one(count: int = count, batch: list[TokenizedDocument] = batch) -> None:
                passes, forcing = self.passes(model, batch, self.peers)
                by_way = self.best(
                    f"{count} rows",
                    passes,
                    lambda: ways(self.peers, batch, self.device, forcing=forcing),
                )
                base = by_way["none"].per_token
                rows.extend(
                    (name, count, w.per_token, w.per_token / base - 1,
                     percentile(w.steps, 50), percentile(w.steps, 99), len(w.steps) / w.tokens)
                    for name, w in by_way.items()
                )  # fmt: skip
                self.note_graphs(passes)
                steps = {n: np.array(w.steps, dtype=np.float32) for n, w in by_way.items()}
                self.plot(f"{shape}_{count}", f"Steps of {shape}, {count} rows", steps)

            parts.append((f"{count} rows", one))
        self.parts(parts)
        self.table(
            f"tokens_{shape}", f"{shape}: time per output token, and of a step",
            (Column("masks"), Column("rows", Unit.COUNT), Column("per token", Unit.MICROSECONDS),
             Column("over none", Unit.SHARE), Column("step p50", Unit.MICROSECONDS),
             Column("step p99", Unit.MICROSECONDS), Column("passes / tokens", Unit.SHARE)),
            rows,
        )  # fmt: skip

    def note_graphs(self, passes: Passes) -> None:
        if passes.no_graphs is not None:
            self.left_out.append(f"no CUDA graphs: {passes.no_graphs}")

    def documents(self, shape: str, model: Any) -> None:
        rows: list[Any] = []
        points: list[tuple[float, float]] = []
        parts: list[tuple[str, Callable[[], None]]] = []
        for count in (1, 8):
            for share in _SHARES:
                near = sorted(self.whole, key=lambda found: abs(found[0] - share))[:count]
                batch = [text for _, text in near]
                real = sum(found for found, _ in near) / len(near)

                def one(count: int = count, share: float = share, real: float = real,
                        batch: list[TokenizedDocument] = batch) -> None:  # fmt: skip
                    passes, _ = self.passes(model, batch, self.compact)
                    only = ("ffwd, overlapped", "ffwd, forced")
                    made = self.best(
                        f"{share:.0%} forced, {count} rows",
                        passes,
                        lambda: ways(self.compact, batch, self.device, only=only),
                    )
                    masks, forced = (made[name] for name in only)
                    taken = [sum(w.steps) / w.rounds for w in (masks, forced)]
                    gain = taken[0] / taken[1]
                    tokens = masks.tokens // masks.rounds
                    rows.append((f"{share:.0%}", real, len(batch), tokens, *taken, gain))
                    if count == 1:
                        points.append((real, gain))

                parts.append((f"{share:.0%} forced, {count} rows", one))
        self.parts(parts)
        if points:
            self.left_out.append(paying_share(points))
        self.table(
            f"documents_{shape}", f"{shape}: documents by masks alone and with forced tokens",
            (Column("forced"), Column("share", Unit.SHARE), Column("rows", Unit.COUNT),
             Column("tokens", Unit.COUNT), Column("masks", Unit.MICROSECONDS),
             Column("forcing", Unit.MICROSECONDS), Column("speed", Unit.RATIO)),
            rows,
        )  # fmt: skip

    def joined(self, shape: str, model: Any) -> None:
        rows: list[Any] = []
        steps: dict[str, Any] = {}
        warm = [self.texts[row % len(self.texts)] for row in range(_WARM + 1)]
        fresh = self.fresh[shape]

        def one(engine: str) -> None:
            columns = most_columns(warm, fresh)
            passes = Passes(model, len(warm), columns, graphs=self.plan.graphs)
            passes.warm([1])
            found = joining(passes, self.peers, engine, warm, fresh, self.device, over=self.over)
            steps[engine] = np.array(found.after, dtype=np.float32)
            mean = sum(found.lost) / len(found.lost)
            rows.append((engine, len(found.lost), found.step, mean / (found.steps * found.step),
                         mean, max(found.lost), found.worst,
                         sum(found.waited) / len(found.waited)))  # fmt: skip

        self.parts([(engine, partial(one, engine)) for engine in self.peers.names])
        self.plot(f"joining_{shape}", f"Steps of {shape} after a newcomer's arrival", steps)
        self.table(
            f"joining_{shape}",
            f"{shape}: an unseen schema joins {_WARM} warm requests",
            (Column("engine"), Column("times", Unit.COUNT),
             Column("step before", Unit.MICROSECONDS),
             Column("others lose", Unit.SHARE), Column("lost, mean", Unit.MICROSECONDS),
             Column("lost, most", Unit.MICROSECONDS), Column("longest step", Unit.MICROSECONDS),
             Column("steps until compiled", Unit.COUNT)),
            rows,
        )  # fmt: skip


def paying_share(points: Sequence[tuple[float, float]]) -> str:
    """Return from which forced share on forcing pays, in words, by (share, speed) of documents."""
    ordered = sorted(points)
    slower = [place for place, (_, speed) in enumerate(ordered) if speed < 1]
    if not slower:
        return f"At batch 1 forcing pays at every share measured, from {ordered[0][0]:.1%} on."
    if slower[-1] == len(ordered) - 1:
        return "At batch 1 forcing pays at no share measured, or not at the largest."
    (low, slow), (high, fast) = ordered[slower[-1] : slower[-1] + 2]
    share = low + (high - low) * (1 - slow) / (fast - slow)
    return f"At batch 1 forcing pays from a share of about {share:.1%} on (interpolated)."


def measure(plan: Plan, spec: TokenizerSpec, data: Path, device: torch.device) -> Measured:
    """Measure everything.

    Raises:
        InputError: The data has too few documents.

    """
    bench = _Bench(plan, spec, data, device)
    bench.take_share(0.25, plan.until)
    bench.kernels()
    for place, shape in enumerate(plan.shapes):
        bench.take_share(1 / (len(plan.shapes) - place), plan.until)
        bench.end = bench.until
        bench.part(f"the model {shape}", partial(bench.shape, shape))
    bench.left_out += [f"{name} is not installed" for name in bench.peers.missing]
    judged = goals(bench.measured.tables) if device.type != "cpu" else None
    if judged is not None:
        bench.measured.tables.append(judged)
    if bench.left_out:
        bench.table("left_out", "Left out", (Column("why"),), [])
    return bench.measured
