"""Deprecated names: each works, warns at the line that uses it, and nothing of ffwd uses it."""

import ast
import importlib
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ffwd

ROOT = Path(__file__).resolve().parent.parent
# A module with deprecated names, the module that defines them, and what to use instead.
MODULES = {
    "ffwd.adapters.demo": (
        "ffwd.cli.demo.ways",
        ("Demo", "MAX_TOKENS", "Outcome", "Task", "WAYS", "tasks"),
        "the command `ffwd demo --json`",
    ),
    "ffwd.adapters.triton_bitmask": (
        "ffwd.adapters.logits.triton_bitmask",
        ("mask_logits",),
        "ffwd.adapters.logits.apply_token_bitmask_inplace(…, backend='triton')",
    ),
}
MOVED = [(module, name) for module, (_, names, _) in MODULES.items() for name in names]
LAYOUTS = {
    "layout_separators": ("`separators` and `indent`", (",", ": "), None, (" ,", ":")),
    "layout_indent": ("`indent`", "  ", None, None),
}


@pytest.mark.parametrize(("module", "name"), MOVED)
def test_a_moved_name_works_and_says_what_to_use(module: str, name: str) -> None:
    """At the line of the caller, not at one of ffwd's."""
    home, _, use = MODULES[module]
    pytest.importorskip("torch")
    if "triton" in module:
        pytest.importorskip("triton")
    with pytest.warns(DeprecationWarning, match=r"^ffwd\.adapters\.") as caught:
        value = getattr(importlib.import_module(module), name)
    assert value is getattr(importlib.import_module(home), name)
    (warning,) = caught
    assert str(warning.message) == f"{module}.{name} is deprecated: use {use}"
    assert warning.filename == __file__


def test_an_import_of_a_moved_name_warns_at_its_line() -> None:
    pytest.importorskip("torch")
    with pytest.warns(DeprecationWarning, match=r"^ffwd\.adapters\.demo\.tasks is") as caught:
        from ffwd.adapters.demo import tasks
    assert tasks(1, seed=0)
    assert {warning.filename for warning in caught} == {__file__}


def test_a_module_of_moved_names_has_no_others() -> None:
    """And warns of none by itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for module in MODULES:
            with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'other'"):
                getattr(importlib.import_module(module), "other")  # noqa: B009


@pytest.mark.parametrize("name", LAYOUTS)
def test_an_attribute_works_and_says_what_to_use(name: str) -> None:
    use, indented, plain, separated = LAYOUTS[name]
    values: list[Any] = [
        (ffwd.json_schema({}, indent=2), indented),
        (ffwd.json_schema({}), plain),
        (ffwd.json_schema({}, separators=(" ,", ":")), separated),
    ]
    for grammar, value in values:
        with pytest.warns(DeprecationWarning, match=r"^ffwd\.JsonSchema\.") as caught:
            assert getattr(grammar, name) == value
        (warning,) = caught
        assert str(warning.message) == f"ffwd.JsonSchema.{name} is deprecated: use {use}"
        assert warning.filename == __file__


def sources(*folders: str) -> Iterator[tuple[Path, str]]:
    """Every module below the folders with its text, without the core's build."""
    for folder in folders:
        for path in sorted((ROOT / folder).iterdir()):
            if path.name == "native":
                continue
            for module in path.glob("**/*.py") if path.is_dir() else [path]:
                if module.suffix == ".py":
                    yield module, module.read_text(encoding="utf-8")


def deprecated_names() -> set[str]:
    """All deprecated names, as docs/versioning.md lists them."""
    return {f"{module}.{name}" for module, name in MOVED} | {
        f"ffwd.JsonSchema.{name}" for name in LAYOUTS
    }


def test_the_page_of_versions_lists_each_deprecated_name() -> None:
    section = (ROOT / "docs/versioning.md").read_text().partition("## Deprecation\n")[2]
    rows = re.findall(r"^\| (`ffwd\..*?) \| ", section.partition("\n## ")[0], re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`(ffwd\.[\w.]+)`", row)}
    assert listed == deprecated_names()


def test_these_tests_know_each_deprecated_name() -> None:
    """Every call of the mechanism in the sources is of a name above."""
    found = set()
    for path, text in sources("ffwd", "adapters"):
        if "_deprecated import" not in text:
            continue
        for call in ast.walk(ast.parse(text)):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
                continue
            if call.func.id == "warn_deprecated":
                found.add(ast.literal_eval(call.args[0]))
            elif call.func.id == "moved_names":
                module = "ffwd." + ".".join(path.relative_to(ROOT).with_suffix("").parts)
                found |= {f"{module}.{name}" for name in MODULES[module][1]}
    assert found == deprecated_names()


def test_nothing_of_ffwd_uses_a_deprecated_name() -> None:
    """No source names one, apart from the module that has it."""
    attributes = re.compile(
        r"\.(?:layout_separators|layout_indent)\b|adapters[. ](?:demo|triton_bi)"
    )
    used = []
    for path, text in sources("ffwd", "adapters", "maskbench"):
        text = re.sub(r'warn_deprecated\(".*?"', "", text)
        used += [(str(path), match[0]) for match in attributes.finditer(text)]
    assert not used


def test_a_use_that_no_test_expects_is_an_error() -> None:
    """By `filterwarnings` in pyproject.toml: all tests hold that ffwd uses no deprecated name."""
    with pytest.raises(DeprecationWarning, match=r"^ffwd\.JsonSchema\.layout_indent is"):
        ffwd.json_schema({}).layout_indent  # noqa: B018
