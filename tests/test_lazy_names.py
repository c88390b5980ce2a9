"""Packages whose names are imported when they are first used."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = ("ffwd", "ffwd.grammar", "ffwd.tokenizer")


def listed_for_type_checkers(package: str) -> set[tuple[str, str]]:
    """Module and name of each import in the block for type checkers."""
    file = importlib.import_module(package).__file__
    assert file is not None
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    found = set()
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.asname == alias.name, "what is public is named as itself"
            found.add((node.module or "", alias.name))
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_both_lists_of_names_agree(package: str) -> None:
    module = importlib.import_module(package)
    table = {(home, name) for home, names in module._NAMES.items() for name in names.split()}
    table |= {(package, name) for name in getattr(module, "_MODULES", "").split()}
    assert table == listed_for_type_checkers(package)
    for home, name in table:
        value = getattr(module, name)
        if home == package:
            assert value is sys.modules[f"{package}.{name}"]
        else:
            assert value is getattr(sys.modules[home], name)
        assert name in dir(module)
        assert name in module.__all__ or name.startswith("_")


@pytest.mark.parametrize("package", PACKAGES)
def test_no_function_has_the_name_of_a_module_beside_it(package: str) -> None:
    """The import of that module would replace the function."""
    module = importlib.import_module(package)
    modules = {path.stem for path in Path(module.__path__[0]).iterdir()}
    assert modules.isdisjoint(name for names in module._NAMES.values() for name in names.split())


def test_an_unknown_name_is_an_attribute_error() -> None:
    import ffwd

    with pytest.raises(AttributeError, match="module 'ffwd' has no attribute 'complie'"):
        ffwd.complie  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'complie'"):
        from ffwd import complie  # type: ignore[attr-defined]  # noqa: F401


def test_an_import_loads_the_extension_alone() -> None:
    code = "import sys, ffwd; print(*sorted(n for n in sys.modules if n.startswith('ffwd')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["ffwd", "ffwd._lazy", "ffwd._native"]


def test_a_json_schema_is_compiled_without_the_other_grammars() -> None:
    code = (
        "import sys, ffwd, ffwd.grammar\n"
        "tokens = [*(bytes([byte]) for byte in range(256)), None]\n"
        "vocabulary = ffwd.Vocabulary(tokens=tokens, eos_token_ids=[256])\n"
        "ffwd.compile(ffwd.grammar.json_schema({'const': 1}), vocabulary)\n"
        "print(*(n for n in sys.modules if n.startswith('ffwd.grammar._')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "ffwd.grammar._kinds" in loaded
    assert loaded.isdisjoint(f"ffwd.grammar.{name}" for name in ("_lower", "_regex", "_rules"))


def test_a_star_import_has_the_public_names() -> None:
    names: dict[str, object] = {}
    exec("from ffwd import *", names)
    assert {"compile", "json_schema", "Matcher", "tokenizer"} <= names.keys()
