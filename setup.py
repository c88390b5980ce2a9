"""Settings that pyproject.toml cannot express: the version, and the ABI of the wheel."""

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


def wheel_options() -> dict[str, str]:
    """Return the options of `bdist_wheel`: one wheel for CPython 3.10 and later.

    Without the GIL there is no stable ABI before 3.15, so each such version has a wheel of its own.
    """
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        return {"py_limited_api": "cp310"}
    if sys.version_info < (3, 14):
        sys.exit(
            "ffwd supports free-threaded CPython from 3.14 on, and this is "
            f"{sys.version.split()[0]} ({sys.executable}). Install it with python3.14t, or with "
            "an interpreter that has the GIL: ffwd releases it while it works, so threads run in "
            "parallel there too. See docs/threads.md."
        )
    return {}


setup(version=crate_version(), options={"bdist_wheel": wheel_options()})
