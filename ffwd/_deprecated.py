"""Deprecated names: each still works, with a warning that says what to use instead.

docs/versioning.md lists them.
"""

import importlib
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def warn_deprecated(name: str, *, use: str, stacklevel: int = 1) -> None:
    """Warn that a name is deprecated.

    `use`: the text that says what to use instead. `stacklevel`: 1 shows the line that called the
    caller of this function, 2 the line before.
    """
    warnings.warn(f"{name} is deprecated: use {use}", DeprecationWarning, stacklevel + 2)


def moved_names(module: str, home: str, use: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module whose names are defined in the module `home`.

    `use`: its names, each with the text that says what to use instead.
    """

    def get(name: str) -> Any:
        if name not in use:
            raise AttributeError(
                f"module {module!r} has no attribute {name!r}", name=name, obj=sys.modules[module]
            )
        warn_deprecated(f"{module}.{name}", use=use[name])
        return getattr(importlib.import_module(home), name)

    return get
