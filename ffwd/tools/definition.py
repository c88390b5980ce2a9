"""Tools as they come in a request."""

import inspect
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ffwd.chat.errors import ToolError
from ffwd.chat.tools import function_schema
from ffwd.tools.errors import RefusedTool, ToolsError

# OpenAI: "Omitting `parameters` defines a function with an empty parameter list."
NO_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {},
    "additionalProperties": False,
}
ANY_OBJECT: dict[str, Any] = {"type": "object"}
MAX_TOOLS = 10_000
NAMED = ("function", "custom")
"""The types of tools that a request defines; others are the model's own."""


@dataclass(frozen=True)
class Tool:
    """One tool of a request.

    Attributes:
        index: Its place in the list, from 0.
        name: What it is called by.
        type: `"function"`, or the type of a tool that the model was trained on.
        parameters: The JSON Schema of its arguments.
        strict: What the request says of how closely the schema is followed; None if nothing.
        format: The form of a custom tool's input, `{"type": "text"}` or a grammar.

    """

    index: int
    name: str
    type: str
    parameters: Mapping[str, Any]
    strict: bool | None = None
    format: Mapping[str, Any] | None = None

    @property
    def reference(self) -> str:
        """Its name in a choice of tools: that of its type for the model's own."""
        return self.name if self.type in NAMED else self.type

    @property
    def schema(self) -> Mapping[str, Any]:
        """The schema that the arguments follow: with `strict=False` they are any object."""
        return ANY_OBJECT if self.strict is False else self.parameters


def read_tools(tools: Iterable[Any]) -> tuple[list[Tool], list[RefusedTool]]:
    """Return the tools of a request, and the malformed ones.

    Each is `{"type": "function", "function": {"name", "parameters", "strict"}}` as in chat
    completions, the same without the inner object as in responses, a custom tool in either form, a
    Python function, or an object of these with `model_dump`. Another type is one of the model's own
    tools.
    """
    if isinstance(tools, (str, bytes, Mapping)) or not isinstance(tools, Iterable):
        raise TypeError(f"tools must be a list, not {type(tools).__name__}")
    found: list[Tool] = []
    refused: list[RefusedTool] = []
    names: set[str] = set()
    for index, entry in enumerate(tools):
        if index >= MAX_TOOLS:
            raise ToolsError(f"there are more than {MAX_TOOLS} tools")
        try:
            tool = _read(entry, index)
            if tool.name in names:
                raise RefusedTool("another tool has the same name", name=tool.name, index=index)
        except RefusedTool as error:
            refused.append(error)
            continue
        names.add(tool.name)
        found.append(tool)
    return found, refused


def _read(entry: Any, index: int) -> Tool:
    if inspect.isfunction(entry) or inspect.ismethod(entry):
        try:
            entry = function_schema(entry)
        except ToolError as error:
            name = getattr(entry, "__name__", "")
            raise RefusedTool(str(error), name=name, index=index) from error
    if not isinstance(entry, Mapping) and hasattr(entry, "model_dump"):
        entry = entry.model_dump(exclude_none=True)
    if not isinstance(entry, Mapping):
        raise RefusedTool(
            f"a tool is a dict or a Python function, not {type(entry).__name__}",
            name="",
            index=index,
        )
    kind = entry.get("type", "function")
    if not isinstance(kind, str):
        raise RefusedTool(f"its type is {kind!r}, which is no str", name="", index=index)
    function = entry.get(kind, entry) if kind in NAMED else entry
    if not isinstance(function, Mapping):
        raise RefusedTool(f"its `{kind}` is no object", name="", index=index)
    name = function.get("name") if kind in NAMED else function.get("name", kind)
    if not isinstance(name, str) or not name:
        raise RefusedTool("it has no name", name="", index=index)
    if kind == "custom":
        form = function.get("format")
        given = {"type": "text"} if form is None else form
        if not isinstance(given, Mapping):
            raise RefusedTool("its `format` is no object", name=name, index=index)
        return Tool(index, name, kind, NO_PARAMETERS, format=given)
    strict = function.get("strict")
    if strict is not None and not isinstance(strict, bool):
        raise RefusedTool(f"`strict` is {strict!r}, which is no bool", name=name, index=index)
    return Tool(index, name, kind, _parameters(function, name, index), strict)


def _parameters(function: Mapping[str, Any], name: str, index: int) -> Mapping[str, Any]:
    given = function.get("parameters")
    if given is None:
        return NO_PARAMETERS
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError) as error:
            raise RefusedTool(
                f"its parameters are not JSON: {error}", name=name, index=index
            ) from error
    if not isinstance(given, Mapping):
        raise RefusedTool(
            f"its parameters must be a JSON Schema as an object, not {type(given).__name__}",
            name=name,
            index=index,
        )
    if not given:
        return NO_PARAMETERS
    kinds = given.get("type", "object")
    if kinds != "object" and not (isinstance(kinds, list) and "object" in kinds):
        raise RefusedTool(
            f"arguments are an object, and the schema's type is {kinds!r}",
            name=name,
            index=index,
            pointer="/type",
        )
    return {**given, "type": "object"}
