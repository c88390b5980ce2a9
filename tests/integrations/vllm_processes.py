"""Processes in which ffwd is found by its entry points, and vLLM is not yet imported."""

import multiprocessing
import os
import sys
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[2]
# Most of the 15 seconds that importing vLLM takes: processes are forked from one that has these.
PRELOADED = [
    "torch._dynamo",
    "torch._inductor.standalone_compile",
    "torch._inductor.lowering",
    "transformers.models.auto",
    "openai.types.responses",
]


def in_new_process(code: str, folder: Path) -> str:
    """What a process prints that runs `code`; its files are put into a folder."""
    write_metadata(folder)
    printed = folder / "printed"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    process = context.Process(target=run, args=(code, str(folder), str(printed)))
    process.start()
    process.join()
    text = printed.read_text()
    assert process.exitcode == 0, text
    return text


def write_metadata(folder: Path) -> None:
    """Write the metadata of a distribution that has ffwd's entry points."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    metadata = folder / "ffwd_under_test-0.0.dist-info"
    metadata.mkdir()
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: ffwd-under-test\nVersion: 0\n")


def run(code: str, folder: str, printed: str) -> None:
    """Run in the new process."""
    assert "vllm" not in sys.modules
    with open(printed, "w") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    sys.path.insert(0, folder)
    exec(code, {"__name__": "__main__"})
