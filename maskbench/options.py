"""Options that commands share, each with one name, one meaning and one help text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from maskbench import packaged
from maskbench.data import BUILTIN_CORPUS, Slice
from maskbench.documents import Whitespace
from maskbench.engines import known_engines
from maskbench.tokenizer import BUILTIN_NAME, BYTES_NAME, WIDE_NAME

Command = TypeVar("Command", bound=Callable[..., Any])
Option = Callable[[Command], Command]

DATA_HELP = "A .jsonl(.xz, .zst) file, or a folder of .json files. Default: the built-in corpus."
TOKENIZER_HELP = (
    f"A Hugging Face folder, 'builtin', '{WIDE_NAME}', '{BYTES_NAME}' (one token a byte), or one "
    f"of {', '.join(packaged.NAMES)}."
)
ENGINES_HELP = f"{', '.join(known_engines())}, or module:Class."


def engine_list(default: str) -> Option[Any]:
    """Add `--engine A,B`, which `names` splits."""
    return click.option(
        "--engine",
        "engine_list",
        default=default,
        show_default=True,
        help=f"Comma-separated: {ENGINES_HELP}",
    )


def names(engine_list: str) -> list[str]:
    """Return the engines that `--engine` names. Raises `click.UsageError` without any."""
    engines = list(dict.fromkeys(name.strip() for name in engine_list.split(",") if name.strip()))
    if not engines:
        raise click.UsageError("--engine names no engine")
    return engines


def data(default: Path | None = BUILTIN_CORPUS, about: str = DATA_HELP) -> Option[Any]:
    """Add `--data PATH`."""
    return click.option("--data", type=click.Path(path_type=Path), default=default, help=about)


def tokenizer(default: str = BUILTIN_NAME) -> Option[Any]:
    """Add `--tokenizer NAME`."""
    return click.option("--tokenizer", default=default, show_default=True, help=TOKENIZER_HELP)


def tokenizers(default: tuple[str, ...] = ("llama3",), about: str = TOKENIZER_HELP) -> Option[Any]:
    """Add `--tokenizer NAME`, repeatable, as `names`."""
    return click.option(
        "--tokenizer", "names", multiple=True, default=default, show_default=True, help=about
    )


def seed(about: str | None = None) -> Option[Any]:
    """Add `--seed N`."""
    return click.option("--seed", type=int, default=0, show_default=True, help=about)


def sample(command: Command) -> Command:
    """Add `--sample N` and `--seed N`."""
    command = seed("Of all that is drawn.")(command)
    return click.option("--sample", type=click.IntRange(min=1), help="Draw this many schemas.")(
        command
    )


def _slice(context: click.Context, parameter: click.Parameter, value: str | None) -> Slice | None:
    if value is None:
        return None
    try:
        return Slice.parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from error


part = click.option(
    "--slice",
    "part",
    metavar="I/N",
    callback=_slice,
    help="Every N-th schema, beginning with the I-th.",
)
"""`--slice I/N`, as `part`."""

whitespace = click.option(
    "--whitespace",
    type=click.Choice([w.value for w in Whitespace]),
    default=Whitespace.FLEXIBLE.value,
    show_default=True,
    help="What the schema allows; only ffwd has `consistent`.",
)
"""`--whitespace MODE`."""


def property_order(default: str = "declared", about: str | None = None) -> Option[Any]:
    """Add `--property-order ORDER`."""
    return click.option(
        "--property-order",
        type=click.Choice(["declared", "any"]),
        default=default,
        show_default=True,
        help=about,
    )


def time_limit(default: float, about: str) -> Option[Any]:
    """Add `--time-limit S`."""
    return click.option(
        "--time-limit",
        type=click.FloatRange(min=0, min_open=True),
        default=default,
        show_default=True,
        help=about,
    )


memory_limit = click.option(
    "--memory-limit",
    type=click.FloatRange(min=0, min_open=True),
    default=4.0,
    show_default=True,
    metavar="GIB",
    help="Resident size at which an engine's process is killed.",
)
"""`--memory-limit GIB`."""


def rounds(default: int) -> Option[Any]:
    """Add `--rounds N`."""
    return click.option("--rounds", type=click.IntRange(min=1), default=default, show_default=True)


def pin(about: str = "Run all engines on this processor.") -> Option[Any]:
    """Add `--pin CPU`."""
    return click.option("--pin", type=click.IntRange(min=0), metavar="CPU", help=about)


processes = click.option("--processes", type=click.IntRange(min=1), default=1, show_default=True)
"""`--processes N`."""

markdown = click.option("--markdown", is_flag=True, help="Print Markdown.")
"""`--markdown`."""


def out(about: str = "Write all results to this JSON file.") -> Option[Any]:
    """Add `--out FILE`."""
    return click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help=about)


def console(width: int = 120, *, stderr: bool = False) -> Console:
    """Return the console for tables: the terminal, or a fixed number of columns without one."""
    found = Console(stderr=stderr)
    return found if found.is_terminal else Console(stderr=stderr, width=width)
