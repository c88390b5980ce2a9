"""The patch that vLLM could take in place of what ffwd wraps: it applies, and does what it says."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

vllm = pytest.importorskip("vllm", reason="needs an environment with vLLM: docs/engines.md")

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(
        not vllm.__version__.startswith("0.33."), reason="the patch is for vLLM 0.33"
    ),
]

PATCH = Path(__file__).parent / "patches/vllm-0.33-draft-hint.patch"
FILES = re.findall(r"^\+\+\+ b/(\S+)$", PATCH.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The patched sources, in a folder of their own."""
    folder = tmp_path_factory.mktemp("vllm")
    installed = Path(vllm.__file__).parent.parent
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(installed / name, folder / name)
    subprocess.run(["git", "apply", "--verbose", str(PATCH)], cwd=folder, check=True)
    for name in FILES:
        assert (folder / name).read_bytes() != (installed / name).read_bytes(), name
    return folder


def load(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A patched module under a name of its own."""
    spec = importlib.util.spec_from_file_location("patched", folder / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look for their module.
    monkeypatch.setitem(sys.modules, "patched", module)
    spec.loader.exec_module(module)
    return module


def test_the_sources_compile(patched: Path) -> None:
    assert len(FILES) == 6
    for name in FILES:
        compile((patched / name).read_text(encoding="utf-8"), name, "exec")


class Drafter:
    """A class that a configuration names."""

    def __init__(self, vllm_config: Any, device: Any, req_states: Any) -> None:
        self.made_of = (vllm_config, device, req_states)


def test_a_class_of_ones_own_proposes(patched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = load(patched, "vllm/v1/worker/gpu/spec_decode/__init__.py", monkeypatch)
    asked = {"use_gemma4_mtp", "use_multi_module_mtp", "use_eagle", "uses_draft_model", "use_ngram"}
    speculative = SimpleNamespace(
        method="custom_class",
        model=f"{__name__}.Drafter",
        **{name: lambda: False for name in asked},
    )
    config = SimpleNamespace(speculative_config=speculative)
    speculator = package.init_speculator(config, "device", "states")
    assert speculator.made_of == (config, "device", "states")


def test_the_scheduler_passes_on_what_the_backend_hints(
    patched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = load(patched, "vllm/v1/core/sched/output.py", monkeypatch)
    assert outputs.GrammarOutput(["a"], None).draft_hint is None
    scheduler = load(patched, "vllm/v1/core/sched/scheduler.py", monkeypatch)
    monkeypatch.setattr(scheduler, "GrammarOutput", outputs.GrammarOutput)
    asked: list[Any] = []
    request = SimpleNamespace(use_structured_output=True, is_prefill_chunk=False)
    backend = SimpleNamespace(draft_hint=lambda *asked_of: asked.append(asked_of) or "hint")
    itself = SimpleNamespace(
        requests={"a": request},
        num_spec_tokens=2,
        structured_output_manager=SimpleNamespace(
            backend=backend, grammar_bitmask=lambda *_: "bitmask"
        ),
    )
    scheduled = SimpleNamespace(
        has_structured_output_requests=True,
        num_scheduled_tokens={"a": 3},
        scheduled_spec_decode_tokens={"a": [5, -1]},
    )
    output = scheduler.Scheduler.get_grammar_bitmask(itself, scheduled)
    assert (output.draft_hint, output.num_acceptable_drafts) == ("hint", [1])
    assert asked == [([request], {"a": [5, -1]})]
