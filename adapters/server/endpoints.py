"""One request for the model, from its body to its last byte."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, TypeAlias

from starlette.types import Receive, Scope, Send

from ffwd.adapters.server.answers import Envelope, encoded, event
from ffwd.adapters.server.errors import ApiError, internal, late
from ffwd.adapters.server.keys import Use
from ffwd.adapters.server.loading import LoadedModel
from ffwd.adapters.server.preparing import Rendered
from ffwd.adapters.server.protocol import Request
from ffwd.adapters.server.replies import ClientTooSlow, Reply, gone, read_body
from ffwd.adapters.server.state import Server
from ffwd.adapters.server.streams import Stream
from ffwd.adapters.server.texts import Text

_log = logging.getLogger("ffwd.server")

_LATE = "late"

Read: TypeAlias = Callable[[dict[str, Any]], Request]
Render: TypeAlias = Callable[[Any], Rendered]


class Endpoint:
    """One route for requests that are answered by the model."""

    def __init__(
        self,
        server: Server,
        name: str,
        read: Read,
        render: Render,
        envelope: Callable[[LoadedModel, Any, int], Any] = Envelope,
    ) -> None:
        self._server = server
        self._name = name
        self._read = read
        self._render = render
        self._envelope = envelope

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; stop the work as soon as the client is gone."""
        reply = Reply(send, self._server.options.write_timeout)
        began = time.monotonic()
        status = "cancelled"
        try:
            status = await self._guarded(scope, receive, reply, began)
        finally:
            metrics = self._server.metrics
            metrics.requests.labels(self._name, status).inc()
            metrics.request_seconds.observe(time.monotonic() - began)
            if status == "cancelled":
                metrics.cancelled.inc()

    async def _guarded(self, scope: Scope, receive: Receive, reply: Reply, began: float) -> str:
        server = self._server
        try:
            account = server.account(scope)
            with server.opened(), Use(account) as use:
                return await self._work(scope, receive, reply, began, use)
        except ApiError as error:
            return await reply.error(error)
        except ClientTooSlow:
            return "cancelled"
        # After any error the client gets a response, and the server continues.
        except Exception as error:
            _log.exception("a request failed")
            return await reply.error(internal(error))

    async def _work(
        self, scope: Scope, receive: Receive, reply: Reply, began: float, use: Use
    ) -> str:
        body = await read_body(scope, receive, self._server.options)
        if body is None:
            return "cancelled"
        work = asyncio.ensure_future(self._answer(body, reply, began, use))
        left = asyncio.ensure_future(gone(receive))
        try:
            await asyncio.wait({work, left}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                return "cancelled"
            return work.result()
        finally:
            for task in (work, left):
                task.cancel()
            await asyncio.gather(work, left, return_exceptions=True)

    async def _answer(self, body: bytes, reply: Reply, began: float, use: Use) -> str:
        server = self._server
        loop = asyncio.get_running_loop()
        deadline = began + server.options.deadline
        stream = Stream(loop)
        texts: list[Text] = []
        timer = loop.call_later(
            max(deadline - time.monotonic(), 0), _cancel_late, asyncio.current_task()
        )
        try:
            request, heavy = await server.read(self._read, body)
            began_here = time.perf_counter()
            with request.errors():
                rendered = await server.render(self._render, request, heavy=heavy)
                texts = await server.texts(rendered, stream, deadline)
                server.metrics.compile_seconds.observe(time.perf_counter() - began_here)
                num_prompt = _num_prompt(request, texts)
                use.reserve(
                    num_prompt + sum(text.max_tokens for text in texts),
                    lambda: num_prompt + sum(text.num_tokens for text in texts),
                )
            server.scheduler.submit(texts)
            # From here on the scheduler looks at the deadline.
            timer.cancel()
            sending = self._stream if request.stream else self._whole
            return await sending(request, texts, stream, reply, began)
        except asyncio.CancelledError as error:
            if error.args == (_LATE,):
                raise late(server.options.deadline) from None
            raise
        finally:
            timer.cancel()
            stream.close()
            server.scheduler.cancel(texts)
            use.close()

    async def _whole(
        self, request: Request, texts: list[Text], stream: Stream, reply: Reply, began: float
    ) -> str:
        envelope = self._envelope(self._server.loaded, request, _num_prompt(request, texts))
        choices = [envelope.choice() for _ in texts]
        first = True
        while any(choice.ending is None for choice in choices):
            for news in await stream.take():
                if isinstance(news.ending, ApiError):
                    raise news.ending
                choices[news.index].add(news.deltas, news.tokens)
                choices[news.index].ending = news.ending
            if first:
                self._server.metrics.first_seconds.observe(time.monotonic() - began)
                first = False
        await reply.whole(200, encoded(envelope.whole(choices)))
        return "200"

    async def _stream(
        self, request: Request, texts: list[Text], stream: Stream, reply: Reply, began: float
    ) -> str:
        envelope = self._envelope(self._server.loaded, request, _num_prompt(request, texts))
        endings: list[Any] = [None] * len(texts)
        while any(ending is None for ending in endings):
            parts: list[bytes] = []
            all_news = await stream.take()
            if not reply.begun:
                for news in all_news:
                    if isinstance(news.ending, ApiError):
                        # Nothing is sent yet, so the response can be an error with a status.
                        raise news.ending
                await reply.begin()
                self._server.metrics.first_seconds.observe(time.monotonic() - began)
                parts += [
                    event(chunk) for index in range(len(texts)) for chunk in envelope.first(index)
                ]
            for news in all_news:
                ending = news.ending
                if isinstance(ending, ApiError):
                    parts += [event(envelope.failed(ending)), envelope.done]
                    await reply.more(b"".join(parts), last=True)
                    return str(ending.status)
                parts += [
                    event(chunk)
                    for chunk in envelope.chunks(news.index, news.deltas, ending, news.tokens)
                ]
                endings[news.index] = ending
            if parts:
                await reply.more(b"".join(parts))
        tail = [event(chunk) for chunk in envelope.last(endings)]
        await reply.more(b"".join([*tail, envelope.done]), last=True)
        return "200"


def _num_prompt(request: Request, texts: list[Text]) -> int:
    """Return how many tokens the prompts have; several texts may share one."""
    return sum(text.num_prompt for text in texts[:: request.n or 1])


def _cancel_late(task: "asyncio.Task[Any] | None") -> None:
    if task is not None:
        task.cancel(_LATE)
