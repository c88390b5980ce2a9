"""An answer during generation: pieces of text, and its certain events."""

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeVar

from transformers.generation.streamers import BaseStreamer

from ffwd import Event
from ffwd.adapters.transformers.answer import Reading
from ffwd.adapters.transformers.generation import Generation

T = TypeVar("T")


@dataclass(frozen=True)
class Chunk:
    """The part of an answer that a few tokens added.

    Attributes:
        text: Of the answer's text; whole characters, may be empty.
        reasoning: Of what comes before it, likewise.
        events: What has become certain of the text: which JSON value begins or ends at which
            pointer, and so on, as `Matcher.events` has it.
        tokens: The ids.

    """

    text: str
    reasoning: str
    events: tuple[Event, ...]
    tokens: tuple[int, ...]


class Stream(Generic[T]):
    """The chunks of an answer, for `for` and for `async for`; `result` is the whole of it.

        with ffwd.stream(model, tokenizer, messages, Person) as stream:
            for chunk in stream:
                print(chunk.text, end="", flush=True)
        person = stream.result().value

    The model writes on a thread of its own, whether or not chunks are taken. `close`, the end of
    the `with`, and letting go of the stream stop it.
    """

    def __init__(
        self,
        reading: Reading,
        answer: Callable[[BaseStreamer, Callable[[], bool]], Generation[T]],
    ) -> None:
        self._reading = reading
        self._items: queue.SimpleQueue[int | _End] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._end: _End | None = None
        items, stop = self._items, self._stop

        # Nothing here may hold a reference to the stream, so that dropping it is noticed.
        def write() -> None:
            try:
                items.put(_End(generation=answer(_Putting(items), stop.is_set)))
            except BaseException as error:  # it is raised where the chunks are taken
                items.put(_End(error=error))

        self._thread = threading.Thread(target=write, name="ffwd.stream", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"Stream(finished={self._end is not None})"

    def __iter__(self) -> Iterator[Chunk]:
        while (chunk := self._next()) is not None:
            yield chunk

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        try:
            while (chunk := await asyncio.to_thread(self._next)) is not None:
                yield chunk
        except asyncio.CancelledError:
            self._stop.set()
            raise

    def result(self) -> Generation[T]:
        """Wait for the end, and return the whole answer.

        Raises:
            FfwdError: What went wrong while it was written.

        """
        while self._next() is not None:
            pass
        assert self._end is not None
        if self._end.error is not None:
            raise self._end.error
        made: Generation[T] = self._end.generation
        return made

    async def result_async(self) -> Generation[T]:
        """Await `result` without blocking the event loop."""
        return await asyncio.to_thread(self.result)

    def close(self) -> None:
        """Stop the model where it still writes, and wait until it has stopped."""
        self._stop.set()
        self._thread.join()

    def __enter__(self) -> "Stream[T]":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self._stop.set()

    def _next(self) -> Chunk | None:
        """Return the next chunk: all available tokens, and at least one."""
        if self._end is not None:
            return None
        tokens: list[int] = []
        item = self._items.get()
        while True:
            if isinstance(item, _End):
                self._end = item
                break
            tokens.append(item)
            try:
                item = self._items.get_nowait()
            except queue.Empty:
                break
        if self._end is not None and self._end.error is not None:
            raise self._end.error
        if not tokens and self._end is None:
            return None
        text, reasoning, events = self._reading.add(tokens, finish=self._end is not None)
        if not (text or reasoning or events or tokens):
            return None
        return Chunk(text, reasoning, tuple(events), tuple(tokens))


@dataclass(frozen=True)
class _End:
    generation: Any = None
    error: BaseException | None = None


class _Putting(BaseStreamer):
    """The input of a streamer, without the prompt, which comes first."""

    def __init__(self, items: "queue.SimpleQueue[int | _End]") -> None:
        self._items = items
        self._prompt = True

    def put(self, value: Any) -> None:
        if self._prompt:
            self._prompt = False
            return
        for token in value.flatten().tolist():
            self._items.put(token)

    def end(self) -> None:
        pass
