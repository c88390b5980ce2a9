"""Schemas with labelled instances: reading them from files, choosing among them.

One *case* is a schema with its tests. On disk a case is a JSON object with the members `schema`,
`tests` (each with `valid` and `data`) and, optionally, `id` and `meta`: one object a line in a
`.jsonl` or `.jsonl.xz` file, or one object a file in a folder of `.json` files, as MaskBench
is published.
"""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

BUILTIN_CORPUS = Path(__file__).with_name("corpus")

_LINE_SUFFIXES = (".jsonl", ".jsonl.xz")


class DataError(ValueError):
    """Data that cannot be read. The message names the file and, for a line format, the line."""


@dataclass(frozen=True)
class Source:
    """The unparsed text of one case, and where it came from."""

    place: str
    text: str
    default_id: str


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
    """Reads every case of a file or folder as text, in a stable order.

    Raises `DataError` if nothing is there or the format is not known. The text of a case is not
    looked at here: `parse_case` does that, so that one broken case costs only itself.
    """
    if path.is_dir():
        files = sorted(
            p for p in path.rglob("*") if p.is_file() and (_is_lines(p) or p.suffix == ".json")
        )
        if not files:
            raise DataError(f"{path}: no .json, .jsonl or .jsonl.xz file in this folder")
        return [source for file in files for source in _read_file(file)]
    if not path.is_file():
        raise DataError(f"{path}: no such file or folder")
    if not _is_lines(path) and path.suffix != ".json":
        raise DataError(f"{path}: expected .jsonl, .jsonl.xz, .json or a folder")
    return list(_read_file(path))


def parse_case(source: Source) -> Case:
    """Parses one case. Raises `DataError` with the place if it is not a case."""
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
        """Reads `i/n`. Raises `ValueError` unless 1 ≤ i ≤ n."""
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
    """Draws `sample` cases without replacement, in file order, then takes the slice of them."""
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
    try:
        if _is_lines(path):
            with _open_lines(path) as lines:
                for number, line in enumerate(lines, 1):
                    if line.strip():
                        yield Source(f"{path}:{number}", line, f"{path.name}:{number}")
        else:
            yield Source(str(path), path.read_text(encoding="utf-8"), path.stem)
    except (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError) as error:
        raise DataError(f"{path}: {error}") from error


def _open_lines(path: Path) -> IO[str]:
    # Only "\n" ends a line: U+2028 and the like may stand in JSON strings.
    if path.suffix == ".xz":
        return lzma.open(path, "rt", encoding="utf-8", newline="\n")
    return path.open(encoding="utf-8", newline="\n")
