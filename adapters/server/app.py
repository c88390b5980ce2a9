"""The ASGI application: its routes."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

import ffwd
from ffwd.adapters.server.answers import encoded
from ffwd.adapters.server.cors import cors
from ffwd.adapters.server.endpoints import Endpoint
from ffwd.adapters.server.errors import ApiError, internal
from ffwd.adapters.server.keys import Use
from ffwd.adapters.server.loading import LoadedModel
from ffwd.adapters.server.openapi import description
from ffwd.adapters.server.options import ServerOptions
from ffwd.adapters.server.protocol import (
    AnyRequest,
    DetokenizeRequest,
    TokenizeRequest,
    read_chat,
    read_completion,
    read_detokenize,
    read_tokenize,
)
from ffwd.adapters.server.replies import read_body
from ffwd.adapters.server.responses import ResponseEnvelope, read_responses
from ffwd.adapters.server.state import Server
from ffwd.adapters.server.tokens import detokenize, tokenize

_log = logging.getLogger("ffwd.server")

_R = TypeVar("_R", bound=AnyRequest)


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

    async def openapi(request: HttpRequest) -> Response:
        server.account(request.scope)
        return _json(description())

    def without_model(
        read: Callable[[dict[str, Any]], _R], answer: Callable[[_R], dict[str, Any]]
    ) -> Callable[[HttpRequest], Awaitable[Response]]:
        """Return a route whose answer takes no step of the model."""

        async def handle(request: HttpRequest) -> Response:
            account = server.account(request.scope)
            with server.opened(), Use(account):
                body = await read_body(request.scope, request.receive, server.options)
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
            Route("/openapi.json", plain(openapi)),
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
