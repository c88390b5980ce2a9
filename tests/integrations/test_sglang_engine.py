"""The whole of SGLang on a processor, with a random model: `--grammar-backend ffwd`."""

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from sglangcases import HOSTILE, KINDS

pytestmark = pytest.mark.engine
pytest.importorskip("sglang")
# Only the environment `sglang-engine` has this: docs/engines.md.
pytest.importorskip("sgl_kernel")

SEED = 5
END = "</s>"


def test_forty_mixed_requests_at_once(tmp_path: Path) -> None:
    """Through processes of SGLang's own, which find the backend by its entry point."""
    print("seed", SEED)
    found = [each.value for each in entry_points(group="sglang.srt.plugins")]
    assert "ffwd.adapters.sglang:register" in found, "install ffwd again: its entry points changed"
    mixed = [KINDS[i % len(KINDS)] for i in range(40)]
    # Structural tags have control tokens in them.
    common: dict[str, Any] = {"temperature": 1.0, "sampling_seed": SEED}
    common["skip_special_tokens"] = False
    requests = [{**common, "max_new_tokens": 400, **asked} for asked, _ in mixed]
    requests += [{**common, "max_new_tokens": 20}] * 4
    requests += [{**common, "max_new_tokens": 20, **asked} for asked, _ in HOSTILE]
    (tmp_path / "requests").write_text(json.dumps(requests), encoding="utf-8")
    script = Path(__file__).with_name("sglangengine.py")
    done = subprocess.run(
        [sys.executable, script, tmp_path / "requests", tmp_path / "results"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (tmp_path / "results").exists(), done.stderr[-4000:]
    for answers in json.loads((tmp_path / "results").read_text(encoding="utf-8")):
        assert len(answers) == len(requests)
        for (asked, check), answer in zip(mixed, answers, strict=False):
            assert answer.get("finish", {}).get("type") == "stop", (asked, answer)
            assert check(answer["text"].removesuffix(END)), (asked, answer)
        for answer in answers[40:44]:
            assert answer["finish"]["type"] in {"stop", "length"}
        for (_, part), answer in zip(HOSTILE, answers[44:], strict=True):
            message = answer.get("error") or answer["finish"]["message"]
            assert "Failed to compile" in message
            assert part in message
