"""The local server of `ffwd play`: a page and its requests, for this machine and this address only.

The address has a random token. Requests need the token, this server's `Host` and, if the browser
sends one, its `Origin`, so no other page can reach it, by a name that resolves here neither.
"""

from __future__ import annotations

import hmac
import json
import secrets
import sys
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ffwd.play.page import page, policy
from ffwd.play.session import Session

MAX_BODY = 1 << 26
"""The most bytes of a request: JSON escapes a character of a grammar with up to six."""
MAX_REQUESTS = 16
"""The most requests at a time."""
_IDLE_SECONDS = 60


class PlayServer(ThreadingHTTPServer):
    """Serve the page of a session on a loopback address.

    Args:
        session: Answers the requests.
        port: The port; 0 for a free one.

    Raises:
        OSError: The port is in use.

    """

    daemon_threads = True
    # The port of an older server that still listens is an error.
    allow_reuse_address = sys.platform != "win32"

    def __init__(self, session: Session, port: int = 0) -> None:
        self.session = session
        self.token = secrets.token_urlsafe(32)
        self.page = page().encode()
        self.slots = threading.BoundedSemaphore(MAX_REQUESTS)
        super().__init__(("127.0.0.1", port), _Handler)
        names = ("127.0.0.1", "localhost")
        self.hosts = frozenset(f"{name}:{self.server_port}" for name in names)

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report what is not a client that went away."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: PlayServer
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS
    # Headers and body are two writes, which Nagle's algorithm would hold back.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Send the page."""
        if self._refused("/"):
            return
        self._send(200, self.server.page, "text/html; charset=utf-8")

    def do_POST(self) -> None:
        """Answer a request."""
        length = self.headers.get("Content-Length", "")
        if self._refused("/ask"):
            return
        if self.headers.get_content_type() != "application/json":
            self._refuse(415, "the request must be application/json")
        elif not (length.isascii() and length.isdigit()):
            self._refuse(411, "the request must have a Content-Length")
        elif int(length) > MAX_BODY:
            self._refuse(413, f"the request must have at most {MAX_BODY:,} bytes")
        elif not self.server.slots.acquire(blocking=False):
            self._refuse(503, f"at most {MAX_REQUESTS} requests are answered at a time")
        else:
            try:
                self._answer(self.rfile.read(int(length)))
            finally:
                self.server.slots.release()

    def _answer(self, body: bytes) -> None:
        try:
            request = json.loads(body)
        except (ValueError, RecursionError) as error:
            self._refuse(400, f"the request is not JSON: {error}")
            return
        try:
            answer = self.server.session.answer(request)
        except Exception:  # a fault of ffwd, which the page reports as one
            traceback.print_exc()
            message = "ffwd failed; the terminal of `ffwd play` has the traceback"
            answer = {"error": {"type": "InternalError", "message": message}}
        self._send(200, json.dumps(answer).encode(), "application/json")

    def _refused(self, below: str) -> bool:
        """Refuse a request from elsewhere, or to another path."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if host not in self.server.hosts:
            self._refuse(403, "the Host is not this server")
        elif origin is not None and origin != f"http://{host}":
            self._refuse(403, "the Origin is not this server")
        elif not hmac.compare_digest(
            self.path.encode("utf-8", "replace"), f"/{self.server.token}{below}".encode()
        ):
            self._refuse(404, "there is nothing at this path")
        else:
            return False
        return True

    def _refuse(self, status: int, message: str) -> None:
        # What follows on the connection may be the body, which is not read.
        self.close_connection = True
        self._send(status, json.dumps({"error": {"message": message}}).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", policy(is_served=True))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Write nothing: the terminal has the address."""

    def version_string(self) -> str:
        """Return the name of the server, without versions."""
        return "ffwd"
