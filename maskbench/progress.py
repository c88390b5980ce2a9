"""A progress bar on standard error, and only on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)


@contextmanager
def progress(total: int, names: Sequence[str]) -> Iterator[Callable[[str], None]]:
    """One bar for each name; what is yielded advances the bar of a name by one."""
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    ) as bar:
        tasks = {name: bar.add_task(name, total=total) for name in names}
        yield lambda name: bar.advance(tasks[name])
