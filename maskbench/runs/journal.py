"""The journal of a run, so that a kill loses at most the current chunk.

It is a folder with one append-only file. Its records are first the run's settings, then chunks
(with their skipped cases) and turns (one engine's results for one chunk). A record is a frame: its
length and its CRC-32, 4 bytes each and big-endian, then the bytes of JSON compressed by zlib. Each
is on the disk before the run continues. A partial frame at the end was being written when the run
ended, and is dropped.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import zlib
from array import array
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Any

from maskbench.canonicality.counts import ForcedCount
from maskbench.errors import InputError
from maskbench.runs.preparation import Chunk, LeftOut
from maskbench.runs.settings import TurnResult
from maskbench.verdicts import SchemaRecord, Verdict
from maskbench.walk import DocumentResult, Outcome

FORMAT = "maskbench-parts-2"

_FILE = "run.journal"
_HEAD_BYTES = 8


class JournalError(InputError, RuntimeError):
    """A journal that cannot be used or written; the message says why and what would work."""


class Journal:
    """The finished parts of a run, read when it is opened and added to as they come."""

    def __init__(self, folder: Path, *, resume: bool) -> None:
        """Open the folder of a run, or make it. Raises `JournalError`.

        Without `resume` there must not be one yet, so that no work is lost by mistake.
        """
        self.folder = folder
        self._chunks: dict[int, Chunk] = {}
        self.turns: dict[tuple[int, str], TurnResult] = {}
        """By chunk and engine."""
        self.about: dict[str, Any] | None = None
        path = folder / _FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] = path.open("a+b", buffering=0)
        except OSError as error:
            raise JournalError(f"{folder}: {error.strerror}") from error
        try:
            _lock(self._file, folder)
            self._end = self._read()
            if self._end and not resume:
                raise JournalError(
                    f"{folder} holds an unfinished run: go on with --resume, or delete the folder"
                )
            # A torn record would hide all that is written behind it.
            self._file.truncate(self._end)
            _sync_folder(folder)
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Let others have the journal; deletes it if there is nothing in it."""
        if self._file.closed:
            return
        self._file.close()
        if self._end == 0:
            self._delete()

    def begin(self, about: Mapping[str, Any]) -> None:
        """Record the run's settings, or compare them with the recorded ones.

        Raises `JournalError`, which names all that differs.
        """
        plain = json.loads(json.dumps(about))
        if self.about is None:
            self._append({"kind": "run", "format": FORMAT, "about": plain})
            self.about = plain
            return
        differences = list(_differences(self.about, plain))
        if differences:
            raise JournalError(
                f"--resume: {self.folder} is of another run: {'; '.join(differences)}. "
                "Give the same options, or delete the folder"
            )

    def finished(self, number: int, engines: Collection[str]) -> Chunk | None:
        """Return a chunk that all engines have finished, without its jobs."""
        if any((number, engine) not in self.turns for engine in engines):
            return None
        return self._chunks[number]

    def add_chunk(self, chunk: Chunk) -> None:
        """Record the skipped cases of a chunk, unless they are recorded. Raises `JournalError`."""
        if chunk.number not in self._chunks:
            self._append(
                {
                    "kind": "chunk",
                    "chunk": chunk.number,
                    "offered": chunk.offered,
                    "left_out": asdict(chunk.left_out),
                }
            )
            self._chunks[chunk.number] = replace(chunk, jobs=())

    def add_turn(self, turn: TurnResult) -> None:
        """Record a turn. Raises `JournalError`."""
        self._append(
            {
                "kind": "turn",
                "chunk": turn.chunk,
                "engine": turn.engine,
                "peak_memory_bytes": turn.peak_memory_bytes,
                "records": [_record(record) for record in turn.records],
            }
        )
        self.turns[turn.chunk, turn.engine] = turn

    def remove(self) -> None:
        """Delete the journal, once the results are written elsewhere."""
        self.close()
        self._delete()

    def _delete(self) -> None:
        with suppress(OSError):
            (self.folder / _FILE).unlink()
            self.folder.rmdir()

    def _append(self, value: dict[str, Any]) -> None:
        body = zlib.compress(json.dumps(value, ensure_ascii=True).encode("ascii"))
        frame = len(body).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big") + body
        try:
            view = memoryview(frame)
            while view:
                view = view[self._file.write(view) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(self._end)
            why = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
            raise JournalError(
                f"{self.folder}: {why}: the run stops. What was written before is whole: make "
                "room and go on with --resume"
            ) from error
        self._end += len(frame)

    def _read(self) -> int:
        """Read all whole frames and return the offset of their end."""
        self._file.seek(0)
        data = self._file.read()
        end = 0
        while (body := _frame(data, end)) is not None:
            try:
                self._take(json.loads(zlib.decompress(body)))
            except (ValueError, KeyError, TypeError, zlib.error) as error:
                raise JournalError(f"{self.folder}: not a journal of maskbench: {error}") from error
            end += _HEAD_BYTES + len(body)
        return end

    def _take(self, value: dict[str, Any]) -> None:
        kind = value["kind"]
        if kind == "run":
            if value["format"] != FORMAT:
                raise ValueError(f"the format is {value['format']!r}, not {FORMAT!r}")
            self.about = value["about"]
        elif kind == "chunk":
            found = value["left_out"]
            left_out = LeftOut(
                tuple(found["broken"]),
                tuple(found["unwritable_schemas"]),
                found["skipped_instances"],
            )
            number = value["chunk"]
            self._chunks[number] = Chunk(number, (), value["offered"], left_out)
        elif kind == "turn":
            self.turns[value["chunk"], value["engine"]] = TurnResult(
                value["chunk"],
                value["engine"],
                tuple(_read_record(record) for record in value["records"]),
                value["peak_memory_bytes"],
            )
        else:
            raise ValueError(f"unknown record {kind!r}")


def _frame(data: bytes, start: int) -> bytes | None:
    """Return the body of the frame that begins here, None if it is incomplete."""
    body = start + _HEAD_BYTES
    if body > len(data):
        return None
    size = int.from_bytes(data[start : start + 4], "big")
    checksum = int.from_bytes(data[start + 4 : body], "big")
    found = data[body : body + size]
    return found if len(found) == size > 0 and zlib.crc32(found) == checksum else None


def _record(record: SchemaRecord) -> dict[str, Any]:
    return {
        "index": record.index,
        "id": record.id,
        "verdict": record.verdict.value,
        "labels": record.labels,
        "documents": [(d.outcome.value, d.masks, d.problem) for d in record.documents],
        "reason": record.reason,
        "detail": record.detail,
        "first_mask_us": record.first_mask_us,
        "mask_us": base64.b64encode(record.mask_us.tobytes()).decode("ascii"),
        "forced": None if record.forced is None else asdict(record.forced),
        "peak_memory_bytes": record.peak_memory_bytes,
        "min_first_mask_us": record.min_first_mask_us,
        "min_mask_us": base64.b64encode(record.min_mask_us.tobytes()).decode("ascii"),
    }


def _read_record(value: dict[str, Any]) -> SchemaRecord:
    return SchemaRecord(
        index=value["index"],
        id=value["id"],
        verdict=Verdict(value["verdict"]),
        labels=tuple(value["labels"]),
        documents=tuple(
            DocumentResult(Outcome(outcome), masks, problem)
            for outcome, masks, problem in value["documents"]
        ),
        reason=value["reason"],
        detail=value["detail"],
        first_mask_us=value["first_mask_us"],
        mask_us=array("f", base64.b64decode(value["mask_us"])),
        forced=None if value["forced"] is None else ForcedCount(**value["forced"]),
        peak_memory_bytes=value["peak_memory_bytes"],
        min_first_mask_us=value["min_first_mask_us"],
        min_mask_us=array("f", base64.b64decode(value["min_mask_us"])),
    )


def _differences(before: Any, now: Any, name: str = "") -> Iterator[str]:
    """Return the differences between two JSON values, by the names of their members."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys((*before, *now)):
            yield from _differences(before.get(key), now.get(key), f"{name}.{key}" if name else key)
    elif before != now:
        yield f"{name} was {_short(before)} and is {_short(now)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:59] + "…"


def _lock(file: IO[bytes], folder: Path) -> None:
    """Lock out other runs while the file is open; the system unlocks it when the process ends."""
    try:
        import fcntl
    except ImportError:  # not a Unix
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise JournalError(f"{folder} is in use by another run") from error


def _sync_folder(folder: Path) -> None:
    """Flush the folder's entries to the disk, if the system can open folders for that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
