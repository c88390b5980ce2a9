"""`tool_choice`: whether calls may, must or must not come, and of which tools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ffwd.tools.definition import NAMED
from ffwd.tools.errors import ToolChoiceError

Mode: TypeAlias = Literal["none", "auto", "required"]


@dataclass(frozen=True)
class ToolChoice:
    """A parsed `tool_choice`.

    Attributes:
        mode: `"none"`: no call. `"auto"`: free text, calls, or both. `"required"`: a call.
        names: The tools that may be called: names of those defined, and types of others; None
            for all of them.
        single: Whether exactly one call comes.

    """

    mode: Mode
    names: tuple[str, ...] | None = None
    single: bool = False


def read_choice(choice: Any) -> ToolChoice:
    """Parse a `tool_choice` in the forms of chat completions and of responses.

    Raises:
        ToolChoiceError: It is none.

    """
    if choice is None:
        return ToolChoice("auto")
    if not isinstance(choice, Mapping) and hasattr(choice, "model_dump"):
        choice = choice.model_dump(exclude_none=True)
    if choice in ("none", "auto", "required"):
        return ToolChoice(choice)
    if not isinstance(choice, Mapping):
        raise ToolChoiceError(
            'tool_choice must be "none", "auto", "required", {"type": "function", …} or '
            f'{{"type": "allowed_tools", …}}, not {choice!r}'
        )
    if choice.get("type") == "allowed_tools":
        return _allowed(choice.get("allowed_tools", choice))
    return ToolChoice("required", (_name(choice),), single=True)


def _allowed(choice: Any) -> ToolChoice:
    if not isinstance(choice, Mapping):
        raise ToolChoiceError("`allowed_tools` must be an object with `mode` and `tools`")
    mode, tools = choice.get("mode", "auto"), choice.get("tools")
    if mode not in ("auto", "required"):
        raise ToolChoiceError(f'the mode of allowed tools is "auto" or "required", not {mode!r}')
    if not isinstance(tools, Sequence) or isinstance(tools, str) or not tools:
        raise ToolChoiceError("allowed tools must be listed in `tools`")
    return ToolChoice(mode, tuple(_name(tool) for tool in tools))


def _name(reference: Any) -> str:
    """Return the name in a reference to a tool: a function's, or the type of another tool."""
    if not isinstance(reference, Mapping) or not isinstance(reference.get("type"), str):
        raise ToolChoiceError(
            f'a tool is chosen by {{"type": "function", "function": {{"name": …}}}}, not by '
            f"{reference!r}"
        )
    kind: str = reference["type"]
    if kind not in NAMED:
        return kind
    function = reference.get(kind, reference)
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str) or not name:
        raise ToolChoiceError(f"the choice {reference!r} names no tool")
    return name
