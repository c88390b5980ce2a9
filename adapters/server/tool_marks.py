"""The mark `strict` of tools: how the server understands it, and that models do not see it."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

Strictness: TypeAlias = Literal["auto", "always", "strict", "off"]
"""Which arguments follow their schema if the model decides whether it calls: those without
`strict: false`, all, those with `strict: true`, or none. The others are any JSON object."""


def is_free(choice: str | Mapping[str, Any] | None) -> bool:
    """Return whether a `tool_choice` lets the model decide whether it calls."""
    if not isinstance(choice, Mapping):
        return choice in (None, "auto")
    allowed = choice.get("allowed_tools", choice)
    return (
        choice.get("type") == "allowed_tools"
        and isinstance(allowed, Mapping)
        and allowed.get("mode", "auto") == "auto"
    )


def with_strictness(
    tools: Sequence[Mapping[str, Any]],
    choice: str | Mapping[str, Any] | None,
    strictness: Strictness,
) -> list[Mapping[str, Any]]:
    """Return tools with the marks that say what `strictness` does."""
    if strictness == "auto" or not is_free(choice):
        return list(tools)
    return [_marked(tool, strictness) for tool in tools]


def without_marks(tools: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return tools as the prompt shows them: with what the model has to know, and no mark."""
    return [_without(tool) for tool in tools]


def _marked(tool: Mapping[str, Any], strictness: Strictness) -> Mapping[str, Any]:
    function = tool.get("function")
    if not isinstance(function, Mapping):
        return tool
    strict = function.get("strict")
    if strict is not None and not isinstance(strict, bool):
        # The grammar refuses it.
        return tool
    if strictness == "always":
        return tool if strict is not False else _without(tool)
    if strictness == "strict" and strict:
        return tool
    return {**tool, "function": {**function, "strict": False}}


def _without(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    function = tool.get("function")
    if not isinstance(function, Mapping) or "strict" not in function:
        return tool
    kept = {name: value for name, value in function.items() if name != "strict"}
    return {**tool, "function": kept}
