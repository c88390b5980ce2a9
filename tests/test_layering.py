"""Who may import whom. The two tables are the rule; `docs/architecture.md` says why.

The Rust part reads the text of the crates, tests included: what crosses layers belongs into the
`tests/` of a crate, or `tests/`.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent

# ------------------------------------------------------------------------------------------ tables

# The manifests say which crate may use which, and the compiler checks it. Within a crate that has
# several layers: module -> the modules that it may use besides itself; lowest first.
RUST_LAYERS: dict[str, dict[str, frozenset[str]]] = {
    "bounds": {
        "error": frozenset(),
        # Atomics of the process.
        "section": frozenset(),
        "limits": frozenset(),
        # What one call may use; any layer charges it.
        "meter": frozenset({"error", "limits"}),
    },
    "regular": {"regex": frozenset(), "expr": frozenset({"regex"})},
    "tokenizer": {
        "vocabulary": frozenset(),
        # Token ids to text, which needs the bytes of tokens and nothing else.
        "streaming": frozenset({"vocabulary"}),
        # One piece of text; what cuts a text into pieces is not its business.
        "bpe": frozenset({"vocabulary"}),
        # Text to pieces; knows no tokens.
        "pretokenizer": frozenset(),
        "tokenizer": frozenset({"vocabulary", "bpe", "pretokenizer"}),
        # Which tokens a text can have; of grammars it knows one trait.
        "canonical": frozenset({"vocabulary", "bpe", "pretokenizer", "tokenizer"}),
    },
    "automaton": {
        "error": frozenset(),
        "writing": frozenset(),
        # Values that are held once, and what they weigh.
        "interning": frozenset(),
        # Frames, and threads on them; what a frame means is asked through the trait `On`.
        "stacks": frozenset({"error", "interning"}),
        # Two kinds of meaning, which know nothing of each other.
        "json": frozenset({"error", "writing", "interning", "stacks"}),
        "rules": frozenset({"error", "interning", "stacks"}),
        # Configurations: the only layer that has both.
        "run": frozenset({"error", "writing", "interning", "stacks", "json", "rules"}),
        # Short texts to the end.
        "completion": frozenset({"error", "interning", "stacks", "json", "rules", "run"}),
        # In words, for people.
        "explain": frozenset({"error", "stacks", "json", "rules", "run"}),
    },
    "engine": {
        # Bits and numbers.
        "logits": frozenset(),
        # The only place where automaton and vocabulary meet.
        "mask": frozenset(),
        # What becomes certain of a text; knows neither tokens nor who asks.
        "events": frozenset(),
        # A grammar and a vocabulary, compiled for each other.
        "engine": frozenset({"mask"}),
        "matcher": frozenset({"mask", "events", "engine"}),
        # In words, what the automaton knows of a text.
        "explain": frozenset({"engine", "matcher"}),
        # What is saved of a grammar is what it was compiled from.
        "saved": frozenset({"engine", "matcher"}),
        "fast_forward": frozenset({"mask", "engine", "matcher"}),
        # What an engine asks of a matcher in every step.
        "request": frozenset({"mask", "engine", "matcher", "fast_forward"}),
    },
}


@dataclass(frozen=True)
class PythonLayer:
    """What the modules of one package may import.

    `eager` is allowed when the module is imported, `lazy` only inside of functions and for type
    checkers. Both name packages with everything in them. The standard library is always allowed,
    and the layer itself too.
    """

    folder: str
    eager: frozenset[str]
    lazy: frozenset[str]
    public_only: bool
    """Of other layers of this project, no name with a leading underscore."""
    facade: bool = False
    """Other layers may use what the package itself names, and none of its modules."""


PYTHON_LAYERS: dict[str, PythonLayer] = {
    "ffwd": PythonLayer(
        folder="ffwd",
        eager=frozenset({"numpy", "ffwd._generate"}),
        # A tokenizer is read by the library that made it, and only when it is given.
        lazy=frozenset(
            {"tokenizers", "transformers", "tiktoken", "sentencepiece", "mistral_common"}
            # A model on a hub is fetched only where it is named.
            | {"ffwd.chat.jinja", "jinja2", "jsonschema", "huggingface_hub"}
            # By `ffwd.metrics.enable`.
            | {"prometheus_client"}
            # Where a Python type is given as a schema.
            | {"ffwd.typed", "pydantic"}
            # For type checkers, which bring it.
            | {"typing_extensions"}
        ),
        public_only=False,
    ),
    # One file: what generates is named, for type checkers, and loaded when it is called.
    "ffwd._generate": PythonLayer(
        folder="ffwd/_generate",
        eager=frozenset({"ffwd"}),
        lazy=frozenset({"ffwd.adapters.transformers"}),
        public_only=True,
    ),
    # The template engine; imported where a template is compiled.
    "ffwd.chat.jinja": PythonLayer(
        folder="ffwd/chat/jinja",
        eager=frozenset({"ffwd", "jinja2", "markupsafe"}),
        lazy=frozenset(),
        public_only=False,
    ),
    # Types as schemas; imported where a type is given.
    "ffwd.typed": PythonLayer(
        folder="ffwd/typed",
        eager=frozenset({"ffwd", "pydantic", "pydantic_core", "typing_extensions"}),
        lazy=frozenset(),
        public_only=True,
    ),
    # Names that stay where people have written them.
    "ffwd.adapters": PythonLayer(
        folder="adapters",
        eager=frozenset({"ffwd", "ffwd.adapters.vllm"}),
        lazy=frozenset(),
        public_only=True,
    ),
    # Bitmasks onto tensors.
    "ffwd.adapters.logits": PythonLayer(
        folder="adapters/logits",
        eager=frozenset({"ffwd", "numpy", "torch"}),
        lazy=frozenset({"ffwd.adapters.logits.triton_bitmask"}),
        public_only=True,
    ),
    # One file, which is imported where logits are on an accelerator.
    "ffwd.adapters.logits.triton_bitmask": PythonLayer(
        folder="adapters/logits/triton_bitmask",
        eager=frozenset({"torch", "triton"}),
        lazy=frozenset(),
        public_only=True,
    ),
    # What engines have in common; knows none of them.
    "ffwd.adapters.shared": PythonLayer(
        folder="adapters/shared",
        eager=frozenset({"ffwd", "numpy"}),
        lazy=frozenset(),
        public_only=True,
    ),
    "ffwd.adapters.transformers": PythonLayer(
        folder="adapters/transformers",
        eager=frozenset({"ffwd", "ffwd.adapters.logits", "ffwd.adapters.shared"})
        | {"numpy", "torch", "transformers", "tokenizers"},
        # For type checkers, which bring it.
        lazy=frozenset({"typing_extensions"}),
        public_only=True,
        facade=True,
    ),
    "ffwd.adapters.vllm": PythonLayer(
        folder="adapters/vllm",
        eager=frozenset({"ffwd", "ffwd.adapters.shared", "numpy", "torch", "vllm", "pydantic"}),
        lazy=frozenset(),
        public_only=True,
    ),
    "ffwd.adapters.sglang": PythonLayer(
        folder="adapters/sglang",
        eager=frozenset({"ffwd", "ffwd.adapters.logits", "ffwd.adapters.shared"})
        | {"numpy", "torch", "sglang", "pydantic"},
        lazy=frozenset(),
        public_only=True,
        facade=True,
    ),
    "ffwd.adapters.llama_cpp": PythonLayer(
        folder="adapters/llama_cpp",
        eager=frozenset({"ffwd", "ffwd.adapters.shared", "numpy", "llama_cpp"}),
        lazy=frozenset(),
        public_only=True,
        facade=True,
    ),
    # An engine and what is around it.
    "ffwd.adapters.server": PythonLayer(
        folder="adapters/server",
        eager=frozenset({"ffwd", "ffwd.adapters.logits", "ffwd.adapters.shared"})
        | {"ffwd.adapters.transformers", "numpy", "torch", "transformers"}
        | {"starlette", "uvicorn", "h11", "pydantic", "prometheus_client"},
        lazy=frozenset(),
        public_only=True,
        facade=True,
    ),
    # What a command needs is imported when it is called.
    "ffwd.cli": PythonLayer(
        folder="ffwd/cli",
        eager=frozenset({"ffwd", "click", "numpy"}),
        lazy=frozenset(
            {"ffwd.adapters.transformers", "ffwd.adapters.server", "ffwd.cli.demo.ways"}
            | {"torch", "rich"}
            # What `bench` times beside, and the tokenizer that it gives them.
            | {"llguidance", "xgrammar", "transformers"}
        ),
        public_only=True,
    ),
    # One file: the model that writes, and who judges its answers.
    "ffwd.cli.demo.ways": PythonLayer(
        folder="ffwd/cli/demo/ways",
        eager=frozenset(
            {"ffwd", "ffwd.adapters.transformers", "torch", "transformers", "jsonschema"}
        ),
        lazy=frozenset(),
        public_only=True,
    ),
    "maskbench": PythonLayer(
        folder="maskbench",
        eager=frozenset(
            {"ffwd", "maskbench.conformance.gates"}
            | {"maskbench.speed.logits", "maskbench.speed.processors"}
            | {
                "maskbench.conformance.differential",
                "maskbench.conformance.soak",
                "maskbench.tools.train_model",
            }
            | {"numpy", "click", "rich", "tokenizers", "psutil"}
        ),
        # The peers, each loaded in its own process only, and the judges.
        lazy=frozenset(
            {
                "maskbench.report.html",
                "llguidance",
                "xgrammar",
                "outlines_core",
                "lmformatenforcer",
                "llama_cpp",
                "gguf",
                "jsonschema_rs",
                "jsonschema",
                "tokenizers",
                "transformers",
                "torch",
                "tiktoken",
                "fastokens",
                "zstandard",
            }
        ),
        public_only=True,
    ),
    # The HTML report; the other forms do without its template engine.
    "maskbench.report.html": PythonLayer(
        folder="maskbench/report/html",
        eager=frozenset({"maskbench", "jinja2", "markupsafe"}),
        lazy=frozenset(),
        public_only=True,
    ),
    # Soaks the cache that engines have.
    "maskbench.conformance.soak": PythonLayer(
        folder="maskbench/conformance/soak",
        eager=frozenset(
            {"ffwd", "ffwd.adapters.shared", "maskbench", "numpy", "click", "rich", "psutil"}
        ),
        lazy=frozenset(),
        public_only=True,
    ),
    # Its commands load the rest only when they are called.
    "maskbench.conformance.gates": PythonLayer(
        folder="maskbench/conformance/gates",
        eager=frozenset(
            {"ffwd", "maskbench", "numpy", "click", "rich", "jsonschema", "jsonschema_rs"}
        ),
        lazy=frozenset(),
        public_only=True,
    ),
    # Likewise.
    "maskbench.conformance.differential": PythonLayer(
        folder="maskbench/conformance/differential",
        eager=frozenset(
            {"ffwd", "maskbench", "maskbench.conformance.gates", "numpy", "click", "rich"}
            | {"jsonschema_rs", "interegular", "lark"}
        ),
        lazy=frozenset(),
        public_only=True,
    ),
    # Times tensors; its command loads the rest only when it is called.
    "maskbench.speed.logits": PythonLayer(
        folder="maskbench/speed/logits",
        eager=frozenset(
            {"ffwd", "ffwd.adapters.logits", "maskbench", "numpy", "click", "rich", "torch"}
        ),
        lazy=frozenset({"xgrammar", "llguidance"}),
        public_only=True,
    ),
    # Likewise, of transformers.
    "maskbench.speed.processors": PythonLayer(
        folder="maskbench/speed/processors",
        eager=frozenset(
            {"ffwd", "ffwd.adapters.transformers", "maskbench", "numpy", "click", "rich", "torch"}
        ),
        lazy=frozenset({"transformers", "xgrammar", "llguidance"}),
        public_only=True,
    ),
    # Trains the model in the box; its command loads the rest only when it is called.
    "maskbench.tools.train_model": PythonLayer(
        folder="maskbench/tools/train_model",
        eager=frozenset(
            {"ffwd", "ffwd.adapters.transformers", "maskbench"}
            | {"click", "tokenizers", "torch", "transformers"}
        ),
        lazy=frozenset(),
        public_only=True,
    ),
}

# ------------------------------------------------------------------------------------------ Python


@dataclass(frozen=True)
class Import:
    """One imported module or name, `ffwd.grammar.json_schema`; `lazy` if only a call runs it."""

    name: str
    line: int
    lazy: bool


def layer_of(module: str) -> str | None:
    """The layer of this project that a module belongs to: the longest matching one."""
    owners = [layer for layer in PYTHON_LAYERS if within(module, layer)]
    return max(owners, key=len, default=None)


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def module_name(layer: str, path: Path) -> str:
    """`adapters/vllm_drafts.py` is `ffwd.adapters.vllm_drafts`."""
    parts = path.relative_to(ROOT / PYTHON_LAYERS[layer].folder).with_suffix("").parts
    return ".".join((layer, *(part for part in parts if part != "__init__")))


def imports_of(source: str, module: str, *, is_package: bool) -> Iterator[Import]:
    """Every import statement, with relative ones resolved, and every `ffwd.x.y` in expressions."""
    package = module if is_package else module.rpartition(".")[0]

    def visit(node: ast.AST, lazy: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, lazy)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                parent = ".".join(parts[: len(parts) - node.level + 1])
                base = f"{parent}.{base}" if base else parent
            for alias in node.names:
                yield Import(
                    base if alias.name == "*" else f"{base}.{alias.name}", node.lineno, lazy
                )
        elif isinstance(node, ast.Attribute):
            name = dotted(node)
            if name is not None:
                if name.startswith("ffwd."):
                    yield Import(name, node.lineno, lazy)
                return
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.body:
                yield from visit(child, True)
            for child in node.orelse:
                yield from visit(child, lazy)
            return
        inner = lazy or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inner)

    yield from visit(ast.parse(source), False)


def dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return None if base is None else f"{base}.{node.attr}"
    return None


def python_violations(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """What a module imports against `PYTHON_LAYERS`."""
    own = layer_of(module)
    assert own is not None, f"{module} belongs to no layer"
    rule = PYTHON_LAYERS[own]
    found = []
    for item in imports_of(source, module, is_package=is_package):
        where = f"{module}:{item.line} imports {item.name}"
        top = item.name.partition(".")[0]
        target = layer_of(item.name)
        if top in sys.stdlib_module_names or target == own:
            continue
        if top == "adapters":
            found.append(f"{where}: the package is ffwd.adapters")
            continue
        allowed = rule.eager | (rule.lazy if item.lazy else frozenset())
        # A layer of this project must be named itself: `ffwd` does not grant `ffwd.adapters`.
        if (target or top) not in allowed:
            when = "" if item.lazy or top not in rule.lazy else " when it is imported"
            found.append(f"{where}: not allowed in {own}{when}")
        elif rule.public_only and target is not None and private(item.name, target):
            found.append(f"{where}: not public")
    return found


def private(name: str, layer: str) -> bool:
    """Whether a name has an underscore, or belongs to a module that a package keeps to itself."""
    if any(part.startswith("_") and not part.endswith("__") for part in name.split(".")):
        return True
    rule = PYTHON_LAYERS[layer]
    below = name.removeprefix(layer).removeprefix(".").partition(".")[0]
    return rule.facade and (ROOT / rule.folder / f"{below}.py").is_file()


def python_modules() -> Iterator[tuple[str, Path]]:
    for layer, rule in PYTHON_LAYERS.items():
        for path in sorted((ROOT / rule.folder).rglob("*.py")):
            yield module_name(layer, path), path


def test_python_modules_keep_to_their_layer() -> None:
    """The code on disk."""
    modules = list(python_modules())
    assert any(name == "ffwd" for name, _ in modules)
    found = [
        violation
        for name, path in modules
        for violation in python_violations(
            path.read_text(encoding="utf-8"), name, is_package=path.name == "__init__.py"
        )
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("ffwd.x", "import torch"),
        ("ffwd.x", "import transformers"),
        ("ffwd.x", "try:\n    import tokenizers\nexcept ImportError:\n    pass"),
        ("ffwd.x", "class A:\n    from tokenizers import Tokenizer"),
        ("ffwd.x", "def f():\n    import torch"),
        ("ffwd.x", "def f():\n    import ffwd.adapters.transformers"),
        ("ffwd.x", "def f():\n    from . import adapters"),
        ("ffwd.x.y", "from ..adapters import transformers"),
        ("ffwd._generate", "from ffwd.adapters.transformers import ChatModel"),
        ("ffwd.x", "from maskbench import data"),
        ("ffwd.x", "import yaml"),
        ("ffwd.adapters.x", "from ffwd._native import Matcher"),
        ("ffwd.adapters.x", "from ffwd import _compile"),
        ("ffwd.adapters.x", "from .._native import Matcher"),
        ("ffwd.adapters.x", "import ffwd\nffwd._native.Matcher"),
        ("ffwd.adapters.x", "import adapters.y"),
        ("ffwd.adapters.x", "import starlette"),
        ("ffwd.adapters.server.x", "from ffwd._native import Matcher"),
        ("ffwd.adapters.server.x", "from ffwd.adapters.transformers.mask import ScoreMask"),
        ("ffwd.adapters.server.x", "from ffwd.adapters.transformers import mask"),
        ("ffwd.adapters.shared.x", "import transformers"),
        ("ffwd.adapters.vllm.x", "from ffwd.adapters.sglang import register"),
        ("ffwd.cli.x", "import torch"),
        ("ffwd.cli.x", "from ffwd.adapters.server import run"),
        ("ffwd.adapters.x", "import maskbench"),
        ("maskbench.x", "import ffwd\ndef f():\n    return ffwd.grammar._kinds"),
        ("maskbench.x", "from ffwd.adapters import transformers"),
        ("maskbench.x", "import llguidance"),
    ],
)
def test_python_violations_are_seen(module: str, source: str) -> None:
    """The rule can fail."""
    assert python_violations(source, module)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("ffwd.x", "import json, numpy.typing\nfrom ffwd._native import Matcher"),
        ("ffwd.x", "def f():\n    from tokenizers import Tokenizer"),
        ("ffwd.x", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import tokenizers"),
        ("ffwd.adapters.vllm.x", "import ffwd, torch\nffwd.compile\nffwd.__version__"),
        ("ffwd.adapters.vllm.x", "from ffwd.adapters.vllm._masks import f\nfrom ._masks import g"),
        ("ffwd.adapters.server.x", "import starlette\nfrom ffwd.adapters.shared.cache import f"),
        ("ffwd.cli.x", "import click\ndef f():\n    from ffwd.adapters.server import run"),
        ("maskbench.x", "import ffwd.tokenizer\ndef f():\n    import llguidance"),
    ],
)
def test_python_permissions_are_seen(module: str, source: str) -> None:
    """The rule does not forbid everything."""
    assert python_violations(source, module) == []


# -------------------------------------------------------------------------------------------- Rust

NATIVE = ROOT / "ffwd/native"

_NOT_CODE = re.compile(
    r"""
      //[^\n]*
    | /\*.*?\*/
    | \b(?:b|c)?r(?P<hashes>\#*)".*?"(?P=hashes)
    | \b(?:b|c)?"(?:\\.|[^"\\])*"
    | "(?:\\.|[^"\\])*"
    | b?'(?:\\(?:x[0-9a-fA-F]{2}|u\{[^}]*\}|.)|[^'\\\n])'
    """,
    re.DOTALL | re.VERBOSE,
)
_PATH_START = re.compile(r"(?<![\w:])(crate|super)\s*::\s*")
_WORD = re.compile(r"\w+")
_STEP = re.compile(r"\s*::\s*(?=[\w{*])")
_BETWEEN = re.compile(r"(?:\s+as\s+\w+|[\s,])*")


def rust_paths(source: str, module: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    """The paths from the root of the crate that some code names, with the line.

    `module` is the path of the module that the code is in, `("regex", "ast")`.
    """
    code = _NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)
    # Inline modules (`mod tests {`) are one deeper, so each `super` may mean one more level.
    for start in _PATH_START.finditer(code):
        line = code.count("\n", 0, start.start()) + 1
        position = start.end()
        base: tuple[str, ...] = ()
        if start[1] == "super":
            level = 1
            while (again := re.compile(r"super\s*::\s*").match(code, position)) is not None:
                level += 1
                position = again.end()
            level -= inline_depth(code, start.start())
            base = module[: max(len(module) - max(level, 0), 0)]
        for path in paths_at(code, position)[0]:
            yield (*base, *path), line


def rust_uses(source: str, module: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """The top-level modules of the crate that some code names, with the line."""
    for path, line in rust_paths(source, module):
        yield path[0], line


def inline_depth(code: str, position: int) -> int:
    """In how many `mod name { … }` a position is."""
    depth = 0
    for match in re.compile(r"\bmod\s+\w+\s*\{").finditer(code, 0, position):
        braces = 1
        for character in code[match.end() : position]:
            braces += (character == "{") - (character == "}")
            if braces == 0:
                break
        depth += braces > 0
    return depth


def past(pattern: re.Pattern[str], code: str, position: int) -> int:
    """The position after what a pattern matches there, if anything."""
    match = pattern.match(code, position)
    return position if match is None else match.end()


def paths_at(code: str, position: int) -> tuple[list[tuple[str, ...]], int]:
    """The paths from a position on, `a::b` or those of `{a::b, c::{d, e}}`, and where they end."""
    if code[position : position + 1] == "{":
        found = []
        position = past(_BETWEEN, code, position + 1)
        while code[position : position + 1] not in ("}", ""):
            more, position = paths_at(code, position)
            found += more
            position = past(_BETWEEN, code, position)
        return found, position + 1
    word = _WORD.match(code, position)
    if word is None:
        return [(code[position : position + 1],)], position + 1
    step = _STEP.match(code, word.end())
    if step is None:
        return [(word[0],)], word.end()
    below, end = paths_at(code, step.end())
    return [(word[0], *path) for path in below], end


def rust_violations(
    source: str, module: tuple[str, ...], layers: Mapping[str, frozenset[str]]
) -> list[str]:
    """What the code of a module uses against the layers of its crate."""
    own = module[0]
    allowed = layers.get(own)
    if allowed is None:
        return [f"{own}: not in RUST_LAYERS; decide on whom it may use"]
    return [
        f"{'::'.join(module)}:{line} uses crate::{used}"
        for used, line in rust_uses(source, module)
        if used != own and used not in allowed
    ]


_ELSEWHERE = re.compile(r'#\[path\s*=\s*"([^"]+)"\]\s*(?:pub\s*(?:\([^)]*\)\s*)?)?mod\s+(\w+)\s*;')


def rust_modules(root: Path) -> list[tuple[tuple[str, ...], Path]]:
    """Every module below a top-level one, with its file; `lib.rs` only lists those."""
    found = {}
    for path in sorted(root.rglob("*.rs")):
        parts = path.relative_to(root).with_suffix("").parts
        if parts != ("lib",):
            found[path] = tuple(part for part in parts if part != "mod")
    # `#[path = "ecma_tests.rs"] mod tests;` in ecma.rs is ecma::tests, wherever its file lies.
    for path, module in list(found.items()):
        for file, name in _ELSEWHERE.findall(path.read_text(encoding="utf-8")):
            found[path.parent / file] = (*module, name)
    return [(module, path) for path, module in found.items()]


@pytest.mark.parametrize("crate", RUST_LAYERS)
def test_rust_modules_keep_to_their_layer(crate: str) -> None:
    """The code on disk."""
    modules = rust_modules(NATIVE / "crates" / crate / "src")
    assert {module[0] for module, _ in modules} == set(RUST_LAYERS[crate])
    found = [
        violation
        for module, path in modules
        for violation in rust_violations(
            path.read_text(encoding="utf-8"), module, RUST_LAYERS[crate]
        )
    ]
    assert not found, "\n".join(found)


def manifest(path: Path) -> dict[str, Any]:
    """The `Cargo.toml` of a crate."""
    return tomllib.loads((path / "Cargo.toml").read_text(encoding="utf-8"))


def test_only_the_root_of_the_workspace_knows_python() -> None:
    """The crates below build and are tested without an interpreter."""
    crates = sorted(path for path in (NATIVE / "crates").iterdir() if path.is_dir())
    assert "pyo3" in manifest(NATIVE)["dependencies"]
    for crate in crates:
        asked = manifest(crate)["dependencies"]
        assert not {"pyo3", "numpy", "ffwd-native"} & set(asked), crate.name


def test_a_module_may_lie_in_a_file_of_another_name(tmp_path: Path) -> None:
    """Its `super` counts from its place among the modules."""
    (tmp_path / "regex").mkdir()
    (tmp_path / "regex/ecma.rs").write_text('#[cfg(test)]\n#[path = "far.rs"]\nmod tests;')
    (tmp_path / "regex/far.rs").write_text("use super::super::oracle;")
    modules = {module for module, _ in rust_modules(tmp_path)}
    assert modules == {("regex", "ecma"), ("regex", "ecma", "tests")}


@pytest.mark.parametrize("crate", RUST_LAYERS)
def test_the_root_of_a_crate_with_layers_only_lists_them(crate: str) -> None:
    """Code in `lib.rs` would be below every layer and free to use all of them."""
    source = NATIVE / "crates" / crate / "src/lib.rs"
    code = _NOT_CODE.sub("", source.read_text(encoding="utf-8"))
    statements = re.sub(r"#!?\[[^\]]*\]", "", code).split()
    assert re.fullmatch(r"(?:(?:pub )?(?:mod|use) [^;{}]+; ?)+", " ".join(statements)), code


def test_rust_layers_have_no_cycle() -> None:
    """The table names lower layers first, so whoever may use whom is acyclic."""
    for layers in RUST_LAYERS.values():
        order = list(layers)
        for index, layer in enumerate(order):
            assert layers[layer] <= set(order[:index]), layer


def import_circles(modules: Mapping[tuple[str, ...], str]) -> list[list[tuple[str, ...]]]:
    """The modules that import each other in a circle, by circle; `modules` has their code."""
    imports: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for module, source in modules.items():
        code = re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", source)[0]
        found = imports.setdefault(module, set())
        for path, _ in rust_paths(code, module):
            ends = range(len(path), 0, -1)
            found.update(next(([path[:end]] for end in ends if path[:end] in modules), []))

    def reached(start: tuple[str, ...]) -> set[tuple[str, ...]]:
        seen: set[tuple[str, ...]] = set()
        pending = [start]
        while pending:
            fresh = imports[pending.pop()] - seen
            seen |= fresh
            pending += fresh
        return seen

    within = {module: reached(module) for module in modules}
    circles = {
        tuple(sorted(other for other in within[module] if module in within[other]))
        for module in modules
        if module in within[module]
    }
    return sorted((list(circle) for circle in circles if len(circle) > 1), key=len)


# The most files of a crate that import each other in a circle.
MAX_CIRCLE = {"automaton": 4}


@pytest.mark.parametrize("crate", MAX_CIRCLE)
def test_rust_files_import_each_other_in_small_circles_only(crate: str) -> None:
    """Code is understood a circle at a time."""
    modules = {
        module: path.read_text(encoding="utf-8")
        for module, path in rust_modules(NATIVE / "crates" / crate / "src")
        if not any("test" in part for part in module)
    }
    assert len(modules) > 50
    large = [circle for circle in import_circles(modules) if len(circle) > MAX_CIRCLE[crate]]
    assert not large, large


def test_import_circles_are_found() -> None:
    """Of any length, through folders, `super` and braces, and not through tests."""
    modules = {
        ("a",): "use crate::b::{inner::{B, C}, other as o};",
        ("b",): "",
        ("b", "inner"): "use super::super::c;",
        ("c",): "fn f() -> crate :: a :: A { crate::d::<u8>() }",
        ("d",): "#[cfg(test)]\nmod tests {\n    use super::super::c;\n}",
        ("e",): "use super::f::F;",
        ("f",): "use crate::e;",
    }
    assert import_circles(modules) == [[("e",), ("f",)], [("a",), ("b", "inner"), ("c",)]]


# The most methods of one type of a crate. Types are told apart by their names.
MAX_METHODS = {"automaton": 60}
_IMPL = re.compile(r"^(?:impl|(?:pub(?:\([^)]*\))? )?trait)\b(?:<[^{]*?>)? *(\w+)([^{;]*)\{", re.M)


def methods_of(code: str) -> Iterator[tuple[str, int]]:
    """The types of a file that has been formatted, each with the methods of one block of it."""
    for match in _IMPL.finditer(code):
        if re.search(r"\bfor\b", match[2]) is None:
            block = code[match.end() : code.index("\n}", match.end() - 1)]
            yield (
                match[1],
                len(re.findall(r"^    (?:pub(?:\([^)]*\))? )?(?:const )?fn ", block, re.M)),
            )


@pytest.mark.parametrize("crate", MAX_METHODS)
def test_no_rust_type_has_too_many_methods(crate: str) -> None:
    """What a type with more of them does is several things."""
    counts: Counter[str] = Counter()
    for _, path in rust_modules(NATIVE / "crates" / crate / "src"):
        for name, number in methods_of(path.read_text(encoding="utf-8")):
            counts[name] += number
    assert counts
    most = MAX_METHODS[crate]
    assert not {name: number for name, number in counts.items() if number > most}


def test_methods_are_counted() -> None:
    """Those of all blocks of a type and of a trait, and not what a type has by a trait."""
    code = (
        "impl<O: On> Handle<'_, O> {\n    fn a(&self) {\n    }\n    pub(crate) fn b() {}\n}\n"
        "impl Handle<'_, u8> {\n    pub const fn c() {}\n}\n"
        "impl Clone for Handle<'_, u8> {\n    fn clone(&self) -> Self {}\n}\n"
        "pub trait On: Sized {\n    fn d(&self);\n}\n"
    )
    assert list(methods_of(code)) == [("Handle", 2), ("Handle", 1), ("On", 1)]


# What the rule is tried with.
LAYERS = {
    "regex": frozenset[str](),
    "vocabulary": frozenset[str](),
    "automaton": frozenset({"regex"}),
    "mask": frozenset({"vocabulary", "automaton"}),
}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (("regex", "ast"), "use crate::automaton::State;"),
        (("regex", "ast"), "use crate::{\n    regex::Ast,\n    mask::{Mask, vocabulary},\n};"),
        (("regex", "ast"), "fn f() -> crate :: vocabulary :: Trie { todo!() }"),
        (("regex", "ast"), "use super::super::matcher;"),
        (("regex",), "use super::vocabulary::Trie;"),
        (("regex", "ast"), "mod tests {\n    use super::super::super::expr::Store;\n}"),
        (("automaton", "state"), "pub use crate::mask as m;"),
        (("automaton",), "use crate::vocabulary::TokenId;"),
        (("automaton",), "use crate::matcher::Matcher;"),
        (("mask",), "use crate::*;"),
        (("novel",), ""),
    ],
)
def test_rust_violations_are_seen(module: tuple[str, ...], source: str) -> None:
    """The rule can fail."""
    assert rust_violations(source, module, LAYERS)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (("regex", "ast"), "use super::Ast;\nuse crate::regex::{class, Ast};"),
        (("regex", "ast"), "mod tests {\n    use super::super::Ast;\n    use super::*;\n}"),
        (("regex",), '// use crate::mask;\n/* crate::mask::x */ let s = "crate::mask";'),
        (
            ("regex",),
            "let s = r#\"a \" crate::mask\"#; let c = '\"'; let d = b'\\''; let l: &'a X;",
        ),
        (("mask",), "use crate::{automaton::{self, StateId}, vocabulary::Trie};"),
        (("regex",), "pub(crate) fn f() {} mycrate::mask::x();"),
    ],
)
def test_rust_permissions_are_seen(module: tuple[str, ...], source: str) -> None:
    """The rule does not forbid everything."""
    assert rust_violations(source, module, LAYERS) == []
