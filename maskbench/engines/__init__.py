"""The engines under test, one file each. `find` looks one up by name.

A new engine is a new file in this folder with a subclass of `Engine` that has a `name`: nothing
else lists them.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABCMeta
from functools import cache

from maskbench.engines.base import Engine, EngineSetup, MissingEngineError


@cache
def _known() -> dict[str, type[Engine]]:
    """Return the named engines of every file in this folder, without importing their packages."""
    found: dict[str, type[Engine]] = {}
    for module_info in pkgutil.iter_modules(__path__, f"{__name__}."):
        module = importlib.import_module(module_info.name)
        for value in vars(module).values():
            # A `list[int]` is an instance of `type` in Python 3.10, too.
            if not (isinstance(value, ABCMeta) and issubclass(value, Engine)):
                continue
            # What a file has only imported belongs to another.
            if value.__module__ != module.__name__ or "name" not in vars(value) or not value.name:
                continue
            if value.name in found:
                raise ValueError(f"two engines are called {value.name!r}")
            found[value.name] = value
    return dict(sorted(found.items()))


def known_engines() -> tuple[str, ...]:
    """Return the names that `find` accepts, sorted."""
    return tuple(_known())


def find(name: str) -> type[Engine]:
    """Return the engine class for a known name, or for `module:Class` of the caller's own.

    Raises `MissingEngineError` if there is no such engine. The engine's own package is imported
    only when the class is instantiated.
    """
    known = _known().get(name)
    if known is not None:
        return known
    module, separator, attribute = name.partition(":")
    if not separator:
        raise MissingEngineError(
            f"no engine {name!r}; known: {', '.join(known_engines())}, or module:Class"
        )
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise MissingEngineError(f"engine {name!r}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Engine)):
        raise MissingEngineError(f"engine {name!r}: not a subclass of Engine")
    return found


__all__ = ["Engine", "EngineSetup", "MissingEngineError", "find", "known_engines"]
