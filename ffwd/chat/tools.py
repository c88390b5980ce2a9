"""Python functions as tools: their schema, from type hints and the docstring.

The schema equals that of transformers' `get_json_schema`, because models were trained on it.
"""

import enum
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Union, get_args, get_origin

from ffwd.chat.errors import ToolError

_SCALARS: dict[type, str] = {
    int: "integer",
    float: "number",
    str: "string",
    bool: "boolean",
    type(None): "null",
}
_BASIC: dict[Any, dict[str, Any]] = {
    **{kind: {"type": name} for kind, name in _SCALARS.items()},
    list: {"type": "array"},
    tuple: {"type": "array"},
    dict: {"type": "object"},
    Any: {},
}
# By name, because neither package is imported here.
_FOREIGN = {("PIL.Image", "Image"): "image", ("torch", "Tensor"): "audio"}

_SECTION = re.compile(r"\n\s*(Args|Returns|Raises):", re.MULTILINE)
# A type in brackets after the name is skipped.
_ARGUMENT = re.compile(r"([ \t]*)(\w+)(?:[ \t]*\([^()\n]*\))?:[ \t]*(.*)", re.DOTALL)
_CHOICES = re.compile(r"\(choices:\s*(.*?)\)\s*$", re.IGNORECASE)


def tool_schemas(tools: Iterable[Any]) -> list[Mapping[str, Any]]:
    """Return each tool as its schema; dicts are returned unchanged.

    Raises `ToolError` for a function that cannot be described, and for any other value.
    """
    found: list[Mapping[str, Any]] = []
    for index, tool in enumerate(tools):
        if isinstance(tool, Mapping):
            found.append(tool)
        elif inspect.isfunction(tool) or inspect.ismethod(tool):
            found.append(function_schema(tool))
        else:
            raise ToolError(
                f"tool {index} is {type(tool).__name__}: a tool is a JSON schema as a dict, or a "
                "Python function with type hints and a docstring"
            )
    return found


def function_schema(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a tool as `{"type": "function", "function": {"name", "description", "parameters"}}`.

    Each parameter needs a type hint, and a description in the docstring, in Google's form: `Args:`,
    then `name: description`, which may end in `(choices: ["a", "b"])`. The text after `Returns:` is
    listed under `return` if the hint can be described. Raises `ToolError` otherwise.
    """
    name = getattr(function, "__name__", "operation")
    documentation = inspect.getdoc(function)
    if not documentation:
        raise ToolError(f"`{name}` has no docstring: write one that describes it", function=name)
    description, arguments, returns = parse_docstring(documentation.strip())
    parameters, result = _parameters(function, name)
    for argument, schema in parameters["properties"].items():
        if argument not in arguments:
            raise ToolError(
                f"the docstring of {name} does not describe the argument {argument!r}",
                function=name,
            )
        text = arguments[argument]
        if choices := _CHOICES.search(text):
            try:
                values = json.loads(choices[1])
            except ValueError as error:
                raise ToolError(
                    f"the choices of {argument!r} of {name} are not JSON: {choices[1]}",
                    function=name,
                ) from error
            schema["enum"] = [c.strip() if isinstance(c, str) else c for c in values]
            text = text[: choices.start()].strip()
        schema["description"] = text
    made: dict[str, Any] = {"name": name, "description": description, "parameters": parameters}
    if result is not None:
        if returns is not None:
            result["description"] = returns
        made["return"] = result
    return {"type": "function", "function": made}


def parse_docstring(text: str) -> tuple[str | None, dict[str, str], str | None]:
    """Return the description, the arguments' descriptions, and that of the result."""
    # A first section without a line before it also ends the description.
    first = re.search(r"(Args|Returns|Raises):", text)
    description = (text[: first.start()] if first else text).strip()
    arguments = returns = None
    if (begin := re.search(r"\n\s*Args:\n", text)) is not None:
        arguments = _until(text, begin.end(), ("Returns", "Raises"))
    if (begin := re.search(r"\n\s*Returns:\n\s*", text)) is not None:
        returns = _until(text, begin.end(), ("Raises",)).strip()
    return description, _arguments(arguments or ""), returns


def _until(text: str, start: int, sections: tuple[str, ...]) -> str:
    end = re.compile(rf"({'|'.join(sections)}):").search(text, start)
    return text[start : end.start() if end else len(text)].rstrip()


def _arguments(block: str) -> dict[str, str]:
    """Parse `name: description`, which continues in lines with a deeper indent."""
    found: dict[str, str] = {}
    current: str | None = None
    depth = 0
    for line in block.split("\n"):
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip(" \t"))
        entry = _ARGUMENT.fullmatch(line)
        if entry is not None and (current is None or indent <= depth):
            current, depth = entry[2], indent
            found[current] = entry[3].strip()
        elif current is not None:
            found[current] = f"{found[current]} {line.strip()}".strip()
    return found


def _parameters(
    function: Callable[..., Any], name: str
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    try:
        hints = typing.get_type_hints(function)
    except NameError as error:
        raise ToolError(
            f"a type hint of {name} cannot be resolved: {error}", function=name
        ) from error
    signature = inspect.signature(function)
    empty = inspect.Parameter.empty
    receiver = next(iter(signature.parameters), None)
    if receiver not in ("self", "cls") or signature.parameters[receiver].annotation is not empty:
        receiver = None
    required = []
    for argument, parameter in signature.parameters.items():
        if argument == receiver:
            continue
        if parameter.annotation is empty:
            raise ToolError(f"the argument {argument!r} of {name} has no type hint", function=name)
        if parameter.default is empty:
            required.append(argument)
    properties = {}
    result = None
    for argument, hint in hints.items():
        if argument == "return":
            try:
                result = hint_schema(hint)
            except ToolError:
                # The model never writes it, so it is omitted rather than described wrongly.
                result = None
        elif argument != receiver:
            try:
                properties[argument] = hint_schema(hint)
            except ToolError as error:
                raise ToolError(
                    f"the argument {argument!r} of {name}: {error}", function=name
                ) from None
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return schema, result


def hint_schema(hint: Any) -> dict[str, Any]:
    """Return the JSON schema of a type hint, or raise `ToolError`."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is None and isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _values([member.value for member in hint], f"the enumeration {hint.__name__}")
    if origin is None:
        return _bare(hint)
    if origin in (Union, types.UnionType):
        return _union(args)
    if origin is Literal and args:
        return _values(list(args), "Literal")
    if origin is list:
        return {"type": "array", "items": hint_schema(args[0])} if args else {"type": "array"}
    if origin is tuple:
        if not args:
            return {"type": "array"}
        if len(args) == 1:
            raise ToolError(f"{hint}: a tuple of one element; use a list, or the element itself")
        if ... in args:
            raise ToolError(f"{hint}: a tuple of any length; use a list")
        return {"type": "array", "prefixItems": [hint_schema(arg) for arg in args]}
    if origin is dict:
        made: dict[str, Any] = {"type": "object"}
        if len(args) == 2:
            made["additionalProperties"] = hint_schema(args[1])
        return made
    raise ToolError(f"the type hint {hint!r} has no JSON schema: give the tool's schema as a dict")


def _bare(hint: Any) -> dict[str, Any]:
    try:
        known = _BASIC.get(hint)
    except TypeError:
        known = None
    if known is not None:
        return dict(known)
    foreign = _FOREIGN.get((getattr(hint, "__module__", ""), getattr(hint, "__name__", "")))
    if foreign is not None:
        return {"type": foreign}
    raise ToolError(
        f"the type hint {hint!r} has no JSON schema; those that have are int, float, str, bool, "
        "Enum classes, Literal, and list, tuple, dict and Union of these: or give the tool's "
        "schema as a dict"
    )


def _values(values: list[Any], what: str) -> dict[str, Any]:
    if not values:
        raise ToolError(f"{what} has no members, so no value could match it")
    if any(type(value) not in _SCALARS for value in values):
        raise ToolError(f"{what} has values that are not JSON scalars: {values}")
    kinds = list(dict.fromkeys(_SCALARS[type(value)] for value in values))
    return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": values}


def _union(args: tuple[Any, ...]) -> dict[str, Any]:
    schemas = [hint_schema(arg) for arg in args if arg is not type(None)]
    if len(schemas) == 1:
        made = schemas[0]
    elif all(s.keys() == {"type"} and isinstance(s["type"], str) for s in schemas):
        # Without repetitions: list and tuple are equal in JSON.
        names = sorted({schema["type"] for schema in schemas})
        made = {"type": names[0] if len(names) == 1 else names}
    else:
        made = {"anyOf": schemas}
    if type(None) in args:
        made["nullable"] = True
    return made
