"""Conversion of tool arguments from a model's notation to JSON for clients."""

import ast
import json
import re
from collections.abc import Mapping
from typing import Any

from ffwd.tools import PythonArguments, TaggedArguments, ToolFormat

_INTEGER = re.compile(r"-?[0-9]+")


def json_arguments(
    text: str, style: ToolFormat, parameters: Mapping[str, Any], values: frozenset[int]
) -> str:
    """Return the arguments as JSON from a format that writes them otherwise.

    Args:
        text: The arguments.
        style: The format.
        parameters: The schema of the function.
        values: Where in the text, in bytes, JSON values begin: what the grammar has read as such.

    """
    arguments = style.arguments
    if isinstance(arguments, PythonArguments):
        return json.dumps(_of_python(text), ensure_ascii=False)
    if isinstance(arguments, TaggedArguments):
        return json.dumps(_of_tags(text, arguments, parameters, values), ensure_ascii=False)
    return text


def _of_python(text: str) -> dict[str, Any]:
    call = ast.parse(f"f({text})", mode="eval").body
    assert isinstance(call, ast.Call)
    return {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}


def _of_tags(
    text: str, style: TaggedArguments, parameters: Mapping[str, Any], values: frozenset[int]
) -> dict[str, Any]:
    between = "|".join(
        re.escape(mark)
        # Longer ones first, because one may be a prefix of another.
        for mark in sorted({style.before_string, style.before_value}, key=len, reverse=True)
    )
    pattern = re.compile(
        rf"{re.escape(style.before_name)}(.*?)({between})(.*?){re.escape(style.after_value)}",
        re.DOTALL,
    )
    found: dict[str, Any] = {}
    for match in pattern.finditer(text):
        name, mark, value = match.groups()
        begin = len(text[: match.start(3)].encode())
        if begin in values:
            found[name] = json.loads(value)
        elif (
            _INTEGER.fullmatch(value)
            and mark == style.before_value
            and not _is_string(parameters, name)
        ):
            # Integers between tags are digits, and no JSON value to the grammar.
            found[name] = int(value)
        else:
            found[name] = value
    return found


def _is_string(parameters: Mapping[str, Any], name: str) -> bool:
    """Return whether the schema of a property says that it is a string."""
    properties = parameters.get("properties")
    schema = properties.get(name) if isinstance(properties, Mapping) else None
    for _ in range(16):
        if not isinstance(schema, Mapping):
            return True
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            break
        schema = _at(parameters, reference)
    else:
        return True
    return bool(schema.get("type", "string") == "string")


def _at(document: Any, reference: str) -> Any:
    """Return the target of a reference within a document."""
    for step in reference.removeprefix("#").split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(document, Mapping) or key not in document:
            return None
        document = document[key]
    return document
