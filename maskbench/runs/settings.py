"""How engines are run, and what goes to them and comes from them."""

from __future__ import annotations

from dataclasses import dataclass

from maskbench.documents import Job
from maskbench.errors import InputError
from maskbench.verdicts import SchemaRecord

GIB = 1 << 30


class EngineStartError(InputError, RuntimeError):
    """An engine that cannot be started; the message says why."""


class ExecutorError(InputError, RuntimeError):
    """Something that chunks run on cannot be used; the message says what would work."""


@dataclass(frozen=True)
class RunSettings:
    """How engines are run.

    `time_limit_s` holds for the timed part of each schema, and again for the counting of its
    forced tokens, which `forced` switches on. `memory_limit` (bytes) is for the resident size of
    an engine's whole process at any time.
    """

    time_limit_s: float = 30.0
    forced: bool = True
    pin: int | None = None
    """The processor that all engines run on, in turns."""
    memory_limit: int = 4 * GIB
    rounds: int = 1
    """So often each chunk is run on each engine, each time in another process."""


@dataclass(frozen=True)
class EngineStart:
    """The properties of an engine that are known once it runs."""

    versions: dict[str, str]
    seconds: float
    memory_bytes: int | None
    """The resident size of the process with the engine and its tokenizer loaded."""


@dataclass(frozen=True)
class Turn:
    """The jobs of one chunk that one engine gets."""

    chunk: int
    engine: str
    jobs: tuple[Job, ...]


@dataclass(frozen=True)
class TurnResult:
    """The result of a turn: a record for each job, in their order."""

    chunk: int
    engine: str
    records: tuple[SchemaRecord, ...]
    peak_memory_bytes: int | None
    """The largest resident size of the engine's processes so far."""
