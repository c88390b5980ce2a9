"""The two forms of tools: with an inner object as in chats, and flat as in responses."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ffwd.adapters.server.errors import bad, unsupported
from ffwd.tools.definition import NAMED

_PARAM = re.compile(r"tools\[(\d+)\]\.(?:function|custom)(?=[.\[]|$)")


def nested(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return tools with an inner object, which has their name.

    Raises:
        ApiError: One is neither a function nor a custom tool, or malformed.

    """
    return [_nested(tool, f"tools[{index}]") for index, tool in enumerate(tools)]


def _nested(tool: Mapping[str, Any], place: str) -> dict[str, Any]:
    kind = tool.get("type")
    if kind not in NAMED:
        raise unsupported(
            f"{place}.type", f"{kind!r} is no function and no custom tool; give those"
        )
    if kind not in tool:
        return {"type": kind, kind: {name: tool[name] for name in tool if name != "type"}}
    if not isinstance(tool[kind], Mapping):
        param = f"{place}.{kind}"
        raise bad(f"`{param}` must be an object with a `name`", param=param, code="invalid_tool")
    return dict(tool)


def field_of(param: str, tools: Sequence[Mapping[str, Any]]) -> str:
    """Return a field of `nested` tools as it is called in the tools themselves."""
    found = _PARAM.match(param)
    if found is None:
        return param
    index = int(found[1])
    tool = tools[index]
    return param if tool.get("type") in tool else f"tools[{index}]{param[found.end() :]}"
