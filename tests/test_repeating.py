"""A failure is repeated by the command that the run prints."""

import os
import subprocess
import sys
from pathlib import Path


def test_the_command_that_repeats_a_failure_is_printed(tmp_path: Path) -> None:
    """With the seed of the order of sets; the result stays the last line."""
    (tmp_path / "test_it.py").write_text("def test_it():\n    assert False\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "test_it.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent), "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert "PYTHONHASHSEED=7" in lines
    assert "PYTHONHASHSEED=7 python -m pytest test_it.py::test_it" in lines
    assert "1 failed" in lines[-1]
