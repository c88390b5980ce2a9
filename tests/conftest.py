"""The order of the tests, how many threads their models have, and how a failure is repeated."""

import os
import shlex

import pytest
from hypothesis import HealthCheck, settings

# Models as small as the tests' are faster on one thread, many times so on a busy machine, and their
# sums are the same on every machine. Before anything imports torch, and for all processes.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# No example depends on the clock or on an earlier run.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("repeatable")

# The longest files: one that began last would keep a processor idle.
LONGEST = {
    "test_maskbench_canonicality.py",
    "test_serve_load.py",
    "test_unique_items.py",
    "test_canonical.py",
    "test_train_model.py",
    "test_masks_regex.py",
    "test_maskbench_gpu.py",
    "test_play_browser.py",
    "test_injection.py",
    "test_serve_bad_input.py",
    "test_packaging.py",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


def pytest_report_header() -> str:
    """The one seed that is not written in a test: that of the order of sets."""
    return f"PYTHONHASHSEED={os.environ.get('PYTHONHASHSEED', 'random')}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """For each failure, the command that repeats it."""
    failed = [*terminalreporter.getreports("failed"), *terminalreporter.getreports("error")]
    if not failed:
        return
    terminalreporter.section("to repeat")
    seed = os.environ.get("PYTHONHASHSEED")
    before = "" if seed is None else f"PYTHONHASHSEED={seed} "
    for name in dict.fromkeys(report.nodeid for report in failed):
        terminalreporter.write_line(f"{before}python -m pytest {shlex.quote(name)}")
