"""`python -m maskbench tools instructions`: the core's fixed workloads, counted in instructions.

Times differ from run to run and from machine to machine; the number of instructions of a program
that always does the same hardly does. `ffwd/native/crates/engine/benches/instructions` has the
workloads, and `instructions.json` beside them what they took when it was last recorded.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from maskbench import options

CRATE = Path(__file__).resolve().parents[2] / "ffwd/native"
RECORDED = CRATE / "crates/engine/benches/instructions.json"
BENCH = "instructions"

# How much more than recorded is a regression, and how much less is worth recording, in percent.
TOLERANCE = 3.0

_FUNCTION = re.compile(r"^(c?)fn=\((\d+)\)(?: (\S+))?")
_WORKLOAD = re.compile(r"workload_([a-z_]+?)(?:17h[0-9a-f]{16}E)?$")


@click.command("instructions")
@click.option("--update", is_flag=True, help="Record what is counted instead of comparing it.")
@click.option(
    "--recorded",
    type=click.Path(path_type=Path, dir_okay=False),
    default=RECORDED,
    help="The file of recorded counts.",
)
def instructions_command(update: bool, recorded: Path) -> None:
    """Count the instructions of fixed workloads; fail if they exceed the recorded ones."""
    console = options.console(100)
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        console.print("Instruction counts are left out: valgrind is not installed.")
        return
    try:
        toolchain = _toolchain(valgrind)
        counts = _count(valgrind, _build())
    except (OSError, subprocess.CalledProcessError) as error:
        output = getattr(error, "stderr", None) or getattr(error, "stdout", None) or ""
        raise click.ClickException(f"{error}\n{output}".strip()) from error
    if update:
        document = {"toolchain": toolchain, "instructions": counts}
        recorded.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        console.print(f"Recorded: {recorded}", soft_wrap=True)
        return
    try:
        document = json.loads(recorded.read_text(encoding="utf-8"))
        then: dict[str, int] = document["instructions"]
        same = document["toolchain"] == toolchain
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise click.ClickException(f"{recorded}: {error!r}; make instructions-update") from error
    changes = compare(then, counts)
    _show(console, changes)
    if not same:
        console.print(
            "Not compared: the counts were recorded with "
            f"{_in_words(document['toolchain'])}, and this is {_in_words(toolchain)}. "
            "`make instructions-update` records them anew."
        )
        return
    if wrong := [change for change in changes if change.is_regression]:
        names = ", ".join(change.name for change in wrong)
        raise click.ClickException(
            f"more instructions than recorded, by over {TOLERANCE:g}%: {names}. "
            "If that is meant: make instructions-update"
        )
    if better := [change.name for change in changes if change.is_improvement]:
        console.print(
            f"Fewer than recorded: {', '.join(better)}. make instructions-update keeps it."
        )


@dataclass(frozen=True)
class Change:
    """One workload: what was recorded and what was counted, None where it was not."""

    name: str
    then: int | None
    now: int | None

    @property
    def percent(self) -> float | None:
        """How much more was counted, in percent of what was recorded."""
        if self.then is None or self.now is None or self.then == 0:
            return None
        return 100 * (self.now - self.then) / self.then

    @property
    def is_regression(self) -> bool:
        """Whether it takes more than the tolerance allows, or cannot be compared."""
        return self.percent is None or self.percent > TOLERANCE

    @property
    def is_improvement(self) -> bool:
        """Return whether the drop is so large that a later rise would be hidden."""
        return self.percent is not None and self.percent < -TOLERANCE


def compare(then: dict[str, int], now: dict[str, int]) -> list[Change]:
    """Return all workloads of both, by name."""
    return [Change(name, then.get(name), now.get(name)) for name in sorted(then.keys() | now)]


def read_counts(text: str) -> dict[str, int]:
    """Return the instructions of each workload, including calls, from callgrind's output.

    Each function has lines that end in a number: what it took itself, and below each `calls=`
    what the called function took.
    """
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    workload: str | None = None
    for line in text.splitlines():
        if match := _FUNCTION.match(line):
            called, number, name = match.groups()
            if name is not None:
                # It is written out only where it stands first.
                names[number] = name
            if not called:
                found = _WORKLOAD.search(names.get(number, ""))
                workload = None if found is None else found[1]
        elif not line:
            workload = None
        elif workload is not None and (line[0].isdigit() or line[0] in "+-*"):
            counts[workload] = counts.get(workload, 0) + int(line.rsplit(" ", 1)[1])
    return dict(sorted(counts.items()))


def _toolchain(valgrind: str) -> dict[str, str]:
    """Return the settings besides the sources that determine the number of instructions."""
    rustc = _run(["rustc", "-vV"], cwd=CRATE)
    about = dict(line.split(": ", 1) for line in rustc.splitlines() if ": " in line)
    return {
        "rustc": about["release"],
        "target": about["host"],
        "libc": " ".join(platform.libc_ver()),
        "valgrind": _run([valgrind, "--version"]).strip(),
    }


def _in_words(toolchain: Any) -> str:
    return ", ".join(f"{name} {version}" for name, version in dict(toolchain).items())


def _build() -> Path:
    """Build the executable of the workloads, and return its path."""
    command = ["cargo", "bench", "--locked", "--no-run", "--bench", BENCH]
    output = _run([*command, "--quiet", "--message-format=json"], cwd=CRATE)
    for line in output.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message["target"]["name"] == BENCH:
            return Path(message["executable"])
    raise OSError(f"cargo built no {BENCH}")


def _count(valgrind: str, executable: Path) -> dict[str, int]:
    with tempfile.TemporaryDirectory(prefix="maskbench-") as directory:
        out = Path(directory, "callgrind.out")
        options = ["--tool=callgrind", "--demangle=no", "--toggle-collect=*workload_*"]
        _run([valgrind, *options, f"--callgrind-out-file={out}", str(executable)])
        return read_counts(out.read_text(encoding="utf-8"))


def _run(command: list[str], cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True)
    return done.stdout


def _show(console: Console, changes: list[Change]) -> None:
    table = Table("workload", "recorded", "counted", "change")
    for change in changes:
        table.add_row(
            change.name,
            "-" if change.then is None else f"{change.then:,}",
            "-" if change.now is None else f"{change.now:,}",
            "-" if change.percent is None else f"{change.percent:+.2f}%",
        )
    console.print(table)
