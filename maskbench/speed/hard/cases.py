"""The hard cases: those made here, and those of MaskBench that they are modelled on."""

from __future__ import annotations

from maskbench.speed.hard.case import HardCase
from maskbench.speed.hard.structures import STRUCTURES
from maskbench.speed.hard.values import VALUES


def generate() -> list[HardCase]:
    """Return every case, always the same."""
    return [make() for make in (*STRUCTURES, *VALUES)]


_OTHERS = ("JsonSchemaStore---cluster", "Handwritten---allany13", "Handwritten---string1")
"""Of MaskBench, by id: modelled by no case, and slow for some engine."""


def real() -> tuple[str, ...]:
    """Return cases of MaskBench, by id: the models of the hard cases, and others."""
    return (*(id for case in generate() for id in case.like), *_OTHERS)
