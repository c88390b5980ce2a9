"""The Python fuzz targets on their committed corpus, and on inputs near by."""

import logging
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from campaign import PYTHON, RUST
from fuzztargets import TARGETS

CRATE = Path(__file__).resolve().parents[2] / "ffwd/native/fuzz"
DICTIONARY = [
    *(b'"type":', b'"format":', b"null", b"true", b"[]", b"{}", b"-1", b"1e9", b'""', b","),
    *(b"{%", b"%}", b"{{", b"}}", b"\xff", b"\x00\x00\x00\x80", b"\xff\xff\xff\x7f", b"<0x41>"),
]
COUNTS = {"sentencepiece": 60, "any_tokenizer": 60, "tokenizer_json": 60, "gguf": 80, "tekken": 80}


def corpus(target: str) -> list[bytes]:
    return [file.read_bytes() for file in sorted((CRATE / "corpus" / target).iterdir())]


def changed(data: bytes, others: list[bytes], source: random.Random) -> bytes:
    """An input with a few places changed."""
    written = bytearray(data)
    for _ in range(source.randint(1, 4)):
        at = source.randint(0, len(written))
        end = min(len(written), at + source.randint(0, 12))
        way = source.randrange(5)
        if way == 0 and at < len(written):
            written[at] ^= 1 << source.randrange(8)
        elif way == 1:
            del written[at:end]
        elif way == 2:
            written[at:at] = written[at:end]
        elif way == 3:
            written[at:end] = source.choice(DICTIONARY)
        else:
            other = source.choice(others)
            begin = source.randint(0, len(other))
            written[at:end] = other[begin : begin + source.randint(0, 40)]
    return bytes(written)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What is odd about a tokenizer is logged; here all of them are."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_corpus(target: str) -> None:
    found = corpus(target)
    assert found
    for data in found:
        TARGETS[target](data)
        TARGETS[target](data[: len(data) // 2])


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_inputs_near_by(target: str) -> None:
    found, source = corpus(target), random.Random(7)
    for number in range(COUNTS.get(target, 150)):
        data = changed(source.choice(found), found, source)
        try:
            TARGETS[target](data)
        except Exception as error:
            raise AssertionError(f"input {number}: {data!r}") from error


def test_every_target_is_fuzzed_and_has_a_corpus() -> None:
    """The campaign knows all of them, and so does cargo."""
    assert set(PYTHON) == set(TARGETS)
    folders = {folder.name for folder in (CRATE / "corpus").iterdir()}
    assert folders == {*PYTHON, *RUST}
    manifest = (CRATE / "Cargo.toml").read_text(encoding="utf-8")
    smoke = (CRATE / "tests/smoke.rs").read_text(encoding="utf-8")
    for target in RUST:
        assert f'name = "{target}"\n' in manifest
        assert f"    {target} " in smoke
