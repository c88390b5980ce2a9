"""Access for pages in browsers: Starlette's CORS middleware, with this server's headers."""

from collections.abc import Sequence

from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware


def cors(origins: Sequence[str]) -> list[Middleware]:
    """Return the middleware for pages of these origins; nothing for none."""
    if not origins:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST"],
            # Clients send headers of their own beside the key.
            allow_headers=["*"],
            expose_headers=["Retry-After", "x-should-retry"],
        )
    ]
