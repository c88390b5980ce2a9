"""Each case in a process of its own, so that one that hangs or dies costs no more than itself."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from maskbench.tokenizer import TokenizerSpec

MAX_SECONDS = 1.0
MAX_BYTES = 1_000_000_000
ADDRESS_SPACE = 16 << 30


@dataclass(frozen=True)
class Cost:
    """The result of one case."""

    name: str
    outcome: str
    """`compiled`, the error and its limit, or how the process ended."""

    message: str
    temporary: bool
    compile_s: float
    call_s: float
    """The slowest call after that, and its name."""

    call: str
    memory_bytes: int
    """The peak of resident memory beyond that of the process with its tokenizer."""

    @property
    def slowest_s(self) -> float:
        """The compilation or the slowest call."""
        return max(self.compile_s, self.call_s)

    @property
    def fault(self) -> str | None:
        """Return the exceeded bound; None if all are kept."""
        if self.outcome.startswith("process"):
            return self.outcome
        if self.slowest_s > MAX_SECONDS:
            return f"{self.slowest_s:.2f} s"
        if self.memory_bytes > MAX_BYTES:
            return f"{self.memory_bytes / 1e6:,.0f} MB"
        if len(self.message) > 2000:
            return f"a message of {len(self.message)} characters"
        return None


def measure(names: Sequence[str], spec: TokenizerSpec, time_limit: float) -> Iterator[Cost]:
    """Return the costs of these cases, one after the other."""
    for name in names:
        yield _measure_one(name, spec, time_limit)


def _measure_one(name: str, spec: TokenizerSpec, time_limit: float) -> Cost:
    command = [sys.executable, "-m", "maskbench.conformance.hostile.child", name]
    command += [str(spec.directory), str(spec.vocab_size)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=time_limit,
            check=False,
            preexec_fn=_bound,
        )
    except subprocess.TimeoutExpired:
        return Cost(name, f"process killed after {time_limit:g} s", "", False, time_limit, 0, "", 0)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [""]
        return Cost(name, f"process ended with {done.returncode}", last[0], False, 0, 0, "", 0)
    return Cost(**json.loads(done.stdout))


def _bound() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
