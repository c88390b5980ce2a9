"""`str.format`, the `%` operator, `repr` and JSON of tracked text."""

import json
import re
import string
from collections.abc import Callable, Mapping
from typing import Any

from markupsafe import Markup

from ffwd.chat.jinja import tracked

_CONVERSION = re.compile(
    r"%(?:\((?P<key>[^)]*)\))?(?P<flags>[-#0 +]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d+)?)?"
    r"[hlL]?(?P<type>.)",
    re.DOTALL,
)


def percent(template: str, values: Any) -> Any:
    """Return `template % values`."""
    result = tracked.plain(template) % tracked.plain(values)
    if not isinstance(template, str) or isinstance(result, Markup):
        return tracked.fuzzy(result)
    text = tracked.raw(template)
    pieces: list[str] = []
    given = list(values) if isinstance(values, tuple) else [values]
    at = 0
    for found in _CONVERSION.finditer(text):
        pieces.append(template[at : found.start()])
        at = found.end()
        if found["type"] == "%":
            pieces.append("%")
            continue
        if "*" in (found["width"], found["precision"]):
            return tracked.fuzzy(result)
        value = values[found["key"]] if found["key"] is not None else given.pop(0)
        bare = found.group() in ("%s", f"%({found['key']})s")
        if bare and isinstance(value, str):
            pieces.append(value)
        else:
            conversion = re.sub(r"\([^)]*\)", "", found.group(), count=1)
            written = conversion % (tracked.plain(value),)
            pieces.append(tracked.fuzzy(written) if tracked.may_track(value) else written)
    return checked(tracked.concat([*pieces, template[at:]]), result)


def formatted(template: str, result: str, field: Callable[[str], Any]) -> Any:
    """Return `template.format(...)`, whose text is `result`; `field` returns a field's value."""
    if isinstance(result, Markup) or isinstance(template, tracked.Tracked):
        return tracked.fuzzy(result)
    pieces: list[str] = []
    automatic = 0
    for literal, name, spec, conversion in string.Formatter().parse(template):
        pieces.append(literal)
        if name is None:
            continue
        if not name or name[0] in ".[":
            name = f"{automatic}{name}"
            automatic += 1
        value = field(name)
        if isinstance(value, str) and not spec and conversion in (None, "s"):
            pieces.append(value)
        elif tracked.may_track(value) or "{" in (spec or ""):
            return tracked.fuzzy(result)
        else:
            pieces.append(
                ("{" + (f"!{conversion}" if conversion else "") + f":{spec}}}").format(value)
            )
    return checked(tracked.concat(pieces), result)


def checked(found: str, expected: str) -> Any:
    """Return the match if it has the expected characters."""
    return found if tracked.raw(found) == tracked.raw(expected) else tracked.fuzzy(expected)


def to_string(value: Any) -> Any:
    """Return `str(value)`."""
    if isinstance(value, str):
        return value if isinstance(value, tracked.Tracked) else str(value)
    if not tracked.may_track(value):
        return str(value)
    if type(value) not in (list, tuple, dict):
        return tracked.fuzzy(str(value))
    return checked(tracked.concat(_repr(value)), str(tracked.plain(value)))


def _repr(value: Any) -> list[str]:
    """Yield the pieces of `repr(value)`."""
    if isinstance(value, tracked.Tracked):
        quote = repr(tracked.raw(value))[0]
        return [quote, tracked.expand(value, lambda c: _repr_of(c, quote)), quote]
    if type(value) is dict:
        pieces = ["{"]
        for key, item in value.items():
            pieces += [*_repr(key), ": ", *_repr(item), ", "]
        return [*(pieces[:-1] if value else pieces), "}"]
    if type(value) in (list, tuple):
        pieces = ["[" if type(value) is list else "("]
        for item in value:
            pieces += [*_repr(item), ", "]
        if value and not (type(value) is tuple and len(value) == 1):
            pieces.pop()
        elif value:
            pieces[-1] = ","
        return [*pieces, "]" if type(value) is list else ")"]
    written = repr(tracked.plain(value))
    return [tracked.fuzzy(written) if tracked.may_track(value) else written]


def _repr_of(character: str, quote: str) -> str:
    if character in "'\"":
        return "\\" + character if character == quote else character
    return repr(character)[1:-1]


def to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> Any:
    """Return transformers' `tojson`: unlike Jinja's own it escapes nothing for HTML."""
    options: dict[str, Any] = {
        "ensure_ascii": ensure_ascii,
        "indent": tracked.raw(indent),
        "separators": tracked.plain(separators),
        "sort_keys": sort_keys,
    }
    text = json.dumps(tracked.plain(value), **options)
    if not tracked.tracks(value):
        return text
    comma, colon = options["separators"] or (("," if indent is not None else ", "), ": ")
    step = " " * indent if isinstance(indent, int) else options["indent"]
    writer = _JsonWriter(comma, colon, step, ensure_ascii, sort_keys)
    return checked(tracked.concat(writer.write(value, 0)), text)


class _JsonWriter:
    def __init__(
        self, comma: str, colon: str, step: str | None, ensure_ascii: bool, sort_keys: bool
    ) -> None:
        self._comma, self._colon, self._step = comma, colon, step
        self._ensure_ascii, self._sort_keys = ensure_ascii, sort_keys

    def write(self, value: Any, depth: int) -> list[str]:
        if isinstance(value, tracked.Tracked):
            text = tracked.raw(value)
            if self._spelling(text) == text:
                return ['"', value, '"']
            return ['"', tracked.expand(value, self._spelling), '"']
        if isinstance(value, Mapping):
            items = sorted(value.items()) if self._sort_keys else list(value.items())
            pairs = [
                [*self._key(key, depth), self._colon, *self.write(item, depth + 1)]
                for key, item in items
            ]
            return self._enclosed("{", pairs, "}", depth)
        if isinstance(value, (list, tuple)):
            return self._enclosed("[", [self.write(item, depth + 1) for item in value], "]", depth)
        return [json.dumps(tracked.plain(value), ensure_ascii=self._ensure_ascii)]

    def _key(self, key: Any, depth: int) -> list[str]:
        if isinstance(key, str):
            return self.write(key, depth)
        # Numbers, booleans and null become strings as the library writes them.
        return [json.dumps({key: 0})[1:].rpartition(":")[0]]

    def _enclosed(self, begin: str, items: list[list[str]], end: str, depth: int) -> list[str]:
        if not items:
            return [begin + end]
        line = "" if self._step is None else "\n" + self._step * (depth + 1)
        pieces = [begin]
        for index, item in enumerate(items):
            pieces += [self._comma + line if index else line, *item]
        if self._step is not None:
            pieces.append("\n" + self._step * depth)
        return [*pieces, end]

    def _spelling(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=self._ensure_ascii)[1:-1]
