"""Progress on a terminal; nothing if standard error is no terminal."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show a spinner."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} …", spinner="line"):
        yield


def tracked(items: Iterable[T], what: str, *, total: int) -> Iterator[T]:
    """Show a bar with the remaining time."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, what, total=total, console=Console(stderr=True), transient=True)
