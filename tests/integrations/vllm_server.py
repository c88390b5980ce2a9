"""`vllm serve` as a process of its own."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

START_SECONDS = 420.0


class VllmServer:
    """A context: inside it the server answers at `url`; what it says goes to the file `log`."""

    def __init__(self, model: Path, options: Sequence[str], *, log: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = log
        self._command = [
            *(sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", str(model)),
            *("--host", "127.0.0.1", "--port", str(self.port), "--served-model-name", "tiny"),
            *("--dtype", "float32", "--enforce-eager", *options),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "VllmServer":
        environment = {
            **os.environ,
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "VLLM_NO_USAGE_STATS": "1",
        }
        # Another test may have asked for an engine in its own process.
        environment.pop("VLLM_ENABLE_V1_MULTIPROCESSING", None)
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        until = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                self.__exit__(None, None, None)
                raise RuntimeError(f"vllm serve did not start:\n{self.said()[-4000:]}")
            time.sleep(1.0)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(600)
            except subprocess.TimeoutExpired:
                # It and its engine, which are a group of their own.
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait(600)

    def said(self) -> str:
        """What it has written so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def metric(self, name: str) -> float:
        """The sum of a counter over its labels."""
        text = self._get("/metrics")
        lines = [line for line in text.splitlines() if line.startswith((f"{name}{{", f"{name} "))]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)

    def _answers(self) -> bool:
        try:
            self._get("/health")
        except (urllib.error.URLError, OSError):
            return False
        return True

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            return str(answer.read().decode())
