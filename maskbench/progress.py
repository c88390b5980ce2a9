"""A progress bar on standard error, and only on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

# Engines take turns of minutes, over which the speed of each has to be averaged.
_SPEED_OVER_S = 1800.0


@contextmanager
def progress(
    total: int | Mapping[str, int],
    names: Sequence[str],
    done: Mapping[str, int] | None = None,
    console: Console | None = None,
) -> Iterator[Callable[[str], None]]:
    """Return one bar for each name with the time left; what is yielded advances a bar by one.

    `total` may differ by name, and `done` is what a run that goes on had already.
    """
    console = console or Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        speed_estimate_period=_SPEED_OVER_S,
    ) as bar:
        tasks = {
            name: bar.add_task(
                name,
                total=total if isinstance(total, int) else total[name],
                completed=0 if done is None else done.get(name, 0),
            )
            for name in names
        }
        yield lambda name: bar.advance(tasks[name])
