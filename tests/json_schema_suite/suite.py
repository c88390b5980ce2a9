"""The official JSON-Schema-Test-Suite: where it lies, and its cases as texts.

Numbers keep the spelling that the suite gives them, for `1.0` and `1` are different texts of one
value, and a `float` would round a long one.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "FFWD_JSON_SCHEMA_TEST_SUITE"
# `make suite` unpacks it there.
DEFAULT_PLACE = ROOT / "build/json-schema-test-suite"

DIALECTS = {
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
# Where the suite's remote documents are said to be served.
REMOTES = "http://localhost:1234/"


@dataclass(frozen=True)
class Number:
    """A number as it is written."""

    text: str


@dataclass(frozen=True)
class Case:
    """One instance for one schema."""

    draft: str
    file: str
    group: str
    test: str
    schema: str
    instance: str
    valid: bool

    @property
    def part(self) -> str:
        """`required`, `format`, or another part of what is optional."""
        if not self.file.startswith("optional/"):
            return "required"
        return "format" if self.file.startswith("optional/format/") else "optional"


def place() -> Path | None:
    """The folder with `tests` and `remotes`, if there is one."""
    chosen = os.environ.get(VARIABLE)
    folder = Path(chosen) if chosen else DEFAULT_PLACE
    return folder if (folder / "tests").is_dir() else None


def read(text: str) -> Any:
    return json.loads(text, parse_int=Number, parse_float=Number)


def write(value: Any) -> str:
    """Compact JSON text, in which each character is itself where JSON allows that."""
    if isinstance(value, Number):
        return value.text
    if isinstance(value, dict):
        members = (f"{write(key)}:{write(member)}" for key, member in value.items())
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(write, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


@cache
def cases(draft: str) -> tuple[Case, ...]:
    """All cases of a draft, in the order of the files."""
    folder = place()
    assert folder is not None
    return tuple(_cases(folder / "tests" / draft, draft))


def _cases(folder: Path, draft: str) -> Iterator[Case]:
    for path in sorted(folder.rglob("*.json")):
        file = path.relative_to(folder).with_suffix("").as_posix()
        for group in read(path.read_text(encoding="utf-8")):
            schema = group["schema"]
            if isinstance(schema, dict) and "$schema" not in schema:
                schema = {"$schema": DIALECTS[draft], **schema}
            text = write(schema)
            for test in group["tests"]:
                yield Case(
                    draft,
                    file,
                    group["description"],
                    test["description"],
                    text,
                    write(test["data"]),
                    test["valid"],
                )


@cache
def remotes() -> dict[str, Any]:
    """The documents that schemas of the suite refer to, by URI."""
    folder = place()
    assert folder is not None
    root = folder / "remotes"
    return {
        REMOTES + path.relative_to(root).as_posix(): json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(root.rglob("*.json"))
    }
