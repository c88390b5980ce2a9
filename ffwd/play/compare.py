"""The same text under other engines: verdicts, masks at the cursor, and times.

They run in a process of their own, since they have no time limits: it is ended where one hangs.
"""

from __future__ import annotations

import json
import multiprocessing
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from ffwd._native import Cancellation, CancellationError
from ffwd.play.errors import PlayError
from ffwd.play.peers import Engine, Ffwd, RefusedError, peers
from ffwd.play.state import State, Units, source_of
from ffwd.sources import BYTES, NamedTokens
from ffwd.view.page import piece_of

SECONDS = 30.0
"""The most time of one comparison, the imports of the engines included."""
MOST_EXAMPLES = 12


class Comparison:
    """The process of other engines, which starts with the first comparison."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: Any = None
        self._connection: Connection | None = None

    def run(self, state: State, tokens: NamedTokens, cancellation: Cancellation) -> dict[str, Any]:
        """Return a row for each engine.

        Raises:
            PlayError: An engine needs more than `SECONDS`, or its process ended.
            CancellationError: It was cancelled.

        """
        source = None if tokens.source == BYTES else tokens.source
        if source is not None and not Path(source).exists():
            raise PlayError(
                "other engines read a tokenizer from its path, and this one has none: choose one "
                "by its path"
            )
        with self._lock:
            connection = self._started()
            asked = {"state": state.data(), "tokenizer": source}
            try:
                connection.send_bytes(json.dumps(asked).encode())
                ends = time.monotonic() + SECONDS
                while not connection.poll(0.02):
                    if cancellation.is_cancelled:
                        self._end()
                        raise _cancelled()
                    if time.monotonic() > ends:
                        self._end()
                        raise PlayError(
                            f"the other engines need more than {SECONDS:.0f} seconds for this "
                            "grammar: their process was ended"
                        )
                answer: dict[str, Any] = json.loads(connection.recv_bytes())
            except (EOFError, OSError) as error:
                self._end()
                raise PlayError("the process of the other engines ended: try again") from error
        return answer

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _started(self) -> Connection:
        if self._connection is None or not self._process.is_alive():
            self._end()
            context = multiprocessing.get_context("spawn")
            self._connection, other = context.Pipe()
            self._process = context.Process(target=_serve, args=(other,), daemon=True)
            self._process.start()
            other.close()
        assert self._connection is not None
        return self._connection

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None


def _cancelled() -> CancellationError:
    return CancellationError("the comparison was cancelled")


def _serve(connection: Connection) -> None:
    """Answer comparisons until the other end closes."""
    tokens: dict[str | None, NamedTokens] = {}
    while True:
        try:
            asked = json.loads(connection.recv_bytes())
        except (EOFError, OSError):
            return
        source = asked["tokenizer"]
        if source not in tokens:
            tokens = {source: NamedTokens(source, local_files_only=True)}
        answer = compared(State(**asked["state"]), tokens[source])
        connection.send_bytes(json.dumps(answer).encode())


def compared(state: State, tokens: NamedTokens) -> dict[str, Any]:
    """Return a row for each engine: verdict, mask at the cursor beside ffwd's, and times."""
    source = source_of(state.grammar, None)
    vocabulary = tokens.vocabulary
    units = Units(state.text)
    ids = vocabulary.encode(units.data)
    before = vocabulary.encode(units.data[: units.to_bytes(state.cursor)])
    others, absent = peers(source, vocabulary, tokens.definition())
    rows: list[dict[str, Any]] = []
    own: np.ndarray[Any, Any] | None = None
    for engine in [Ffwd(source, vocabulary), *others]:
        row, mask = _row(engine, ids, before, tokens)
        if engine.name == "ffwd":
            own = mask
        elif own is not None and mask is not None:
            row["only_it"] = _examples(mask & ~own, tokens)
            row["only_ffwd"] = _examples(own & ~mask, tokens)
        rows.append(row)
    rows += [{"name": name, "absent": why} for name, why in absent.items()]
    return {"rows": rows, "text_bytes": len(units.data)}


def _row(
    engine: Engine, ids: list[int], before: list[int], tokens: NamedTokens
) -> tuple[dict[str, Any], np.ndarray[Any, Any] | None]:
    row: dict[str, Any] = {"name": engine.name, "version": engine.version}
    now = time.perf_counter_ns
    started = now()
    try:
        begin = engine.compile()
    except RefusedError as error:
        return {**row, "refused": str(error)}, None
    row["compile_us"] = (now() - started) / 1e3
    session, accepted, place = begin(), True, 0
    masks = []
    for token in ids:
        started = now()
        session.fill()
        masks.append(now() - started)
        if not session.accept(token):
            accepted = False
            break
        place += 1
    spelled = tokens.vocabulary.token_bytes
    row["accepts"] = accepted
    row["accepted_bytes"] = sum(len(spelled(token) or b"") for token in ids[:place])
    row["mask_us"] = sum(masks) / 1e3 / max(len(masks), 1)
    if accepted:
        session.fill()
        ends = [_bits(engine, tokens)[end] for end in tokens.vocabulary.eos_token_ids]
        row["can_end"] = bool(any(ends))
    session = begin()
    if not all(session.accept(token) for token in before):
        return row, None
    started = now()
    session.fill()
    row["cursor_us"] = (now() - started) / 1e3
    mask = _bits(engine, tokens)
    row["mask"] = int(mask.sum())
    return row, mask


def _bits(engine: Engine, tokens: NamedTokens) -> np.ndarray[Any, Any]:
    row = np.ascontiguousarray(engine.bitmask).view(np.uint8)
    bits = np.unpackbits(row, bitorder="little")[: tokens.vocabulary.vocab_size]
    return bits.astype(bool)


def _examples(mask: np.ndarray[Any, Any], tokens: NamedTokens) -> dict[str, Any]:
    """Return how many tokens a mask has, and some of them from all over."""
    found = np.flatnonzero(mask)
    some = found
    if len(found) > MOST_EXAMPLES:
        some = found[np.linspace(0, len(found) - 1, MOST_EXAMPLES).round().astype(int)]
    shown = [
        [token, *piece_of(tokens.vocabulary.token_bytes(token), tokens.name(token))]
        for token in some.tolist()
    ]
    return {"count": len(found), "tokens": shown}
