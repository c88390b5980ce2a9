"""Jinja's filters and string methods, bounded, and with rules for tracked text."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from jinja2.filters import FILTERS, make_attrgetter
from markupsafe import Markup, escape

from ffwd.chat.jinja import formatting, tracked
from ffwd.chat.jinja.bounds import (
    TEXT_FILTERS,
    check_format,
    check_json,
    check_replacement,
    check_sizes,
    check_sum,
    check_text_filter,
)
from ffwd.chat.jinja.run import current

# They return one of their arguments.
_SELECT = frozenset(
    {"attr", "d", "default", "first", "last", "max", "min", "random", "sum"}
    # Or iterators over them.
    | {"batch", "dictsort", "groupby", "items", "list", "map", "reject", "rejectattr", "reverse"}
    | {"select", "selectattr", "slice", "sort", "unique"}
)
# They return numbers.
_NUMBERS = frozenset({"abs", "count", "float", "int", "length", "round", "wordcount"})


def all_filters() -> dict[str, Callable[..., Any]]:
    """Return every filter of the environment."""
    return {name: _watched(name, function) for name, function in FILTERS.items()} | {
        "tojson": _watched("tojson", formatting.to_json)
    }


def all_tests(tests: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """Return Jinja's tests; each is counted."""
    return {name: _counted(function) for name, function in tests.items()}


def _counted(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        current().spend()
        return function(*arguments, **options)

    return call


def _watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the filter with bounds and with tracking of text.

    Without tracked text it calls Jinja's own function.
    """
    rule = _RULES.get(name)
    context_first = getattr(function, "jinja_pass_arg", None) is not None

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        run = current()
        run.spend()
        check_sizes(name, arguments, options)
        head, values = (arguments[:1], arguments[1:]) if context_first else ((), arguments)
        if name == "join" and values:
            values = (_items(head[0], values[0], options.pop("attribute", None)), *values[1:])
            if len(values) > 2:
                values = (_items(head[0], values[0], values[2]), values[1])
        _check_lengths(name, values, options)
        if name in _SELECT or name in _NUMBERS:
            return run.made(function(*head, *values, **options))
        if not any(map(tracked.may_track, values)) and not any(
            map(tracked.may_track, options.values())
        ):
            return run.made(function(*head, *values, **options))
        if head and getattr(head[0], "autoescape", False):
            result = function(*head, *tracked.plain(values), **tracked.plain(options))
            return run.made(tracked.fuzzy(result))
        if rule is not None:
            result = rule(*values, **options)
        elif name in _OF_STRINGS and values:
            # Jinja's function would convert it to a string without tracking.
            result = function(*head, _string(values[0]), *values[1:], **options)
        elif name == "tojson":
            result = function(*values, **options)
        else:
            result = tracked.fuzzy(
                function(*head, *tracked.plain(values), **tracked.plain(options))
            )
        return run.made(result)

    return call


def _items(context: Any, values: Any, attribute: Any) -> list[Any]:
    """Copy the items that `join` joins, because they may be an iterator."""
    if attribute is not None:
        values = map(make_attrgetter(context.environment, attribute), values)
    return list(values)


def _check_lengths(name: str, values: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    if name == "join":
        separator = values[1] if len(values) > 1 else options.get("d", "")
        lengths = [len(item) for item in values[0] if isinstance(item, str)] if values else []
        if isinstance(separator, str):
            current().check_length(sum(lengths) + len(separator) * len(lengths))
    elif name == "replace":
        given = [value for value in (*values, *options.values()) if isinstance(value, str)]
        if len(given) == 3:
            check_replacement(*given)
    elif name == "format" and values:
        check_format(values[0], (values[1:], options), by="%")
    elif name == "list" and values and hasattr(values[0], "__len__"):
        current().spend(len(values[0]))
    elif name == "tojson" and values:
        check_json(*values, **options)
    elif name == "sum" and values:
        check_sum(*values, **options)
    elif name in TEXT_FILTERS and values:
        check_text_filter(name, values[0])
    elif name == "indent" and values and isinstance(values[0], str):
        width = values[1] if len(values) > 1 else options.get("width", 4)
        width = len(width) if isinstance(width, str) else width if isinstance(width, int) else 4
        current().check_length(len(values[0]) + (values[0].count("\n") + 1) * width)


def _string(value: Any) -> Any:
    # As soft_str in jinja2.filters: strings stay unchanged.
    return value if isinstance(value, str) else formatting.to_string(value)


def _safe(value: Any) -> Any:
    if isinstance(value, tracked.Tracked):
        return tracked.make(tracked.raw(value), tracked.origins_of(value), markup=True)
    if tracked.tracks(value):
        return _safe(formatting.to_string(value))
    return Markup(value)


def _escape(value: Any) -> Any:
    if isinstance(value, str):
        return tracked.escaped(value)
    return _escape(formatting.to_string(value)) if tracked.tracks(value) else escape(value)


def _force_escape(value: Any) -> Any:
    value = formatting.to_string(value.__html__() if isinstance(value, Markup) else value)
    return _escape(str(value))


def _replace(s: Any, old: Any, new: Any, count: Any = None) -> Any:
    text, old, new = (formatting.to_string(value) for value in (s, old, new))
    return replace(text, old, new, -1 if count is None else count)


def _join(value: list[Any], d: Any = "") -> Any:
    return join(formatting.to_string(d), [formatting.to_string(item) for item in value])


def _indent(s: Any, width: Any = 4, first: bool = False, blank: bool = False) -> Any:
    indention = width if isinstance(width, str) else " " * width
    newline: Any = "\n"
    if tracked.is_markup(s):
        indention, newline = Markup(indention), Markup(newline)
    # A final newline would otherwise be dropped with the line that it ends.
    lines = tracked.add(s, newline).splitlines()
    if blank:
        made = join(tracked.add(newline, indention), lines)
    else:
        made = lines.pop(0)
        if lines:
            indented = [tracked.add(indention, line) if line else line for line in lines]
            made = tracked.add(tracked.add(made, newline), join(newline, indented))
    return tracked.add(indention, made) if first else made


def _format(value: Any, *arguments: Any, **options: Any) -> Any:
    if arguments and options:
        raise TypeError("can't handle positional and keyword arguments at the same time")
    template = value if isinstance(value, str) else formatting.to_string(value)
    return modulo(template, options or arguments)


def modulo(left: Any, right: Any) -> Any:
    """Return `left % right`."""
    if isinstance(left, str) and (tracked.tracks(left) or tracked.may_track(right)):
        return formatting.percent(left, right)
    return left % right


def replace(text: str, old: str, new: str, count: int = -1) -> Any:
    """Return `text.replace(...)`, also where only `new` is tracked."""
    if isinstance(new, tracked.Tracked) and not isinstance(text, tracked.Tracked):
        if isinstance(text, Markup) or not old:
            return tracked.fuzzy(text.replace(old, tracked.plain(new), count))
        return tracked.concat(_interleaved(text.split(tracked.raw(old), count), new))
    return text.replace(old, new, count)


def join(separator: str, items: list[str]) -> Any:
    """Return `separator.join(items)`, also where only an item is tracked."""
    if not tracked.tracks(items):
        return separator.join(items)
    separator.join(tracked.plain(items))  # raises what the original does
    markup = tracked.is_markup(separator)
    if markup:
        items = [tracked.escaped(item) for item in items]
    return tracked.concat(_interleaved(items, separator), markup=markup)


def _interleaved(items: list[str], separator: str) -> list[str]:
    return [piece for item in items for piece in (separator, item)][1:]


_RULES: dict[str, Callable[..., Any]] = {
    "string": _string,
    "safe": _safe,
    "e": _escape,
    "escape": _escape,
    "forceescape": _force_escape,
    "replace": _replace,
    "join": _join,
    "indent": _indent,
    "format": _format,
}
# They only call methods of their text.
_OF_STRINGS = frozenset({"trim", "upper", "lower", "capitalize", "truncate"})
