"""Schemas with labelled instances: reading and selection.

One *case* is a schema with its tests. On disk a case is a JSON object with the members `schema`,
`tests` (each with `valid` and `data`) and, optionally, `id`; others (`meta`, `description`) are
ignored. A `.jsonl`, `.jsonl.xz` or `.jsonl.zst` file has one object per line; a folder of `.json`
files has one object per file, as MaskBench is published.

An unreadable part affects only itself: a line, or the rest of a file after a truncation.
"""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maskbench.errors import InputError

BUILTIN_CORPUS = Path(__file__).with_name("corpus")

_LINE_SUFFIXES = (".jsonl", ".jsonl.xz", ".jsonl.zst")


_PIECE_BYTES = 1 << 20


class DataError(InputError, ValueError):
    """Data that cannot be read. The message names the file and, for a line format, the line."""


@dataclass(frozen=True)
class Source:
    """The unparsed text of one case, and its source."""

    place: str
    text: str
    default_id: str
    problem: str | None = None
    """Why there is no text, if it could not be read."""


@dataclass(frozen=True)
class Test:
    """One instance and whether the schema admits it."""

    valid: bool
    data: Any

    __test__ = False  # pytest collects classes of this name otherwise


@dataclass(frozen=True)
class Case:
    """A schema with its labelled instances."""

    id: str
    schema: Any
    tests: tuple[Test, ...]


def read_sources(path: Path) -> list[Source]:
    """Read every case of a file or folder as text, in a stable order.

    Raises `DataError` if nothing can be read or the format is unknown. `parse_case` reads the text
    of a case, so that one broken case affects only itself. An unreadable part is a source with a
    problem, which `parse_case` raises.
    """
    sources = _read_all(path)
    if sources and all(source.problem is not None for source in sources):
        raise DataError(f"{sources[0].place}: {sources[0].problem}")
    return sources


def builtin_cases() -> list[Case]:
    """Return the cases of the built-in corpus."""
    return [parse_case(source) for source in read_sources(BUILTIN_CORPUS)]


def _read_all(path: Path) -> list[Source]:
    if path.is_dir():
        files = sorted(
            p for p in path.rglob("*") if p.is_file() and (_is_lines(p) or p.suffix == ".json")
        )
        if not files:
            raise DataError(
                f"{path}: no .json, .jsonl, .jsonl.xz or .jsonl.zst file in this folder"
            )
        return [source for file in files for source in _read_file(file)]
    if not path.is_file():
        raise DataError(f"{path}: no such file or folder")
    if not _is_lines(path) and path.suffix != ".json":
        raise DataError(f"{path}: expected .jsonl, .jsonl.xz, .jsonl.zst, .json or a folder")
    return list(_read_file(path))


def parse_case(source: Source) -> Case:
    """Parse one case. Raises `DataError` with the position if it is not a case."""
    if source.problem is not None:
        raise DataError(f"{source.place}: {source.problem}")
    try:
        value = json.loads(source.text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{source.place}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise DataError(f"{source.place}: expected an object")
    if "schema" not in value:
        raise DataError(f"{source.place}: no member 'schema'")
    tests = value.get("tests")
    if not isinstance(tests, list):
        raise DataError(f"{source.place}: 'tests' is not an array")
    parsed = []
    for index, test in enumerate(tests):
        if (
            not isinstance(test, dict)
            or not isinstance(test.get("valid"), bool)
            or "data" not in test
        ):
            raise DataError(f"{source.place}: tests[{index}] needs 'valid' (boolean) and 'data'")
        parsed.append(Test(valid=test["valid"], data=test["data"]))
    case_id = value.get("id", source.default_id)
    if not isinstance(case_id, str):
        raise DataError(f"{source.place}: 'id' is not a string")
    return Case(id=case_id, schema=value["schema"], tests=tuple(parsed))


@dataclass(frozen=True)
class Slice:
    """The part `index` of `count`, counted from 1: every `count`-th case."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Slice:
        """Parse `i/n`. Raises `ValueError` unless 1 ≤ i ≤ n."""
        left, separator, right = text.partition("/")
        if not separator or not left.isdecimal() or not right.isdecimal():
            raise ValueError(f"expected i/n, got {text!r}")
        index, count = int(left), int(right)
        if not 1 <= index <= count:
            raise ValueError(f"expected 1 <= i <= n, got {text!r}")
        return cls(index, count)


def choose(
    sources: list[Source], *, sample: int | None, seed: int, part: Slice | None
) -> list[Source]:
    """Draw `sample` cases without replacement, in file order, then takes the slice of them."""
    chosen = sources
    if sample is not None and sample < len(sources):
        indices = sorted(random.Random(seed).sample(range(len(sources)), sample))
        chosen = [sources[i] for i in indices]
    if part is not None:
        chosen = chosen[part.index - 1 :: part.count]
    return chosen


def _is_lines(path: Path) -> bool:
    return path.name.endswith(_LINE_SUFFIXES)


def _read_file(path: Path) -> Iterator[Source]:
    if not _is_lines(path):
        try:
            yield Source(str(path), path.read_text(encoding="utf-8"), path.stem)
        except (OSError, UnicodeDecodeError) as error:
            yield Source(str(path), "", path.stem, str(error))
        return
    number = 0
    try:
        for number, line in enumerate(_lines(path), 1):
            place, default_id = f"{path}:{number}", f"{path.name}:{number}"
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                yield Source(place, "", default_id, str(error))
                continue
            if text.strip():
                yield Source(place, text, default_id)
    except (OSError, EOFError, lzma.LZMAError) as error:
        place, default_id = f"{path}:{number + 1}", f"{path.name}:{number + 1}"
        yield Source(place, "", default_id, f"the file cannot be read from here on: {error}")


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the decompressed lines of a file. Raises `OSError`, `EOFError` or `lzma.LZMAError`."""
    # Only "\n" ends a line: U+2028 and the like may stand in JSON strings.
    if path.suffix == ".zst":
        left = b""
        for piece in _unpacked_zst(path):
            *lines, left = (left + piece).split(b"\n")
            yield from lines
        yield left
        return
    with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as file:
        yield from file


def _unpacked_zst(path: Path) -> Iterator[bytes]:
    try:
        import zstandard
    except ImportError as error:
        raise DataError(f"{path}: reading .zst needs a package: pip install zstandard") from error
    # Frame by frame, since the package's reader of streams does not tell the end of a file that
    # breaks off from that of a whole one.
    frame = None
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            while piece:
                if frame is None:
                    frame = zstandard.ZstdDecompressor().decompressobj()
                try:
                    yield frame.decompress(piece)
                except zstandard.ZstdError as error:
                    raise OSError(str(error)) from error
                piece = frame.unused_data if frame.eof else b""
                frame = None if frame.eof else frame
    if frame is not None:
        raise EOFError("the compressed data breaks off")
