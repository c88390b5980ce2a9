"""What a tokenizer and its streams hold, in a process that does nothing else."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from maskbench.serving.peers import PEERS, Peer
from maskbench.serving.turns import Row

_STREAMS = 2000
_TEXT = "Some words, 123 of them; na\u00efve \u65e5\u672c\u8a9e. "


def memory(peers: Mapping[str, Peer], file: Path) -> Iterator[Row]:
    """How much larger a process is with the tokenizer, and with each stream that it has open."""
    found = {name: measured(name, file) for name in peers}
    for key, case, unit in (
        ("load", "the tokenizer, loaded and used once", "MB"),
        ("stream", "one open stream of 100 tokens", "kB"),
    ):
        values = {name: result[key] for name, result in found.items()}
        yield Row(group="memory", case=case, unit=unit, values=values)


def measured(name: str, file: Path) -> dict[str, float]:
    """In a process of its own."""
    command = [sys.executable, "-m", "maskbench.serving.memory", name, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure(name: str, file: Path) -> dict[str, float]:
    """In this process; the libraries themselves are loaded already."""
    process = psutil.Process()
    for library in ("tokenizers", "tiktoken"):
        __import__(library)
    gc.collect()
    before = process.memory_info().rss
    peer = PEERS[name](file)
    ids = list(peer.encode(_TEXT * 20))[:100]
    peer.decode(ids)
    gc.collect()
    loaded = process.memory_info().rss
    streams = [peer.stream() for _ in range(_STREAMS)]
    for step, _ in streams:
        for token_id in ids:
            step(token_id)
    gc.collect()
    opened = process.memory_info().rss
    # No less than nothing: memory that was free already is taken first.
    return {"load": (loaded - before) / 1e6, "stream": max(1, opened - loaded) / _STREAMS / 1e3}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]))))
