"""The server as a process: uvicorn around the application."""

import asyncio
import gc
import math
import socket
import sys
import time

import uvicorn
from starlette.applications import Starlette

from ffwd.adapters.server.app import create_app
from ffwd.adapters.server.connections import timed_protocol
from ffwd.adapters.server.loading import LoadedModel
from ffwd.adapters.server.options import ServerOptions

_SWITCH_SECONDS = 0.0005
"""After which a thread that computes in Python makes room for another one. A forward pass asks for
Python's lock hundreds of times, and would wait 5 ms each time where a long prompt is rendered."""
_POLL = 0.05


class DrainingServer(uvicorn.Server):
    """A server that still answers while it shuts down: `/health` and new requests with 503.

    uvicorn's own accepts no connections then, so no client could find out.

    Args:
        app: From `create_app`.
        options: Limits.
        host: The address to listen on.
        port: The port to listen on; 0 for a free one.
        log_level: Of uvicorn.
    """

    def __init__(
        self,
        app: Starlette,
        options: ServerOptions,
        *,
        host: str = "127.0.0.1",
        port: int = 8000,
        log_level: str = "info",
    ) -> None:
        self._served = app.state.server
        self._grace = options.shutdown_grace
        super().__init__(
            uvicorn.Config(
                app,
                host=host,
                port=port,
                log_level=log_level,
                access_log=False,
                http=timed_protocol(options.read_timeout),
                ws="none",
                # Beyond what the queue holds there must be room for the answers that say so.
                limit_concurrency=4 * (options.max_queue + options.max_batch) + 64,
                h11_max_incomplete_event_size=64 * 1024,
            )
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let requests in progress finish, then stop everything else."""
        self._served.stopping = True
        until = time.monotonic() + self._grace
        while self._served.num_open and time.monotonic() < until and not self.force_exit:
            await asyncio.sleep(_POLL)
        # The same grace period, not an additional one.
        self.config.timeout_graceful_shutdown = math.ceil(max(until - time.monotonic(), 0))
        await super().shutdown(sockets)


def run(
    loaded: LoadedModel,
    options: ServerOptions | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    log_level: str = "info",
) -> None:
    """Serve until the process receives SIGINT or SIGTERM.

    Running requests then have `ServerOptions.shutdown_grace` seconds to finish.

    Args:
        loaded: The model.
        options: Limits.
        host: The address to listen on.
        port: The port to listen on; 0 for a free one.
        log_level: Of uvicorn.
    """
    options = options or ServerOptions()
    sys.setswitchinterval(_SWITCH_SECONDS)
    app = create_app(loaded, options)
    # A full collection visits all imported and loaded objects, and stops all threads for 0.2
    # seconds. These objects stay, so they are frozen.
    gc.collect()
    gc.freeze()
    DrainingServer(app, options, host=host, port=port, log_level=log_level).run()
