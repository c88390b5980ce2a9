"""The header of a GGUF file: its keys and values, without its tensors.

The file begins with `GGUF`, a version, the number of tensors and the number of keys; each key is
followed by the type of its value and the value. The version shows the byte order of numbers. The
tensors, nearly all of a model's file, come after the keys and are not read.

The file declares the lengths of its strings and arrays. Each length is compared with the rest of
the file before anything is read or stored, and with a limit if the rest is long. A broken or
hostile file causes an error with the offset in the file, and takes no memory.
"""

import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

import numpy as np

from ffwd.tokenizer.errors import (
    CorruptTokenizerError,
    TokenizerNotFoundError,
    UnsupportedTokenizerError,
)

MAGIC = b"GGUF"
VERSIONS = (2, 3)
"""The versions that are read. The first had shorter numbers and was in use for a few weeks."""

MAX_KEYS = 1 << 16
MAX_STRINGS = 1 << 22
"""The most strings in arrays, in all: five times those of the largest vocabulary in use."""
MAX_KEPT_BYTES = 1 << 28
"""The most bytes of values that are kept."""

_STRING, _ARRAY, _BOOL = 8, 9, 7
_NUMBERS = {0: "u1", 1: "i1", 2: "u2", 3: "i2", 4: "u4", 5: "i4", 6: "f4", 7: "u1"} | {
    10: "u8",
    11: "i8",
    12: "f8",
}
"""The format's types of numbers, as numpy names them without the byte order."""

_BLOCK = 1 << 20

Value: TypeAlias = "str | int | float | bool | list[str] | np.ndarray"
"""An array of strings is a list, one of numbers an array of numpy in this machine's byte order."""
Source: TypeAlias = "str | os.PathLike[str] | bytes"


@dataclass(frozen=True, kw_only=True)
class GgufHeader:
    """The information in a GGUF file's header."""

    version: int
    byte_order: Literal["little", "big"]
    tensor_count: int
    values: dict[str, Value]
    """By key; of those that were asked for."""
    end: int
    """Where in the file the keys end, in bytes."""


def read_header(source: Source, wanted: Callable[[str], bool] = lambda _: True) -> GgufHeader:
    """Read the header of a file, given by its path, or of the first bytes of a file.

    `wanted`: the keys whose values are kept; the others are passed over.

    Raises `TokenizerNotFoundError` where there is no such file, `UnsupportedTokenizerError` for
    another format or version, and `CorruptTokenizerError`, with the place in the file, for what
    cannot be in such a file.
    """
    with _opened(source) as (file, name):
        return _Reader(file, name).header(wanted)


def is_gguf(source: Source) -> bool:
    """Return whether the file begins as a GGUF file does."""
    with _opened(source) as (file, _):
        return file.read(len(MAGIC)) == MAGIC


@contextmanager
def _opened(source: Source) -> Iterator[tuple[BinaryIO, str]]:
    if isinstance(source, bytes):
        yield BytesIO(source), "the GGUF data"
        return
    path = Path(source)
    try:
        file = path.open("rb", buffering=0)
    except FileNotFoundError as error:
        raise TokenizerNotFoundError(f"{path}: there is no such file") from error
    except OSError as error:
        raise TokenizerNotFoundError(f"{path} cannot be opened: {error.strerror}") from error
    with file:
        yield file, str(path)


class _Reader:
    """A file that is read once from front to back, a block at a time."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.file = file
        self.name = name
        self.size = file.seek(0, os.SEEK_END)
        file.seek(0)
        self.block = b""
        self.begin = 0
        """Where in the file the block begins."""
        self.at = 0
        """Where in the block the next value begins."""
        self.kept = 0
        self.strings_left = MAX_STRINGS
        self.order: Literal["<", ">"] = "<"

    @property
    def offset(self) -> int:
        return self.begin + self.at

    def corrupt(self, what: str, offset: int | None = None) -> CorruptTokenizerError:
        place = self.offset if offset is None else offset
        return CorruptTokenizerError(f"{self.name}, byte {place} of {self.size}: {what}")

    def need(self, length: int, what: str) -> None:
        """Ensure that the block has the next `length` bytes."""
        if length <= len(self.block) - self.at:
            return
        left = self.size - self.offset
        if length > left:
            raise self.corrupt(f"{what} takes {length} bytes, and the file has {left} more")
        self.begin += self.at
        self.at = 0
        self.file.seek(self.begin)
        parts = []
        missing = max(length, min(_BLOCK, left))
        while missing:
            part = self.file.read(missing)
            if not part:
                raise self.corrupt(f"{what} ends early: the file has become shorter")
            parts.append(part)
            missing -= len(part)
        self.block = b"".join(parts)

    def take(self, length: int, what: str) -> bytes:
        self.need(length, what)
        data = self.block[self.at : self.at + length]
        self.at += length
        return data

    def skip(self, length: int, what: str) -> None:
        left = self.size - self.offset
        if length > left:
            raise self.corrupt(f"{what} takes {length} bytes, and the file has {left} more")
        if length <= len(self.block) - self.at:
            self.at += length
        else:
            self.begin, self.at, self.block = self.offset + length, 0, b""

    def keep(self, length: int, what: str) -> None:
        self.kept += length
        if self.kept > MAX_KEPT_BYTES:
            raise self.corrupt(f"with {what} the values take more than {MAX_KEPT_BYTES} bytes")

    def number(self, code: str, what: str) -> int:
        layout = struct.Struct(self.order + code)
        (value,) = layout.unpack(self.take(layout.size, what))
        return int(value)

    def header(self, wanted: Callable[[str], bool]) -> GgufHeader:
        if self.size < len(MAGIC) or self.take(len(MAGIC), "the format's name") != MAGIC:
            raise UnsupportedTokenizerError(
                f"{self.name} is not a GGUF file: it does not begin with {MAGIC.decode()}"
            )
        version = self.number("I", "the version")
        if version & 0xFFFF == 0:  # no version is so high: the bytes are in the other order
            self.order = ">"
            version = int.from_bytes(version.to_bytes(4, "little"), "big")
        if version not in VERSIONS:
            raise UnsupportedTokenizerError(
                f"{self.name} is of version {version} of GGUF: supported are "
                f"{' and '.join(map(str, VERSIONS))}"
            )
        tensors = self.number("Q", "the number of tensors")
        keys = self.number("Q", "the number of keys")
        if keys > min(MAX_KEYS, (self.size - self.offset) // 13):
            raise self.corrupt(f"there cannot be {keys} keys", self.offset - 8)

        values: dict[str, Value] = {}
        seen: set[str] = set()
        for _ in range(keys):
            start = self.offset
            key = self.string("a key")
            if key in seen:
                raise self.corrupt(f"the key {key!r} is there for the second time", start)
            seen.add(key)
            if wanted(key):
                values[key] = self.value(key)
            else:
                self.pass_over(key)
        return GgufHeader(
            version=version,
            byte_order="little" if self.order == "<" else "big",
            tensor_count=tensors,
            values=values,
            end=self.offset,
        )

    def string(self, what: str) -> str:
        length = self.number("Q", f"the length of {what}")
        self.keep(min(length, self.size), what)
        start = self.offset
        try:
            return self.take(length, what).decode()
        except UnicodeDecodeError as error:
            raise self.corrupt(f"{what} is not UTF-8 ({error.reason})", start) from error

    def value(self, key: str) -> Value:
        start = self.offset
        kind = self.number("I", f"the type of {key}")
        if kind == _STRING:
            return self.string(key)
        if kind == _ARRAY:
            return self.array(key)
        number = self.numbers(kind, 1, key, start)[0]
        if kind == _BOOL:
            return bool(number)
        return float(number) if kind in (6, 12) else int(number)

    def array(self, key: str) -> "list[str] | np.ndarray":
        start = self.offset
        kind, count = self.array_head(key)
        return (
            self.strings(count, key) if kind == _STRING else self.numbers(kind, count, key, start)
        )

    def array_head(self, key: str) -> tuple[int, int]:
        """Return type and number of the elements, of which there may be as many."""
        start = self.offset
        kind = self.number("I", f"the type of {key}")
        count = self.number("Q", f"the length of {key}")
        if kind == _ARRAY:
            raise self.corrupt(f"{key} is an array of arrays", start)
        if kind == _STRING:
            # Each has its own length before it.
            if count > min(self.strings_left, (self.size - self.offset) // 8):
                raise self.corrupt(f"{key} cannot have {count} strings", start)
            self.strings_left -= count
        return kind, count

    def numbers(self, kind: int, count: int, key: str, start: int) -> "np.ndarray":
        width = self.width(kind, key, start)
        self.keep(min(count * width, self.size), key)
        data = self.take(count * width, key)
        numbers = np.frombuffer(data, dtype=np.dtype(_NUMBERS[kind]).newbyteorder(self.order))
        if kind == _BOOL and numbers.size and int(numbers.max()) > 1:
            raise self.corrupt(f"{key} is neither true nor false", start)
        return numbers.astype(numbers.dtype.newbyteorder("="))

    def width(self, kind: int, key: str, start: int) -> int:
        """Return how many bytes a number takes."""
        code = _NUMBERS.get(kind)
        if code is None:
            raise self.corrupt(f"{key} is of type {kind}, which is not defined", start)
        return int(code[1])

    def strings(self, count: int, key: str, *, keep: bool = True) -> list[str]:
        """Read hundreds of thousands of strings quickly: each is a length and that many bytes."""
        strings: list[str] = []
        unpack = struct.Struct(self.order + "Q").unpack_from
        done = 0
        while done < count:
            # As many as lie wholly within the block, without asking about each.
            block, at, last = self.block, self.at, len(self.block) - 8
            try:
                while done < count and at <= last:
                    end = at + 8 + unpack(block, at)[0]
                    if end > last + 8:
                        break
                    if keep:
                        strings.append(block[at + 8 : end].decode())
                    at = end
                    done += 1
            except UnicodeDecodeError as error:
                raise self.corrupt(
                    f"element {done} of {key} is not UTF-8 ({error.reason})", self.begin + at
                ) from error
            if keep:
                self.keep(at - self.at, key)
            self.at = at
            if done < count:
                what = f"element {done} of {key}"
                if keep:
                    strings.append(self.string(what))
                else:
                    self.skip(self.number("Q", f"the length of {what}"), what)
                done += 1
        return strings

    def pass_over(self, key: str) -> None:
        """Skip a value."""
        start = self.offset
        kind = self.number("I", f"the type of {key}")
        if kind == _STRING:
            self.skip(self.number("Q", f"the length of {key}"), key)
        elif kind != _ARRAY:
            self.skip(self.width(kind, key, start), key)
        else:
            kind, count = self.array_head(key)
            if kind != _STRING:
                self.skip(count * self.width(kind, key, start), key)
                return
            self.strings(count, key, keep=False)
