"""The twelve groups: what is timed, and with which answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from maskbench.serving.peers import Peer


class WrongAnswerError(Exception):
    """A peer gave another answer than the others; the message says which and to what."""


@dataclass(frozen=True)
class ServingSettings:
    """How much is done."""

    texts: dict[str, str]
    """By kind; each of at least `largest` characters."""
    streamed: int = 100_000
    """Tokens of the long stream."""
    batch: int = 64
    streams: int = 16
    threads: int = 4
    largest: int = 1_000_000


@dataclass(frozen=True)
class Figure:
    """One row: seconds of one turn by peer, and what makes a figure of them."""

    group: str
    what: str
    unit: str
    seconds: dict[str, list[float]]
    scale: float
    """What seconds are multiplied with; with `per_second`, what is divided by them."""
    per_second: bool = False

    def value(self, peer: str) -> float:
        """Return the peer's figure, of the median turn."""
        seconds = median(self.seconds[peer])
        return self.scale / seconds if self.per_second else self.scale * seconds

    def ratio(self, peer: str) -> float:
        """Return how many times as long as ffwd a peer takes: the median over the turns."""
        own = self.seconds["ffwd"]
        return median(b / a for a, b in zip(own, self.seconds[peer], strict=True))


Call = Callable[[Peer], Any]


def timed(
    peers: dict[str, Peer], call: Call, rounds: int, *, same: bool = True, what: str = ""
) -> dict[str, list[float]]:
    """Return seconds by peer: in turns, each of one call after an untimed one."""
    expected: Any = None
    for name, peer in peers.items():
        answer = call(peer)
        if same and expected is not None and answer != expected:
            raise WrongAnswerError(f"{name} answers otherwise than the others: {what}")
        expected = answer if expected is None else expected
    taken: dict[str, list[float]] = {name: [] for name in peers}
    names = list(peers)
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            start = time.perf_counter()
            call(peers[name])
            taken[name].append(time.perf_counter() - start)
    return taken


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Run `work(0)`, `work(1)`… each on a thread of its own, and give their answers."""
    answers: list[Any] = [None] * count
    failures: list[BaseException] = []
    barrier = threading.Barrier(count)

    def run(index: int) -> None:
        barrier.wait()
        try:
            answers[index] = work(index)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return answers


def measure(peers: dict[str, Peer], settings: ServingSettings, rounds: int) -> Iterator[Figure]:
    """Return all timed groups; memory is measured elsewhere, in separate processes."""
    yield from _encode(peers, settings, rounds)
    yield from _batches(peers, settings, rounds)
    yield from _concurrent(peers, settings, rounds)
    yield from _decode(peers, settings, rounds)
    yield from _streams(peers, settings, rounds)
    yield from _latencies(peers, settings, rounds)
    yield from _stops(peers, settings, rounds)
    yield from _threads(peers, settings, rounds)
    yield from _scaling(peers, settings, rounds)


def _pieces(text: str, length: int, count: int) -> list[str]:
    """Return `count` parts of a text, which start at different positions."""
    step = max(1, (len(text) - length) // max(1, count))
    return [text[at : at + length] for at in range(0, step * count, step)][:count]


def _encode(peers: dict[str, Peer], settings: ServingSettings, rounds: int) -> Iterator[Figure]:
    for kind, text in settings.texts.items():
        for length in (100, 2000, 50_000):
            pieces = _pieces(text, length, max(1, 100_000 // length))
            size = sum(len(piece.encode()) for piece in pieces)

            def call(peer: Peer, pieces: list[str] = pieces) -> Any:
                return [peer.encode(piece) for piece in pieces]

            what = f"{kind}, {length:,} characters"
            taken = timed(peers, call, rounds, what=what)
            yield Figure("encode", what, "MB/s", taken, size / 1e6, per_second=True)


def _mixed(settings: ServingSettings, length: int, count: int) -> list[str]:
    kinds = list(settings.texts.values())
    each = -(-count // len(kinds))
    pieces = [piece for text in kinds for piece in _pieces(text, length, each)]
    return pieces[:count]


def _batches(peers: dict[str, Peer], settings: ServingSettings, rounds: int) -> Iterator[Figure]:
    for length in (200, 5000):
        texts = _mixed(settings, length, settings.batch)
        what = f"{len(texts)} texts of {length:,} characters"

        def call(peer: Peer, texts: list[str] = texts) -> Any:
            return peer.encode_batch(texts, settings.threads)

        taken = timed(peers, call, rounds, what=what)
        yield Figure("batch", what, "texts/s", taken, len(texts), per_second=True)


def _concurrent(peers: dict[str, Peer], settings: ServingSettings, rounds: int) -> Iterator[Figure]:
    texts = _mixed(settings, 1000, settings.batch)
    share = -(-len(texts) // settings.threads)

    def call(peer: Peer) -> Any:
        parts = in_threads(
            settings.threads,
            lambda index: [peer.encode(t) for t in texts[index * share : (index + 1) * share]],
        )
        return [ids for part in parts for ids in part]

    what = f"{settings.threads} threads, {len(texts)} requests of 1,000 characters"
    taken = timed(peers, call, rounds, what=what)
    yield Figure("concurrent", what, "requests/s", taken, len(texts), per_second=True)


def _ids(peers: dict[str, Peer], settings: ServingSettings, count: int) -> list[int]:
    """Return ids of a text that all kinds take turns in."""
    pieces = _mixed(settings, 4000, 600)
    ids: list[int] = []
    encode = peers["ffwd"].encode
    while len(ids) < count:
        for piece in pieces:
            ids += encode(piece)
            if len(ids) >= count:
                break
    return ids[:count]


def _decode(peers: dict[str, Peer], settings: ServingSettings, rounds: int) -> Iterator[Figure]:
    for count in (100, 10_000):
        ids = peers["ffwd"].encode("\n".join(_mixed(settings, 4000, 30)))[:count]
        calls = max(1, 10_000 // count)

        def call(peer: Peer, ids: list[int] = ids, calls: int = calls) -> Any:
            return [peer.decode(ids) for _ in range(calls)]

        what = f"{len(ids):,} tokens"
        taken = timed(peers, call, rounds, what=what)
        yield Figure("decode", what, "ns/token", taken, 1e9 / (calls * len(ids)))


def _streams(peers: dict[str, Peer], settings: ServingSettings, rounds: int) -> Iterator[Figure]:
    ids = peers["ffwd"].encode("\n".join(_mixed(settings, 4000, 3 * settings.streamed // 1000)))
    ids = ids[: settings.streamed]
    what = f"{len(ids):,} tokens"
    taken = timed(peers, lambda peer: _whole(peer.stream(ids)), rounds, what=what)
    yield Figure("stream", what, "ns/token", taken, 1e9 / len(ids))

    each = max(1, len(ids) // settings.streams)

    def together(peer: Peer) -> Any:
        shares = [ids[n * each : (n + 1) * each] for n in range(settings.streams)]
        per_thread = -(-settings.streams // settings.threads)

        def work(index: int) -> list[str]:
            own = shares[index * per_thread : (index + 1) * per_thread]
            return [_whole(peer.stream(share)) for share in own]

        return [text for texts in in_threads(settings.threads, work) for text in texts]

    what = f"{settings.streams} streams on {settings.threads} threads"
    taken = timed(peers, together, rounds, same=False, what=what)
    yield Figure("concurrent streams", what, "ns/token", taken, 1e9 / (each * settings.streams))


def _whole(text: str) -> str:
    """Return the part that all libraries agree on: only some report a truncated character."""
    return text.rstrip("\ufffd")


def _latencies(peers: dict[str, Peer], settings: ServingSettings, rounds: int) -> Iterator[Figure]:
    texts = _mixed(settings, 1000, 200)
    ids = _ids(peers, settings, 20_000)
    encoded: dict[str, list[list[float]]] = {name: [] for name in peers}
    stepped: dict[str, list[list[float]]] = {name: [] for name in peers}
    clock = time.perf_counter
    for _ in range(rounds):
        for name, peer in peers.items():
            taken = []
            for text in texts:
                start = clock()
                peer.encode(text)
                taken.append(clock() - start)
            encoded[name].append(taken)
            step = peer.steps()
            taken = []
            for token_id in ids:
                start = clock()
                step(token_id)
                taken.append(clock() - start)
            stepped[name].append(taken)
    for what, turns, unit, scale in (
        ("encode 1,000 characters", encoded, "µs", 1e6),
        ("a token of a stream", stepped, "ns", 1e9),
    ):
        for percentile in (50, 99, 99.9):
            seconds = {
                name: [float(np.percentile(taken, percentile)) for taken in of_peer]
                for name, of_peer in turns.items()
            }
            yield Figure("latency", f"{what}, p{percentile}", unit, seconds, scale)


def _stops(peers: dict[str, Peer], settings: ServingSettings, rounds: int) -> Iterator[Figure]:
    text = "\n".join(_mixed(settings, 4000, 60))
    ids = peers["ffwd"].encode(text)[: max(100, settings.streamed // 5)]
    stops = ["</s>", "\n\nHuman:", "<|stop|>", "### Instruction:", "\x00", "END OF ANSWER"]
    ids += peers["ffwd"].encode(" and here it is: END OF ANSWER and more")
    what = f"{len(stops)} texts, {len(ids):,} tokens"
    taken = timed(peers, lambda peer: peer.stream_until(ids, stops), rounds, what=what)
    yield Figure("stop sequences", what, "ns/token", taken, 1e9 / len(ids))


def _threads(peers: dict[str, Peer], settings: ServingSettings, rounds: int) -> Iterator[Figure]:
    text = next(iter(settings.texts.values()))[:200_000]
    ids = peers["ffwd"].encode(text)
    size = len(text.encode())
    for count in sorted({1, 2, settings.threads}):

        def encode(peer: Peer, count: int = count) -> Any:
            return in_threads(count, lambda _: peer.encode(text))

        def decode(peer: Peer, count: int = count) -> Any:
            return in_threads(count, lambda _: peer.decode(ids))

        what = f"{count} thread{'s' if count > 1 else ''}, {size / 1e3:,.0f} kB each"
        taken = timed(peers, encode, rounds, what=what)
        yield Figure(
            "multithreaded encode", what, "MB/s", taken, count * size / 1e6, per_second=True
        )
        what = f"{count} thread{'s' if count > 1 else ''}, {len(ids):,} tokens each"
        taken = timed(peers, decode, rounds, what=what)
        yield Figure("multithreaded decode", what, "Mtokens/s", taken, count * len(ids) / 1e6, True)


def _scaling(peers: dict[str, Peer], settings: ServingSettings, rounds: int) -> Iterator[Figure]:
    text = next(iter(settings.texts.values()))
    length = 1000
    while length <= min(settings.largest, len(text)):
        piece = text[:length]
        what = f"{length:,} characters"

        def call(peer: Peer, piece: str = piece) -> Any:
            return peer.encode(piece)

        taken = timed(peers, call, rounds, what=what)
        yield Figure("scaling", what, "ns/character", taken, 1e9 / length)
        length *= 10
