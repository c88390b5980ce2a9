"""Packages whose names are imported when they are first used.

`import ffwd` costs no more than the extension. Such a package lists its names twice: as imports for
type checkers, and as a table for the interpreter. A test compares the two.
"""

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(
    package: str, names: Mapping[str, str], modules: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package.

    `names`: the names of each module that the package offers, separated by spaces. `modules`: those
    of its own modules that it offers.
    """
    home = {name: module for module, listed in names.items() for name in listed.split()}
    own = frozenset(modules.split())

    def get(name: str) -> Any:
        if name in own:
            # The import system binds the name of a module itself.
            return importlib.import_module(f"{package}.{name}")
        module = home.get(name)
        if module is None:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}",
                name=name,
                obj=sys.modules[package],
            )
        value = getattr(importlib.import_module(module), name)
        # The next access finds it without this function.
        setattr(sys.modules[package], name, value)
        return value

    def directory() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home, *own})

    listed = sorted({*home, *own})
    return get, directory, [name for name in listed if not name.startswith("_")]
