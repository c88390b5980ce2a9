"""Time limits for slow clients, which uvicorn lacks: their connections are closed."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class TimedProtocol(H11Protocol):
    """HTTP/1.1 with a time limit wherever the server waits for a client to send.

    It runs while the head of a request is not complete, from the connection's first moment on, and
    while a body is not complete whose answer is sent already. In between, the application reads the
    body with its own limit, and uvicorn closes idle connections. Bytes that trickle in do not
    extend the limit.
    """

    read_timeout = 30.0
    """Seconds."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Check whether the data completes a request."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, or for the rest of this one."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.transport.is_closing() or not self._waits():
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(self.read_timeout, self._too_late)

    def _waits(self) -> bool:
        answered = self.cycle is None or self.cycle.response_complete
        return answered and self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_late(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        # Only a client that began a request waits for an answer to it.
        if self.conn.our_state is h11.IDLE and self.conn.trailing_data[0]:
            self.transport.write(_TOO_SLOW)
        self.transport.close()


def timed_protocol(read_timeout: float) -> type[TimedProtocol]:
    """Return the protocol with another limit, as a class for uvicorn."""
    return type("TimedProtocol", (TimedProtocol,), {"read_timeout": read_timeout})
