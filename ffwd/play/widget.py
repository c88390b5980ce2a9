"""The page as a widget of notebooks: requests come as messages to the kernel."""

from __future__ import annotations

import functools
import threading
import traceback
from importlib import resources
from pathlib import Path
from typing import Any

from ffwd.grammar import Grammar
from ffwd.play.errors import PlayError
from ffwd.play.page import page
from ffwd.play.session import Session
from ffwd.play.state import grammar_of
from ffwd.sources import NamedTokens

MAX_REQUESTS = 16
"""The most requests at a time."""


def widget(
    grammar: Grammar | None, tokenizer: Any, *, text: str = "", model: str | Path | None = None
) -> Any:
    """Return the widget of `ffwd.view.explore`.

    Raises:
        PlayError: anywidget is not installed, or the text is too long.
        VocabularyError: The tokenizer cannot be read.
        TypeError: `grammar` is no grammar.

    """
    if grammar is not None and not isinstance(grammar, Grammar):
        raise TypeError(
            "grammar must be a grammar, such as ffwd.json_schema(schema), not "
            f"{type(grammar).__name__}"
        )
    tokens = None if tokenizer is None else NamedTokens.of(tokenizer)
    state = None
    if grammar is not None:
        state = {"grammar": grammar_of(grammar), "tokenizer": "box", "text": text}
    directory = None if model is None else Path(model)
    session = Session(state, tokenizer=tokens, model=directory, given=grammar)
    return _widget_class()(session)


@functools.cache
def _widget_class() -> Any:
    try:
        from anywidget import AnyWidget
    except ImportError as error:
        raise PlayError(f"{error.name} is not installed: pip install 'ffwd[notebook]'") from error

    class PlayWidget(AnyWidget):  # type: ignore[misc,unused-ignore]
        """The page; it shows itself in a notebook."""

        _esm = resources.files("ffwd.play").joinpath("frame.js").read_text(encoding="utf-8")

        def __init__(self, session: Session) -> None:
            super().__init__()
            self._session = session
            self._slots = threading.BoundedSemaphore(MAX_REQUESTS)
            self.on_msg(self._asked)

        def __repr__(self) -> str:
            return f"PlayWidget({self._session!r})"

        def close(self) -> None:
            """End the widget, and what it runs."""
            self._session.close()
            super().close()

        def _asked(self, _: Any, message: Any, buffers: Any) -> None:
            if not isinstance(message, dict) or not isinstance(message.get("ffwd"), str):
                return
            if message.get("page"):
                self.send({"ffwd": message["ffwd"], "page": page(is_served=False)})
            elif self._slots.acquire(blocking=False):
                # The kernel runs cells meanwhile, and takes the request that cancels this one.
                thread = threading.Thread(target=self._answer, args=(message,), daemon=True)
                thread.start()
            else:
                error = {"type": "Busy", "message": f"at most {MAX_REQUESTS} requests at a time"}
                self.send({"ffwd": message["ffwd"], "answer": {"error": error}})

        def _answer(self, message: dict[str, Any]) -> None:
            try:
                answer = self._session.answer(message.get("request"))
            except Exception:  # a fault of ffwd, which the page reports as one
                traceback.print_exc()
                text = "ffwd failed; the output of the kernel has the traceback"
                answer = {"error": {"type": "InternalError", "message": text}}
            finally:
                self._slots.release()
            self.send({"ffwd": message["ffwd"], "answer": answer})

    return PlayWidget
