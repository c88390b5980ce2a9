"""`LimitExceededError.limit` is an identifier that docs/limits.md explains, and never prose."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ffwd

ROOT = Path(__file__).resolve().parent.parent
NATIVE = ROOT / "ffwd/native"
PAGE = (ROOT / "docs/limits.md").read_text(encoding="utf-8")
# What is passed as the name of a limit, in the core and in Python: a text or a name for one.
NAME = r"""("[^"]*"|[A-Za-z_][\w.]*)\s*,"""
CALLS = re.compile(
    rf"(?:LimitExceeded::new|Interner::new|\.passed)\(\s*{NAME}"
    rf"|(?:too_large|(?:cursor|self)\s*\.limit)\(\s*[^,]+?,\s*{NAME}"
    r'|\blimit:\s*("[^"]*")'
)
PYTHON = re.compile(rf"\b(?:limit_exceeded|_too_much)\(\s*{NAME}")
# Names that functions and fields are given from elsewhere.
PASSED_ON = {"limit", "self.limit", "self.steps_limit"}
FIELDS = {field.name for field in dataclasses.fields(ffwd.Limits)}


def names() -> Iterator[tuple[str, str]]:
    """Each name with its file; what a variable or a constant stands for, where it is one."""
    sources = {
        path: re.split(r"#\[cfg\(test\)\]\nmod \w+ \{", path.read_text(encoding="utf-8"))[0]
        for folder in (NATIVE / "src", *NATIVE.glob("crates/*/src"))
        for path in folder.rglob("*.rs")
        if "test" not in path.stem
    }
    constants: dict[str, list[str]] = {}
    for text in sources.values():
        for name, value in re.findall(r'const (\w+): &(?:\'static )?str = ("[^"]*");', text):
            constants.setdefault(name, []).append(value)
    for path, text in sources.items():
        bound: dict[str, list[str]] = {}
        for name, value in re.findall(r'let (\w+)(?:: &str)? = ("[^"]*");', text):
            bound.setdefault(name, []).append(value)
        for found in CALLS.finditer(text):
            name = next(filter(None, found.groups()))
            if name.startswith('"'):
                values = [name]
            else:
                values = bound.get(name) or constants.get(name) or [name]
            for value in values:
                if value not in PASSED_ON:
                    yield str(path.relative_to(ROOT)), value
    for path in (ROOT / "ffwd").rglob("*.py"):
        for name in PYTHON.findall(path.read_text(encoding="utf-8")):
            if name not in PASSED_ON:
                yield str(path.relative_to(ROOT)), name


def test_limits_are_named_by_identifiers() -> None:
    """Where an error is made, and of those that `docs/limits.md` has."""
    found = sorted(set(names()))
    assert len(found) > 80
    for path, name in found:
        assert re.fullmatch(r'"[a-z][a-z_]*"', name), (path, name)
        assert f"`{name[1:-1]}`" in PAGE, (
            f"docs/limits.md does not say what {name} in {path} counts"
        )


def test_the_page_names_limits_that_there_are() -> None:
    """Of the table of fixed bounds, each."""
    made = {name.strip('"') for _, name in names()} | FIELDS
    section = PAGE.split("## Fixed bounds")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    listed = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert len(listed) == len(set(listed))
    assert set(listed) - {"limit"} <= made


@pytest.mark.parametrize("field", sorted(FIELDS - {"memory_bytes"}))
def test_fields_are_names(field: str) -> None:
    """As errors carry them; the limit on memory evicts, and raises nothing."""
    assert re.fullmatch("[a-z][a-z_]*", field)
    assert f"`{field}`" in PAGE
