"""From the threads that write answers to the task that sends one."""

import asyncio
import threading
from dataclasses import dataclass, field

from ffwd.adapters.server.deltas import Delta
from ffwd.adapters.server.errors import ApiError
from ffwd.adapters.server.logprobs import Scored


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """How a text ended, and what it took.

    Attributes:
        reason: OpenAI's `finish_reason`.
        tokens: How many were written, an end token included.
        forced: How many of them took no forward pass of their own.
        reasoning: How many of them were reasoning.
        log_masses: The log mass of each, if the request asks for them.

    """

    reason: str
    tokens: int
    forced: int
    reasoning: int
    log_masses: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class News:
    """The progress of one sequence."""

    index: int
    deltas: list[Delta]
    ending: Ending | ApiError | None = None
    tokens: list[Scored] = field(default_factory=list)
    """Of the content, if their log probabilities are asked for."""


class Stream:
    """The output of one request, until its client reads it.

    Writers never wait: the buffer holds at most an answer, and answers have a limit.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._news: list[News] = []
        self._there = asyncio.Event()
        self._signalled = False
        self._closed = False

    def push(self, news: News) -> None:
        """Add deltas, from any thread."""
        with self._lock:
            if self._closed:
                return
            self._news.append(news)
            if self._signalled:
                return
            self._signalled = True
        try:
            self._loop.call_soon_threadsafe(self._there.set)
        except RuntimeError:
            # The server is gone, and so is the reader.
            self.close()

    async def take(self) -> list[News]:
        """Return everything since the last call; waits until there is something."""
        await self._there.wait()
        with self._lock:
            news, self._news = self._news, []
            self._signalled = False
            self._there.clear()
        return news

    def close(self) -> None:
        """Close the stream when its client has left."""
        with self._lock:
            self._closed = True
            self._news.clear()
