"""The ASGI application: routes, and one request from its body to its last byte."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Executor
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeAlias, TypeVar

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

import ffwd
from ffwd.adapters.server.answers import DONE, Envelope, encoded, event
from ffwd.adapters.server.cors import cors
from ffwd.adapters.server.errors import ApiError, internal, late, overloaded, stopping
from ffwd.adapters.server.keys import Account, Keys, Use
from ffwd.adapters.server.lanes import heavy_lane, quick_lane
from ffwd.adapters.server.loading import LoadedModel
from ffwd.adapters.server.metrics import ServerMetrics
from ffwd.adapters.server.options import ServerOptions
from ffwd.adapters.server.preparing import EFFORTS, Effort, Preparer, Rendered, TooMuchEffort
from ffwd.adapters.server.protocol import (
    AnyRequest,
    DetokenizeRequest,
    Request,
    TokenizeRequest,
    read_chat,
    read_completion,
    read_detokenize,
    read_json,
    read_tokenize,
)
from ffwd.adapters.server.responses import ResponseEnvelope, read_responses
from ffwd.adapters.server.scheduler import Scheduler
from ffwd.adapters.server.streams import Stream
from ffwd.adapters.server.texts import Text, num_open
from ffwd.adapters.server.tokens import detokenize, tokenize
from ffwd.adapters.server.weighing import QUICK_BYTES, QUICK_VALUES, check_size
from ffwd.adapters.shared.priority import NICER_IN_PYTHON
from ffwd.adapters.shared.warming import Warming

_log = logging.getLogger("ffwd.server")

_JSON = [(b"content-type", b"application/json")]
_EVENTS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    # Proxies hold events back otherwise.
    (b"x-accel-buffering", b"no"),
]

_T = TypeVar("_T")
_R = TypeVar("_R", bound=AnyRequest)

Read: TypeAlias = Callable[[dict[str, Any]], Request]
Render: TypeAlias = Callable[[Any], Rendered]


class Server:
    """The shared state of the routes.

    Args:
        loaded: The model.
        options: Limits.

    """

    def __init__(self, loaded: LoadedModel, options: ServerOptions) -> None:
        self.loaded = loaded
        self.options = options
        self.metrics = ServerMetrics()
        self.preparer = Preparer(loaded, options, self.metrics.grammars_asked)
        self.scheduler = Scheduler(
            loaded.slots,
            vocab_size=loaded.vocabulary.vocab_size,
            max_cached_tokens=loaded.max_cached_tokens,
            options=options,
            metrics=self.metrics,
        )
        # Quick work never waits for heavy work, and the needs of every request never wait for
        # grammars.
        self.rendering = quick_lane("render", 2)
        self.heavy_rendering = heavy_lane("render", nicer=NICER_IN_PYTHON)
        # The right lane of a grammar is found by trying: each lane passes on what takes too long.
        self.compiling: dict[Effort, Executor] = {
            "least": quick_lane("compile", options.compile_threads),
            "small": heavy_lane("compile-small"),
            "any": heavy_lane("compile"),
        }
        self._lanes = (self.rendering, self.heavy_rendering, *self.compiling.values())
        self.warming = (
            None
            if options.warm is None
            else Warming(
                options.warm,
                read=self.preparer.named,
                build=self.preparer.warm,
                logger=_log,
            )
        )
        self.keys = Keys(options.api_key, options.api_keys)
        self.num_open = 0
        self.stopping = False
        cache = self.preparer.cache
        self.metrics.watch(self.metrics.preparing, lambda: self.num_open)
        self.metrics.watch(self.metrics.held, num_open)
        self.metrics.watch(self.metrics.grammar_bytes, lambda: cache.stats().memory_bytes)
        self.metrics.watch(self.metrics.grammars, lambda: cache.stats().grammars)

    def start(self) -> None:
        """Begin to work."""
        self.scheduler.start()
        if self.warming is not None:
            self.warming.start()

    def stop(self) -> None:
        """End all threads; what is in progress ends with an error."""
        self.stopping = True
        if self.warming is not None:
            self.warming.stop()
        self.scheduler.stop()
        for lane in self._lanes:
            lane.shutdown(wait=False, cancel_futures=True)
        self.preparer.cache.close()

    def account(self, scope: Scope) -> Account:
        """Return the account of a request's key; raise an `ApiError` if it has none."""
        return self.keys.account(dict(scope["headers"]).get(b"authorization", b""))

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Count a request as open.

        Raises:
            ApiError: The server stops, or as many are open as it takes.

        """
        if self.stopping:
            raise stopping()
        if self.num_open >= self.options.max_queue + self.options.max_batch:
            raise overloaded(
                f"{self.num_open} requests are open, and this server takes no more at a time"
            )
        self.num_open += 1
        try:
            yield
        finally:
            self.num_open -= 1

    async def read(self, read: Callable[[dict[str, Any]], _R], body: bytes) -> tuple[_R, bool]:
        """Return the request in a body, and whether its prompt is heavy work.

        Raises:
            ApiError: It is none, asks for another model, or is larger than this server takes.

        """

        def work() -> tuple[_R, int]:
            request = read(read_json(body))
            self.check_model(request.model)
            with request.errors():
                return request, check_size(request, self.options.max_prompt_values)

        if len(body) <= QUICK_BYTES:
            request, size = work()
            return request, size > QUICK_VALUES
        request, _ = await _run_in(self.heavy_rendering, work)
        return request, True

    def check_model(self, name: str | None) -> None:
        """Raise an `ApiError` for the name of another model; `None` is no name."""
        if name not in (None, self.loaded.name):
            raise ApiError(
                404,
                f"there is no model {name!r} here, only {self.loaded.name!r}",
                param="model",
                code="model_not_found",
            )

    async def render(self, render: Callable[[_R], _T], request: _R, *, heavy: bool) -> _T:
        """Return what a function such as `Preparer.chat` makes of a request."""
        lane = self.heavy_rendering if heavy else self.rendering
        return await _run_in(lane, lambda: render(request))

    async def texts(self, rendered: Rendered, stream: Stream, deadline: float) -> list[Text]:
        """Return the sequences of a request; see `Preparer.texts`."""

        def prepare(effort: Effort) -> Callable[[], list[Text]]:
            return lambda: self.preparer.texts(rendered, stream, deadline=deadline, effort=effort)

        least = self.preparer.effort(rendered)
        quick = least == "least" and self.preparer.is_kept(rendered)
        for effort in EFFORTS[EFFORTS.index(least) : -1]:
            lane = self.rendering if quick else self.compiling[effort]
            quick = False
            with suppress(TooMuchEffort):
                return await _run_in(lane, prepare(effort))
        return await _run_in(self.compiling["any"], prepare("any"))


async def _run_in(lane: Executor, work: Callable[[], _T]) -> _T:
    return await asyncio.get_running_loop().run_in_executor(lane, work)


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
        reply = _Reply(send, self._server.options.write_timeout)
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

    async def _guarded(self, scope: Scope, receive: Receive, reply: "_Reply", began: float) -> str:
        server = self._server
        try:
            account = server.account(scope)
            with server.opened(), Use(account) as use:
                return await self._work(scope, receive, reply, began, use)
        except ApiError as error:
            return await reply.error(error)
        except _ClientTooSlow:
            return "cancelled"
        # After any error the client gets a response, and the server continues.
        except Exception as error:
            _log.exception("a request failed")
            return await reply.error(internal(error))

    async def _work(
        self, scope: Scope, receive: Receive, reply: "_Reply", began: float, use: Use
    ) -> str:
        body = await _body(scope, receive, self._server.options)
        if body is None:
            return "cancelled"
        work = asyncio.ensure_future(self._answer(body, reply, began, use))
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                return "cancelled"
            return work.result()
        finally:
            for task in (work, gone):
                task.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)

    async def _answer(self, body: bytes, reply: "_Reply", began: float, use: Use) -> str:
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
        self, request: Request, texts: list[Text], stream: Stream, reply: "_Reply", began: float
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
        self, request: Request, texts: list[Text], stream: Stream, reply: "_Reply", began: float
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


class _ClientTooSlow(Exception):  # noqa: N818 - the client's fault, and nobody's error
    """The client does not read its response."""


_LATE = "late"


def _cancel_late(task: "asyncio.Task[Any] | None") -> None:
    if task is not None:
        task.cancel(_LATE)


class _Reply:
    """An answer being sent; a client that reads nothing for too long is dropped."""

    def __init__(self, send: Send, timeout: float) -> None:
        self._send = send
        self._timeout = timeout
        self.begun = False
        self._ended = False

    async def begin(self) -> None:
        self.begun = True
        await self._limited({"type": "http.response.start", "status": 200, "headers": _EVENTS})

    async def more(self, data: bytes, *, last: bool = False) -> None:
        self._ended = self._ended or last
        await self._limited({"type": "http.response.body", "body": data, "more_body": not last})

    async def whole(
        self, status: int, data: bytes, headers: list[tuple[bytes, bytes]] | None = None
    ) -> None:
        self.begun = True
        length = (b"content-length", str(len(data)).encode())
        await self._limited(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [*_JSON, length, *(headers or [])],
            }
        )
        await self.more(data, last=True)

    async def error(self, error: ApiError) -> str:
        if self._ended:
            return str(error.status)
        if self.begun:
            await self.more(event(error.body()) + DONE, last=True)
            return str(error.status)
        headers = [(name.encode(), value.encode()) for name, value in error.headers.items()]
        await self.whole(error.status, encoded(error.body()), headers)
        return str(error.status)

    async def _limited(self, message: dict[str, Any]) -> None:
        """Send, or raise `_ClientTooSlow` if the client's buffer is full for too long."""
        task = asyncio.current_task()
        timer = asyncio.get_running_loop().call_later(
            self._timeout, lambda: task is not None and task.cancel(_SLOW)
        )
        try:
            await self._send(message)
        except asyncio.CancelledError as error:
            if error.args == (_SLOW,):
                raise _ClientTooSlow from None
            raise
        finally:
            timer.cancel()


_SLOW = "slow"


async def _body(scope: Scope, receive: Receive, options: ServerOptions) -> bytes | None:
    """Return the request's body; None if the client is gone."""
    limit = options.max_body_bytes
    too_large = ApiError(
        413,
        f"the body has more than {limit} bytes, which this server does not read",
        code="request_too_large",
    )
    stated = dict(scope["headers"]).get(b"content-length", b"0")
    if stated.isdigit() and int(stated) > limit:
        raise too_large
    data = bytearray()
    until = time.monotonic() + options.read_timeout
    while True:
        try:
            message = await asyncio.wait_for(receive(), max(until - time.monotonic(), 0.001))
        except asyncio.TimeoutError:
            raise ApiError(
                408,
                f"the body did not come within {options.read_timeout:g} seconds",
                code="request_timeout",
            ) from None
        if message["type"] == "http.disconnect":
            return None
        data += message.get("body", b"")
        if len(data) > limit:
            raise too_large
        if not message.get("more_body", False):
            return bytes(data)


async def _gone(receive: Receive) -> None:
    """Return when the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def create_app(loaded: LoadedModel, options: ServerOptions | None = None) -> Starlette:
    """Return the application for a model; its lifespan runs the model's thread.

    Args:
        loaded: The model. An application has it for itself.
        options: Limits.

    """
    server = Server(loaded, options or ServerOptions())
    chat = Endpoint(
        server,
        "/v1/chat/completions",
        read_chat,
        server.preparer.chat,
    )
    completions = Endpoint(
        server,
        "/v1/completions",
        read_completion,
        server.preparer.completion,
    )
    responses = Endpoint(
        server,
        "/v1/responses",
        read_responses,
        server.preparer.chat,
        ResponseEnvelope,
    )

    def plain(
        handler: Callable[[HttpRequest], Awaitable[Response]],
    ) -> Callable[[HttpRequest], Awaitable[Response]]:
        async def handle(request: HttpRequest) -> Response:
            try:
                return await handler(request)
            except ApiError as error:
                return _json(error.body(), error.status, error.headers)
            except Exception as error:
                _log.exception("a request failed")
                return _json(internal(error).body(), 500)

        return handle

    async def models(request: HttpRequest) -> Response:
        server.account(request.scope)
        return _json({"object": "list", "data": [_model(loaded)]})

    async def model(request: HttpRequest) -> Response:
        server.account(request.scope)
        server.check_model(request.path_params["name"])
        return _json(_model(loaded))

    async def version(request: HttpRequest) -> Response:
        server.account(request.scope)
        return _json({"version": ffwd.__version__})

    def without_model(
        read: Callable[[dict[str, Any]], _R], answer: Callable[[_R], dict[str, Any]]
    ) -> Callable[[HttpRequest], Awaitable[Response]]:
        """Return a route whose answer takes no step of the model."""

        async def handle(request: HttpRequest) -> Response:
            account = server.account(request.scope)
            with server.opened(), Use(account):
                body = await _body(request.scope, request.receive, server.options)
                if body is None:
                    return Response(status_code=204)
                asked, heavy = await server.read(read, body)
                with asked.errors():
                    return _json(await server.render(answer, asked, heavy=heavy))

        return plain(handle)

    def tokens_of(request: TokenizeRequest) -> dict[str, Any]:
        return tokenize(loaded, server.preparer, request)

    def text_of(request: DetokenizeRequest) -> dict[str, Any]:
        return detokenize(loaded, request)

    async def health(request: HttpRequest) -> Response:
        good = server.scheduler.alive and not server.stopping
        return _json({"status": "ok" if good else "stopping"}, 200 if good else 503)

    async def metrics(request: HttpRequest) -> Response:
        if server.options.protect_metrics:
            server.account(request.scope)
        return Response(server.metrics.text(), media_type=CONTENT_TYPE_LATEST)

    async def not_found(request: HttpRequest, error: Exception) -> Response:
        return _json(
            ApiError(
                404, f"there is no {request.method} {request.url.path}", code="not_found"
            ).body(),
            404,
        )

    async def not_allowed(request: HttpRequest, error: Exception) -> Response:
        return _json(
            ApiError(
                405,
                f"{request.url.path} does not take {request.method}",
                code="method_not_allowed",
            ).body(),
            405,
        )

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        server.start()
        try:
            yield
        finally:
            # Joining the model's thread may take a forward pass.
            await asyncio.get_running_loop().run_in_executor(None, server.stop)

    app = Starlette(
        routes=[
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/completions", completions, methods=["POST"]),
            Route("/v1/responses", responses, methods=["POST"]),
            Route("/v1/models", plain(models)),
            Route("/v1/models/{name:path}", plain(model)),
            Route("/tokenize", without_model(read_tokenize, tokens_of), methods=["POST"]),
            Route("/detokenize", without_model(read_detokenize, text_of), methods=["POST"]),
            Route("/version", plain(version)),
            Route("/health", health),
            Route("/metrics", plain(metrics)),
        ],
        middleware=cors(server.options.cors_origins),
        lifespan=lifespan,
        exception_handlers={404: not_found, 405: not_allowed},
    )
    app.state.server = server
    return app


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    content = encoded(value)
    return Response(content, status, headers, media_type="application/json")


def _model(loaded: LoadedModel) -> dict[str, Any]:
    return {
        "id": loaded.name,
        "object": "model",
        "created": loaded.created,
        "owned_by": "ffwd",
        "max_model_len": loaded.max_model_len,
    }
