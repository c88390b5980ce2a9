"""`explore`: the page of `ffwd play` in a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ffwd.grammar import Grammar


def explore(
    grammar: Grammar | None = None,
    tokenizer: Any = None,
    *,
    text: str = "",
    model: str | Path | None = None,
) -> Any:
    """Return a widget for notebooks that shows what a grammar allows, as `ffwd play` does.

        ffwd.view.explore(ffwd.json_schema(schema), "path/of/a/model")

    No server is started: requests are messages to the kernel, which must not run a cell meanwhile.

    Args:
        grammar: Any grammar; one without a notation is shown, and cannot be edited. None for an
            example.
        tokenizer: What `ffwd.tokenizer.load` takes, a `Tokenizer` or a `Vocabulary`. A source that
            is no path is not fetched. None for the tokenizer of the model in the box.
        text: The text beside it.
        model: The directory of a model that generates; None for the one in the box.

    Raises:
        PlayError: anywidget is not installed, or the text is too long.
        VocabularyError: The tokenizer cannot be read.
        TypeError: `grammar` is no grammar.

    """
    from ffwd.play.widget import widget

    return widget(grammar, tokenizer, text=text, model=model)
