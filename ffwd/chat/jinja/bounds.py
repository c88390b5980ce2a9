"""Estimates of the cost of a template's operation before it is executed."""

from collections.abc import Mapping
from typing import Any

from jinja2.exceptions import SecurityError

from ffwd.chat.errors import TemplateLimitError
from ffwd.chat.jinja.run import current

# The length of their results, or their work, depends on their arguments. The most for these.
_MOST = (
    dict.fromkeys(("center", "indent", "truncate", "wordwrap", "filesizeformat"), 1 << 20)
    | dict.fromkeys(("ljust", "rjust", "zfill", "expandtabs", "to_bytes"), 1 << 20)
    | dict.fromkeys(("batch", "slice"), 1 << 12)
    | dict.fromkeys(("lipsum", "generate_lorem_ipsum", "round"), 1 << 8)
)
# Their search can take quadratic time, or make many pieces of a text.
TEXT_FILTERS = frozenset({"pprint", "striptags", "title", "urlize", "wordcount"})
TEXT_FILTERS |= {"wordwrap", "xmlattr"}
_MOST_TEXT = 1 << 16
# The methods that read bytes or decode them. Others would bypass the checks on text.
_OF_BYTES = frozenset({"decode", "hex", "startswith", "endswith", "find", "isascii"})
# Others take quadratic time.
_CODECS = frozenset({"utf8", "utf16", "utf32", "ascii", "latin1"})
_WHITE_SPACE = "".join(c for c in map(chr, range(0x3001)) if c.isspace())
_LINE_ENDS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_MOST_DIGITS = 5
_WRITTEN = 10
"""How many characters one of a text may be written as, within the text of a list."""


def check_sizes(name: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    """Refuse to pad to an excessive length."""
    most = _MOST.get(name)
    if most is None:
        return
    # The first argument of a filter is its subject.
    first = 1 if name == "round" else 0
    for value in (*arguments[first:], *options.values()):
        if isinstance(value, int) and abs(value) > most:
            raise TemplateLimitError(f"the template calls {name} with a number above {most}")


def check_format(template: Any, values: Any, *, by: str) -> None:
    """Refuse widths and precisions of more than five digits, and texts that get too long.

    `by`: what begins a field, `%` or `{`.
    """
    if not isinstance(template, str):
        return
    digits = widths = 0
    number = ""
    for character in template if any(map(str.isdigit, template)) else "":
        if character.isdigit():
            digits += 1
            number += character
            if digits > _MOST_DIGITS:
                raise TemplateLimitError(
                    f"the template formats with a width of more than {_MOST_DIGITS} digits"
                )
        elif digits:
            widths += int(number)
            digits, number = 0, ""
    # A width may be an argument.
    numbers = "*" in template or (by == "{" and _is_nested(template))
    longest = _longest(values, numbers)
    current().check_length(len(template) + widths + template.count(by) * longest)


def _is_nested(template: str) -> bool:
    return any("{" in field.partition("}")[0] for field in template.split("{:")[1:])


def _longest(values: Any, numbers: bool) -> int:
    """Return the length of the longest value in arguments, in a mapping or in a tuple of values."""
    if isinstance(values, dict):
        values = list(values.values())
    if not isinstance(values, (tuple, list)):
        values = (values,)
    longest = 0
    for value in values:
        if isinstance(value, str):
            length = len(value)
        elif isinstance(value, int):
            length = abs(value) if numbers else value.bit_length()
        else:
            size = current().size(value)
            length = 64 + _WRITTEN * (size.characters + size.items)
            if isinstance(value, (tuple, dict)):
                # The arguments themselves.
                length = min(length, max(64, _longest(value, numbers)))
        longest = max(longest, length)
    return longest


def check_replacement(text: str, old: str, new: str) -> None:
    """Refuse a replacement whose result is too long."""
    current().check_length(len(text) + text.count(old) * len(new))


def check_pieces(
    text: str, name: str, arguments: tuple[Any, ...], options: Mapping[str, Any]
) -> None:
    """Count the pieces before they are made."""
    separator = arguments[0] if arguments else options.get("sep")
    if name == "splitlines":
        pieces = sum(map(text.count, _LINE_ENDS))
    elif isinstance(separator, str) and separator:
        pieces = text.count(separator)
    else:
        pieces = sum(map(text.count, _WHITE_SPACE)) if len(text) > 1000 else len(text)
    current().spend(1 + pieces)


def check_codec(arguments: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    """Refuse encodings other than those of Unicode, ASCII and Latin-1."""
    name = arguments[0] if arguments else options.get("encoding", "utf-8")
    plain = str(name).lower().replace("-", "").replace("_", "")
    if plain.removesuffix("le").removesuffix("be") not in _CODECS:
        raise SecurityError(f"the encoding {str(name)[:40]!r} is none that a template may use")


def check_binary_method(name: str) -> None:
    """Refuse methods of bytes that return bytes."""
    if name not in _OF_BYTES:
        raise SecurityError(f"the method {name!r} of bytes is none that a template may use")


def check_tabs(text: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    """Refuse tabs that make a text too long."""
    width = arguments[0] if arguments else options.get("tabsize", 8)
    if isinstance(width, int):
        current().check_length(len(text) + text.count("\t") * max(width, 0))


def check_json(value: Any, *arguments: Any, **options: Any) -> None:
    """Refuse an indentation that makes a text too long."""
    indent = options.get("indent", arguments[1] if len(arguments) > 1 else None)
    separators = options.get("separators", arguments[2] if len(arguments) > 2 else None)
    width = indent if isinstance(indent, int) else len(indent) if isinstance(indent, str) else 0
    between = sum(map(len, separators)) if isinstance(separators, (list, tuple)) else 4
    if width or between > 4:
        size = current().size(value)
        current().check_length(size.items * (max(width, 0) * size.depth + between))


def check_sum(value: Any, attribute: Any = None, start: Any = 0, **options: Any) -> None:
    """Refuse to add up many lists: each step copies the sum so far."""
    if isinstance(start, (list, tuple)):
        size = current().size(value)
        count = len(value) if hasattr(value, "__len__") else size.items
        current().check_length(size.items * count)


def check_text_filter(name: str, value: Any) -> None:
    """Refuse long texts for filters that are made for short ones."""
    size = current().size(value)
    if size.items + size.characters > _MOST_TEXT:
        raise TemplateLimitError(
            f"the template calls {name} for more than {_MOST_TEXT} characters or items"
        )
