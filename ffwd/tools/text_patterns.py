"""Patterns and formats of strings that are written without quotes."""

import re

from ffwd.grammar import Grammar, regex
from ffwd.tools.schema import unsupported

# Nothing in these can be part of a tag, and each means the same in every dialect once its classes
# are spelled.
_PLAIN = re.compile(
    r"(?:[A-Za-z0-9_ @,:;#%=&~!'/-]|\\[dw.\-/+*?()\[\]{}|^$]"
    r"|\[(?:[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]|[A-Za-z0-9_. @:/+,#%]|\\[dw.\-/+])+-?\]"
    r"|\((?:\?:)?|\)|\||[*+?]|\{[0-9]{1,4}(?:,[0-9]{0,4})?\})*"
)
_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_"}

_DAY = r"(?:0[1-9]|1[0-9]|2[0-8])"
_DATE = rf"[0-9]{{4}}-(?:0[1-9]|1[0-2])-{_DAY}"
_HOUR = r"(?:[01][0-9]|2[0-3])"
_TIME = rf"{_HOUR}:[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{1,9}})?(?:Z|[+-]{_HOUR}:[0-5][0-9])"
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL}){{0,5}}"

# Each has texts of its format only, and not all of them: no leap days, no leap seconds, no quoted
# local parts. What is left out is rare, and what comes is valid.
FORMATS = {
    "date": rf"[0-9]{{4}}-(?:(?:0[1-9]|1[0-2])-{_DAY}|(?:0[13-9]|1[0-2])-(?:29|30)"
    r"|(?:0[13578]|1[02])-31)",
    "time": _TIME,
    "date-time": rf"{_DATE}T{_TIME}",
    "uuid": r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
    "ipv4": rf"{_BYTE}(?:\.{_BYTE}){{3}}",
    "hostname": _HOST,
    "email": rf"[A-Za-z0-9_+-]{{1,32}}(?:\.[A-Za-z0-9_+-]{{1,15}}){{0,1}}@{_HOST}",
    "uri": rf"https?://{_HOST}(?::[1-9][0-9]{{0,3}})?(?:/[A-Za-z0-9_.~-]*)*"
    r"(?:\?[A-Za-z0-9_.~=&-]*)?(?:#[A-Za-z0-9_.~-]*)?",
}


def pattern_text(pattern: object, pointer: str) -> Grammar:
    """Text that an ECMA pattern with both anchors matches, where nothing in it can end a tag."""
    inner = pattern[1:-1] if isinstance(pattern, str) and len(pattern) > 1 else ""
    anchored = isinstance(pattern, str) and pattern.startswith("^") and pattern.endswith("$")
    if not anchored or inner.endswith("\\") or not _PLAIN.fullmatch(inner) or _has_branches(inner):
        raise unsupported(
            f"the pattern {pattern!r} is not supported for a string that is written without "
            "quotes: it must have both anchors, and nothing in it that might match `<`",
            f"{pointer}/pattern",
            "pattern",
        )
    return regex(_spelled(inner))


def format_text(name: object, pointer: str) -> Grammar | None:
    """Text of a format; None for one that asks for nothing.

    Raises:
        UnsupportedSchemaError: It asks for something that is not known here.

    """
    known = FORMATS.get(name) if isinstance(name, str) else None
    if known is not None:
        return regex(known)
    if name in _ASSERTED:
        raise unsupported(
            f"the format {name!r} is not supported for a string that is written without quotes",
            f"{pointer}/format",
            "format",
        )
    return None


_ASSERTED = frozenset(
    {"duration", "idn-email", "idn-hostname", "ipv6", "uri-reference", "iri", "iri-reference"}
    | {"uri-template", "json-pointer", "relative-json-pointer", "regex"}
)


def _has_branches(pattern: str) -> bool:
    """Whether `|` stands outside of all groups, where the anchors would belong to one branch."""
    depth = 0
    in_class = escaped = False
    for character in pattern:
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
        elif character in "()":
            depth += 1 if character == "(" else -1
        elif character == "|" and depth == 0:
            return True
    return False


def _spelled(pattern: str) -> str:
    """With `\\d` and `\\w` as the ASCII classes that ECMA means."""
    written = ""
    in_class = False
    index = 0
    while index < len(pattern):
        character = pattern[index]
        if character == "\\":
            index += 1
            found = _CLASSES.get(pattern[index])
            if found is None:
                written += "\\" + pattern[index]
            else:
                written += found if in_class else f"[{found}]"
        else:
            in_class = character != "]" if in_class else character == "["
            written += f"\\{character}" if character in "#&~ " else character
        index += 1
    return written
