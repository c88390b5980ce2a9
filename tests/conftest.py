"""The order of the tests, and how many threads their models have."""

import os

import pytest

# Models as small as the tests' are faster on one thread, many times so on a busy machine, and their
# sums are the same on every machine. Before anything imports torch, and for all processes.
os.environ.setdefault("OMP_NUM_THREADS", "1")

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
