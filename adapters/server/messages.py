"""The messages of requests as chat templates take them."""

import json
import re
from collections.abc import Mapping
from typing import Any

from ffwd.adapters.server.custom_tools import call_as_function
from ffwd.adapters.server.errors import bad, unsupported

_KNOWS_FUNCTIONS = re.compile(r"""role\b[^%}]*['"]function['"]""")
"""Where a template looks for the role `function`. The word alone is in the form of each tool."""


def template_message(message: Mapping[str, Any], index: int, *, source: str) -> dict[str, Any]:
    """Return a message of a request in the form that templates expect; `source` is the template's.

    Raises:
        ApiError: It is malformed, or has other content than text.

    """
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
