"""Arguments as they are written in each style, read by the tests themselves."""

import ast
import json
import re
from typing import Any

from toolrequests import SCHEMAS

from ffwd.tools import FORMATS, JsonArguments, PythonArguments, TaggedArguments
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
    middle = how.call.index(ARGUMENTS)
    head = re.compile(_pattern(how.call[:middle]), re.DOTALL)
    tail = re.compile(_pattern(how.call[middle + 1 :]), re.DOTALL)
    found = []
    at = 0
    while (begun := head.search(text, at)) is not None:
        start = begun.end()
        end = _end(style, text, start, tail)
        found.append((next(filter(None, begun.groups())), text[start:end]))
        at = end
    return found


def _end(style: str, text: str, start: int, tail: re.Pattern[str]) -> int:
    """Where arguments end."""
    how = FORMATS[style].arguments
    if isinstance(how, JsonArguments):
        return start + json.JSONDecoder().raw_decode(text[start:])[1]
    for behind in tail.finditer(text, start):
        if isinstance(how, TaggedArguments):
            return behind.start()
        try:
            ast.parse(f"f({text[start : behind.start()]})", mode="eval")
        except SyntaxError:
            continue
        return behind.start()
    raise AssertionError(text[start:])


def _pattern(pieces: tuple[Piece, ...]) -> str:
    written = ""
    for piece in pieces:
        if piece is NAME:
            written += f"({'|'.join(SCHEMAS)})"
        elif isinstance(piece, str):
            written += re.escape(piece)
        elif isinstance(piece, OneOf):
            written += f"(?:{'|'.join(_pattern(option) for option in piece.options)})"
        else:
            assert isinstance(piece, Pattern)
            written += f"(?:{piece.pattern})"
    return written
