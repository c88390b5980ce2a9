"""From the texts of cases to chunks of jobs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from maskbench.data import DataError, Source, parse_case
from maskbench.documents import Encoder, Job, UnwritableSchemaError, Whitespace, prepare
from maskbench.sums import added


@dataclass(frozen=True)
class LeftOut:
    """The skipped cases of a chunk."""

    broken: tuple[str, ...] = ()
    unwritable_schemas: tuple[str, ...] = ()
    skipped_instances: int = 0

    __add__ = added


@dataclass(frozen=True)
class Chunk:
    """The jobs of some cases that follow each other."""

    number: int
    jobs: tuple[Job, ...]
    offered: int
    """How many jobs there are, also where they are not here because they are done."""
    left_out: LeftOut = field(default_factory=LeftOut)


class Preparation:
    """Chunks of cases, written and tokenized when they are asked for, always the same."""

    def __init__(
        self, sources: Sequence[Source], encoder: Encoder, whitespace: Whitespace, size: int
    ) -> None:
        self._sources = sources
        self._encoder = encoder
        self._whitespace = whitespace
        self._size = size

    def __len__(self) -> int:
        return -(-len(self._sources) // self._size)

    def __getitem__(self, number: int) -> Chunk:
        if not 0 <= number < len(self):
            raise IndexError(number)
        jobs: list[Job] = []
        broken: list[str] = []
        unwritable: list[str] = []
        skipped = 0
        start = number * self._size
        for index, source in enumerate(self._sources[start : start + self._size], start):
            try:
                prepared = prepare(parse_case(source), index, self._encoder, self._whitespace)
            except DataError as error:
                broken.append(str(error))
                continue
            except UnwritableSchemaError as error:
                unwritable.append(f"{source.place}: {error}")
                continue
            skipped += prepared.skipped_instances
            jobs.append(prepared.job)
        left_out = LeftOut(tuple(broken), tuple(unwritable), skipped)
        return Chunk(number, tuple(jobs), len(jobs), left_out)


def sha256_of(sources: Sequence[Source]) -> str:
    """Return a hash of the cases as they are read, wherever their files are."""
    digest = hashlib.sha256()
    for source in sources:
        for text in (source.default_id, source.text):
            data = text.encode("utf-8", errors="surrogatepass")
            digest.update(len(data).to_bytes(8, "big"))
            digest.update(data)
    return digest.hexdigest()
