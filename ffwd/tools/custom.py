"""The calls of custom tools, whose input is text and not an object."""

import json
from collections.abc import Mapping
from typing import Any

from ffwd.grammar import Grammar, lark, lit, regex, seq, span
from ffwd.tools.definition import Tool
from ffwd.tools.errors import RefusedTool
from ffwd.tools.escaped_lark import escaped_lark
from ffwd.tools.escaped_regex import escaped_regex
from ffwd.tools.format import ArgumentStyle, JsonArguments, PythonArguments, TaggedArguments

INPUT = "input"
"""The argument that a call of a custom tool has."""


def custom_arguments(tool: Tool, style: ArgumentStyle) -> Grammar:
    """Return the arguments of a call: one JSON string, whose text is the input.

    Its content, between the quotes, is the span `tool_arguments`. Each character has one way to be
    written, that of `json.dumps`.

    Raises:
        GrammarError: The grammar of the input cannot be parsed or has no escaped form.
        LimitExceededError: A limit was exceeded.
        RefusedTool: The format of the input is none, or calls cannot have it.

    """
    content = span("tool_arguments", _content(tool), name=tool.name)
    quoted = seq('"', content, '"')
    if isinstance(style, JsonArguments):
        colon = ":" if style.whitespace == "compact" else ": "
        return seq("{", json.dumps(INPUT) + colon, quoted, "}")
    if isinstance(style, PythonArguments):
        return seq(f"{INPUT}=", quoted)
    if isinstance(style, TaggedArguments):
        # As any value that is no plain text.
        before = style.before_name + INPUT + style.before_value
        return seq(lit(before, controls=True), quoted, lit(style.after_value, controls=True))
    raise RefusedTool(
        "calls of this format have one free text and no strings", name=tool.name, index=tool.index
    )


def _content(tool: Tool) -> Grammar:
    """Return the escaped texts of the input."""
    form = tool.format or {}
    kind = form.get("type")
    if kind == "text":
        return regex(escaped_regex("(?s).*"))
    if kind != "grammar":
        raise _refused(tool, f"the type of its format is {kind!r}, not `text` or `grammar`")
    # In responses the members stand beside the type.
    grammar = form.get("grammar", form)
    if not isinstance(grammar, Mapping):
        raise _refused(tool, "the `grammar` of its format is no object")
    return _grammar(tool, grammar)


def _grammar(tool: Tool, grammar: Mapping[str, Any]) -> Grammar:
    definition, syntax = grammar.get("definition"), grammar.get("syntax")
    if not isinstance(definition, str):
        raise _refused(tool, "the `definition` of its grammar is no string")
    if syntax == "regex":
        return regex(escaped_regex(definition))
    if syntax == "lark":
        return lark(escaped_lark(definition))
    raise _refused(tool, f"the syntax of its grammar is {syntax!r}, not `lark` or `regex`")


def _refused(tool: Tool, reason: str) -> RefusedTool:
    return RefusedTool(reason, name=tool.name, index=tool.index)
