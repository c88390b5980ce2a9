"""Every snippet of the site runs, and the site has every page."""

import importlib.util
import re
import runpy
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from test_readme import ROOT, model_folder, run

import ffwd
import ffwd.chat
import ffwd.tools
from ffwd.adapters import sglang, vllm
from maskbench.__main__ import main as maskbench
from maskbench.commands import LazyGroup
from maskbench.engines import known_engines

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
# Blocks that need more than a page has, and the test that runs them.
ELSEWHERE = {"engines/llama_cpp.md": "tests/integrations/test_llama_cpp_pair.py"}
_BLOCK = re.compile(
    r"(?P<before>[^\n]*\n\s*)^```python\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)
_NOT_RUN = "*Not run"

__all__ = ["model_folder"]


def is_format(value: Any) -> bool:
    return isinstance(value, ffwd.chat.ChatFormat)


def snippets(page: Path) -> Iterator[str]:
    """The blocks of a page that are run; what is not run says so, and why, in the line before."""
    for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        if not block["before"].startswith(_NOT_RUN):
            yield block["code"]


def named(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(snippets(page)) and named(page) not in ELSEWHERE],
    ids=named,
)
def test_the_snippets_of_a_page_run(
    page: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other; they check what they show."""
    run("\n".join(snippets(page)), model_folder, monkeypatch)


def test_every_page_of_the_reference_has_an_example_that_runs() -> None:
    """But for the list of them."""
    pages = [page for page in PAGES if named(page).startswith("reference/")]
    assert len(pages) > 5
    without = [named(page) for page in pages if not any(snippets(page))]
    assert without == ["reference/index.md"]


def test_what_is_not_run_says_why() -> None:
    """In words that a reader sees, and it is run nowhere else."""
    reasons = [
        line
        for page in PAGES
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith(_NOT_RUN)
    ]
    assert all(re.fullmatch(r"\*Not run, for .{20,}:\*", line) for line in reasons), reasons
    for name, test in ELSEWHERE.items():
        assert f"docs/{name}" in (ROOT / test).read_text(encoding="utf-8")


def test_every_page_is_in_the_navigation() -> None:
    """Named once."""
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    pages = re.findall(r"([\w/]+\.md)$", navigation, re.MULTILINE)
    assert sorted(pages) == sorted(map(named, PAGES))


def test_the_native_reference_has_descriptions() -> None:
    """Of each name that the page asks for."""
    hook = runpy.run_path(str(DOCS / "native_reference.py"))
    page = hook["on_page_markdown"]((DOCS / "reference/native.md").read_text(encoding="utf-8"))
    sections = re.split("^## ", page, flags=re.MULTILINE)[1:]
    assert len(sections) > 15
    assert all(len(section.splitlines()) > 2 for section in sections)
    assert "### `fill_bitmask(bitmask, row=0)`" in page


def test_nothing_is_fetched_when_the_site_is_built_or_read() -> None:
    """No fonts of others, no cards, no scripts."""
    configuration = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "font: false" in configuration
    assert not re.search(r"extra_javascript|extra_css|social|https?://", configuration)


def test_the_versions_of_engines_are_those_of_the_adapters() -> None:
    """They are written in the adapters; pages and the environments for the tests follow."""
    versions = [f"{major}.{minor}" for major, minor in vllm.SUPPORTED_VERSIONS]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"vLLM ({', '.join(versions)}), SGLang ({sglang.SUPPORTED_VERSION})" in readme
    pages = ("engines.md", "engines/vllm.md", "engines/sglang.md")
    page = "\n".join((DOCS / name).read_text(encoding="utf-8") for name in pages)
    assert f"ffwd supports vLLM {', '.join(versions[:-1])} and {versions[-1]}." in page
    assert f"SGLang {sglang.SUPPORTED_VERSION}. Install" in page
    # Whatever else the page says of a version, that version is supported.
    named_versions = re.findall(r"(?:vLLM |vllm-)(\d+\.\d+)", page)
    assert named_versions
    assert set(named_versions) <= set(versions)
    script = ROOT / "tests/integrations/make_environment.sh"
    listed = subprocess.run([script, "--schedulers"], capture_output=True, text=True, check=True)
    assert listed.stdout.split() == [*(f"vllm-{version}" for version in versions), "sglang"]


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("chat_formats.md", {key for key, value in vars(ffwd.chat).items() if is_format(value)}),
        ("tools.md", set(ffwd.tools.FORMATS)),
        ("maskbench.md", set(known_engines())),
    ],
)
def test_what_is_registered_has_a_row(page: str, names: set[str]) -> None:
    """Formats and engines, by their names in the first column of a table."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    rows = [line.split("|")[1] for line in lines if line.startswith("| `")]
    assert names <= {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


DOCUMENTS = [ROOT / "README.md", ROOT / "SECURITY.md", *PAGES]


def code_of(page: Path) -> Iterator[str]:
    """The lines of blocks and the spans of code, with the lines of one command joined."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for block in re.findall(r"^ *```\w*\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE):
        yield from block.splitlines()
    yield from re.findall(r"`([^`\n]+)`", text)


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or a name in one."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        module = ".".join(parts[:count])
        if "." in module and not is_there(module.rpartition(".")[0]):
            continue
        try:
            if importlib.util.find_spec(module) is None:
                continue
        except ModuleNotFoundError:
            continue
        if count == len(parts):
            return True
        found: Any = importlib.import_module(module)
        with warnings.catch_warnings():
            # Deprecated names are there, too.
            warnings.simplefilter("ignore", DeprecationWarning)
            for part in parts[count:]:
                if not hasattr(found, part):
                    return False
                found = getattr(found, part)
        return True
    return False


def test_names_of_the_package_are_there() -> None:
    """Every name below `ffwd` that a page has in code."""
    named_in: dict[str, Path] = {}
    for page in DOCUMENTS:
        for code in code_of(page):
            for name in re.findall(r"(?<![\w./'-])ffwd(?:\.[A-Za-z_]\w*)+", code):
                named_in.setdefault(name, page)
    del named_in["ffwd.h"]  # The header of the C library.
    assert len(named_in) > 50
    assert not is_there("ffwd.adapters.torch_bitmask")
    assert not {name: str(page) for name, page in named_in.items() if not is_there(name)}


def test_commands_of_the_benchmark_are_there() -> None:
    """Every command of maskbench that a page has in code, with its options."""
    wrong, commands = [], 0
    for page in DOCUMENTS:
        for line in code_of(page):
            _, found, rest = line.partition("python -m maskbench ")
            if not found:
                continue
            command: click.Command = maskbench
            arguments = re.split(r"[\s=]+", rest.partition("#")[0].strip())
            while isinstance(command, LazyGroup) and arguments and arguments[0] != "--help":
                known = command.load().get(arguments.pop(0))
                if known is None:
                    wrong.append((page.name, line))
                    break
                command = known
            else:
                commands += 1
                options = {"--help"}.union(*(p.opts + p.secondary_opts for p in command.params))
                given = {argument for argument in arguments if argument.startswith("--")}
                wrong += [(page.name, line, option) for option in given - options]
    assert commands > 50
    assert not wrong
