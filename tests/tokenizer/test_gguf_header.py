"""The header of a GGUF file: what it says, and what a broken or hostile one may not do."""

import os
import random
import re
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ggufs import ARRAY, STRING, gguf

from ffwd import VocabularyError
from ffwd.tokenizer.errors import (
    CorruptTokenizerError,
    TokenizerNotFoundError,
    UnsupportedTokenizerError,
)
from ffwd.tokenizer.gguf.header import MAX_KEPT_BYTES, MAX_STRINGS, is_gguf, read_header

VALUES: dict[str, Any] = {
    "text": "höher",
    "empty": "",
    "yes": True,
    "no": False,
    "u8": np.uint8(200),
    "i8": np.int8(-100),
    "u16": np.uint16(60_000),
    "i16": np.int16(-30_000),
    "u32": np.uint32(4_000_000_000),
    "i32": np.int32(-2_000_000_000),
    "f32": np.float32(0.5),
    "u64": np.uint64(1 << 60),
    "i64": np.int64(-(1 << 60)),
    "f64": np.float64(0.1),
    "strings": ["a", "", "日本"],
    "numbers": np.array([1, -2, 3], dtype=np.int32),
    "scores": np.array([0.5, -1.5], dtype=np.float32),
    "nothing": [],
}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("order", ["<", ">"])
def test_every_type_in_both_byte_orders(version: int, order: str) -> None:
    data = gguf(VALUES, version=version, order=order)
    header = read_header(data + b"tensors")
    assert (header.version, header.end) == (version, len(data))
    assert header.byte_order == ("little" if order == "<" else "big")
    assert header.values.keys() == VALUES.keys()
    for key, value in VALUES.items():
        assert np.array_equal(header.values[key], value), key
    numbers = header.values["numbers"]
    assert isinstance(numbers, np.ndarray)
    assert numbers.dtype.isnative


@pytest.mark.parametrize("order", ["<", ">"])
def test_values_that_nobody_wants_are_passed_over(order: str) -> None:
    data = gguf(VALUES, order=order)
    for wanted in VALUES:
        header = read_header(data, lambda key, wanted=wanted: key == wanted)  # type: ignore[misc]
        assert list(header.values) == [wanted]
        assert header.end == len(data)


def test_a_file_and_its_bytes_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf(VALUES))
    assert read_header(path).values.keys() == read_header(os.fspath(path)).values.keys()
    assert is_gguf(path)
    assert not is_gguf(b"GGU")


def test_long_strings_and_arrays_across_blocks() -> None:
    """The file is read a block at a time; nothing depends on where one ends."""
    rng = random.Random(3)
    values = {
        "many": [chr(97 + n % 26) * rng.randrange(40) for n in range(100_000)],
        "long": ["x" * 3_000_000, "y", "z" * 1_500_000],
        "text": "t" * 2_500_000,
        "last": "end",
    }
    data = gguf(values)
    assert read_header(data).values == values
    assert read_header(data, lambda key: key == "last").values == {"last": "end"}


def test_a_large_file_costs_its_header(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf(VALUES))
    os.truncate(path, 40 << 30)
    tracemalloc.start()
    try:
        assert read_header(path).values["text"] == "höher"
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TokenizerNotFoundError, match="no-such"):
        read_header(tmp_path / "no-such.gguf")
    with pytest.raises(TokenizerNotFoundError, match=re.escape(str(tmp_path))):
        read_header(tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a GGUF file"),
        (b"GGU", "not a GGUF file"),
        (b"PK\3\4" + bytes(100), "not a GGUF file"),
        (b"GGUF" + struct.pack("<III", 1, 0, 0), "version 1 .* 2 and 3"),
        (b"GGUF" + struct.pack("<IQQ", 4, 0, 0), "version 4"),
        (b"GGUF" + struct.pack(">IQQ", 7, 0, 0), "version 7"),
    ],
)
def test_other_formats_and_versions(data: bytes, message: str) -> None:
    with pytest.raises(UnsupportedTokenizerError, match=message):
        read_header(data)


def pack(*values: int, layout: str) -> bytes:
    return struct.pack("<" + layout, *values)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"GGUF", "byte 4 of 4: the version takes 4 bytes, and the file has 0 more"),
        (gguf({"a": 1}, count=2), "byte 16 of 41: there cannot be 2 keys"),
        (gguf({}, count=1 << 62), r"byte 16 of 24: there cannot be \d+ keys"),
        (gguf({"a": 1}, count=(1 << 16) + 1), "byte 16 of 41: there cannot be 65537 keys"),
        (gguf({"a": pack(13, layout="I")}), "a is of type 13, which is not defined"),
        (gguf({"a": pack(1 << 31, layout="I")}), "a is of type 2147483648"),
        (gguf({"a": pack(ARRAY, ARRAY, 1, layout="IIQ")}), "a is an array of arrays"),
        (gguf({"a": pack(ARRAY, 99, 1, layout="IIQ")}), "a is of type 99"),
        (gguf({"a": pack(ARRAY, 4, 1 << 61, layout="IIQ")}), r"a takes \d+ bytes, .* 0 more"),
        (
            gguf({"a": pack(ARRAY, STRING, 1 << 40, layout="IIQ") + bytes(64)}),
            "a cannot have 1099511627776 strings",
        ),
        (gguf({"a": pack(STRING, 1 << 63, layout="IQ")}), "a takes 9223372036854775808 bytes"),
        (gguf({"a": pack(STRING, 2, layout="IQ") + b"\xff\xff"}), "a is not UTF-8"),
        (
            gguf({"a": pack(ARRAY, STRING, 1, 2, layout="IIQQ") + b"a\xff"}),
            "element 0 of a is not UTF-8",
        ),
        (gguf({"a": pack(7, 2, layout="IB")}), "a is neither true nor false"),
        (
            gguf({"a": 1, "b": 2}).replace(b"b\4", b"a\4"),
            "byte 41 of 58: the key 'a' is there for the second time",
        ),
    ],
)
def test_what_cannot_be(data: bytes, message: str) -> None:
    with pytest.raises(CorruptTokenizerError, match=message):
        read_header(data)


@pytest.mark.parametrize("wanted", [True, False])
def test_a_file_that_ends_early(wanted: bool) -> None:
    """At every byte: an error, with the place at which something is missing."""
    data = gguf(VALUES)
    for end in range(len(data)):
        with pytest.raises(VocabularyError) as caught:
            read_header(data[:end], lambda _: wanted)
        place = re.search(r"byte (\d+) of (\d+)", str(caught.value))
        assert (end < 4) == (place is None)
        assert place is None or (int(place[1]) <= end and int(place[2]) == end)


def test_lengths_that_only_a_large_file_could_have(tmp_path: Path) -> None:
    """What a sparse file claims is neither read nor kept."""
    path = tmp_path / "model.gguf"
    for value, message in [
        (pack(STRING, 1 << 35, layout="IQ"), f"more than {MAX_KEPT_BYTES} bytes"),
        (pack(ARRAY, 6, 1 << 33, layout="IIQ"), f"more than {MAX_KEPT_BYTES} bytes"),
        (pack(ARRAY, STRING, MAX_STRINGS + 1, layout="IIQ"), "cannot have 4194305 strings"),
        (pack(ARRAY, STRING, 5, 1 << 35, layout="IIQQ"), f"more than {MAX_KEPT_BYTES} bytes"),
    ]:
        path.write_bytes(gguf({"a": value}))
        os.truncate(path, 40 << 30)
        tracemalloc.start()
        try:
            with pytest.raises(CorruptTokenizerError, match=message):
                read_header(path)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 4 << 20, message


def test_damaged_files() -> None:
    """Whatever is wrong, the error is one of those that are expected."""
    rng = random.Random(11)
    data = gguf(VALUES)
    readable = 0
    for _ in range(4_000):
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 8))):
            at = rng.randrange(4, len(damaged))
            damaged[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        try:
            read_header(bytes(damaged), lambda _: rng.random() < 0.7)
            readable += 1
        except (CorruptTokenizerError, UnsupportedTokenizerError):
            pass
    assert 100 < readable < 3_900
