"""The engines under test, one file each. `find` looks one up by name."""

from __future__ import annotations

import importlib

from maskbench.engines.base import Engine, EngineSetup, MissingEngineError

_KNOWN = {
    "ffwd": "maskbench.engines.ffwd:FfwdEngine",
    "llguidance": "maskbench.engines.llguidance:LlguidanceEngine",
    "outlines-core": "maskbench.engines.outlines_core:OutlinesCoreEngine",
    "xgrammar": "maskbench.engines.xgrammar:XGrammarEngine",
}


def known_engines() -> tuple[str, ...]:
    """The names that `find` knows."""
    return tuple(_KNOWN)


def find(name: str) -> type[Engine]:
    """The engine class for a known name, or for `module:Class` of the caller's own.

    Raises `MissingEngineError` if there is no such engine. The engine's own package is imported
    only when the class is instantiated.
    """
    target = _KNOWN.get(name, name)
    module, separator, attribute = target.partition(":")
    if not separator:
        raise MissingEngineError(f"no engine {name!r}; known: {', '.join(_KNOWN)}, or module:Class")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise MissingEngineError(f"engine {name!r}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Engine)):
        raise MissingEngineError(f"engine {name!r}: not a subclass of Engine")
    return found


__all__ = ["Engine", "EngineSetup", "MissingEngineError", "find", "known_engines"]
