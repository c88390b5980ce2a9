"""Arguments as they are written in each style, read by the tests themselves."""

import ast
import json
import re
from typing import Any

from toolrequests import SCHEMAS

from ffwd.tools import FORMATS, PythonArguments, TaggedArguments
from ffwd.tools.format import ARGUMENTS, NAME, OneOf, Pattern, Piece


def read_arguments(style: str, name: str, text: str) -> Any:
    """What arguments of a tool mean."""
    how = FORMATS[style].arguments
    if isinstance(how, PythonArguments):
        module = ast.parse(f"f({text})", mode="eval")
        assert isinstance(module.body, ast.Call)
        return {word.arg: ast.literal_eval(word.value) for word in module.body.keywords}
    if not isinstance(how, TaggedArguments):
        return json.loads(text)
    properties = SCHEMAS[name]["properties"]
    found: dict[str, Any] = {}
    before = {re.escape(how.before_string), re.escape(how.before_value)}
    pattern = (
        rf"{re.escape(how.before_name)}(\w+)({'|'.join(before)})(.*?){re.escape(how.after_value)}"
    )
    for key, _, value in re.findall(pattern, text, re.DOTALL):
        found[key] = value if properties[key].get("type") == "string" else json.loads(value)
    return found


def find_calls(style: str, text: str) -> list[tuple[str, str]]:
    """Names and arguments of the calls in a text, as the texts of the format around them say."""
    how = FORMATS[style]
    call = _pattern(how.call)
    found = []
    for each in re.finditer(call, text, re.DOTALL):
        groups = [group for group in each.groups() if group is not None]
        found.append((groups[0], groups[1]))
    return found


def _pattern(pieces: tuple[Piece, ...]) -> str:
    written = ""
    for index, piece in enumerate(pieces):
        if piece is NAME:
            written += f"({'|'.join(SCHEMAS)})"
        elif piece is ARGUMENTS:
            # The last one goes on to where the answer or the next call does.
            last = index == len(pieces) - 1
            written += r"(.*?)(?=\[TOOL_CALLS\]|$)" if last else "(.*?)"
        elif isinstance(piece, str):
            written += re.escape(piece)
        elif isinstance(piece, OneOf):
            written += f"(?:{'|'.join(_pattern(option) for option in piece.options)})"
        else:
            assert isinstance(piece, Pattern)
            written += f"(?:{piece.pattern})"
    return written
