"""Popular grammars, named in a file, are compiled before requests need them.

Each line of the file is JSON: the fields of a request that constrain its answer, as clients write
them. A thread of low priority compiles them, and builds what their first steps are likely to need.
"""

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from ffwd import CompiledGrammar, FfwdError
from ffwd.adapters.shared.priority import step_back
from ffwd.engine import EngineRequest

WARM_VARIABLE = "FFWD_WARM"
"""The environment variable that names the file."""

_KINDS = ("json", "json_object", "regex", "choice", "grammar", "structural_tag")
_FORMS = 'write {"response_format": …} or {"structured_outputs": …}'

# Nobody waits for it: ten times as much as for a grammar that a request has asked for.
_STATES = 1024
_SECONDS = 0.1

_T = TypeVar("_T")


class WarmingError(FfwdError):
    """A file of grammars to warm, or a line of it, is unusable.

    Attributes:
        path: The file.
        line: The number of the line, from 1; None if the file cannot be read.

    """

    def __init__(self, path: Path, line: int | None, reason: object) -> None:
        place = f"{path}" if line is None else f"{path}, line {line}"
        super().__init__(f"cannot warm the grammars of {place}: {reason}")
        self.path = path
        self.line = line


class Warming(Generic[_T]):
    """The grammars of a file, and the thread that warms them.

    Args:
        path: The file, in JSON Lines. Empty lines are skipped.
        read: Returns what a line asks for. Its `FfwdError` or `ValueError` is the line's.
        build: Compiles that, and builds its first masks; called in the thread.
        logger: For what is refused, and for the result.

    Raises:
        WarmingError: The file cannot be read, or a line is not a request for a grammar.

    """

    def __init__(
        self,
        path: str | Path,
        *,
        read: Callable[[dict[str, Any]], _T],
        build: Callable[[_T], object],
        logger: logging.Logger,
    ) -> None:
        self._path = Path(path)
        self._build = build
        self._logger = logger
        self._work = [(line, self._asked(line, text, read)) for line, text in self._lines()]
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ffwd-warm", daemon=True)

    def start(self) -> "Warming[_T]":
        """Begin to compile."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End the thread after the grammar that it compiles."""
        self._stopped.set()

    def join(self, timeout: float | None = None) -> None:
        """Wait until all grammars are warm, or until `timeout` seconds have passed."""
        self._thread.join(timeout)

    def _lines(self) -> list[tuple[int, str]]:
        try:
            text = self._path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise WarmingError(self._path, None, error) from error
        # Not `splitlines`: JSON may contain other line ends, such as U+2028.
        lines = enumerate(text.split("\n"), 1)
        return [(number, line) for number, line in lines if line.strip()]

    def _asked(self, line: int, text: str, read: Callable[[dict[str, Any]], _T]) -> _T:
        try:
            asked = json.loads(text)
            if not isinstance(asked, dict):
                raise ValueError(f"a line must be a JSON object: {_FORMS}")
            return read(asked)
        except (FfwdError, ValueError, RecursionError) as error:
            raise WarmingError(self._path, line, error) from error

    def _run(self) -> None:
        step_back()
        began = time.perf_counter()
        refused = 0
        for line, asked in self._work:
            if self._stopped.is_set():
                return
            try:
                self._build(asked)
            except (FfwdError, ValueError) as error:
                refused += 1
                reason = f"{type(error).__name__}: {error}"
                self._logger.error("%s", WarmingError(self._path, line, reason))
        self._logger.info(
            "%d grammars of %s are warm after %.1f s; %d were refused",
            len(self._work) - refused,
            self._path,
            time.perf_counter() - began,
            refused,
        )


def start_warming(
    read: Callable[[dict[str, Any]], _T], build: Callable[[_T], object], logger: logging.Logger
) -> Warming[_T] | None:
    """Warm the grammars of the file that `FFWD_WARM` names, if it is set.

    Args:
        read: As for `Warming`.
        build: As for `Warming`.
        logger: As for `Warming`.

    Raises:
        WarmingError: As for `Warming`.

    """
    path = os.environ.get(WARM_VARIABLE)
    if not path:
        return None
    return Warming(path, read=read, build=build, logger=logger).start()


def build_masks(compiled: CompiledGrammar, *, narrow: bool = False) -> None:
    """Build what the first steps of a text are likely to need.

    Args:
        compiled: The grammar.
        narrow: As for `ffwd.engine.EngineRequest`.

    """
    request = EngineRequest(compiled, None, narrow=narrow)
    request.build_ahead(max_states=_STATES, seconds=_SECONDS)


def constraint(asked: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind and the text of the grammar that a line names for an engine.

    The text is the one that engines make of the same fields of a request.

    Raises:
        ValueError: Other fields, or none of the constraints.

    """
    if list(asked) == ["structured_outputs"]:
        return _of_structured_outputs(asked["structured_outputs"])
    if list(asked) == ["response_format"]:
        return _of_response_format(asked["response_format"])
    raise ValueError(f"the line has the fields {', '.join(map(repr, asked)) or 'none'}: {_FORMS}")


def _of_structured_outputs(given: Any) -> tuple[str, str]:
    if not isinstance(given, Mapping) or len(given) != 1 or next(iter(given)) not in _KINDS:
        raise ValueError(f"structured_outputs must have exactly one of {', '.join(_KINDS)}")
    ((kind, value),) = given.items()
    if kind == "json_object":
        if value is not True:
            raise ValueError("structured_outputs.json_object must be true")
        return kind, ""
    return kind, value if isinstance(value, str) else json.dumps(value)


def _of_response_format(given: Any) -> tuple[str, str]:
    kind = given.get("type") if isinstance(given, Mapping) else None
    if kind == "json_object":
        return "json_object", ""
    if kind == "json_schema":
        stated = given.get("json_schema")
        schema = stated.get("schema") if isinstance(stated, Mapping) else None
        if schema is None:
            raise ValueError("response_format.json_schema.schema is missing")
        return "json", json.dumps(schema)
    raise ValueError(
        f"response_format.type is {kind!r}: write json_schema or json_object, or name the grammar"
        " in structured_outputs"
    )
