"""The body of `/v1/responses`, as the request of a chat."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import Field

from ffwd.adapters.server.errors import bad, unsupported
from ffwd.adapters.server.protocol import ChatRequest, Request, checked
from ffwd.adapters.server.responses.items import Conversation

REFUSED: dict[str, tuple[Any, str]] = {
    # Field: the value that is the same as none, and why another one is refused.
    "previous_response_id": (None, "the server stores no responses: send the items in `input`"),
    "conversation": (None, "the server stores no conversations: send the items in `input`"),
    "background": (False, "a response is finished when its request is"),
    "background_options": (None, "a response is finished when its request is"),
    "context_management": ([], "the server changes no input"),
    "prompt": (None, "the server stores no prompts: send `instructions` and `input`"),
    "truncation": ("disabled", "the server drops no items: send fewer"),
    "moderation": (None, "the server has none"),
    "image": (None, "the model reads text"),
    "access_programs": (None, "the server has none"),
}
IGNORED = frozenset({"prompt_cache_options", "max_tool_calls"})
"""Fields that change no answer here, beside those of chats: hosted tools are refused."""

_RENAMED = {
    "messages": "input",
    "response_format": "text.format",
    "max_tokens": "max_output_tokens",
}
"""The fields of a chat, as a response calls them."""

_LOGPROBS = "message.output_text.logprobs"
"""What `include` has if the tokens of texts are listed."""

_OF_CHATS = (frozenset(ChatRequest.model_fields) - frozenset(Request.model_fields)) | frozenset(
    {"n", "max_tokens", "logprobs", "shown", "places"}
)
_SHARED = frozenset({"chat_template_kwargs", "parallel_tool_calls", "top_logprobs"})
"""Of the fields of chats alone, those that responses have as well."""
RESPONSE_FIELDS = (frozenset(ChatRequest.model_fields) - _OF_CHATS) | _SHARED
"""The fields of chats that responses have in the same form."""


class ResponsesRequest(ChatRequest):
    """A chat that was asked for as a response.

    Attributes:
        shown: The members of the response that repeat its request.
        places: Where in the request each message comes from.

    """

    shown: dict[str, Any] = Field(default_factory=dict)
    places: list[str] = Field(default_factory=list)

    @property
    def limit_param(self) -> str:
        """The field that says how many tokens an answer may have."""
        return "max_output_tokens"

    def field(self, param: str) -> str:
        """Return a field as the client calls it."""
        if param.startswith("messages["):
            index, _, rest = param.removeprefix("messages[").partition("]")
            return self.places[int(index)] + rest
        return _RENAMED.get(param, super().field(param))


def read_responses(body: dict[str, Any]) -> ResponsesRequest:
    """Return the request as one of a chat.

    Raises:
        ApiError: A field is unknown, refused, or has a value that it cannot have.

    """
    given = {name: value for name, value in body.items() if value is not None}
    fields: dict[str, Any] = {}
    for name, value in given.items():
        if name in REFUSED:
            nothing, reason = REFUSED[name]
            if value != nothing:
                raise unsupported(name, reason)
        elif name in _READ:
            fields |= _READ[name](value)
        elif name in _OF_CHATS - _SHARED:
            raise bad(f"there is no field `{name}`", param=name, code="unknown_parameter")
        elif name not in IGNORED:
            fields[name] = value
    conversation = Conversation()
    conversation.instruct(fields.pop("instructions", None))
    conversation.add(fields.pop("input", None))
    request = checked(
        ResponsesRequest,
        {
            **fields,
            "messages": conversation.messages,
            "shown": _shown(given),
            "places": conversation.places,
        },
    )
    if request.top_logprobs and not request.logprobs:
        raise bad(
            "`top_logprobs` is for answers with log probabilities: give "
            f'`include: ["{_LOGPROBS}"]`',
            param="top_logprobs",
        )
    return request


def _shown(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a response that repeat its request, with their defaults."""
    text, reasoning = given.get("text", {}), given.get("reasoning", {})
    return {
        "background": False,
        "instructions": given.get("instructions"),
        "max_output_tokens": given.get("max_output_tokens"),
        "metadata": given.get("metadata", {}),
        "parallel_tool_calls": given.get("parallel_tool_calls", True),
        "previous_response_id": None,
        "reasoning": {"effort": reasoning.get("effort"), "summary": None},
        "store": False,
        "temperature": given.get("temperature"),
        "text": {"format": {"type": "text"}} | text,
        "tool_choice": given.get("tool_choice", "auto"),
        "tools": given.get("tools", []),
        "top_logprobs": given.get("top_logprobs", 0),
        "top_p": given.get("top_p"),
        "truncation": "disabled",
    }


def _object(value: Any, name: str, members: frozenset[str]) -> Mapping[str, Any]:
    """Return a value that is an object with known members."""
    if not isinstance(value, Mapping):
        raise bad(f"`{name}` must be an object", param=name)
    for member in value:
        if member not in members:
            place = f"{name}.{member}"
            raise bad(f"there is no field `{place}`", param=place, code="unknown_parameter")
    return value


def _limit(value: Any) -> dict[str, Any]:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise bad(
            "`max_output_tokens` must be an integer of at least 1",
            param="max_output_tokens",
            code="invalid_value",
        )
    return {"max_tokens": value}


def _text(value: Any) -> dict[str, Any]:
    # Verbosity is ignored as it is in chats.
    form = _object(value, "text", frozenset({"format", "verbosity"})).get("format")
    if form is not None and not isinstance(form, Mapping):
        raise bad("`text.format` must be an object", param="text.format")
    return {} if form is None else {"response_format": form}


def _reasoning(value: Any) -> dict[str, Any]:
    # The model's own reasoning is reported whole, so a summary adds nothing.
    members = frozenset({"effort", "summary", "generate_summary"})
    effort = _object(value, "reasoning", members).get("effort")
    if effort is not None and not isinstance(effort, str):
        raise bad("`reasoning.effort` must be a string", param="reasoning.effort")
    return {} if effort is None else {"reasoning_effort": effort}


def _include(value: Any) -> dict[str, Any]:
    if not isinstance(value, list):
        raise bad("`include` must be a list", param="include")
    for index, name in enumerate(value):
        # Reasoning is reported as text, so a client that sends the items back needs no other form.
        if name not in ("reasoning.encrypted_content", _LOGPROBS):
            raise unsupported(f"include[{index}]", f"the server reports no {name!r}")
    return {"logprobs": True} if _LOGPROBS in value else {}


def _stream_options(value: Any) -> dict[str, Any]:
    # Usage is in the last event in any case, and obfuscation is padding.
    _object(value, "stream_options", frozenset({"include_obfuscation", "include_usage"}))
    return {}


def _metadata(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(v, str) for v in value.values()):
        raise bad("`metadata` must be an object of strings", param="metadata")
    return {}


def _tools(value: Any) -> dict[str, Any]:
    if not isinstance(value, list):
        raise bad("`tools` must be a list", param="tools")
    return {"tools": [_tool(tool, f"tools[{index}]") for index, tool in enumerate(value)]}


def _tool(tool: Any, place: str) -> dict[str, Any]:
    """Return a tool with the members that chats know."""
    if not isinstance(tool, Mapping):
        raise bad(f"`{place}` must be an object", param=place)
    kind = tool.get("type")
    if not isinstance(kind, str) or kind not in _TOOLS:
        raise unsupported(f"{place}.type", f"the server runs no tools: {kind!r} is none of yours")
    for name in ("defer_loading", "async"):
        if tool.get(name):
            raise unsupported(f"{place}.{name}", "all tools are given to the model at once")
    return {"type": kind, **{k: tool[k] for k in _TOOLS[kind] if tool.get(k) is not None}}


_TOOLS = {
    "function": ("name", "description", "parameters", "strict"),
    "custom": ("name", "description", "format"),
}
"""The types of tools, with their members."""

_READ: dict[str, Callable[[Any], dict[str, Any]]] = {
    "max_output_tokens": _limit,
    "text": _text,
    "reasoning": _reasoning,
    "include": _include,
    "stream_options": _stream_options,
    "metadata": _metadata,
    "tools": _tools,
    "tool_choice": lambda value: {"tool_choice": value},
}
"""The fields that chats have in another form, or not at all."""
