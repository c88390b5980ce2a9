"""Versions of the libraries that tests compare with: Python 3.10 has older ones."""

from importlib.metadata import version

import pytest
from packaging.version import Version

needs_new_transformers = pytest.mark.skipif(
    Version(version("transformers")) < Version("5.21"),
    reason="transformers 5.20, the newest for Python 3.10, renders some values otherwise",
)
HAS_NEW_MISTRAL_COMMON = Version(version("mistral-common")) >= Version("1.13")
"""Python 3.10 has 1.12."""
