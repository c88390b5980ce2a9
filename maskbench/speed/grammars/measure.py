"""Real grammars on several engines in turns: the time of each mask with its accept; and compiling.

Each round compiles anew in an emptied store and goes through all documents in one order; what a
document made is there for the next, as in a server. A token counts with the best of its rounds, so
that what other processes take is no engine's. The second pass of a round meets known states.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from maskbench.conformance.grammars.real import RealGrammar
from maskbench.engines import Engine, EngineSetup, find
from maskbench.engines.base import Compiled, RefusedError
from maskbench.statistics import describe_times
from maskbench.tokenizer import OutputEncoder

Times = npt.NDArray[np.float32]


@dataclass(frozen=True)
class GrammarEngine:
    """An engine with the form of a grammar that it reads, written `engine:format`."""

    engine: str
    format: str

    @classmethod
    def parse(cls, text: str) -> GrammarEngine:
        """Parse `engine:format`; raises `ValueError`."""
        engine, _, format = text.rpartition(":")
        if not engine or not format:
            raise ValueError(f"{text!r} is not engine:format")
        return cls(engine, format)

    def __str__(self) -> str:
        return f"{self.engine}:{self.format}"


@dataclass
class GrammarFigures:
    """One contestant on one grammar. Times are in microseconds."""

    problem: str | None = None
    """Why there are no times: the grammar or a document was refused."""

    compile_us: float | None = None
    """Compiling and the first mask."""

    tokens: int = 0
    first: dict[str, float] | None = None
    """Of mask and accept, in the first pass through the documents."""

    second: dict[str, float] | None = None


@dataclass
class _Runs:
    compile_us: list[float] = field(default_factory=list)
    first: list[Times] = field(default_factory=list)
    second: list[Times] = field(default_factory=list)


class DocumentRefusedError(Exception):
    """An engine does not accept a document that it has to."""


def measure(
    contestants: Sequence[GrammarEngine],
    grammars: Sequence[RealGrammar],
    setup: EngineSetup,
    *,
    rounds: int,
    advance: Callable[[], None],
) -> dict[str, dict[GrammarEngine, GrammarFigures]]:
    """Measure by the grammar's name. Raises `MissingEngineError`."""
    encoder = OutputEncoder(setup.tokenizer)
    engines = {contestant: find(contestant.engine)(setup) for contestant in contestants}
    found: dict[str, dict[GrammarEngine, GrammarFigures]] = {}
    for grammar in grammars:
        documents = [encoder.encode(text) for _, text in grammar.documents]
        figures = {contestant: GrammarFigures() for contestant in contestants}
        runs = {contestant: _Runs() for contestant in contestants}
        for number in range(rounds):
            # Each is the first in its turn, since what ran before has warmed the processor.
            order = [*contestants[number % len(contestants) :]]
            order += contestants[: number % len(contestants)]
            for contestant in order:
                if figures[contestant].problem is None:
                    figures[contestant].problem = _round(
                        engines[contestant], contestant, grammar, documents, runs[contestant]
                    )
                advance()
        for contestant, run in runs.items():
            if figures[contestant].problem is None:
                first, second = (np.min(times, axis=0) for times in (run.first, run.second))
                figures[contestant] = GrammarFigures(
                    None, min(run.compile_us), len(first), describe_times(first),
                    describe_times(second),
                )  # fmt: skip
        found[grammar.name] = figures
    return found


def _round(
    engine: Engine,
    contestant: GrammarEngine,
    grammar: RealGrammar,
    documents: Sequence[Sequence[int]],
    runs: _Runs,
) -> str | None:
    engine.forget()
    gc.collect()
    gc.disable()
    try:
        begin = time.perf_counter_ns()
        compiled = engine.compile_grammar(contestant.format, grammar.forms[contestant.format])
        compiled.session().fill()
        compile_us = (time.perf_counter_ns() - begin) / 1000
        first = _pass(compiled, grammar, documents)
        second = _pass(compiled, grammar, documents)
    except RefusedError as error:
        return error.detail
    except DocumentRefusedError as error:
        return str(error)
    finally:
        gc.enable()
    runs.compile_us.append(compile_us)
    runs.first.append(first)
    runs.second.append(second)
    return None


def _pass(compiled: Compiled, grammar: RealGrammar, documents: Sequence[Sequence[int]]) -> Times:
    clock = time.perf_counter_ns
    times: list[int] = []
    for (name, _), tokens in zip(grammar.documents, documents, strict=True):
        session = compiled.session()
        fill, accept = session.fill, session.accept
        for token in tokens:
            begin = clock()
            fill()
            accepted = accept(token)
            times.append(clock() - begin)
            if not accepted:
                problem = session.problem() or ""
                at = len(times)
                raise DocumentRefusedError(f"{name} is refused at token {at}: {problem[:200]}")
    microseconds = np.array(times, dtype=np.float32)
    microseconds /= 1000
    return microseconds
