"""The picture of the core's crates in `docs/architecture.md`, drawn from `cargo metadata`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/architecture.md"
_BEGIN = "<!-- crates: python -m maskbench tools crates -->\n"
_END = "<!-- end of crates -->\n"
_PREFIX = "ffwd-"


@click.command("crates")
@click.option("--check", is_flag=True, help="Change nothing; fail if the picture is out of date.")
def crates_command(check: bool) -> None:
    """Draw the crates of the core, and which uses which, into the architecture page."""
    try:
        drawn = with_picture(PAGE.read_text(encoding="utf-8"), picture(dependencies()))
    except (OSError, subprocess.CalledProcessError) as error:
        raise click.ClickException(str(error)) from error
    if drawn == PAGE.read_text(encoding="utf-8"):
        return
    if check:
        raise click.ClickException(
            f"{PAGE.name} shows other crates: python -m maskbench tools crates"
        )
    PAGE.write_text(drawn, encoding="utf-8")


def dependencies() -> dict[str, set[str]]:
    """Return the crates of the workspace, without the prefix, and the ones that each uses.

    Dependencies of tests are left out. Raises `OSError` without cargo, and `CalledProcessError`
    where it fails.
    """
    command = ["cargo", "metadata", "--no-deps", "--offline", "--locked", "--format-version", "1"]
    manifest = ["--manifest-path", str(ROOT / "ffwd/native/Cargo.toml")]
    done = subprocess.run([*command, *manifest], capture_output=True, text=True, check=True)
    packages = json.loads(done.stdout)["packages"]
    return {
        package["name"].removeprefix(_PREFIX): {
            used["name"].removeprefix(_PREFIX)
            for used in package["dependencies"]
            if used["name"].startswith(_PREFIX) and used["kind"] is None
        }
        for package in packages
    }


def picture(uses: dict[str, set[str]]) -> str:
    """Draw a triangle: each row is a crate, each mark a crate of an earlier row that it uses.

    Raises `ValueError` where crates use each other in a circle.
    """
    order: list[str] = []
    while len(order) < len(uses):
        ready = sorted(name for name in uses.keys() - set(order) if uses[name] <= set(order))
        if not ready:
            raise ValueError(f"these crates use each other: {sorted(uses.keys() - set(order))}")
        order += ready
    width = max(map(len, order))
    rows = []
    for index, name in enumerate(order):
        marks = "".join("  ●" if used in uses[name] else "  ·" for used in order[:index])
        rows.append(f"{name:>{width}}{marks}  {index + 1}")
    return "\n".join(rows)


def with_picture(page: str, drawn: str) -> str:
    """Put the picture between its two comments. Raises `ValueError` if the page lacks them."""
    before, _, rest = page.partition(_BEGIN)
    _, found, after = rest.partition(_END)
    if not found:
        raise ValueError(f"{PAGE.name} has no {_BEGIN.strip()}")
    return f"{before}{_BEGIN}\n```text\n{drawn}\n```\n\n{_END}{after}"
