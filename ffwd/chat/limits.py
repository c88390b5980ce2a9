"""Limits of a template, which is a foreign program that often came with a download."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TemplateLimits:
    """Bounds for one rendering; past one it stops with a `TemplateLimitError`.

    The clock is checked between steps; none takes long, because its operands are bounded.
    """

    source_characters: int = 1 << 16
    """Of the template itself: the longest of known models have 17,000."""
    characters: int = 1 << 24
    """Of any one string, the prompt included, and of what a list or dict has in it."""
    work: int = 4_000_000
    """Rounds of loops, calls, items of lists, and strings made (a unit per 64 bytes)."""
    seconds: float = 5.0
    """By the clock, and for one text. `ChatTemplate.render` has two made of a conversation."""


DEFAULT_LIMITS = TemplateLimits()
