"""From tools and a format to a grammar."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ffwd._compile import compile as compile_grammar
from ffwd._native import FfwdError, Vocabulary
from ffwd.grammar import (
    Grammar,
    WritingOptions,
    any_text,
    choice,
    json_schema,
    lit,
    optional,
    regex,
    repeat,
    seq,
    span,
)
from ffwd.tools.choice import ToolChoice
from ffwd.tools.custom import custom_arguments
from ffwd.tools.definition import NAMED, Tool
from ffwd.tools.errors import RefusedTool, RefusedToolsError, ToolChoiceError
from ffwd.tools.escaped_regex import byte_vocabulary
from ffwd.tools.format import (
    ARGUMENTS,
    NAME,
    TEXT,
    ArgumentStyle,
    BuiltinTool,
    JsonArguments,
    OneOf,
    Pattern,
    Piece,
    PythonArguments,
    Slot,
    TaggedArguments,
    TextArguments,
    ToolFormat,
)
from ffwd.tools.python_arguments import python_arguments
from ffwd.tools.tagged import tagged_arguments

OnBadTool: TypeAlias = Literal["raise", "skip"] | Callable[[RefusedTool], None]
"""What happens to a tool that cannot be used: `"raise"` refuses the request with the names and
reasons of all of them; `"skip"` leaves them out; a function is called with each, and it is left
out."""


@dataclass(frozen=True)
class Calls:
    """The calls that can be made in a format.

    Attributes:
        options: The grammar of a call of each tool, in the order of the request.
        refused: The tools that cannot be called, with the reasons.

    """

    options: tuple[tuple[Tool, Grammar], ...]
    refused: tuple[RefusedTool, ...]


def read_calls(tools: Sequence[Tool], style: ToolFormat, writing: WritingOptions) -> Calls:
    """Return the call of each tool; tools with schemas that do not compile are refused singly."""
    vocabulary = byte_vocabulary()
    options: list[tuple[Tool, Grammar]] = []
    refused: list[RefusedTool] = []
    for tool in tools:
        call = _call_or_reason(tool, style, writing, vocabulary)
        if isinstance(call, RefusedTool):
            refused.append(call)
        else:
            options.append((tool, call))
    return Calls(tuple(options), tuple(refused))


def _call_or_reason(
    tool: Tool, style: ToolFormat, writing: WritingOptions, vocabulary: Vocabulary
) -> Grammar | RefusedTool:
    try:
        return _call(tool, style, writing, vocabulary)
    except RefusedTool as error:
        return error
    except FfwdError as error:
        return RefusedTool(
            str(error),
            name=tool.name,
            index=tool.index,
            pointer=getattr(error, "pointer", ""),
            keyword=getattr(error, "keyword", ""),
        )


def answer(calls: Calls, style: ToolFormat, chosen: ToolChoice, *, parallel: bool) -> Grammar:
    """Return the grammar of an answer.

    Raises:
        ToolChoiceError: A call is asked for and none can be made.

    """
    text = span("content", _free_text(style))
    alone = _text_alone(style, text)
    options = [grammar for tool, grammar in calls.options if _is_chosen(tool, chosen)]
    if chosen.mode == "required" and not options:
        raise ToolChoiceError("a call is required, and there is no tool that can be called")
    if chosen.mode == "none" or not options:
        return alone
    several = parallel and style.parallel and not chosen.single
    one = choice(options)
    between = _sequence(style.separator or (), {})
    listed = repeat(one, 1, None if several else 1, separator=between)
    made = seq(_sequence(style.begin, {}), listed, _sequence(style.end, {}))
    if style.repeat_before:
        made = seq(_before(style, text), made)
    if chosen.mode == "required":
        return made
    if style.before is None or style.repeat_before:
        return choice([alone, made])
    # One text, and not a choice between texts that differ only in what follows them.
    return seq(_before(style, text), optional(made))


def refuse(refused: Sequence[RefusedTool], on_bad_tool: OnBadTool) -> None:
    """Do what was asked for with tools that cannot be used."""
    if on_bad_tool == "raise":
        if refused:
            raise RefusedToolsError(tuple(refused))
    elif callable(on_bad_tool):
        for tool in refused:
            on_bad_tool(tool)
    elif on_bad_tool != "skip":
        raise ValueError(f'on_bad_tool must be "raise", "skip" or a function, not {on_bad_tool!r}')


def _is_chosen(tool: Tool, chosen: ToolChoice) -> bool:
    if chosen.names is None:
        return True
    return tool.reference in chosen.names


def _text_alone(style: ToolFormat, text: Grammar) -> Grammar:
    written = _sequence(style.text, {TEXT: text})
    return seq(_before(style, text), written) if style.repeat_before else written


def _before(style: ToolFormat, text: Grammar) -> Grammar:
    once = _sequence(style.before or (), {TEXT: text})
    return repeat(once) if style.repeat_before else once


def _free_text(style: ToolFormat) -> Grammar:
    free = any_text(excluding=style.excluding)
    return free if style.text_start is None else optional(seq(regex(style.text_start), free))


def _call(
    tool: Tool, style: ToolFormat, writing: WritingOptions, vocabulary: Vocabulary
) -> Grammar:
    pieces, arguments, name = style.call, style.arguments, tool.name
    written: Grammar
    parameters = tool.schema
    if tool.type not in NAMED:
        builtin = _builtin(tool, style)
        pieces, arguments, name = builtin.call, builtin.arguments, builtin.type
        properties = {key: {"type": kind} for key, kind in builtin.parameters}
        parameters = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
    elif not re.fullmatch(style.names, name):
        raise RefusedTool(
            f"the format {style.name} has no way to write this name: it must match {style.names}",
            name=name,
            index=tool.index,
        )
    spelled = json.dumps(name)[1:-1] if style.spelled_in_json else name
    if tool.type == "custom":
        written = custom_arguments(tool, arguments)
        slots = {NAME: span("tool_name", lit(spelled), name=name), ARGUMENTS: written}
        return span("tool_call", _sequence(pieces, slots), name=name)
    if isinstance(arguments, JsonArguments):
        options: WritingOptions = {"whitespace": arguments.whitespace, **writing}
        written = json_schema(dict(parameters), **options)
        compile_grammar(written, vocabulary)
    else:
        compile_grammar(json_schema(dict(parameters)), vocabulary)
        written = _arguments(arguments, parameters)
    slots = {
        NAME: span("tool_name", lit(spelled), name=tool.name),
        ARGUMENTS: span("tool_arguments", written, name=tool.name),
    }
    return span("tool_call", _sequence(pieces, slots), name=tool.name)


def _arguments(style: ArgumentStyle, parameters: Mapping[str, Any]) -> Grammar:
    if isinstance(style, TaggedArguments):
        return tagged_arguments(style, parameters)
    if isinstance(style, PythonArguments):
        return python_arguments(parameters)
    if isinstance(style, TextArguments):
        return any_text(excluding=style.excluding)
    return json_schema(dict(parameters))


def _builtin(tool: Tool, style: ToolFormat) -> BuiltinTool:
    for builtin in style.builtin:
        if builtin.type == tool.type:
            return builtin
    known = ", ".join(["function", *(builtin.type for builtin in style.builtin)])
    raise RefusedTool(
        f"the format {style.name} has no tools of type {tool.type!r}, only of {known}",
        name=tool.name,
        index=tool.index,
    )


def _sequence(pieces: Sequence[Piece], slots: Mapping[Slot, Grammar]) -> Grammar:
    return seq(*(_piece(piece, slots) for piece in pieces))


def _piece(piece: Piece, slots: Mapping[Slot, Grammar]) -> Grammar:
    if isinstance(piece, str):
        return lit(piece, controls=True)
    if isinstance(piece, Pattern):
        return regex(piece.pattern)
    if isinstance(piece, OneOf):
        return choice([_sequence(option, slots) for option in piece.options])
    return slots[piece]
