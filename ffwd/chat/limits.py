"""How much a template may do. It is a program by somebody else, and often came with a download."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TemplateLimits:
    """Bounds for one rendering; past one it stops with a `TemplateLimitError`.

    They bound what a template makes and how often it goes round, not the time it takes: one step
    may look through a text of `characters`. A server that renders templates that it does not know
    at all should do that in a process that it can end.
    """

    source_characters: int = 1 << 20
    """Of the template itself."""
    characters: int = 1 << 24
    """Of any one string, the prompt included."""
    work: int = 4_000_000
    """Rounds of loops, calls, items of lists, and strings made (a unit per 64 characters)."""


DEFAULT_LIMITS = TemplateLimits()
