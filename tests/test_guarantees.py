"""Every test that docs/guarantees.md names is there, and every promise names one."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = (ROOT / "docs/guarantees.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`((?:tests|ffwd|maskbench)/[\w/]+\.(?:py|rs))(?:::(\w+))?`")


def names_of_tests(path: Path) -> set[str]:
    """The names of the tests of a file, without their parameters."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".rs":
        # Within `proptest!` there are no other functions with attributes.
        return set(re.findall(r"#\[test\]\s*(?:#\[[^\]]*\]\s*)*fn (\w+)\s*\(", text))
    if not path.name.startswith("test_"):
        return set()
    tree = ast.parse(text)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    bodies = [tree.body, *(node.body for node in classes if node.name.startswith("Test"))]
    # Hypothesis has tests of rules as `TestX = X.TestCase`.
    stateful = {
        node.targets[0].id
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id.startswith("Test")
    }
    return stateful | {
        node.name
        for body in bodies
        for node in body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def missing(document: str) -> list[str]:
    """What a document names that is no test."""
    found = []
    for file, name in NAMED.findall(document):
        path = ROOT / file
        tests = names_of_tests(path) if path.is_file() else set()
        if (name and name not in tests) or not tests:
            found.append(f"{file}::{name}")
    return found


def rows(document: str) -> list[str]:
    """The rows of the tables of promises."""
    return [
        line
        for line in document.splitlines()
        if line.startswith("| ") and not line.startswith(("| what |", "| --- |"))
    ]


def test_every_test_that_is_named_is_there() -> None:
    """By file and name."""
    assert len(NAMED.findall(DOCUMENT)) > 60
    assert not missing(DOCUMENT)


def test_every_promise_names_its_tests() -> None:
    """A row without one would be a mere claim."""
    assert len(rows(DOCUMENT)) > 30
    for row in rows(DOCUMENT):
        what, held_by = row.strip("| ").split(" | ")
        assert what
        assert NAMED.findall(held_by), row
        rest = NAMED.sub("", held_by).replace(",", "").strip()
        assert not rest, f"neither a test nor a comma: {rest}"


@pytest.mark.parametrize(
    "text",
    [
        "`tests/test_guarantees.py::test_of_nothing`",
        "`tests/test_nothing.py::test_of_nothing`",
        "`tests/test_nothing.py`",
        "`ffwd/native/crates/engine/src/engine/tests.rs::of_nothing`",
        "`ffwd/native/crates/engine/src/lib.rs`",
        "`tests/realtokenizers.py::load`",
    ],
)
def test_a_test_that_is_missing_is_seen(text: str) -> None:
    """The check can fail."""
    assert missing(text)
