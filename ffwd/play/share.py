"""The file that has the whole state of a page: `NAME.ffwd.json`."""

from __future__ import annotations

import json
from typing import Any

from ffwd.play.errors import PlayError
from ffwd.play.schema import STATE, check

SUFFIX = ".ffwd.json"
VERSION = 1
MAX_FILE = 1 << 24
"""The most characters of a file."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"ffwd_play": {"type": "integer"}, "state": STATE},
    "required": ["ffwd_play", "state"],
    "additionalProperties": False,
}


def dump(state: dict[str, Any]) -> str:
    """Return the text of a file, which `load` reads."""
    return json.dumps({"ffwd_play": VERSION, "state": state}, indent=2) + "\n"


def load(text: str) -> dict[str, Any]:
    """Return the state of a file's text.

    Raises:
        PlayError: It is no such file, with the JSON pointer of what is wrong, or of another
            version.

    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise PlayError(
            f"the file is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from error
    except (RecursionError, ValueError) as error:
        raise PlayError(f"the file is not a state of `ffwd play`: {error}") from error
    if not isinstance(value, dict) or "ffwd_play" not in value:
        raise PlayError("the file is not a state of `ffwd play`: it lacks `ffwd_play`")
    if isinstance(value["ffwd_play"], int) and value["ffwd_play"] != VERSION:
        raise PlayError(
            f"the file has the version {value['ffwd_play']}, and this ffwd reads {VERSION}: save "
            "it with the same version of ffwd",
            "/ffwd_play",
        )
    check(value, SCHEMA)
    state: dict[str, Any] = value["state"]
    return state
