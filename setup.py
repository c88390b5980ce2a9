"""Settings that pyproject.toml cannot express: the version, and unsupported interpreters."""

import re
import sys
import sysconfig
from pathlib import Path

from setuptools import setup


def crate_version() -> str:
    """Return the version in the `[package]` table of the crate's manifest."""
    manifest = (Path(__file__).parent / "ffwd/native/Cargo.toml").read_text(encoding="utf-8")
    match = re.search(r'^\[package\]\n(?:[^\[\n].*\n)*?version = "([^"]+)"', manifest, re.MULTILINE)
    if match is None:
        raise RuntimeError("ffwd/native/Cargo.toml has no version in its [package] table")
    return match.group(1)


def refuse_free_threading() -> None:
    """Says at once what would fail later, and less clearly: there is no module to load."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        sys.exit(
            "ffwd does not support free-threaded CPython, and this is "
            f"{sys.version.split()[0]}, built without the GIL ({sys.executable}). Install it "
            "with an interpreter of the default build, such as python3.13 rather than "
            "python3.13t: ffwd releases the GIL while it works, so threads run in parallel "
            "there too. See docs/threads.md."
        )


refuse_free_threading()
setup(version=crate_version())
