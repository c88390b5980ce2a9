"""Nothing that reads data can be made to run code by it."""

import ast
import copy
import pickle
import re
from pathlib import Path

import pytest

import ffwd

ROOT = Path(__file__).resolve().parent.parent

# What they read may be a program.
LOADERS = frozenset(
    {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}
    | {"jsonpickle", "yaml", "ruamel", "runpy", "code", "codeop", "imp"}
)
# Between processes of one user's own cluster, which ray starts and connects.
ALLOWED = {"maskbench/runs/cluster.py": {"pickle"}, "maskbench/runs/node.py": {"pickle"}}


def sources() -> dict[str, ast.Module]:
    """The Python files of the project, by path."""
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for folder in ("ffwd", "adapters", "maskbench")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (ROOT / "ffwd/adapters") not in path.parents
    }


def loaders(tree: ast.Module) -> set[str]:
    """The modules of `LOADERS` that are imported."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names & LOADERS


def _is(node: ast.expr | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def dangers(tree: ast.Module) -> list[str]:
    """Calls that run what they are given, and options that let a library do so."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        options = {word.arg: word.value for word in node.keywords}
        name = ast.unparse(node.func)
        loads = re.search(r"(^|\.)torch\.load$", name) is not None
        if (
            name in ("eval", "exec", "compile", "__import__", "os.system", "os.popen")
            or (loads and not _is(options.get("weights_only"), True))
            or _is(options.get("shell"), True)
        ):
            found.append(name)
        found += [
            f"{name}({option}=)"
            for option in ("trust_remote_code", "allow_pickle")
            if option in options and not _is(options[option], False)
        ]
        # The default asks a person at the terminal.
        if re.search(r"\bAuto\w+\.from_pretrained$", name) and "trust_remote_code" not in options:
            found.append(f"{name} without trust_remote_code")
    return found


def test_no_loader_of_programs() -> None:
    """No pickle and nothing like it, but between processes of one's own."""
    found = {path: names for path, tree in sources().items() if (names := loaders(tree))}
    assert found == ALLOWED


def test_nothing_is_run() -> None:
    """No eval, no exec, no shell, no code of a model's repository."""
    found = {path: calls for path, tree in sources().items() if (calls := dangers(tree))}
    assert not found


@pytest.mark.parametrize(
    "source",
    [
        "eval(text)",
        "exec(text)",
        "__import__(name)",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "numpy.load(path, allow_pickle=True)",
        "subprocess.run(text, shell=True)",
        "os.system(text)",
        "AutoModelForCausalLM.from_pretrained(path)",
        "AutoTokenizer.from_pretrained(path, trust_remote_code=True)",
    ],
)
def test_dangers_are_seen(source: str) -> None:
    """The rule can fail."""
    assert dangers(ast.parse(source))


@pytest.mark.parametrize(
    "source",
    [
        "model.eval()",
        "re.compile(text)",
        "ffwd.compile(grammar, vocabulary)",
        "torch.load(path, weights_only=True)",
        "AutoTokenizer.from_pretrained(path, trust_remote_code=False)",
    ],
)
def test_permissions_are_seen(source: str) -> None:
    """Nor does it forbid everything."""
    assert not dangers(ast.parse(source))


@pytest.mark.parametrize("source", ["import pickle", "from marshal import loads", "import yaml"])
def test_loaders_are_seen(source: str) -> None:
    """The rule can fail."""
    assert loaders(ast.parse(source))


def _vocabulary() -> ffwd.Vocabulary:
    return ffwd.Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=[256])


def test_what_is_saved_is_data() -> None:
    """Compiled grammars and matchers refuse to be pickled and name what is safe to read."""
    vocabulary = _vocabulary()
    compiled = ffwd.compile(ffwd.choice(["yes", "no"]), vocabulary)
    for value in (compiled, compiled.matcher()):
        with pytest.raises(TypeError, match="to_bytes"):
            pickle.dumps(value)
    for data in (pickle.dumps({"a": 1}), pickle.dumps(object()), b"\x80\x04."):
        with pytest.raises(ffwd.SerializationError):
            ffwd.CompiledGrammar.from_bytes(data, vocabulary)
        with pytest.raises(ffwd.SerializationError):
            ffwd.Matcher.from_bytes(data, compiled)


def test_a_pickled_grammar_is_the_grammar() -> None:
    """What pickle carries of a `Grammar` is its fields, none of them a function or an object."""
    grammars = [
        ffwd.json_schema({"type": "object", "properties": {"a": {"enum": [1, "b"]}}}),
        ffwd.choice(["yes", "no"]) + ffwd.regex("[0-9]+"),
        ffwd.lark('start: "a" /[0-9]+/'),
    ]
    for grammar in grammars:
        again = pickle.loads(pickle.dumps(grammar))
        assert again == grammar
        assert again == copy.deepcopy(grammar)
        assert hash(again) == hash(grammar)
        classes = set(re.findall(rb"\x8c[\x00-\xff](ffwd[\w.]*)", pickle.dumps(grammar, 4)))
        assert all(name.startswith(b"ffwd.grammar") for name in classes), classes
