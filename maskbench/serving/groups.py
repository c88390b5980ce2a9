"""The twelve groups of measurements."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from maskbench.encoding import texts
from maskbench.serving.peers import Peer
from maskbench.serving.turns import Row, Turns, take_turns

Peers = Mapping[str, Peer]

STOPS = ["\n\nHuman:", "<|im_end|>", "\n\n### ", "</answer>"]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much is measured."""

    rounds: int
    threads: tuple[int, ...] = (1, 2, 4)
    lengths: tuple[int, ...] = (100, 1000, 10_000, 100_000)
    batches: tuple[int, ...] = (1, 8, 32, 128)
    tokens: int = 100_000
    """Of the longest stream."""
    streams: int = 64
    calls: int = 1000
    """Of which percentiles are taken."""

    @classmethod
    def quick(cls) -> Plan:
        """As little as shows that everything runs."""
        return cls(
            rounds=1,
            threads=(1, 2),
            lengths=(100, 1000),
            batches=(1, 4),
            tokens=500,
            streams=4,
            calls=20,
        )


class Material:
    """Prose, code and many languages, in pieces that no peer has seen before."""

    def __init__(self, size: int) -> None:
        whole = texts.builtin(size).values()
        parts = [[text[at : at + 1000] for at in range(0, len(text), 1000)] for text in whole]
        self.text = "".join(part for group in zip(*parts, strict=False) for part in group)
        self._at = 0

    def piece(self, length: int) -> str:
        """The next so many characters; from the beginning again after the end."""
        if self._at + length > len(self.text):
            self._at = 0
        self._at += length
        return self.text[self._at - length : self._at]

    def pieces(self, length: int, number: int) -> list[str]:
        """Several of them."""
        return [self.piece(length) for _ in range(number)]


def _rate(group: str, case: str, unit: str, amount: float, turns: Turns) -> Row:
    values = {name: amount / seconds for name, seconds in turns.medians().items()}
    return Row(
        group=group,
        case=case,
        unit=unit,
        values=values,
        more_is_better=True,
        other_answers=turns.other_answers(),
    )


def _cost(group: str, case: str, unit: str, scale: float, turns: Turns) -> Row:
    values = {name: scale * seconds for name, seconds in turns.medians().items()}
    return Row(
        group=group, case=case, unit=unit, values=values, other_answers=turns.other_answers()
    )


def _streamed(stream: Any, ids: list[int]) -> str:
    step, flush = stream
    parts = [step(token_id) for token_id in ids]
    return "".join(part for part in parts if part) + flush()


def _whole(peers: Peers, ids: list[int]) -> list[int]:
    """Ids up to the last that does not end within a character: not every peer's streams end."""
    decode = peers["ffwd"].decode
    while ids and decode(ids[-4:]).endswith("\ufffd"):
        ids = ids[:-1]
    return ids


def encode(peers: Peers, material: Material, plan: Plan) -> Iterator[Row]:
    """One text after the other, by length."""
    for length in plan.lengths:
        number = max(1, min(100, 100_000 // length))
        samples = [material.pieces(length, number) for _ in range(plan.rounds)]
        turns = take_turns(
            peers, plan.rounds, lambda peer, at, s=samples: [peer.encode(text) for text in s[at]]
        )
        yield _cost("encode", f"{length:,} characters", "µs", 1e6 / number, turns)


def batch(peers: Peers, material: Material, plan: Plan) -> Iterator[Row]:
    """Lists of texts of 1,000 characters, with the threads that a library takes by itself."""
    for number in plan.batches:
        samples = [material.pieces(1000, number) for _ in range(plan.rounds)]
        turns = take_turns(peers, plan.rounds, lambda peer, at, s=samples: peer.encode_batch(s[at]))
        yield _rate("batch", f"{number} texts", "texts/s", number, turns)


def _on_threads(threads: int, call: Callable[[Any], Any], arguments: list[Any]) -> list[Any]:
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(call, arguments))


def concurrent(peers: Peers, material: Material, plan: Plan) -> Iterator[Row]:
    """Requests of 1,000 characters at the same time, each on a thread of its own."""
    for threads in (4, 16):
        samples = [material.pieces(1000, 4 * threads) for _ in range(plan.rounds)]
        turns = take_turns(
            peers,
            plan.rounds,
            lambda peer, at, s=samples, n=threads: _on_threads(n, peer.encode, s[at]),
        )
        case = f"{threads} requests at a time"
        yield _rate("concurrent requests", case, "texts/s", 4 * threads, turns)


def decode(peers: Peers, material: Material, plan: Plan) -> Iterator[Row]:
    """Whole lists of ids, by length."""
    for length in plan.lengths:
        ids = list(peers["ffwd"].encode(material.piece(4 * length)))[:length]
        number = max(1, min(100, 20_000 // length))
        turns = take_turns(
            peers, plan.rounds, lambda peer, _, i=ids, n=number: [peer.decode(i) for _ in range(n)]
        )
        yield _cost("decode", f"{len(ids):,} tokens", "µs", 1e6 / number, turns)


def streaming(peers: Peers, material: Material, plan: Plan) -> Iterator[Row]:
    """One long stream, token by token."""
    text = material.piece(min(5 * plan.tokens, len(material.text)))
    ids = _whole(peers, list(peers["ffwd"].encode(text))[: plan.tokens])
    turns = take_turns(peers, plan.rounds, lambda peer, _: _streamed(peer.stream(), ids))
    yield _cost("streaming", f"{len(ids):,} tokens", "ns a token", 1e9 / len(ids), turns)


def latency(peers: Peers, material: Material, plan: Plan) -> Iterator[Row]:
    """Single calls: the half, the slowest hundredth, the slowest."""
    messages = material.pieces(1000, plan.calls)
    ids = list(peers["ffwd"].encode(material.piece(10 * plan.calls)))[: plan.calls]
    for what in ("encode", "step"):
        turns = Turns()
        calls: dict[str, Callable[[Any], Any]] = {
            name: peer.encode if what == "encode" else peer.stream()[0]
            for name, peer in peers.items()
        }
        arguments: list[Any] = messages if what == "encode" else ids
        for argument in arguments:
            for name, call in calls.items():
                begin = time.perf_counter()
                answer = call(argument)
                took = time.perf_counter() - begin
                turns.seconds.setdefault(name, []).append(took)
                turns.answers.setdefault(name, []).append(answer)
        if what == "step":
            # When a character comes that is not whole, differs; the text does not.
            joined = {name: ["".join(t or "" for t in g)] for name, g in turns.answers.items()}
            turns.answers = joined
        for share, label in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"), (1.0, "slowest")):
            values = {
                name: 1e6 * sorted(seconds)[min(len(seconds) - 1, int(share * len(seconds)))]
                for name, seconds in turns.seconds.items()
            }
            case = f"{'encode 1,000 characters' if what == 'encode' else 'one token'}, {label}"
            other = turns.other_answers()
            yield Row(group="latency", case=case, unit="µs", values=values, other_answers=other)


def concurrent_streaming(peers: Peers, material: Material, plan: Plan) -> Iterator[Row]:
    """Many streams that advance in turns, as a batch of requests does."""
    encode = peers["ffwd"].encode
    length = max(10, plan.tokens // plan.streams // 4)
    written = material.pieces(8 * length, plan.streams)
    batch = [_whole(peers, list(encode(text))[:length]) for text in written]

    def advance(peer: Peer, _: int) -> list[str]:
        streams = [peer.stream() for _ in batch]
        out: list[list[str]] = [[] for _ in batch]
        for at in range(length):
            for (step, _), ids, parts in zip(streams, batch, out, strict=True):
                if at < len(ids):
                    parts.append(step(ids[at]) or "")
        return ["".join(parts) + end() for (_, end), parts in zip(streams, out, strict=True)]

    turns = take_turns(peers, plan.rounds, advance)
    case = f"{plan.streams} streams of {length} tokens"
    tokens = sum(map(len, batch))
    yield _rate("concurrent streaming", case, "tokens/s", tokens, turns)


def stop_sequences(peers: Peers, material: Material, plan: Plan) -> Iterator[Row]:
    """Four stop strings, which never come or stand in the middle of the text."""
    text = material.piece(min(plan.tokens, len(material.text)))
    for stop in STOPS:
        text = text.replace(stop, "")
    middle = text[: len(text) // 2] + STOPS[0] + text[len(text) // 2 :]
    for case, written in (("none comes", text), ("one in the middle", middle)):
        ids = list(peers["ffwd"].encode(written))
        turns = take_turns(
            peers, plan.rounds, lambda peer, _, i=ids: _streamed(peer.stopping(STOPS), i)
        )
        yield _cost("stop sequences", case, "ns a token", 1e9 / len(ids), turns)


def threads_encode(peers: Peers, material: Material, plan: Plan) -> Iterator[Row]:
    """The same work on more and more threads."""
    samples = [material.pieces(5000, 40) for _ in range(plan.rounds)]
    size = sum(len(text.encode()) for text in samples[0]) / 1e6
    for threads in plan.threads:
        turns = take_turns(
            peers, plan.rounds, lambda peer, at, n=threads: _on_threads(n, peer.encode, samples[at])
        )
        yield _rate("encode on threads", f"{threads} threads", "MB/s", size, turns)


def threads_decode(peers: Peers, material: Material, plan: Plan) -> Iterator[Row]:
    """Likewise."""
    batch = [list(peers["ffwd"].encode(text)) for text in material.pieces(5000, 40)]
    tokens = sum(map(len, batch))
    for threads in plan.threads:
        turns = take_turns(
            peers, plan.rounds, lambda peer, _, n=threads: _on_threads(n, peer.decode, batch)
        )
        yield _rate("decode on threads", f"{threads} threads", "tokens/s", tokens, turns)


def scaling(peers: Peers, material: Material, plan: Plan) -> Iterator[Row]:
    """What a character costs as texts grow: a text without a space, and prose."""
    for length in plan.lengths:
        for case, text in (("prose", material.piece(length)), ("one word", "a" * length)):
            number = max(1, 2000 // length)
            turns = take_turns(
                peers,
                plan.rounds,
                lambda peer, _, t=text, n=number: [peer.encode(t) for _ in range(n)],
            )
            scale = 1e9 / length / number
            yield _cost("scaling", f"{case}, {length:,} characters", "ns a character", scale, turns)


GROUPS: dict[str, Callable[[Peers, Material, Plan], Iterator[Row]]] = {
    "encode": encode,
    "batch": batch,
    "concurrent requests": concurrent,
    "decode": decode,
    "streaming": streaming,
    "latency": latency,
    "concurrent streaming": concurrent_streaming,
    "stop sequences": stop_sequences,
    "encode on threads": threads_encode,
    "decode on threads": threads_decode,
    "scaling": scaling,
}
"""Eleven of them in this process; the twelfth, memory, takes a process for each peer."""
