"""The constraint of a request, as a grammar and as a cache key."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import ffwd
from ffwd.adapters.server.errors import BAD_INPUT, ApiError, bad, of_ffwd
from ffwd.adapters.server.protocol import StructuredOutputs
from ffwd.adapters.server.tool_marks import is_free
from ffwd.adapters.shared.requests import GrammarRequest, grammar_of
from ffwd.grammar import Writing
from ffwd.tools import RefusedToolsError, ToolFormat
from ffwd.tools.definition import NAMED

_KIND = "server"
_CONSTRAINTS = ("json", "json_object", "regex", "choice", "grammar", "structural_tag")


class Asked:
    """The constraint of one request's answer.

    Args:
        response_format: Of the request.
        structured: Of the request.
        tools: Of the request, in the form of chats.
        tool_choice: Of the request.
        parallel: Whether an answer may have several calls.

    Raises:
        ApiError: Two constraints, or none where one is named.

    """

    def __init__(
        self,
        *,
        response_format: Mapping[str, Any] | None = None,
        structured: StructuredOutputs | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        tool_choice: str | Mapping[str, Any] | None = None,
        parallel: bool = True,
    ) -> None:
        self._format = response_format
        self._structured = None if structured is None else _structured(structured)
        self._compact = structured is not None and structured.disable_any_whitespace
        self.tools = list(tools)
        self._choice = tool_choice
        self._parallel = parallel
        formatted = self._format is not None and self._format.get("type") != "text"
        if self._structured is not None and formatted:
            raise bad(
                "give `response_format` or `structured_outputs`, not both",
                param="structured_outputs",
            )
        if not self.tools and tool_choice not in (None, "none", "auto"):
            raise bad(
                "`tool_choice` asks for a call, and there are no `tools`", param="tool_choice"
            )
        self.calls = bool(self.tools) and tool_choice != "none"
        """Whether an answer may have calls."""
        self.named = isinstance(tool_choice, Mapping) and tool_choice.get("type") in NAMED
        """Whether the request names the one tool to call."""
        self.structured = formatted or self._structured is not None or self.calls
        """Whether an answer that is cut off may be useless."""

    @property
    def param(self) -> str | None:
        """The field of errors that name none themselves."""
        if self.calls:
            return "tools"
        if self._structured is not None:
            return f"structured_outputs.{self._structured[0]}"
        return None if self._format is None else "response_format"

    def key(self, *, may_reason: bool) -> GrammarRequest:
        """Return the cache key, with all that the grammar depends on."""
        asked = {
            "format": self._format,
            "structured": self._structured,
            "tools": self.tools,
            "choice": self._choice,
            "parallel": self._parallel,
            "compact": self._compact,
            "may_reason": may_reason,
        }
        # Properties keep the order of the text.
        return GrammarRequest(_KIND, json.dumps(asked))


class Reader:
    """The compiler of keys, with which a `GrammarCache` reads."""

    def __init__(
        self, tool_format: ToolFormat | None, no_tool_format: str, writing: Writing
    ) -> None:
        self._writing = writing
        self._tool_format = tool_format
        self._no_tool_format = no_tool_format

    def __call__(self, request: GrammarRequest) -> ffwd.Grammar:
        """Return the grammar of a key.

        Raises:
            ApiError: What is wrong with it, and with which field.

        """
        asked = json.loads(request.text)
        grammar = self._answer(asked)
        if asked["may_reason"]:
            grammar = ffwd.reasoning(grammar, optional=True)
        return grammar

    def _answer(self, asked: Mapping[str, Any]) -> ffwd.Grammar:
        text = _text(asked, self._writing)
        choice = asked["choice"]
        if not asked["tools"] or (choice == "none" and text is not None):
            return ffwd.openai.response_format(None) if text is None else text
        if text is None or not is_free(choice):
            return self._tools(asked, choice)
        # A text of the requested form, or calls: never other text.
        if isinstance(choice, Mapping):
            allowed = {**choice.get("allowed_tools", choice), "mode": "required"}
            required: Any = {"type": "allowed_tools", "allowed_tools": allowed}
        else:
            required = "required"
        return self._tools(asked, required) | text

    def _tools(self, asked: Mapping[str, Any], choice: Any) -> ffwd.Grammar:
        if self._tool_format is None:
            raise bad(
                f"this model calls no tools: {self._no_tool_format}",
                param="tools",
                code="tools_unsupported",
            )
        try:
            return ffwd.openai.tools(
                asked["tools"],
                choice,
                format=self._tool_format,
                parallel_tool_calls=asked["parallel"],
                **self._writing.given(),
            )
        except RefusedToolsError as error:
            refused, first = of_ffwd(error, "tools"), error.refused[0]
            kind = asked["tools"][first.index]["type"]
            wrong = "format" if kind == "custom" else "parameters"
            refused.param = f"tools[{first.index}].{kind}.{wrong if first.name else 'name'}"
            raise refused from error
        except BAD_INPUT as error:
            raise of_ffwd(error, "tools") from error


def _text(asked: Mapping[str, Any], writing: Writing) -> ffwd.Grammar | None:
    """Return the constraint on the text of an answer; None for any text."""
    if asked["compact"]:
        writing = replace(writing, whitespace="compact", separators=None, indent=None)
    if asked["structured"] is not None:
        kind, text = asked["structured"]
        try:
            request = GrammarRequest(kind, text, **writing.options())
            return ffwd.span("content", grammar_of(request))
        except BAD_INPUT as error:
            raise of_ffwd(error, f"structured_outputs.{kind}") from error
    if asked["format"] is None or asked["format"].get("type") == "text":
        return None
    try:
        return ffwd.openai.response_format(asked["format"], **writing.given())
    except BAD_INPUT as error:
        raise of_ffwd(error, "response_format") from error


def _structured(given: StructuredOutputs) -> tuple[str, str]:
    """Return the single constraint, as a kind and a text."""
    values: dict[str, Any] = {
        "json": given.json_,
        "json_object": given.json_object or None,
        "regex": given.regex,
        "choice": given.choice,
        "grammar": given.grammar,
        "structural_tag": given.structural_tag,
    }
    found = {kind: value for kind, value in values.items() if value is not None}
    if len(found) != 1:
        raise ApiError(
            400,
            f"`structured_outputs` must have exactly one of {', '.join(_CONSTRAINTS)}, and has "
            f"{', '.join(found) or 'none'}",
            param="structured_outputs",
            code="invalid_value",
        )
    ((kind, value),) = found.items()
    return kind, value if isinstance(value, str) else json.dumps(value)
