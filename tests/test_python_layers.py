"""Which packages may import which. The table is the rule; `docs/architecture.md` says why."""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


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
            # The page of `ffwd.view.explore`.
            | {"ffwd.play"}
        ),
        public_only=False,
    ),
    # The page of `ffwd play` and of notebooks: a model and other engines only where they are asked.
    "ffwd.play": PythonLayer(
        folder="ffwd/play",
        eager=frozenset({"ffwd", "numpy"}),
        lazy=frozenset({"ffwd.adapters.transformers", "torch", "transformers"})
        | {"llguidance", "xgrammar"}
        # The widget of notebooks.
        | {"anywidget"},
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
    # One file each, of deprecated names: `ffwd._deprecated` warns of them.
    "ffwd.adapters.demo": PythonLayer(
        folder="adapters/demo", eager=frozenset({"ffwd"}), lazy=frozenset(), public_only=False
    ),
    "ffwd.adapters.triton_bitmask": PythonLayer(
        folder="adapters/triton_bitmask",
        eager=frozenset({"ffwd"}),
        lazy=frozenset(),
        public_only=False,
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
        # An engine brings it, and the server.
        lazy=frozenset({"prometheus_client"}),
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
    "ffwd.adapters.exllamav3": PythonLayer(
        folder="adapters/exllamav3",
        eager=frozenset({"ffwd", "ffwd.adapters.shared", "numpy", "torch", "exllamav3"}),
        lazy=frozenset(),
        public_only=True,
        facade=True,
    ),
    "ffwd.adapters.genlm_control": PythonLayer(
        folder="adapters/genlm_control",
        eager=frozenset({"ffwd", "ffwd.adapters.shared", "numpy", "genlm"}),
        lazy=frozenset(),
        public_only=True,
        facade=True,
    ),
    "ffwd.adapters.lmdeploy": PythonLayer(
        folder="adapters/lmdeploy",
        eager=frozenset({"ffwd", "ffwd.adapters.logits", "ffwd.adapters.shared", "torch"})
        | {"lmdeploy"},
        lazy=frozenset(),
        public_only=True,
        facade=True,
    ),
    "ffwd.adapters.tensorrt_llm": PythonLayer(
        folder="adapters/tensorrt_llm",
        eager=frozenset({"ffwd", "ffwd.adapters.shared", "torch", "tokenizers"}),
        lazy=frozenset(),
        public_only=True,
        facade=True,
    ),
    "ffwd.adapters.mlx_lm": PythonLayer(
        folder="adapters/mlx_lm",
        eager=frozenset({"ffwd", "ffwd.adapters.shared", "numpy", "mlx"}),
        lazy=frozenset(),
        public_only=True,
        facade=True,
    ),
    "ffwd.adapters.onnxruntime_genai": PythonLayer(
        folder="adapters/onnxruntime_genai",
        eager=frozenset({"ffwd", "ffwd.adapters.shared", "numpy", "onnxruntime_genai"}),
        lazy=frozenset(),
        public_only=True,
        facade=True,
    ),
    # Models of three libraries, of which only the one in use is imported.
    "ffwd.adapters.outlines": PythonLayer(
        folder="adapters/outlines",
        eager=frozenset({"ffwd", "ffwd.adapters.shared", "numpy", "outlines"}),
        lazy=frozenset(
            {"ffwd.adapters.transformers", "ffwd.adapters.llama_cpp", "ffwd.adapters.mlx_lm"}
            # For type checkers, which bring it.
            | {"typing_extensions"}
        ),
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
        eager=frozenset({"ffwd", "ffwd.play", "click", "numpy"}),
        lazy=frozenset(
            {"ffwd.adapters.transformers", "ffwd.adapters.server", "ffwd.cli.demo.ways"}
            # What `doctor` knows of an engine; each imports its engine.
            | {"ffwd.adapters.vllm", "ffwd.adapters.sglang"}
            | {"torch", "rich", "transformers"}
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
                "grid",
                "grid_core",
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
            {"ffwd", "ffwd.adapters.logits", "ffwd.adapters.transformers", "maskbench"}
            | {"numpy", "click", "rich", "torch"}
        ),
        lazy=frozenset({"transformers", "xgrammar", "llguidance"}),
        public_only=True,
    ),
    # Beside a model; its command loads the rest only when it is called.
    "maskbench.speed.gpu": PythonLayer(
        folder="maskbench/speed/gpu",
        eager=frozenset(
            {"ffwd", "ffwd.adapters.logits", "maskbench", "maskbench.speed.logits"}
            | {"maskbench.speed.processors", "numpy", "click", "torch", "transformers"}
        ),
        lazy=frozenset({"maskbench.report.html"}),
        public_only=True,
    ),
    # Trains the model in the box; its command loads the rest only when it is called.
    "maskbench.tools.train_model": PythonLayer(
        folder="maskbench/tools/train_model",
        eager=frozenset(
            {"ffwd", "ffwd.adapters.transformers", "maskbench"}
            | {"click", "safetensors", "tokenizers", "torch", "transformers"}
        ),
        lazy=frozenset(),
        public_only=True,
    ),
}


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
            # The examples of the C library are programs, and no part of the package.
            if "examples" not in path.parts:
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
