"""The ways of forcing tokens that are compared, and the modes in which they are."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from maskbench.documents import Whitespace

FFWD = "ffwd"
LLGUIDANCE = "llguidance"


class Mode(str, Enum):
    """The whitespace that the schema allows, and that of the documents."""

    A = "A"
    """Flexible in the schema, none in the documents."""
    C = "C"
    """None in either."""
    D = "D"
    """`", "` and `": "` in both."""

    @property
    def whitespace(self) -> Whitespace:
        """The mode as the other commands call it."""
        return _WHITESPACE[self]


_WHITESPACE = {
    Mode.A: Whitespace.FLEXIBLE,
    Mode.C: Whitespace.COMPACT,
    Mode.D: Whitespace.SINGLE_SPACE,
}


@dataclass(frozen=True)
class Variant:
    """One way of forcing tokens: an engine, and the options of ffwd's `fast_forward_tokens`."""

    name: str
    engine: str
    about: str
    options: tuple[tuple[str, Any], ...] = ()


def _backoff(name: str, about: str, **options: Any) -> Variant:
    return Variant(name, FFWD, about, (("method", "backoff"), *options.items()))


_VARIANTS = {
    variant.name: variant
    for variant in (
        _backoff("k=0", "all forced bytes as tokens, nothing is left out", backoff_tokens=0),
        _backoff("k=1", "leaves out at most the last token", backoff_tokens=1),
        _backoff("k=2", "leaves out at most the last 2 tokens", backoff_tokens=2),
        _backoff(
            "k=4",
            "leaves out at most the last 4 tokens: the published default, called smart",
            backoff_tokens=4,
        ),
        _backoff("7-bytes", "leaves out at most the last 7 bytes", backoff_bytes=7),
        _backoff("conservative", "k=4 without asking the grammar", conservative=True),
        Variant(
            "exact",
            FFWD,
            "the tokens that all canonical texts of the grammar go on with",
            (("method", "exact"), ("look_ahead", False)),
        ),
        Variant(
            "exact+1",
            FFWD,
            "exact, leaving out tokens that no canonical token can follow; ffwd's default",
            (("method", "exact"), ("look_ahead", True)),
        ),
        Variant(LLGUIDANCE, LLGUIDANCE, "its compute_ff_tokens"),
    )
}

NAMES = tuple(_VARIANTS)

ALIASES = {"smart": "k=4"}
"""Other names of variants on the command line."""


def variant(name: str) -> Variant:
    """Return the variant of this name, which is one of `NAMES` or `ALIASES`."""
    return _VARIANTS[ALIASES.get(name, name)]
