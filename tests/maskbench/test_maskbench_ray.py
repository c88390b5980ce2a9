"""The same chunks on a Ray cluster of one processor."""

import importlib.util

import pytest
from maskbench_fake_data import maskbench_run
from test_maskbench_jobs import ENGINES, chunks
from test_maskbench_limits import SETUP

from maskbench.runner import EngineStartError, collect
from maskbench.runs import cluster
from maskbench.runs.cluster import INSTALL, RayExecutor
from maskbench.runs.local import LocalExecutor
from maskbench.runs.settings import ExecutorError, RunSettings

BEHAVIOURS = [None, "slow", "abort", "refuse", "MemoryError", "no forced tokens", None]


@pytest.fixture(scope="module")
def ray():
    ray = pytest.importorskip("ray", reason=INSTALL)
    ray.init(
        num_cpus=1,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="error",
        object_store_memory=100 << 20,
    )
    yield ray
    ray.shutdown()


def on_ray(engines, behaviours, turns):
    with RayExecutor(engines, SETUP, RunSettings(), turns.append) as executor:
        return collect(executor, engines, chunks(behaviours))


def test_verdicts_are_those_of_this_machine(ray, tmp_path):
    turns = []
    found = on_ray(ENGINES, BEHAVIOURS, turns)
    with LocalExecutor(ENGINES, SETUP, RunSettings(), tmp_path, lambda name: None) as executor:
        here = collect(executor, ENGINES, chunks(BEHAVIOURS))
    assert found.chunks == here.chunks == 4
    for name in ENGINES:
        assert turns.count(name) == len(BEHAVIOURS)
        there = found.logs[name]
        assert there.versions == here.logs[name].versions
        assert there.peak_memory_bytes >= there.start_memory_bytes > 0
        for one, other in zip(there.records, here.logs[name].records, strict=True):
            assert (one.index, one.verdict, one.documents, one.forced, one.reason) == (
                other.index, other.verdict, other.documents, other.forced, other.reason,
            )  # fmt: skip
            assert len(one.mask_us) == len(other.mask_us)


def test_an_engine_that_does_not_start_there_is_named(ray):
    with pytest.raises(EngineStartError, match=r"on the cluster: .*pip install nothing"):
        on_ray(["maskbench_fake_engine:NotInstalledEngine"], [None], [])


def test_without_ray_the_install_command_is_named(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(cluster.importlib, "import_module", missing)
    with pytest.raises(ExecutorError, match=r"pip install 'ffwd\[bench-ray\]'"):
        RayExecutor(ENGINES, SETUP, RunSettings(), lambda name: None)


def test_pins_are_for_this_machine():
    done = maskbench_run("--executor", "ray", "--pin", "0")
    assert done.returncode == 2
    assert "--pin is for this machine" in done.stderr


def test_a_cluster_that_is_not_there_is_named():
    if importlib.util.find_spec("ray") is None:
        pytest.skip(INSTALL)
    done = maskbench_run("--executor", "ray", "--ray-address", "127.0.0.1:1", "--sample", "1")
    assert done.returncode == 1
    assert "no Ray cluster at '127.0.0.1:1'" in done.stderr
    assert "ray start --head" in done.stderr
