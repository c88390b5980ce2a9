"""`tools`, `tool_choice` and `parallel_tool_calls`: the calls of an answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from ffwd.grammar import Grammar, WritingOptions
from ffwd.grammar._writing import Writing, takes_writing
from ffwd.openai.strict import StrictSchemaError, check_strict
from ffwd.tools.build import OnBadTool, answer, read_calls, refuse
from ffwd.tools.choice import ToolChoice, read_choice
from ffwd.tools.definition import Tool, read_tools
from ffwd.tools.detect import FormatSource, detect_format
from ffwd.tools.errors import RefusedTool, ToolChoiceError

if TYPE_CHECKING:
    from typing_extensions import Unpack


@takes_writing()
def tools(
    tools: Iterable[Any],
    tool_choice: Any = "auto",
    *,
    format: FormatSource,
    parallel_tool_calls: bool = True,
    on_bad_tool: OnBadTool = "raise",
    **options: Unpack[WritingOptions],
) -> Grammar:
    """Return the grammar of an answer with the calls that a request allows.

    Each call is a span of the kind `tool_call`, which contains `tool_name` and `tool_arguments`,
    all with the tool's name; free text is a span of the kind `content`.

    Arguments follow `parameters`; a tool without these takes none. With `strict: true` the schema
    must be valid in OpenAI's strict mode, otherwise the tool is bad. With `strict: false` the
    arguments are any JSON object, as in vLLM and XGrammar. Without `strict` the schema is followed
    unchanged.

    The input of a custom tool is text that follows its `format`: `{"type": "text"}`, or a grammar
    of the `syntax` `lark` or `regex`. In a call it is a JSON string, the argument `input`; the span
    `tool_arguments` is what stands between its quotes.

    Args:
        tools: As in chat completions or in responses, or Python functions.
        tool_choice: `"auto"` or None: free text, calls, or text and then calls. `"none"`: text
            without calls. `"required"`: at least one call. `{"type": "function", "function":
            {"name": …}}`: exactly one call, of this function. `{"type": "allowed_tools", …}`: these
            tools, with `mode` auto or required.
        format: The model's format of calls: a `ToolFormat`, its name, or the object to detect it
            from: a tokenizer, a chat template or a prompt.
        parallel_tool_calls: Whether an answer can have several calls.
        on_bad_tool: The treatment of a tool whose schema does not compile, whose name the format
            cannot write, or that is malformed: `"raise"`, `"skip"`, or a function that is called
            with each, for instance the `append` of a list. A tool that `tool_choice` names is never
            skipped.
        **options: The JSON options of arguments, those of `ffwd.json_schema` except `registry`. The
            default `whitespace` is the format's.

    Raises:
        RefusedToolsError: Tools cannot be used, with `on_bad_tool="raise"`, or a chosen one cannot.
        ToolChoiceError: `tool_choice` is malformed, or names an unknown tool.
        ToolFormatError: The format cannot be detected.
        TypeError: An argument of another type.

    """
    if not isinstance(parallel_tool_calls, bool):
        raise TypeError(f"parallel_tool_calls must be a bool, not {parallel_tool_calls!r}")
    given = cast(WritingOptions, {key: one for key, one in options.items() if one is not None})
    Writing(**given)  # or raises
    style = detect_format(format)
    chosen = read_choice(tool_choice)
    found, refused = read_tools(tools)
    known = {tool.reference for tool in found}
    usable, not_strict = _strict(found)
    calls = read_calls(usable, style, given)
    bad = sorted([*refused, *not_strict, *calls.refused], key=lambda tool: tool.index)
    _check_choice(chosen, known, bad)
    refuse(bad, on_bad_tool)
    return answer(calls, style, chosen, parallel=parallel_tool_calls)


def _strict(found: list[Tool]) -> tuple[list[Tool], list[RefusedTool]]:
    """Return the tools whose schema fits their `strict`, and the others."""
    usable: list[Tool] = []
    refused: list[RefusedTool] = []
    for tool in found:
        reason = _not_strict(tool)
        if reason is None:
            usable.append(tool)
        else:
            refused.append(reason)
    return usable, refused


def _not_strict(tool: Tool) -> RefusedTool | None:
    try:
        if tool.strict:
            check_strict(tool.parameters)
    except StrictSchemaError as error:
        return RefusedTool(str(error), name=tool.name, index=tool.index, pointer=error.pointer)
    return None


def _check_choice(chosen: ToolChoice, known: set[str], bad: list[RefusedTool]) -> None:
    for name in chosen.names or ():
        # A tool that the client names must not be left out without an error.
        refuse([tool for tool in bad if tool.name == name], "raise")
        if name not in known:
            raise ToolChoiceError(
                f"tool_choice asks for {name!r}, and the tools are {', '.join(sorted(known))}"
            )
