"""How much memory a loaded tokenizer takes, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_SCRIPT = """
import sys
from pathlib import Path

import psutil

from maskbench.serving.peers import PEERS

own = psutil.Process()
make = PEERS[sys.argv[1]]
# What the library itself takes is not the tokenizer's.
if sys.argv[1] == "ffwd":
    import ffwd.streaming
    import ffwd.tokenizer
elif sys.argv[1] == "tokenizers":
    import tokenizers
else:
    import ffwd.tokenizer
    import tiktoken
before = own.memory_info().rss
peer = make(Path(sys.argv[2]))
loaded = own.memory_info().rss
peer.encode("Some words, 123 of them. " * 40_000)
used = own.memory_info().rss
print(loaded - before, used - before)
"""


class MemoryProcessError(Exception):
    """The process that loads a tokenizer failed; the message has its last line."""


@dataclass(frozen=True)
class Memory:
    """Growth of the process's resident memory in bytes."""

    loaded: int
    used: int
    """After a megabyte was encoded."""


def memory_of(peer: str, file: Path) -> Memory:
    """Load a tokenizer in a new process and see how much that grows.

    Raises `MemoryProcessError`.
    """
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, peer, str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise MemoryProcessError(f"{peer}: {done.stderr.strip().splitlines()[-1:]}")
    loaded, used = map(int, done.stdout.split())
    return Memory(loaded, used)
