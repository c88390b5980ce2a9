"""The functions of an engine that an adapter wraps or calls, to be read again for a new version.

The tests compare the fingerprints with those of each supported version, and `ffwd doctor` with
those of the installed one. So work on a new version begins with the list of what changed in it.
"""

import hashlib
import inspect
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Symbol:
    """A function or class of an engine.

    Attributes:
        module: The module that defines it.
        name: Its qualified name there.
        use: What ffwd does with it.
        fingerprints: Of its source in the first release of each supported version; None where it
            is missing.
        for_drafts: Whether only forced drafts need it.

    """

    module: str
    name: str
    use: str
    fingerprints: tuple[str | None, ...]
    for_drafts: bool = False

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


def find(symbol: Symbol) -> Any:
    """Return a symbol of the installed engine.

    Raises:
        ImportError: Its module is missing.
        AttributeError: The module does not have it.

    """
    found: Any = import_module(symbol.module)
    for part in symbol.name.split("."):
        found = getattr(found, part)
    return found


def fingerprint(symbol: Symbol) -> str | None:
    """Return a digest of a symbol's source in the installed engine; None where it is missing."""
    try:
        source = inspect.getsource(inspect.unwrap(find(symbol)))
    except (ImportError, AttributeError, OSError, TypeError):
        return None
    lines = (line.strip() for line in source.splitlines())
    return hashlib.sha256("\n".join(filter(None, lines)).encode()).hexdigest()[:12]
