"""GGUF files for the tests: small ones that are made on the spot, and the real ones."""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from llamacpp import models_folder

TYPES = {
    "u1": 0,
    "i1": 1,
    "u2": 2,
    "i2": 3,
    "u4": 4,
    "i4": 5,
    "f4": 6,
    "b1": 7,
    "u8": 10,
    "i8": 11,
    "f8": 12,
}
STRING, ARRAY = 8, 9


def gguf(
    values: Mapping[str, Any], *, version: int = 3, order: str = "<", count: int | None = None
) -> bytes:
    """A file with these keys and no tensors.

    A value is a string, a bool, an int (32 bits), a float (32 bits), a list of strings or a numpy
    scalar or array; bytes are written as they are, with the type in front.
    """
    written = b"".join(_string(key, order) + _value(value, order) for key, value in values.items())
    keys = len(values) if count is None else count
    return b"GGUF" + struct.pack(order + "IQQ", version, 0, keys) + written


def _string(text: str | bytes, order: str) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return struct.pack(order + "Q", len(data)) + data


def _value(value: Any, order: str) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return struct.pack(order + "I", STRING) + _string(value, order)
    if isinstance(value, list):
        head = struct.pack(order + "IIQ", ARRAY, STRING, len(value))
        return head + b"".join(_string(item, order) for item in value)
    if type(value) is bool:
        value = np.bool_(value)
    elif type(value) is int:
        value = np.uint32(value)
    elif type(value) is float:
        value = np.float32(value)
    kind = TYPES[f"{value.dtype.kind}{value.dtype.itemsize}"]
    data = np.asarray(value).astype(value.dtype.newbyteorder(order)).tobytes()
    if np.ndim(value):
        return struct.pack(order + "IIQ", ARRAY, kind, len(value)) + data
    return struct.pack(order + "I", kind) + data


BYTES = [
    chr(byte) if chr(byte).isprintable() and byte not in (0x20, 0xAD) else "" for byte in range(256)
]
_shifted = iter(range(256, 512))
BYTES = [character or chr(next(_shifted)) for character in BYTES]
"""GPT-2's character for each byte."""


def byte_level(
    tokens: Sequence[str] = (), types: Sequence[int] = (), **keys: Any
) -> dict[str, Any]:
    """The keys of a byte-level vocabulary: the bytes and then these tokens."""
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": [*BYTES, *tokens],
        "tokenizer.ggml.token_type": np.array(
            [1] * 256 + [*types, *[1] * (len(tokens) - len(types))], dtype=np.int32
        ),
        "tokenizer.ggml.merges": [],
        **{f"tokenizer.ggml.{key}": value for key, value in keys.items()},
    }


def real(name: str) -> Path:
    """One of the vocabularies that llama.cpp's own tests use."""
    return models_folder() / f"ggml-vocab-{name}.gguf"


SEPARATOR = "\n__ggml_vocab_test__\n"


def expected(name: str) -> list[tuple[str, list[int]]]:
    """Texts and their ids, as the tokenizers have them that the files were made from."""
    path = real(name)
    texts = path.with_suffix(".gguf.inp").read_bytes().decode().split(SEPARATOR)
    lines = path.with_suffix(".gguf.out").read_text().splitlines()
    if len(texts) == len(lines) + 1 and not texts[-1]:
        texts.pop()
    return [
        (text, [int(token_id) for token_id in line.split()])
        for text, line in zip(texts, lines, strict=True)
    ]
