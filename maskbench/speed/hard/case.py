"""The form of a hard case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from maskbench.data import Case, Test
from maskbench.speed.draw import Draw
from maskbench.speed.growth.schemas import Schema


@dataclass(frozen=True)
class HardCase:
    """A schema that is made here, of a kind that occurs in the wild."""

    name: str
    what: str
    schema: Schema
    documents: tuple[Any, ...]
    """Instances that the schema admits."""

    like: tuple[str, ...] = ()
    """MaskBench's schemas of this kind, by their ids."""

    def case(self) -> Case:
        """Return the case in the form of a run."""
        tests = tuple(Test(valid=True, data=document) for document in self.documents)
        return Case(self.name, self.schema, tests)


def describe(draw: Draw, words: int) -> str:
    """Return prose of this many words, for a `description`."""
    return " ".join(draw.word() for _ in range(words)).capitalize() + "."
