"""Items of `input`, as the messages of a chat."""

import json
from collections.abc import Mapping
from typing import Any

from ffwd.adapters.server.errors import bad, unsupported

_ROLES = ("user", "assistant", "system", "developer")
_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
"""Parts that are text, and the member that has it."""


class Conversation:
    """Messages, as items add to them.

    Reasoning, text and calls that follow each other are one message of the assistant, as chats
    have it.

    Attributes:
        messages: The messages.
        places: Where in the request each of them begins.

    """

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.places: list[str] = []
        self._open: dict[str, Any] | None = None

    def instruct(self, instructions: Any) -> None:
        """Add `instructions`.

        Raises:
            ApiError: They are no string.

        """
        if instructions is None:
            return
        if not isinstance(instructions, str):
            raise bad("`instructions` must be a string", param="instructions")
        self._append({"role": "system", "content": instructions}, "instructions")

    def add(self, given: Any) -> None:
        """Add `input`, a string or items.

        Raises:
            ApiError: What is wrong with it, and with which item.

        """
        if given is None or given == []:
            raise bad("`input` is missing", param="input", code="missing_required_parameter")
        if isinstance(given, str):
            self._append({"role": "user", "content": given}, "input")
            return
        if not isinstance(given, list):
            raise bad("`input` must be a string or a list of items", param="input")
        for index, item in enumerate(given):
            self._item(item, f"input[{index}]")

    def _item(self, item: Any, place: str) -> None:
        if not isinstance(item, Mapping):
            raise bad(f"`{place}` must be an object", param=place)
        kind = item.get("type", "message" if "role" in item else None)
        if kind == "message":
            self._message(item, place)
        elif kind == "reasoning":
            self._reasoning(item, place)
        elif kind == "function_call":
            self._call(item, place, item.get("arguments"), "arguments")
        elif kind == "custom_tool_call":
            given = _string(item, "input", place)
            # The template knows the tool as a function of one string.
            self._call(item, place, json.dumps({"input": given}, ensure_ascii=False), "input")
        elif kind in ("function_call_output", "custom_tool_call_output"):
            call_id = _string(item, "call_id", place)
            content = _content(item.get("output"), f"{place}.output")
            self._append({"role": "tool", "tool_call_id": call_id, "content": content}, place)
        else:
            raise unsupported(f"{place}.type", f"the server knows no items of type {kind!r}")

    def _message(self, item: Mapping[str, Any], place: str) -> None:
        role = item.get("role")
        if role not in _ROLES:
            raise bad(f"`{place}.role` must be one of {', '.join(_ROLES)}", param=f"{place}.role")
        content = _content(item.get("content"), f"{place}.content")
        if role == "assistant":
            self._assistant(place, free=("content", "tool_calls"))["content"] = content
        else:
            self._append({"role": role, "content": content}, place)

    def _reasoning(self, item: Mapping[str, Any], place: str) -> None:
        texts: list[str] = []
        for name, kind in (("content", "reasoning_text"), ("summary", "summary_text")):
            parts = item.get(name) or []
            if not isinstance(parts, list):
                raise bad(f"`{place}.{name}` must be a list", param=f"{place}.{name}")
            for index, part in enumerate(parts):
                where = f"{place}.{name}[{index}]"
                if not isinstance(part, Mapping) or part.get("type") != kind:
                    raise bad(f"`{where}` must be of the type {kind!r}", param=where)
                texts.append(_string(part, "text", where))
            if texts:
                break
        if not texts and item.get("encrypted_content"):
            raise unsupported(
                f"{place}.encrypted_content", "the server has encrypted none: leave the item out"
            )
        if texts:
            message = self._assistant(place, free=("reasoning_content", "content", "tool_calls"))
            message["reasoning_content"] = "\n".join(texts)

    def _call(self, item: Mapping[str, Any], place: str, arguments: Any, member: str) -> None:
        if not isinstance(arguments, str):
            raise bad(f"`{place}.{member}` must be a string", param=f"{place}.{member}")
        function = {"name": _string(item, "name", place), "arguments": arguments}
        call = {"id": _string(item, "call_id", place), "type": "function", "function": function}
        self._assistant(place).setdefault("tool_calls", []).append(call)

    def _assistant(self, place: str, free: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the open message of the assistant, or a new one if it has a member already."""
        message = self._open
        if message is None or any(name in message for name in free):
            message = {"role": "assistant"}
            self._append(message, place)
            self._open = message
        return message

    def _append(self, message: dict[str, Any], place: str) -> None:
        self.messages.append(message)
        self.places.append(place)
        self._open = None


def _string(item: Mapping[str, Any], name: str, place: str) -> str:
    value = item.get(name)
    if not isinstance(value, str):
        raise bad(f"`{place}.{name}` must be a string", param=f"{place}.{name}")
    return value


def _content(content: Any, place: str) -> str:
    """Return the text of a content: a string, or parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise bad(f"`{place}` must be a string or a list of parts", param=place)
    texts: list[str] = []
    for index, part in enumerate(content):
        where = f"{place}[{index}]"
        kind = part.get("type") if isinstance(part, Mapping) else None
        member = _TEXTS.get(kind) if isinstance(kind, str) else None
        if member is None:
            raise unsupported(where, f"the model reads text, not {kind!r}")
        texts.append(_string(part, member, where))
    return "".join(texts)
