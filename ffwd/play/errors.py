"""Errors of the page: refused requests and files, and the JSON of an error."""

from __future__ import annotations

from typing import Any

from ffwd._native import FfwdError
from ffwd.sources import SourceText


class PlayError(FfwdError):
    """A request or a file of the page that is refused; `pointer` is the position in its JSON."""

    def __init__(self, message: str, pointer: str = "") -> None:
        super().__init__(message)
        self.pointer = pointer


def error_data(error: Exception, source: SourceText | None = None) -> dict[str, Any]:
    """Return an error for the page, with its position in the grammar's text."""
    data: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    for name in ("pointer", "keyword", "limit", "needed"):
        value = getattr(error, name, None)
        if value is not None:
            data[name] = value
    if source is not None and isinstance(error, FfwdError):
        data["line"], data["column"] = source.place(error) or (None, None)
    return data
