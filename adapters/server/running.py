"""The server as a process: uvicorn around the application."""

import uvicorn

from ffwd.adapters.server.app import create_app
from ffwd.adapters.server.loading import LoadedModel
from ffwd.adapters.server.options import ServerOptions


def run(
    loaded: LoadedModel,
    options: ServerOptions | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    log_level: str = "info",
) -> None:
    """Serve until the process is told to stop (SIGINT, SIGTERM).

    What is in progress then has `ServerOptions.shutdown_grace` seconds to come to its end.

    Args:
        loaded: The model.
        options: Limits.
        host: Where to listen.
        port: Likewise; 0 for a free one.
        log_level: Of uvicorn.

    """
    options = options or ServerOptions()
    app = create_app(loaded, options)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level=log_level,
        access_log=False,
        timeout_graceful_shutdown=int(options.shutdown_grace),
        # Beyond what the queue holds there must be room for the answers that say so.
        limit_concurrency=4 * (options.max_queue + options.max_batch) + 64,
        h11_max_incomplete_event_size=64 * 1024,
    )
    uvicorn.Server(config).run()
