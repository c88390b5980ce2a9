"""The one thing that pyproject.toml cannot say: the version is that of the native crate."""

import re
from pathlib import Path

from setuptools import setup


def crate_version() -> str:
    """The version in the `[package]` table of the crate's manifest."""
    manifest = (Path(__file__).parent / "ffwd/native/Cargo.toml").read_text(encoding="utf-8")
    match = re.search(r'^\[package\]\n(?:[^\[\n].*\n)*?version = "([^"]+)"', manifest, re.MULTILINE)
    if match is None:
        raise RuntimeError("ffwd/native/Cargo.toml has no version in its [package] table")
    return match.group(1)


setup(version=crate_version())
