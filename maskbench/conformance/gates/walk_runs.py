"""Walks through one engine's masks in a process of its own, and their judges in another.

A process that dies or hangs costs one walk. The documents are judged elsewhere, so that the time
and the crashes of a validator are not the engine's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maskbench.conformance.gates.judges import Judges
from maskbench.conformance.gates.walks import Ending, Tokens, Walk, Walker, judged
from maskbench.engines import EngineSetup, find
from maskbench.engines.base import Compiled, RefusedError, token_texts
from maskbench.pool import Lost, Pool
from maskbench.walk import describe_error


@dataclass(frozen=True)
class Schema:
    """A schema to walk on. The walks of an `id` are the same in every run with its seed."""

    id: str
    text: str
    value: Any


@dataclass(frozen=True)
class WalkSettings:
    """The same for every engine."""

    setup: EngineSetup
    seed: int
    per_schema: int
    max_steps: int
    time_limit_s: float
    """For one walk, the first of a schema with compiling; and for judging one."""


@dataclass
class EngineWalks:
    """The walks of one engine, by the schema's id and the walk's number."""

    versions: dict[str, str] = field(default_factory=dict)
    walks: dict[tuple[str, int], Walk] = field(default_factory=dict)
    refused: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Reason and detail."""

    failed: dict[str, str] = field(default_factory=dict)
    """Schemas that could not be compiled, for another reason than that they are refused."""

    lost: dict[tuple[str, int], str] = field(default_factory=dict)
    """Walks in which the process died or was killed."""


@dataclass(frozen=True)
class _Start:
    engine: str
    settings: WalkSettings


@dataclass(frozen=True)
class _AskVersions:
    pass


@dataclass(frozen=True)
class _Task:
    schema: Schema
    number: int


@dataclass(frozen=True)
class _Refused:
    reason: str
    detail: str


@dataclass(frozen=True)
class _NotCompiled:
    why: str


_Answer = dict[str, str] | Walk | _Refused | _NotCompiled


class _Service:
    """Lives in the engine's process."""

    def __init__(self, start: _Start) -> None:
        settings = start.settings
        self._settings = settings
        self._engine = find(start.engine)(settings.setup)
        spec = settings.setup.tokenizer
        self._tokens = Tokens(token_texts(spec), spec.eos_token_ids, self._engine.bitmask)
        self._id = ""
        self._compiled: Compiled | None = None

    def __call__(self, task: _AskVersions | _Task) -> _Answer:
        if isinstance(task, _AskVersions):
            return self._engine.versions()
        schema = task.schema
        try:
            if self._compiled is None or self._id != schema.id:
                self._engine.forget()
                self._compiled = self._engine.compile(schema.text)
                self._id = schema.id
                # Some engines accept a schema at compilation and refuse it with the first mask.
                first = self._compiled.session()
                first.fill()
                problem = first.problem()
                if problem is not None:
                    return self._not_compiled(problem)
        except RefusedError as refusal:
            self._compiled = None
            return _Refused(refusal.reason, refusal.detail)
        except Exception as error:
            return self._not_compiled(describe_error(error))
        walker = Walker(
            schema.value, self._compiled.session, self._tokens, self._settings.max_steps
        )
        try:
            return walker.walk(random.Random(f"{self._settings.seed} {schema.id} {task.number}"))
        except Exception as error:
            return Walk(Ending.FAILED, b"", describe_error(error))

    def _not_compiled(self, why: str) -> _NotCompiled:
        self._compiled = None
        return _NotCompiled(why)


def walk_all(
    engine: str,
    schemas: Sequence[Schema],
    settings: WalkSettings,
    scratch: Path,
    advance: Callable[[], None] = lambda: None,
) -> EngineWalks:
    """Run the walks of one engine, without judging them. Raises `PoolStartError`.

    After a schema that is refused, or in whose first walk the process is lost, the next one comes.
    """
    done = EngineWalks()
    given_up: set[str] = set()

    def tasks() -> Iterator[_AskVersions | _Task]:
        yield _AskVersions()
        for schema in schemas:
            for number in range(settings.per_schema):
                # Requested only when the previous one is done, because there is one process.
                if schema.id in given_up:
                    break
                yield _Task(schema, number)
            advance()

    scratch.mkdir(parents=True, exist_ok=True)
    with Pool(
        _Service,
        _Start(engine, settings),
        processes=1,
        time_limit_s=settings.time_limit_s,
        scratch=scratch,
    ) as pool:
        for task, answer in pool.run(tasks()):
            if isinstance(task, _AskVersions):
                done.versions = answer if isinstance(answer, dict) else {}
                continue
            place = (task.schema.id, task.number)
            if isinstance(answer, Walk):
                done.walks[place] = answer
                continue
            if isinstance(answer, Lost):
                done.lost[place] = answer.why
                if task.number:
                    continue
            elif isinstance(answer, _Refused):
                done.refused[task.schema.id] = (answer.reason, answer.detail)
            elif isinstance(answer, _NotCompiled):
                done.failed[task.schema.id] = answer.why
            given_up.add(task.schema.id)
    return done


@dataclass(frozen=True)
class _Document:
    schema: Schema
    number: int
    walk: Walk


class _Judging:
    """Lives in the judges' process."""

    def __init__(self, _: None) -> None:
        self._id = ""
        self._judges: Judges | ValueError = ValueError("no schema yet")

    def __call__(self, document: _Document) -> Walk:
        if self._id != document.schema.id:
            self._id = document.schema.id
            try:
                self._judges = Judges(document.schema.value)
            except ValueError as error:
                self._judges = error
        walk = document.walk
        if isinstance(self._judges, ValueError):
            return Walk(Ending.UNJUDGED, walk.text, str(self._judges), walk.tokens)
        return judged(walk, self._judges)


def judge_all(
    done: EngineWalks, schemas: Sequence[Schema], settings: WalkSettings, scratch: Path
) -> None:
    """Replace the finished walks by the validators' verdicts."""
    by_id = {schema.id: schema for schema in schemas}
    documents = [
        _Document(by_id[schema_id], number, walk)
        for (schema_id, number), walk in done.walks.items()
        if walk.ending is Ending.VALID
    ]
    scratch.mkdir(parents=True, exist_ok=True)
    with Pool(
        _Judging, None, processes=1, time_limit_s=settings.time_limit_s, scratch=scratch
    ) as pool:
        for document, answer in pool.run(documents):
            walk = document.walk
            if isinstance(answer, Lost):
                answer = Walk(Ending.UNJUDGED, walk.text, answer.why, walk.tokens)
            done.walks[document.schema.id, document.number] = answer
