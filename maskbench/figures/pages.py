"""Pages filled from records.

A page marks what is filled: `<!-- figures: NAME -->` … `<!-- end -->`. NAME is a section of
`templates.md`, whose text has expressions in braces; an expression may also stand in the marker
itself. `{record/key/key}` is a recorded value, `{a over b}` the ratio of two, and `:form` after it
says how it is written (`FORMS`). The section `names` has short names for the beginnings of paths.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from maskbench.figures.records import FiguresError, read_records

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = Path(__file__).parent / "templates.md"

_BLOCK = re.compile(r"<!-- figures: (?P<what>.+?) -->(?P<text>.*?)<!-- end -->", re.DOTALL)
_MARKER = re.compile(r"<!-- (?:figures: .*?|end) -->")
_EXPRESSION = re.compile(r"\{([^{}:]+)(?::([\w,]+))?\}")


def number(value: float) -> str:
    """Three digits at least: 4.53, 38.8, 2,154."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def duration(us: float) -> str:
    """Microseconds with the unit that fits."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if us >= size:
            return f"{number(us / size)} {unit}"
    return f"{number(us)} µs"


def times(ratio: float) -> str:
    """How many times as long: 9.2x, 222x."""
    return f"{ratio:,.0f}x" if ratio >= 100 else f"{ratio:.1f}x"


FORMS: dict[str, Callable[[Any], str]] = {
    "": str,
    ",": lambda value: f"{value:,}",
    "n": number,
    "list": lambda values: ", ".join(map(number, values)),
    "versions": lambda found: ", ".join(f"{name} {version}" for name, version in found.items()),
    "share": lambda value: f"{value:.1%}",
    "share2": lambda value: f"{value:.2%}",
    "t": duration,
    "x": times,
    "us": lambda value: f"{value:,.0f}",
    "MB": lambda value: f"{value / 1e6:,.0f}",
    "GB": lambda value: f"{value / 1e9:.1f} GB",
}


def read_templates(path: Path = TEMPLATES) -> dict[str, str]:
    """Return the sections of the templates by their headings."""
    found: dict[str, str] = {}
    for section in re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, text = section.partition("\n")
        if name in found:
            raise FiguresError(f"{path}: two templates are called {name!r}")
        found[name] = text.strip()
    names = dict(line[2:].split(": ") for line in found.pop("names", "").splitlines())

    def whole(match: re.Match[str]) -> str:
        return match[1] + names.get(match[2], match[2]) + "/"

    return {name: re.sub(r"(\{| over )([\w-]+)/", whole, text) for name, text in found.items()}


def value_of(expression: str, records: Mapping[str, Any]) -> Any:
    """Return the recorded value, or the ratio of two. Raises `FiguresError`."""
    above, over, below = expression.partition(" over ")
    if over:
        return value_of(above, records) / value_of(below, records)
    found: Any = records
    for key in expression.split("/"):
        if isinstance(found, list):
            found = {str(index): value for index, value in enumerate(found)}
        if not isinstance(found, Mapping) or key not in found:
            raise FiguresError(f"no record has {expression!r}: {key!r} is missing")
        found = found[key]
    if found is None:
        raise FiguresError(f"{expression!r} was not measured")
    return found


def expand(template: str, records: Mapping[str, Any]) -> str:
    """Return the template with its expressions replaced by figures. Raises `FiguresError`."""

    def written(match: re.Match[str]) -> str:
        form = match[2] or ""
        if form not in FORMS:
            raise FiguresError(f"{match[0]}: no form {form!r}; forms: {', '.join(FORMS)}")
        return FORMS[form](value_of(match[1], records))

    return _EXPRESSION.sub(written, template)


def fill(page: str, records: Mapping[str, Any], templates: Mapping[str, str]) -> str:
    """Return the page with every marked part made again. Raises `FiguresError`."""

    def made(match: re.Match[str]) -> str:
        what = match["what"]
        if "{" not in what and what not in templates:
            raise FiguresError(f"no template {what!r}")
        if _MARKER.search(match["text"]):
            raise FiguresError(f"figures {what!r} have no end")
        text = expand(templates.get(what, what), records)
        # A table needs blank lines around it.
        edge = "\n\n" if text.startswith("|") else ""
        return f"<!-- figures: {what} -->{edge}{text}{edge}<!-- end -->"

    filled = _BLOCK.sub(made, page)
    if _MARKER.search(_BLOCK.sub("", filled)):
        raise FiguresError("a marker of figures without its other half")
    return filled


def outside(page: str) -> str:
    """Return the page without its marked parts."""
    return _BLOCK.sub("", page)


def marked_pages(root: Path = ROOT) -> list[Path]:
    """Return the README and the pages of docs/ that have markers."""
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    return [page for page in pages if _MARKER.search(page.read_text(encoding="utf-8"))]


def stale_pages(root: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """Yield pages whose figures are not the recorded ones, with what they should be.

    Raises `FiguresError`.
    """
    records, templates = read_records(), read_templates()
    for page in marked_pages(root):
        text = page.read_text(encoding="utf-8")
        try:
            filled = fill(text, records, templates)
        except FiguresError as error:
            raise FiguresError(f"{page.relative_to(root)}: {error}") from error
        if filled != text:
            yield page, filled
