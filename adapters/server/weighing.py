"""The estimated work of a request's prompt, before any of it is done.

A template visits each value of a conversation, so the cost of rendering grows with the number of
values. One value takes about 0.05 ms; a megabyte of text in one message takes 0.05 s.
"""

from collections.abc import Mapping
from typing import Any

from ffwd.adapters.server.errors import ApiError
from ffwd.adapters.server.protocol import AnyRequest, ChatRequest, TokenizeRequest

QUICK_VALUES = 2_048
"""Up to so many values a prompt is rendered beside others; the rest is heavy work."""
QUICK_BYTES = 1 << 18
"""Up to so many bytes of a request, likewise."""


def check_size(request: AnyRequest, most: int) -> int:
    """Check the number of values in the input of a prompt.

    Arguments of earlier calls are JSON in a string; values in it count.

    Raises:
        ApiError: There are more than `most`.

    """
    if not isinstance(request, (ChatRequest, TokenizeRequest)):
        # Encoding a text releases Python's lock, and ids are only checked.
        return 1
    number = 0
    for field in ("messages", "tools", "chat_template_kwargs"):
        number += _values(getattr(request, field), most - number)
        if number > most:
            raise ApiError(
                413,
                f"`messages`, `tools` and `chat_template_kwargs` have more than {most} values "
                "(messages, parts, fields, items), which is `max_prompt_values` of this server; "
                "send fewer messages or smaller tools",
                param=field,
                code="prompt_too_large",
            )
    return number


def _values(value: Any, most: int) -> int:
    """Return how many values there are, keys included; if more than `most`, at least one more."""
    number = 0
    open_values = [value]
    while open_values and number <= most:
        item = open_values.pop()
        number += 1
        if isinstance(item, Mapping):
            number += len(item)
            arguments = item.get("arguments")
            if isinstance(arguments, str):
                number += sum(map(arguments.count, ",:[{"))
            open_values.extend(item.values())
        elif isinstance(item, list):
            # Visits a long list only until it is known to be too long.
            open_values.extend(item[: max(most - number, 0) + 1])
    return number
