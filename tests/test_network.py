"""No code opens a connection, but for the few files that say so, each for one thing."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ("ffwd", "adapters")
FOLDERS = (*SHIPPED, "maskbench")

# Packages and modules that open connections, listen, or start a program that may.
NETWORK = frozenset(
    {"socket", "socketserver", "ssl", "http", "urllib.request", "urllib.robotparser", "ftplib"}
    | {"smtplib", "poplib", "imaplib", "nntplib", "telnetlib", "xmlrpc", "webbrowser", "asyncore"}
    | {"urllib3", "requests", "httpx", "httpcore", "aiohttp", "websockets", "websocket", "h11"}
    | {"huggingface_hub", "hf_xet", "hf_transfer", "fsspec", "s3fs", "boto3", "modelscope"}
    | {"openai", "grpc", "zmq", "ray", "paramiko", "pycurl", "selenium", "uvicorn", "starlette"}
    | {"fastapi", "flask", "tornado", "subprocess", "wandb", "datasets"}
)
# File -> what it may import of these, and what for.
ALLOWED: dict[str, tuple[frozenset[str], str]] = {
    "ffwd/tokenizer/hub.py": (
        frozenset({"huggingface_hub"}),
        "fetches the tokenizer of a model that is named and is no path",
    ),
    "ffwd/play/server.py": (
        frozenset({"http"}),
        "the page of `ffwd play`, on a loopback address",
    ),
    "ffwd/cli/play.py": (frozenset({"webbrowser"}), "opens that page"),
    "adapters/server/app.py": (frozenset({"starlette"}), "the server that `ffwd serve` starts"),
    "adapters/server/connections.py": (
        frozenset({"h11", "uvicorn"}),
        "the server's connections, which are closed where nothing comes",
    ),
    "adapters/server/cors.py": (frozenset({"starlette"}), "which pages may use that server"),
    "adapters/server/endpoints.py": (frozenset({"starlette"}), "the answers of that server"),
    "adapters/server/replies.py": (frozenset({"starlette"}), "the answers of that server"),
    "adapters/server/state.py": (frozenset({"starlette"}), "what its routes share"),
    "adapters/server/running.py": (
        frozenset({"socket", "starlette", "uvicorn"}),
        "the server that `ffwd serve` starts",
    ),
    "maskbench/tools/fetch.py": (frozenset({"subprocess"}), "`maskbench tools fetch`: git clone"),
    "maskbench/conformance/hostile/measure.py": (
        frozenset({"subprocess"}),
        "a process of its own for a case",
    ),
    "maskbench/tools/crates.py": (frozenset({"subprocess"}), "cargo"),
    "maskbench/tools/instructions.py": (frozenset({"subprocess"}), "valgrind and cargo"),
    "maskbench/speed/gpu/measure.py": (frozenset({"subprocess"}), "the driver's version"),
    "maskbench/serving/memory.py": (frozenset({"subprocess"}), "a process of its own"),
    "maskbench/runs/cluster.py": (
        frozenset({"ray", "socket"}),
        "a cluster that the user names, and the name of this machine",
    ),
}
# Calls that fetch, of packages that do other things too.
FETCHING = re.compile(
    r"\b(get_encoding|encoding_for_model|snapshot_download|hf_hub_download|from_pretrained"
    r"|open_connection|create_connection|start_server|create_server|urlopen|urlretrieve)$"
)
ALLOWED_CALLS: dict[str, tuple[frozenset[str], str]] = {
    "ffwd/tokenizer/hub.py": (frozenset({"snapshot_download"}), "as above"),
    "ffwd/tokenizer/ranks/openai.py": (
        frozenset({"get_encoding"}),
        "tiktoken fetches the ranks of an encoding that is named",
    ),
}
# Crates of a client, a server or an event loop, of which none may be in the lock file.
NETWORK_CRATES = frozenset(
    {"reqwest", "hyper", "ureq", "curl", "openssl", "rustls", "native-tls", "tokio", "mio"}
    | {"socket2", "async-std", "smol", "tungstenite", "h2", "quinn", "isahc", "attohttpc"}
)


def sources(folders: tuple[str, ...] = FOLDERS) -> dict[str, ast.Module]:
    """The Python files of the project, by path."""
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (ROOT / "ffwd/adapters") not in path.parents
    }


def imported(tree: ast.Module) -> set[str]:
    """The modules that it imports anywhere, as far as `NETWORK` names them."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Call) and called(node) in ("import_module", "__import__"):
            given = node.args[0] if node.args else None
            names.add(given.value if isinstance(given, ast.Constant) else "")
    parts = {name: name.split(".") for name in names if isinstance(name, str)}
    whole = {".".join(part[:count]) for part in parts.values() for count in range(1, len(part) + 1)}
    return {"http" if name == "http.client" else name for name in whole & NETWORK}


def called(node: ast.Call) -> str:
    """The last part of the name of what is called."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def fetching(tree: ast.Module) -> set[str]:
    """The calls that may fetch; those that are told to stay local are none."""
    return {
        called(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and FETCHING.search(called(node))
        and not any(
            word.arg == "local_files_only"
            and isinstance(word.value, ast.Constant)
            and word.value.value is True
            for word in node.keywords
        )
    }


def test_who_imports_what_opens_connections() -> None:
    """The files of the table, and what it says of each."""
    found = {path: names for path, tree in sources().items() if (names := imported(tree))}
    assert found == {path: set(names) for path, (names, _) in ALLOWED.items()}


def test_who_calls_what_fetches() -> None:
    """`from_pretrained` and others like it fetch what is not there, unless they are told not to."""
    found = {path: names for path, tree in sources(SHIPPED).items() if (names := fetching(tree))}
    assert found == {path: set(names) for path, (names, _) in ALLOWED_CALLS.items()}


@pytest.mark.parametrize(
    "source",
    [
        "import socket",
        "import http.client",
        "from urllib import request",
        "from urllib.request import urlopen",
        "def f():\n    import requests.adapters",
        "from huggingface_hub import snapshot_download",
        "import importlib\nimportlib.import_module('httpx')",
        "__import__('ssl')",
    ],
)
def test_imports_are_seen(source: str) -> None:
    """The rule can fail."""
    assert imported(ast.parse(source))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from urllib.parse import quote", set()),
        ("import ffwd.tokenizer.hub", set()),
        ("AutoModel.from_pretrained(folder, local_files_only=True)", set()),
        ("AutoModel.from_pretrained(folder, local_files_only=other)", {"from_pretrained"}),
        ("tiktoken.get_encoding(name)", {"get_encoding"}),
    ],
)
def test_permissions_are_seen(source: str, expected: set[str]) -> None:
    """Nor does it forbid everything."""
    tree = ast.parse(source)
    assert imported(tree) | fetching(tree) == expected


def core_sources() -> list[Path]:
    """The sources of the crates; what cargo built of them and fuzzing are left out."""
    crate = ROOT / "ffwd/native"
    left_out = {crate / "target", crate / "fuzz"}
    found = [path for path in crate.rglob("src/**/*.rs") if left_out.isdisjoint(path.parents)]
    assert {path.parents[1] for path in found} >= {
        path.parent for path in crate.rglob("crates/*/Cargo.toml")
    }
    return sorted(found)


def test_the_core_has_no_network() -> None:
    """No crate of a client or server, and of the standard library no connection and no process."""
    lock = tomllib.loads((ROOT / "ffwd/native/Cargo.lock").read_text(encoding="utf-8"))
    crates = {package["name"] for package in lock["package"]}
    assert "regex-syntax" in crates
    assert not crates & NETWORK_CRATES
    found = [
        path.relative_to(ROOT).as_posix()
        for path in core_sources()
        if re.search(r"\bstd::(net|os)\b|\bprocess::Command\b", path.read_text(encoding="utf-8"))
    ]
    assert not found


# ------------------------------------------------------------------------------------- when it runs

# Whatever opens, resolves or listens, in Python or in a library that is written in it, is refused
# from the first line on. (Programs are started: torch's asks the compiler where libraries are.)
REFUSING = """
import sys
def refuse(event, arguments):
    if event.startswith(("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto",
                         "socket.gethostby", "urllib.", "http.client.", "ftplib.", "smtplib.")):
        print("REFUSED", event, arguments[-1:], file=sys.stderr)
        raise PermissionError(f"{event} is refused")
"""
HOOK = "sys.addaudithook(refuse)\n"

# Everything but the engines, which are not installed beside one another.
IMPORTS = """
import importlib, pkgutil
import ffwd, ffwd.adapters
ENGINES = {"exllamav3", "genlm", "llama_cpp", "lmdeploy", "mlx", "onnxruntime_genai", "outlines"}
ENGINES |= {"sglang", "tensorrt_llm", "vllm"}
# In a checkout, ffwd.adapters is no folder of ffwd's.
packages = {"ffwd.": ffwd.__path__, "ffwd.adapters.": ffwd.adapters.__path__}
names = {m.name for prefix, path in packages.items() for m in pkgutil.walk_packages(path, prefix)}
missing = []
for name in sorted(names):
    if name.endswith("__main__"):
        continue
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing.append((name, error.name.partition(".")[0]))
assert {package for _, package in missing} <= ENGINES, missing
print(len(names), "modules")
"""

USE = """
import json
import numpy as np
import torch, transformers
import ffwd, ffwd.chat, ffwd.metrics, ffwd.openai, ffwd.streaming, ffwd.tokenizer
import ffwd.model
from ffwd.cli.demo.ways import Demo, tasks
(task,) = tasks(1, seed=0)
loaded = ffwd.tokenizer.load(ffwd.model.path())
assert loaded.decode(loaded.encode("some text")) == "some text"
vocabulary = loaded.vocabulary()
grammars = [
    ffwd.json_schema(task.schema),
    ffwd.json_schema({"$ref": "https://json-schema.org/draft/2020-12/schema"}),
    ffwd.regex("[a-z]+"), ffwd.choice(["yes", "no"]), ffwd.substring_of("a few words"),
    ffwd.lark('start: "a" /[0-9]+/'), ffwd.gbnf('root ::= "a" [0-9]+'), ffwd.ebnf('root ::= "a"'),
    ffwd.reasoning(ffwd.lit("x")), ffwd.any_text(),
]
for grammar in grammars:
    compiled = ffwd.compile(grammar, vocabulary)
    matcher = compiled.matcher()
    bitmask = ffwd.allocate_bitmask(1, vocabulary.vocab_size)
    for _ in range(5):
        if matcher.is_terminated():
            break
        matcher.fill_bitmask(bitmask, 0)
        matcher.explain()
        forced = matcher.fast_forward_tokens()
        logits = np.zeros(vocabulary.vocab_size)
        ffwd.apply_token_bitmask_inplace(logits, bitmask[0])
        matcher.accept_tokens(forced or [int(logits.argmax())])
        matcher.events()
    assert ffwd.CompiledGrammar.from_bytes(compiled.to_bytes(), vocabulary)
ffwd.fidelity_report(grammars[0])
# A reference to a document that nobody gave is refused, and not fetched.
try:
    ffwd.compile(ffwd.json_schema({"$ref": "https://example.com/schema.json"}), vocabulary)
except ffwd.UnsupportedSchemaError as error:
    assert "example.com" in str(error)
else:
    raise AssertionError("compiled")
template = ffwd.chat.ChatTemplate("{% for m in messages %}{{ m.content }}{% endfor %}")
assert template.render_text([{"role": "user", "content": "hello"}]) == "hello"
tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
assert ffwd.openai.tools(tools, tool_choice="required", format="hermes") is not None
ffwd.metrics.enable()
outcomes, _ = Demo().write(task)
assert all(outcome.valid for outcome in outcomes[1:])
print("used")
"""

# The two that may, when they are asked for what is not there: they try, and are refused.
HUB = """
import ffwd.tokenizer
from ffwd.tokenizer import TokenizerNotFoundError
try:
    ffwd.tokenizer.load("nobody/no-such-model")
except TokenizerNotFoundError as error:
    print("NOT FOUND")
"""


def run(code: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """A program under the hook, with an empty cache and no word of being offline."""
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("HF_", "TRANSFORMERS_", "TIKTOKEN_"))
    }
    environment |= {"HF_HOME": str(folder / "cache"), "TOKENIZERS_PARALLELISM": "false"}
    environment |= {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", f"{REFUSING}{HOOK}{code}"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.parametrize(("code", "closing"), [(IMPORTS, "modules"), (USE, "used")])
def test_nothing_connects(code: str, closing: str, tmp_path: Path) -> None:
    """All modules are imported, and what they offer is used, where every connection is refused."""
    done = run(code, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.rstrip().endswith(closing)
    assert "REFUSED" not in done.stderr, done.stderr


def test_the_download_helper_tries(tmp_path: Path) -> None:
    """The hook does see a connection: that of a model's name that is no path."""
    done = run(HUB, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "NOT FOUND" in done.stdout
    assert "REFUSED socket." in done.stderr
