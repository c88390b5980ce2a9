"""The form of a hostile case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ffwd import Grammar


@dataclass(frozen=True)
class HostileCase:
    """A grammar that is made to be slow or large, and a text to read in it."""

    name: str
    """One noun, or a noun and what is many of it."""

    what: str
    """Why it might be slow."""

    grammar: Callable[[], Grammar]
    """Made in the process that is measured: making it may be what is slow."""

    begin: bytes = b""
    """What a text begins with, as far as the grammar takes it."""
