"""The measurements, in one process, peers in turns.

Times are of the processor, so that what else the machine does counts less. No peer may use more
than one thread.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from ffwd.tokenizer import Bpe
from maskbench.speed.tokenizers.peers import PEERS


def timed(f: Callable[[], Any]) -> float:
    """Return seconds that one call takes."""
    start = time.process_time()
    f()
    return time.process_time() - start


@dataclass(frozen=True)
class Throughput:
    """Megabytes per second of one peer on one text: the medians over all rounds."""

    first_call: float
    later_call: float
    same_ids: bool


def throughput(
    file: Path, names: list[str], texts: dict[str, str], rounds: int
) -> dict[tuple[str, str], Throughput]:
    """Return the throughput by peer and text.

    Every round begins with new tokenizers, which have seen no text but a short one.
    """
    seconds: dict[tuple[str, str], tuple[list[float], list[float]]] = {}
    same: dict[tuple[str, str], bool] = {}
    for _ in range(rounds):
        for label, text in texts.items():
            encoders = {name: PEERS[name](file) for name in names}
            expected = encoders["ffwd"](text[:1000])
            for encode in encoders.values():
                encode("hello world")
            for name, encode in encoders.items():
                first, later = seconds.setdefault((name, label), ([], []))
                call = partial(encode, text)
                first.append(timed(call))
                later.append(timed(call))
                same[name, label] = list(encode(text[:1000])) == list(expected)
            expected = encoders["ffwd"](text)
            for name, encode in encoders.items():
                same[name, label] &= list(encode(text)) == list(expected)
    size = {label: len(text.encode()) / 1e6 for label, text in texts.items()}
    return {
        key: Throughput(size[key[1]] / median(first), size[key[1]] / median(later), same[key])
        for key, (first, later) in seconds.items()
    }


@dataclass(frozen=True)
class Incremental:
    """Costs of incremental encoding, in ns per byte unless stated otherwise."""

    encode: float
    append: float
    append_and_count: float
    """Byte by byte, counted after each."""
    prepend: float
    interval_prepare: float
    interval_us: float
    """Of counting 10,000 bytes."""
    encode_interval_us: float
    """Of encoding them."""
    short_us: float
    """Of encoding 2,000 bytes."""


def incremental(bpe: Bpe, text: str, seed: int = 0) -> Incremental:
    """`text`: at least 20,000 bytes that the tokenizer's normalizer keeps as they are."""
    data = text.encode()
    ns = 1e9 / len(data)
    plain = {"normalize": False}

    def append() -> None:
        encoder = bpe.append_encoder(**plain)
        encoder.push(data)
        encoder.count()

    def append_and_count() -> None:
        encoder = bpe.append_encoder(**plain)
        for at in range(len(data)):
            encoder.push(data[at : at + 1])
            encoder.count()

    def prepend() -> None:
        encoder = bpe.prepend_encoder(**plain)
        encoder.push(data)
        encoder.count()

    counter = bpe.interval_counter(data, **plain)
    generator = random.Random(seed)
    starts = [_boundary(data, generator.randrange(len(data) - 10_100)) for _ in range(500)]
    ranges = [(start, _boundary(data, start + 10_000)) for start in starts]
    pieces = [data[start:end] for start, end in ranges[:50]]
    short = text[:2000]
    return Incremental(
        encode=median(timed(lambda: bpe.encode(data)) for _ in range(3)) * ns,
        append=median(timed(append) for _ in range(3)) * ns,
        append_and_count=timed(append_and_count) * ns,
        prepend=timed(prepend) * ns,
        interval_prepare=timed(lambda: bpe.interval_counter(data, **plain)) * ns,
        interval_us=timed(lambda: [counter.count(*r) for r in ranges]) / len(ranges) * 1e6,
        encode_interval_us=timed(lambda: [bpe.encode(p) for p in pieces]) / len(pieces) * 1e6,
        short_us=median(timed(lambda: bpe.encode(short)) for _ in range(50)) * 1e6,
    )


def _boundary(data: bytes, at: int) -> int:
    """Return the next offset that is not within a character."""
    while at < len(data) and data[at] & 0xC0 == 0x80:
        at += 1
    return at


def growth(bpe: Bpe, small: str, large: str) -> dict[str, float]:
    """Return how many times longer the larger text takes, by operation."""

    def append(text: str) -> None:
        bpe.append_encoder(normalize=False).push(text)

    def prepend(text: str) -> None:
        bpe.prepend_encoder(normalize=False).push(text)

    operations: dict[str, Callable[[str], Any]] = {
        "encode": bpe.encode,
        "count": bpe.count,
        "append": append,
        "prepend": prepend,
        "interval": lambda text: bpe.interval_counter(text, normalize=False),
    }
    return {
        name: median(timed(partial(f, large)) for _ in range(3))
        / median(timed(partial(f, small)) for _ in range(3))
        for name, f in operations.items()
    }
