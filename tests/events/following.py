"""A consumer of events, and texts that are given to a matcher in pieces."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache

import ffwd

END = 256


@cache
def byte_vocabulary() -> ffwd.Vocabulary:
    return ffwd.Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[END])


@cache
def compiled(grammar: ffwd.Grammar) -> ffwd.CompiledGrammar:
    return ffwd.compile(grammar, byte_vocabulary())


@dataclass
class Seen:
    """A span as it has been reported."""

    kind: str | None
    name: str
    pointer: str | None
    start: int
    end: int | None = None
    text: str = ""


@dataclass
class Consumer:
    """Puts spans together again, and checks that the events of each are in order."""

    log: list[ffwd.Event] = field(default_factory=list)

    def take(self, events: Iterable[ffwd.Event]) -> None:
        for event in events:
            if event.action == "retracted":
                assert 0 < event.num_retracted <= len(self.log)
                del self.log[-event.num_retracted :]
            else:
                self.log.append(event)

    def spans(self) -> list[Seen]:
        spans: dict[int, Seen] = {}
        for event in self.log:
            if event.action == "begin":
                assert event.span == len(spans)
                assert event.text is None
                assert event.end == event.start
                spans[event.span] = Seen(event.kind, event.name, event.pointer, event.start)
                continue
            span = spans[event.span]
            assert span.end is None
            assert (event.kind, event.name, event.pointer) == (span.kind, span.name, span.pointer)
            if event.action == "end":
                assert event.text is None
                assert event.start == span.start
                span.end = event.end
            else:
                assert event.text is not None
                assert event.start == span.start + len(span.text.encode())
                assert event.end == event.start + len(event.text.encode())
                span.text += event.text
        return list(spans.values())

    def order(self) -> list[tuple[object, ...]]:
        """What begins and ends, in this order."""
        return [
            (event.action, event.span, event.start, event.end)
            for event in self.log
            if event.action != "delta"
        ]


def pieces(data: bytes, rng: random.Random | None) -> Iterator[bytes]:
    """The bytes one by one, or cut at random."""
    at = 0
    while at < len(data):
        size = 1 if rng is None else rng.randint(1, 9)
        yield data[at : at + size]
        at += size


def follow(
    grammar: ffwd.Grammar, text: str, rng: random.Random | None = None, *, once: bool = False
) -> Consumer:
    """The events of a whole text, asked for after each piece, or once at its end."""
    matcher = compiled(grammar).matcher()
    consumer = Consumer()
    for piece in pieces(text.encode(), rng):
        assert matcher.accept_tokens(list(piece)), text
        if not once:
            consumer.take(matcher.events())
    assert matcher.accept_token(END), text
    consumer.take(matcher.events())
    assert matcher.events() == []
    return consumer


def texts(consumer: Consumer, kind: str) -> list[tuple[str, str]]:
    """Name and text of each span of a kind."""
    spans = [span for span in consumer.spans() if span.kind == kind]
    assert all(span.end is not None for span in spans)
    return [(span.name, span.text) for span in spans]
