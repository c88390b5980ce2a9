"""From a chat to its prompt: messages and tools, as the template of the model expects them."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ffwd.adapters.server.custom_tools import as_function, call_as_function
from ffwd.adapters.server.errors import BAD_INPUT, bad, of_ffwd, unsupported
from ffwd.adapters.server.loading import LoadedModel
from ffwd.adapters.server.protocol import ChatRequest
from ffwd.adapters.server.tool_marks import without_marks
from ffwd.chat import Prompt

_CLOSE = "</think>"

_KNOWS_FUNCTIONS = re.compile(r"""role\b[^%}]*['"]function['"]""")
"""Where a template looks for the role `function`. The word alone is in the form of each tool."""

# What `ChatTemplate.render` takes itself; `trusted_roles` would let a client write control tokens.
_OWN_VARIABLES = frozenset(
    {"messages", "tokenizer", "tools", "documents", "add_generation_prompt", "now"}
    | {"continue_final_message", "trusted_roles", "missing_control_tokens"}
)


def render_chat(
    loaded: LoadedModel, request: ChatRequest, tools: Sequence[Mapping[str, Any]]
) -> Prompt:
    """Return the prompt of a chat.

    Raises:
        ApiError: What is wrong with the request, or that the model has no template.

    """
    template = loaded.template
    if template is None:
        raise bad(
            f"this model has no chat template that works: {loaded.no_template}; "
            "/v1/completions needs none",
            param="messages",
        )
    variables = dict(request.chat_template_kwargs or {})
    for name in variables:
        if name in _OWN_VARIABLES:
            raise unsupported(f"chat_template_kwargs.{name}", "it is no variable of the template")
    if request.reasoning_effort is not None:
        variables.setdefault("reasoning_effort", request.reasoning_effort)
    # One excludes the other; a client that continues a message need not say so twice.
    going_on = request.continue_final_message
    source = template.source(tools=bool(tools))
    messages = [
        _message(message, index, source=source) for index, message in enumerate(request.messages)
    ]
    try:
        return template.render(
            messages,
            tokenizer=loaded.tokenizer,
            tools=without_marks([as_function(tool) for tool in tools]) or None,
            add_generation_prompt=request.add_generation_prompt and not going_on,
            continue_final_message=going_on,
            **variables,
        )
    except BAD_INPUT as error:
        raise of_ffwd(error, "messages") from error


def may_reason(loaded: LoadedModel, prompt: Prompt, tools: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the model may open its reasoning itself, as far as its template tells."""
    template = loaded.template
    return (
        template is not None
        and prompt.thinking is None
        and not prompt.prefill
        and _CLOSE in template.source(tools=bool(tools))
        and not prompt.text.rstrip().endswith(_CLOSE)
    )


def _message(message: Mapping[str, Any], index: int, *, source: str) -> dict[str, Any]:
    """Return a message in the form that templates expect."""
    place = f"messages[{index}]"
    made = {name: value for name, value in message.items() if value is not None}
    role = made.get("role")
    if not isinstance(role, str):
        raise bad(f"`{place}.role` must be a string", param=f"{place}.role")
    if role == "developer" and role not in source:
        made["role"] = "system"
    elif role == "function" and not _KNOWS_FUNCTIONS.search(source):
        # The older name of a tool's result.
        made["role"] = "tool"
    content = made.get("content")
    if isinstance(content, list):
        made["content"] = "".join(
            _text(part, f"{place}.content[{i}]") for i, part in enumerate(content)
        )
    elif content is not None and not isinstance(content, str):
        raise bad(f"`{place}.content` must be text or a list of parts", param=f"{place}.content")
    elif content is None and role != "assistant":
        raise bad(f"`{place}.content` is missing", param=f"{place}.content")
    calls = made.get("tool_calls")
    if calls is not None:
        if not isinstance(calls, list):
            raise bad(f"`{place}.tool_calls` must be a list", param=f"{place}.tool_calls")
        made["tool_calls"] = [
            _call(call, f"{place}.tool_calls[{i}]") for i, call in enumerate(calls)
        ]
    return made


def _text(part: Any, place: str) -> str:
    if isinstance(part, str):
        return part
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind not in ("text", "refusal"):
        raise unsupported(place, f"the model reads text, not {kind!r}")
    text = part.get(kind)
    if not isinstance(text, str):
        raise bad(f"`{place}.{kind}` must be a string", param=f"{place}.{kind}")
    return text


def _call(call: Any, place: str) -> dict[str, Any]:
    """Return a call with its arguments as an object: templates write them in their notation."""
    call = call_as_function(call, place)
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        raise bad(f"`{place}.function` is missing", param=f"{place}.function")
    if not isinstance(function.get("name"), str):
        raise bad(f"`{place}.function.name` must be a string", param=f"{place}.function.name")
    arguments = function.get("arguments", "{}")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError) as error:
            raise bad(
                f"`{place}.function.arguments` is not JSON: {error}",
                param=f"{place}.function.arguments",
            ) from None
    return {**call, "function": {**function, "arguments": arguments}}
