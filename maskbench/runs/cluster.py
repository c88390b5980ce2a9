"""Runs on an existing Ray cluster: one task per chunk.

Nodes need Python and the engines' packages. Everything else travels with the tasks: maskbench
itself, the modules of custom engines, and the tokenizer's folder.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import io
import pickle
import socket
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import maskbench
from maskbench.engines import EngineSetup, find
from maskbench.runs.node import NodeResult, NodeSetup
from maskbench.runs.settings import (
    EngineStart,
    EngineStartError,
    ExecutorError,
    RunSettings,
    Turn,
    TurnResult,
)

INSTALL = "pip install 'ffwd[bench-ray]'"

_AHEAD = 2
"""Chunks that are on their way for each processor of the cluster."""


class RayExecutor:
    """Sends chunks to a cluster, as many at a time as it has processors.

    Each task takes one processor; Ray runs it again elsewhere if a machine is lost.
    """

    def __init__(
        self,
        engines: Sequence[str],
        setup: EngineSetup,
        settings: RunSettings,
        progress: Callable[[str], None],
        *,
        address: str = "auto",
        jobs: int | None = None,
    ) -> None:
        """`jobs` is the largest number of chunks that run at the same time.

        Raises `ExecutorError` where Ray is not installed.
        """
        try:
            self._ray: Any = importlib.import_module("ray")
        except ImportError as error:
            raise ExecutorError(f"--executor ray needs Ray: {INSTALL}") from error
        self._engines = tuple(engines)
        self._setup = setup
        self._settings = settings
        self._progress = progress
        self._address = address
        self._jobs = jobs
        self._connected = False
        self.starts: dict[str, EngineStart] = {}

    def __enter__(self) -> RayExecutor:
        """Connect to the cluster and start the engines on one of its machines."""
        ray = self._ray
        if not ray.is_initialized():
            try:
                _look_for(self._address)
                ray.init(address=self._address, log_to_driver=False, logging_level="warning")
            except (OSError, ValueError, RuntimeError) as error:
                raise ExecutorError(
                    f"no Ray cluster at {self._address!r} ({error}): start one with "
                    "`ray start --head`, or name another with --ray-address"
                ) from error
            self._connected = True
        bundle = _bundle(self._engines, self._setup)
        self._bundle = ray.put(bundle)
        self._digest = hashlib.sha256(bundle).hexdigest()[:32]
        self._node = NodeSetup(self._engines, self._setup, self._settings)
        self._task = ray.remote(num_cpus=1)(_task())
        self._take([self._send([])])
        return self

    def __exit__(self, *_: object) -> None:
        if self._connected:
            self._ray.shutdown()

    def run(self, chunks: Iterable[Sequence[Turn]]) -> Iterator[TurnResult]:
        """Run the turns of all chunks, and yield them in the order in which chunks end.

        Raises `EngineStartError`, and `ExecutorError` where the cluster fails.
        """
        processors = int(self._ray.cluster_resources().get("CPU", 1))
        limit = self._jobs or max(1, processors) * _AHEAD
        left = iter(chunks)
        pending: list[Any] = []
        try:
            while True:
                while len(pending) < limit and (turns := next(left, None)) is not None:
                    pending.append(self._send(turns))
                if not pending:
                    return
                done, pending = self._ray.wait(pending, num_returns=1)
                yield from self._take(done)
        finally:
            for reference in pending:
                self._ray.cancel(reference, force=True)

    def _send(self, turns: Sequence[Turn]) -> Any:
        work = pickle.dumps((self._node, tuple(turns)))
        return self._task.remote(self._bundle, self._digest, work)

    def _take(self, done: Sequence[Any]) -> list[TurnResult]:
        """Return a result, after a check that all machines have the same engines."""
        results: list[TurnResult] = []
        for reference in done:
            try:
                answer = pickle.loads(self._ray.get(reference))
            except self._ray.exceptions.RayError as error:
                raise ExecutorError(f"a chunk failed on the cluster: {error}") from error
            if isinstance(answer, EngineStartError):
                raise EngineStartError(f"on the cluster: {answer}") from answer
            assert isinstance(answer, NodeResult)
            for name, start in answer.starts.items():
                known = self.starts.setdefault(name, start)
                if known.versions != start.versions:
                    raise ExecutorError(
                        f"the machines of the cluster differ in {name}: {known.versions} and "
                        f"{start.versions}: install the same on all"
                    )
            for turn in answer.turns:
                for _ in turn.records:
                    self._progress(turn.engine)
            results += answer.turns
        return results


def _look_for(address: str) -> None:
    """Raise `OSError` if `host:port` does not answer; Ray itself would retry for minutes."""
    host, separator, port = address.removeprefix("ray://").rpartition(":")
    if separator and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _task() -> Callable[[bytes, str, bytes], bytes]:
    """Run a task on a node: the function is sent by value, because the node may lack maskbench."""

    def run_chunk(bundle: bytes, digest: str, work: bytes) -> bytes:
        import io
        import os
        import shutil
        import sys
        import tempfile
        import zipfile

        folder = os.path.join(tempfile.gettempdir(), f"maskbench-{os.getuid()}-{digest}")
        if not os.path.isdir(folder):
            # Tasks that come at the same time each unpack it, and one of them puts it in place.
            unpacked = tempfile.mkdtemp(prefix="maskbench-")
            with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
                archive.extractall(unpacked)
            try:
                os.rename(unpacked, folder)
            except OSError:
                shutil.rmtree(unpacked)
        code = os.path.join(folder, "code")
        if code not in sys.path:
            sys.path.insert(0, code)
        from maskbench.runs.node import serve

        return serve(folder, work)

    return run_chunk


def _bundle(engines: Sequence[str], setup: EngineSetup) -> bytes:
    """Return a ZIP archive with maskbench, modules of other engines, and the tokenizer."""
    package = Path(maskbench.__file__).parent
    files = {
        f"code/maskbench/{path.relative_to(package).as_posix()}": path
        for path in sorted(package.rglob("*.py"))
    }
    for name in engines:
        module = inspect.getmodule(find(name))
        if module is not None and module.__file__ and not module.__name__.startswith("maskbench."):
            # Its own file; what it imports beside installed packages it has to bring with it.
            files[f"code/{module.__name__.replace('.', '/')}.py"] = Path(module.__file__)
    tokenizer = setup.tokenizer.directory
    if (tokenizer / "tokenizer.json").is_file():
        for path in sorted(tokenizer.iterdir()):
            if path.suffix in (".json", ".model", ".txt", ".jinja") and path.is_file():
                files[f"tokenizer/{path.name}"] = path
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in files.items():
            # Always the same bytes for the same files, so that a machine unpacks them once.
            archive.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return held.getvalue()
