"""A hook of mkdocs: what the docstrings of the native module say, where a page asks for it.

The tools that read sources do not read Rust, so the compiled module is asked. A page names a class
or a function by a line `<!-- native: Matcher -->`, or `<!-- native: engine.StepRows -->`.
"""

import inspect
import re
from operator import attrgetter
from typing import Any

import ffwd
import ffwd.engine

_SECTION = re.compile(r"^(Args|Returns|Raises|Attributes):$", re.MULTILINE)
_ITEM = re.compile(r"^ {4}(\w+): ", re.MULTILINE)
_ASKED = re.compile(r"^<!-- native: ([\w.]+) -->$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the page with its descriptions."""
    return _ASKED.sub(lambda found: _described(found[1]), markdown)


def _described(name: str) -> str:
    value: Any = attrgetter(name)(ffwd)
    lines = [f"## `ffwd.{name}`", "", _text(value)]
    if not inspect.isclass(value):
        return "\n".join(lines)
    for member, one in sorted(vars(value).items()):
        if member.startswith("_") or not (text := _text(one)):
            continue
        signature = getattr(one, "__text_signature__", None) or ""
        shown = re.sub(r"\(\$self(, /)?(, )?", "(", signature)
        lines += ["", f"### `{member}{shown}`", "", text]
    return "\n".join(lines)


def _text(value: object) -> str:
    """Return a docstring in Google's form, as Markdown."""
    text = inspect.cleandoc(getattr(value, "__doc__", None) or "")
    text = _SECTION.sub(r"**\1**\n", text)
    return _ITEM.sub(r"- `\1`: ", text)
