"""The two ends of a request: its body, and the answer as it is sent."""

import asyncio
import time
from typing import Any

from starlette.types import Receive, Scope, Send

from ffwd.adapters.server.answers import DONE, encoded, event
from ffwd.adapters.server.errors import ApiError
from ffwd.adapters.server.options import ServerOptions

_JSON = [(b"content-type", b"application/json")]
_EVENTS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    # Proxies hold events back otherwise.
    (b"x-accel-buffering", b"no"),
]
_SLOW = "slow"


class ClientTooSlow(Exception):  # noqa: N818 - the client's fault, and nobody's error
    """The client does not read its response."""


class Reply:
    """An answer being sent; a client that reads nothing for too long is dropped.

    Args:
        send: Of ASGI.
        timeout: How many seconds a client has to read what was sent.

    """

    def __init__(self, send: Send, timeout: float) -> None:
        self._send = send
        self._timeout = timeout
        self.begun = False
        self._ended = False

    async def begin(self) -> None:
        """Begin a stream of events."""
        self.begun = True
        await self._limited({"type": "http.response.start", "status": 200, "headers": _EVENTS})

    async def more(self, data: bytes, *, last: bool = False) -> None:
        """Send more of the body."""
        self._ended = self._ended or last
        await self._limited({"type": "http.response.body", "body": data, "more_body": not last})

    async def whole(
        self, status: int, data: bytes, headers: list[tuple[bytes, bytes]] | None = None
    ) -> None:
        """Send a whole answer."""
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
        """Send an error as far as that is possible, and return its status."""
        if self._ended:
            return str(error.status)
        if self.begun:
            await self.more(event(error.body()) + DONE, last=True)
            return str(error.status)
        headers = [(name.encode(), value.encode()) for name, value in error.headers.items()]
        await self.whole(error.status, encoded(error.body()), headers)
        return str(error.status)

    async def _limited(self, message: dict[str, Any]) -> None:
        """Send, or raise `ClientTooSlow` if the client's buffer is full for too long."""
        task = asyncio.current_task()
        timer = asyncio.get_running_loop().call_later(
            self._timeout, lambda: task is not None and task.cancel(_SLOW)
        )
        try:
            await self._send(message)
        except asyncio.CancelledError as error:
            if error.args == (_SLOW,):
                raise ClientTooSlow from None
            raise
        finally:
            timer.cancel()


async def read_body(scope: Scope, receive: Receive, options: ServerOptions) -> bytes | None:
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


async def gone(receive: Receive) -> None:
    """Return when the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
