"""What a release is made by: the workflows, the metadata, the documents that go with it."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ffwd

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def read(path: str) -> str:
    """A file of the project."""
    return (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned(path: Path) -> None:
    """By commit, as tags can be moved; with the version beside it."""
    uses = re.findall(r"^\s*(?:- )?uses: *(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert uses
    for action in uses:
        assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_may_read_only(path: Path) -> None:
    """Unless a job says otherwise; and no secret is used anywhere."""
    text = path.read_text(encoding="utf-8")
    assert re.search(
        r"^permissions:\n  contents: read\n\S|^permissions:\n  contents: read\n\n", text, re.M
    )
    assert "secrets." not in text
    assert text.count("persist-credentials: false") == text.count("actions/checkout@")


def test_publishing_is_trusted() -> None:
    """By an identity that lasts minutes, in an environment that has to be approved, attested."""
    job = read(".github/workflows/release.yml").partition("\n  publish:\n")[2]
    for needed in (
        "environment: pypi",
        "id-token: write",
        "attestations: write",
        "ref_type == 'tag'",
    ):
        assert needed in job, needed
    assert not re.search("password|token:(?! write)", job)


def test_ci_runs_the_one_check() -> None:
    """Which is `make check`, and what CONTRIBUTING asks for."""
    assert "bash .ci/run" in read(".github/workflows/ci.yml")
    assert re.search(r"^make check$", read("CONTRIBUTING.md"), re.MULTILINE)
    check = re.search(r"^check: (.*)$", read("Makefile"), re.MULTILINE)
    assert check is not None
    for target in check[1].split():
        assert re.search(rf"^make .*VENV=\S+ .*\b{target}\b", read(".ci/run"), re.MULTILINE), target


def test_targets_that_documents_name_are_there() -> None:
    """In CONTRIBUTING, SECURITY and docs/dependencies.md."""
    makefile = read("Makefile")
    for document in ("CONTRIBUTING.md", "SECURITY.md", "docs/dependencies.md"):
        for target in re.findall(r"`make ([\w-]+)`", read(document)):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{document}: make {target}"


@pytest.mark.parametrize("document", ["SECURITY.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(document: str) -> None:
    """Within the checkout, and the paths in code."""
    text = read(document)
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (ROOT / link).exists(), link
    for path in re.findall(
        r"`((?:tests|docs|ffwd|adapters|maskbench|\.ci|\.github)/[\w./-]*)`", text
    ):
        assert (ROOT / path).exists(), path


def test_the_wheels_are_of_one_abi() -> None:
    """cibuildwheel builds with the oldest Python, for which pyo3 and the wheel's tag are, too.

    The free-threaded build has wheels of its own.
    """
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    tag = "cp" + oldest.replace(".", "")
    assert PROJECT["tool"]["cibuildwheel"]["build"] == f"{tag}-* cp314t-*"
    assert f'"py_limited_api": "{tag}"' in read("setup.py")
    dependencies = tomllib.loads(read("ffwd/native/Cargo.toml"))["workspace"]["dependencies"]
    assert dependencies["pyo3"]["features"] == [f"abi3-py{oldest.replace('.', '')}"]
    classifiers = PROJECT["project"]["classifiers"]
    assert f"Programming Language :: Python :: {oldest}" in classifiers
    versions = [name.rpartition(" ")[2] for name in classifiers if re.search(r":: 3\.\d+$", name)]
    assert versions[0] == oldest
    # The oldest and the newest are those that the wheel is tried with.
    assert pythons("wheel") == [versions[0], versions[-1], "3.14t"]
    # The check runs the tests with the one that is missing.
    assert sorted({*pythons("suite"), "3.11"}) == sorted(versions)


def pythons(job: str) -> list[str]:
    """The versions of Python that a job of CI is run with."""
    found = re.search(
        r"python: \[(.*)\]", read(".github/workflows/ci.yml").partition(f"\n  {job}:")[2]
    )
    assert found is not None
    return found[1].replace('"', "").split(", ")


def test_one_version_of_rust_in_the_workflows() -> None:
    """And not below the floor that the manifest promises."""
    texts = [*(path.read_text(encoding="utf-8") for path in WORKFLOWS), read("pyproject.toml")]
    named = {
        v for text in texts for v in re.findall(r'(?:RUST: "|toolchain )(\d+\.\d+\.\d+)', text)
    }
    (version,) = named
    floor = tomllib.loads(read("ffwd/native/Cargo.toml"))["workspace"]["package"]["rust-version"]
    assert [int(part) for part in version.split(".")] >= [int(part) for part in floor.split(".")]


def test_the_changelog_has_the_form() -> None:
    """Of Keep a Changelog: versions with dates, the newest first, and headings that are known."""
    text = read("CHANGELOG.md")
    versions = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert versions[0] == "Unreleased"
    for version in versions[1:]:
        assert re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", version), version
    headings = set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    assert headings <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_newest_version_is_that_of_the_manifests() -> None:
    """In the changelog, in each manifest that has a version, and in the C header."""
    newest = re.findall(r"^## (\d+\.\d+\.\d+) - ", read("CHANGELOG.md"), re.MULTILINE)[0]
    manifests = ["ffwd/native", "ffwd/native/crates/capi", "ffwd/native/fuzz", "maskbench/crates"]
    for folder in manifests:
        assert tomllib.loads(read(f"{folder}/Cargo.toml"))["package"]["version"] == newest, folder
    assert f"such as `{newest}`" in read("ffwd/native/crates/capi/include/ffwd.h")
    assert ffwd.__version__ == newest
    assert (ROOT / f"tests/saved/{newest}.json").exists()


def test_the_licence_is_whole() -> None:
    """Apache-2.0, to the end of its appendix, and named everywhere the same."""
    text = read("LICENSE")
    assert "Apache License\n                           Version 2.0, January 2004" in text
    for section in range(1, 10):
        assert re.search(rf"^   {section}\. [A-Z]", text, re.MULTILINE), section
    assert "END OF TERMS AND CONDITIONS" in text
    assert text.rstrip().endswith("limitations under the License.")
    assert PROJECT["project"]["license"] == "Apache-2.0"
    core = tomllib.loads(read("ffwd/native/Cargo.toml"))["workspace"]
    for table in (core, tomllib.loads(read("maskbench/crates/Cargo.toml"))):
        assert table["package"]["license"] == "Apache-2.0"


def test_the_trial_sees_the_checkout() -> None:
    """What tries a wheel refuses to try the checkout in its place."""
    done = subprocess.run(
        [sys.executable, str(ROOT / ".ci/try_wheel.py")],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 1
    assert "the checkout's own" in done.stderr
