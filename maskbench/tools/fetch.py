"""`python -m maskbench tools fetch`: a copy of the public data set."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import click

URL = "https://github.com/guidance-ai/jsonschemabench"
DATA = Path("maskbench", "data")
"""Where the repository has one file a schema, with instances."""

# A connection that stands still is given up, so that the command ends.
_PATIENCE = ("-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60")


class FetchError(RuntimeError):
    """The data set is unavailable; the message says why and what to do instead."""


def fetch(url: str, folder: Path) -> tuple[Path, str]:
    """Clone the newest state of a repository; returns the folder of its data, and the commit.

    Raises `FetchError`. A clone that fails leaves nothing in `folder`; one of something else stays.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FetchError(f"{folder} is there already, and not empty: choose another folder")
    _git("clone", "--quiet", "--depth", "1", url, str(folder), url=url)
    commit = _git("-C", str(folder), "rev-parse", "HEAD", url=url)
    data = folder / DATA
    if not data.is_dir():
        raise FetchError(f"{url} was cloned to {folder}, and has no folder {DATA.as_posix()}")
    return data, commit


def _git(*arguments: str, url: str) -> str:
    # No question for a name and a password: a repository that does not exist asks for them.
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            ["git", *_PATIENCE, *arguments],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
    except FileNotFoundError as error:
        raise FetchError(f"git was not found: install it, or {_instead(url)}") from error
    if done.returncode:
        said = done.stderr.strip() or f"git ended with status {done.returncode}"
        raise FetchError(f"{said}\nWithout a network, {_instead(url)}")
    return done.stdout.strip()


def _instead(url: str) -> str:
    return (
        f"clone {url} where there is one, copy its folder {DATA.as_posix()} here, and name the "
        "copy with --data; or give a mirror or a clone on this machine as --url. "
        "The built-in corpus needs neither: leave out --data."
    )


@click.command("fetch")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--url", default=URL, show_default=True, help="The repository to clone.")
def fetch_command(folder: Path, url: str) -> None:
    """Clone MaskBench's data set to FOLDER, which is made."""
    click.echo(f"Cloning {url} (the newest state only)")
    try:
        data, commit = fetch(url, folder)
    except FetchError as error:
        raise click.ClickException(str(error)) from error
    number = sum(1 for _ in data.rglob("*.json"))
    click.echo(f"{number} schemas, commit {commit}\nUse them with: --data {data}")
