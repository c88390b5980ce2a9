"""Custom tools: how templates see them, and how their input is read off a call."""

import json
import re
from collections.abc import Mapping
from typing import Any

from ffwd.adapters.server.errors import bad
from ffwd.tools.custom import INPUT

_WHOLE = re.compile(r"(?:[^\\]|\\u.{4}|\\[^u])*", re.DOTALL)
"""Characters, none of which is cut off."""


def is_custom(tool: Mapping[str, Any]) -> bool:
    """Return whether a tool of a request, or a call, is of the type `custom`."""
    return tool.get("type") == "custom"


def as_function(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a tool for a template: a custom tool is a function of one string."""
    if not is_custom(tool):
        return tool
    custom = tool["custom"]
    text: dict[str, Any] = {"type": "string"}
    form = custom.get("format")
    grammar = form.get("grammar", form) if isinstance(form, Mapping) else None
    if isinstance(grammar, Mapping) and "definition" in grammar:
        syntax = {"lark": "Lark grammar", "regex": "regular expression"}.get(
            str(grammar.get("syntax")), "grammar"
        )
        text["description"] = f"Text that follows this {syntax}:\n{grammar['definition']}"
    parameters = {"type": "object", "properties": {INPUT: text}, "required": [INPUT]}
    said = {name: custom[name] for name in ("name", "description") if name in custom}
    return {"type": "function", "function": {**said, "parameters": parameters}}


def call_as_function(call: Any, place: str) -> Any:
    """Return an earlier call for a template; others than custom ones stay as they are.

    Raises:
        ApiError: It has no name, or no input.

    """
    if not isinstance(call, Mapping) or not is_custom(call):
        return call
    given = call.get("custom")
    custom = given if isinstance(given, Mapping) else {}
    for member in ("name", "input"):
        if not isinstance(custom.get(member), str):
            param = f"{place}.custom.{member}"
            raise bad(f"`{param}` must be a string", param=param)
    function = {"name": custom["name"], "arguments": {INPUT: custom["input"]}}
    others = {name: value for name, value in call.items() if name != "custom"}
    return {**others, "type": "function", "function": function}


class InputReader:
    """Reads the input of a call from its JSON string, piece by piece."""

    def __init__(self) -> None:
        self._rest = ""

    def read(self, text: str) -> str:
        """Return what is certain with one more piece; a piece may end within an escape."""
        text = self._rest + text
        found = _WHOLE.match(text)
        end = 0 if found is None else found.end()
        self._rest = text[end:]
        whole: str = json.loads(f'"{text[:end]}"', strict=False)
        return whole
