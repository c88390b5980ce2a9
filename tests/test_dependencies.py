"""Each dependency has its reason in docs/dependencies.md, and nothing else is there."""

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
Places = dict[str, set[str]]


def read(path: str) -> dict[str, Any]:
    """A TOML file of the project."""
    return tomllib.loads((ROOT / path).read_text(encoding="utf-8"))


def crates() -> Places:
    """What the crates and the benchmarks beside them ask for, and where; those of ffwd apart."""
    found: Places = {}

    def add(place: str, names: Iterable[str]) -> None:
        for name in names:
            if not name.startswith("ffwd-"):
                found.setdefault(name, set()).add(place)

    manifests = sorted((ROOT / "ffwd/native/crates").glob("*/Cargo.toml"))
    library = ROOT / "ffwd/native/crates/capi/Cargo.toml"
    for path in manifests:
        if path == library:
            continue
        manifest = tomllib.loads(path.read_text(encoding="utf-8"))
        asked = manifest["dependencies"].items()
        add("core", [name for name, how in asked if not how.get("optional")])
        # What only the helpers of tests need is optional.
        add("test", [name for name, how in asked if how.get("optional")])
        add("test", set(manifest.get("dev-dependencies", ())) - set(manifest["dependencies"]))
    core = set(found)
    add("python", set(read("ffwd/native/Cargo.toml")["dependencies"]) - core)
    add("c", set(read(str(library.relative_to(ROOT)))["dependencies"]) - core)
    add("bench", read("maskbench/crates/Cargo.toml")["dependencies"])
    return found


def packages(project: Mapping[str, Any]) -> Places:
    """What `pyproject.toml` asks for, and where."""
    found: Places = {}

    def add(place: str, requirements: Iterable[str]) -> None:
        for requirement in requirements:
            name = re.match(r"[A-Za-z0-9._-]+", requirement)
            assert name is not None, requirement
            found.setdefault(name[0], set()).add(place)

    add("build", project["build-system"]["requires"])
    add("core", project["project"]["dependencies"])
    for extra, requirements in project["project"]["optional-dependencies"].items():
        add(extra, requirements)
    return found


def table(document: str, heading: str) -> Places:
    """The table below a heading; each row has a reason."""
    section = document.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found: Places = {}
    for row in re.findall(r"^\| `.*$", section, re.MULTILINE):
        name, places, reason = (cell.strip() for cell in row.strip("|").split("|"))
        assert reason.endswith("."), row
        assert name.strip("`") not in found, row
        found[name.strip("`")] = {place.strip() for place in places.split(",")}
    return found


def test_every_crate_has_a_reason() -> None:
    """Those of the core, of the module, of the tests and of the benchmarks."""
    assert table(DOCUMENT, "Rust") == crates()


def test_every_package_has_a_reason() -> None:
    """Those that everyone gets, those of the extras, and those that build the wheel."""
    assert table(DOCUMENT, "Python") == packages(read("pyproject.toml"))


def test_the_core_needs_numpy() -> None:
    """And nothing else of Python."""
    assert [name for name, places in table(DOCUMENT, "Python").items() if "core" in places] == [
        "numpy"
    ]


def test_the_number_of_crates() -> None:
    """That the document says."""
    lock = read("ffwd/native/Cargo.lock")
    said = re.search(r"^(\d+) crates are in `Cargo.lock`", DOCUMENT, re.MULTILINE)
    assert said is not None
    others = [crate for crate in lock["package"] if not crate["name"].startswith("ffwd-")]
    assert int(said[1]) == len(others)


def test_the_licences_are_decided() -> None:
    """deny.toml lists those that are taken, and refuses all others."""
    deny = read("ffwd/native/deny.toml")
    assert "Apache-2.0" in deny["licenses"]["allow"]
    assert not {name for name in deny["licenses"]["allow"] if name.startswith(("GPL", "AGPL"))}
    assert deny["sources"]["unknown-registry"] == deny["sources"]["unknown-git"] == "deny"
    assert deny["bans"]["multiple-versions"] == deny["bans"]["wildcards"] == "deny"


def test_differences_are_seen() -> None:
    """The comparison can fail: a package without a row, a row without a package, another place."""
    project = read("pyproject.toml")
    known = packages(project)
    project["project"]["optional-dependencies"]["test"].append("novel>=1; python_version > '3'")
    assert packages(project) == known | {"novel": {"test"}}
    with pytest.raises(AssertionError):
        table("\n## A\n| `x` | core |  |\n", "A")
