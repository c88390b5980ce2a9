"""What a type checker knows of typed schemas and answers: mypy, strict, as users run it."""

import ast
import dataclasses
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ffwd
from ffwd.adapters.transformers.chat_options import ChatOptions
from ffwd.grammar import Writing

ROOT = Path(__file__).resolve().parent.parent.parent

PROGRAM = """
import inspect
from dataclasses import dataclass
from typing import Any

import ffwd


@dataclass
class Person:
    name: str


def forecast(city: str) -> str:
    return city


model: Any = None
schema = ffwd.schema_of(Person)
reveal_type(schema.parse("{}"))  # Person
reveal_type(ffwd.json_schema(Person).parse("{}"))  # Person
reveal_type(ffwd.schema_of(forecast).parse("{}"))  # inspect.BoundArguments
reveal_type(ffwd.json_schema({"type": "string"}))  # ffwd.grammar._kinds.JsonSchema
reveal_type(ffwd.schema_of(list[int]).parse("[]"))  # list[int]
reveal_type(ffwd.generate(model, None, "Ada", Person).value)  # Person
reveal_type(ffwd.generate(model, None, [{"role": "user", "content": "a"}], schema).value)  # Person
reveal_type(ffwd.generate(model, None, ["Ada"], Person)[0].value)  # Person
reveal_type(ffwd.generate(model, None, "Ada", {}).value)  # Any
reveal_type(ffwd.stream(model, None, "Ada", Person).result().value)  # Person
grammar: ffwd.Grammar = schema | "none"


async def main() -> None:
    made = await ffwd.generate_async(model, None, "Ada", Person, max_new_tokens=9)
    reveal_type(made.value)  # Person
    made.value.age  # error: "Person" has no attribute "age"
    ffwd.schema_of(Person, numbers="any", indent=2)
    ffwd.json_schema({}, numbers="most")  # error: No overload variant of "json_schema" matches
    ffwd.openai.response_format({}, number="any")  # error: Unexpected keyword argument "number"
"""


def test_types_of_values(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    # As the wheel has it: adapters/ is ffwd.adapters.
    package = tmp_path / "ffwd"
    package.mkdir()
    for path in (ROOT / "ffwd").iterdir():
        if path.name not in ("native", "adapters", "__pycache__") and path.suffix != ".so":
            (package / path.name).symlink_to(path)
    (package / "adapters").symlink_to(ROOT / "adapters")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    # What is not asked about takes long to read.
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\nstrict = True\nfollow_imports = silent\n"
        "[mypy-torch.*,transformers.*,tokenizers.*]\n"
        "follow_imports = skip\nignore_missing_imports = True\n",
        encoding="utf-8",
    )
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = PROGRAM.splitlines()
    expected = {
        number: line.partition("  # ")[2]
        for number, line in enumerate(lines, start=1)
        if line.strip().startswith("reveal_type") or "# error" in line
    }
    found = {}
    for line in ran.stdout.splitlines():
        if said := re.match(
            r"program\.py:(\d+): (?:note: Revealed type is \"(.*)\"|(error: .*))", line
        ):
            found[int(said[1])] = (
                (said[2] or said[3]).replace("program.", "").replace("builtins.", "")
            )
    assert {number: found.get(number, ran.stderr) for number in expected} == {
        number: found.get(number, "") if text.startswith("error") else text
        for number, text in expected.items()
    }, ran.stdout
    errors = [text for text in found.values() if text.startswith("error")]
    assert len(errors) == 3
    for number, line in expected.items():
        if line.startswith("error"):
            assert line in found[number]


def test_the_options_are_the_same_everywhere() -> None:
    """In all overloads, in what `help` shows, and in what the adapter reads."""
    tree = ast.parse((ROOT / "ffwd/_generate.py").read_text(encoding="utf-8"))
    functions = [
        node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    overloads = [
        node
        for node in functions
        if any(isinstance(name, ast.Name) and name.id == "overload" for name in node.decorator_list)
    ]
    (generate,) = [
        node for node in functions if node.name == "generate" and not node.decorator_list
    ]

    def options(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[tuple[str, str, str]]:
        assert node.args.kwarg is not None
        assert node.args.kwarg.arg == "generate_options"
        return [
            (one.arg, ast.unparse(one.annotation), ast.unparse(default))
            for one, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            if one.annotation is not None and default is not None
        ]

    assert len(options(generate)) == 16
    assert {node.name for node in overloads} == {"generate", "generate_async", "stream"}
    for node in overloads:
        assert options(node) == options(generate), (node.name, node.lineno)
    shown = inspect.signature(ffwd.generate).parameters.values()
    expected = [
        (one.name, one.default) for one in shown if one.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    for function in (ffwd.generate_async, ffwd.stream):
        found = inspect.signature(function).parameters
        assert list(found)[:4] == ["model", "tokenizer", "messages", "schema"]
        assert list(found)[4:] == [*dict(expected), "generate_options"]
    # How JSON is written is one record, two of whose options are named.
    written = {"whitespace": None, "property_order": None}
    assert written.items() <= dict(expected).items()
    assert written.keys() <= {one.name for one in dataclasses.fields(Writing)}
    *read, writing, others = dataclasses.fields(ChatOptions)
    own = [(name, default) for name, default in expected if name not in written]
    assert [(one.name, one.default) for one in read] == own
    assert (writing.name, others.name) == ("writing", "generate_options")
