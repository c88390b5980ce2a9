"""Arguments as they are written in each style, read by the tests themselves."""

import ast
import json
import re
from typing import Any

from toolrequests import SCHEMAS

from ffwd.tools import FORMATS, PythonArguments, TaggedArguments


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
