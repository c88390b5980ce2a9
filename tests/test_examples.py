"""The examples of the site on the model in the box: what they make is right, and is shown."""

import importlib.util
import io
import json
import os
import re
import runpy
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

import ffwd

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "docs/examples"
PAGE = (ROOT / "docs/examples.md").read_text(encoding="utf-8")
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


@dataclass(frozen=True)
class Ran:
    out: str
    status: int
    names: dict[str, Any]


class Runner:
    """Runs an example as its command does, in this process: loading torch takes seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, name: str, *arguments: str) -> Ran:
        path = str(EXAMPLES / f"{name}.py")
        self._monkeypatch.setattr(sys, "argv", [path, *arguments])
        self._monkeypatch.setenv("COLUMNS", "80")
        self._capsys.readouterr()
        status, names = 0, {}
        try:
            names = runpy.run_path(path, run_name="__main__")
        except SystemExit as end:
            status = int(end.code or 0)
        return Ran(self._capsys.readouterr().out.rstrip() + "\n", status, names)


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(monkeypatch, capsys)


def loaded(name: str) -> ModuleType:
    """An example as a module, without its `main`."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def shown(name: str) -> str:
    """What the page shows that an example prints."""
    block = re.search(
        rf"^```console\n\$ python docs/examples/{name}\.py[^\n]*\n(.*?)^```$",
        PAGE,
        re.DOTALL | re.MULTILINE,
    )
    assert block is not None, name
    return block[1]


def test_people_and_accounts_are_extracted(example: Runner) -> None:
    ran = example("extraction")
    assert re.findall(r"^  (\w+\(.*\))$", ran.out, re.MULTILINE) == [
        "Person(name='Grace', age=47, city='Lisbon')",
        "Person(name='Felix', age=23, city='Tokyo')",
        "Person(name='Maria', age=61, city='Oslo')",
        "Account(user_name='Linda', plan='premium', active=True)",
        "Account(user_name='Tom', plan='basic', active=False)",
    ]
    assert ran.out == shown("extraction")


def test_texts_have_labels(example: Runner) -> None:
    ran = example("classification")
    labels = [line.split()[0] for line in ran.out.splitlines()[:-1]]
    assert labels == ["positive", "negative", "neutral", "positive", "negative"]
    assert ran.out == shown("classification")


def test_the_agent_calls_functions(example: Runner) -> None:
    ran = example("tool_agent")
    calls = re.findall(r"^  (\w+)\((.*)\) = (.*)$", ran.out, re.MULTILINE)
    assert [(name, json.loads(arguments)) for name, arguments, _ in calls] == [
        ("get_weather", {"city": "Lisbon"}),
        ("find_order", {"orderId": 4821}),
        ("add", {"a": 17, "b": 25}),
    ]
    assert json.loads(calls[2][2]) == {"sum": 42}
    assert "sunny in Lisbon" in ran.out
    assert "Order 4821 is paid." in ran.out
    assert "It is 42." in ran.out
    assert ran.out == shown("tool_agent")


def test_an_agent_without_an_end_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    import asyncio

    module = loaded("tool_agent")
    agent = module.Agent.__new__(module.Agent)

    async def write(messages: list[dict[str, Any]]) -> Any:
        return module.Turn(calls=[{"name": "add", "arguments": '{"a": 1, "b": 2}'}])

    agent.write = write
    with pytest.raises(RuntimeError, match="no answer after 4 turns"):
        asyncio.run(agent.ask("What is 1 plus 2?"))
    assert capsys.readouterr().out.count("add(") == 4


def test_thoughts_come_before_answers(example: Runner) -> None:
    ran = example("reasoning")
    answers = re.findall(r"^  (\w+)\((\w+)='(\w+)'\)$", ran.out, re.MULTILINE)
    assert answers == [
        ("Older", "older", "Grace"),
        ("Younger", "younger", "Tom"),
        ("Older", "older", "Oscar"),
    ]
    thoughts = re.findall(r"^  \w+: \d+\. \w+: \d+\..*So (\w+) is", ran.out, re.MULTILINE)
    assert thoughts == ["Grace", "Tom", "Oscar"]
    assert ran.out == shown("reasoning")


def test_queries_run_and_expressions_compute(example: Runner) -> None:
    ran = example("code_in_a_grammar")
    results = re.findall(r"^  (SELECT .*)\n  (\[.*\])$", ran.out, re.MULTILINE)
    assert results == [
        ("SELECT name FROM users WHERE city = 'Lisbon'", "[('Grace',), ('Tom',)]"),
        ("SELECT job FROM users WHERE age > 40", "[('engineer',), ('pilot',)]"),
        ("SELECT city FROM users WHERE age < 30", "[('Tokyo',)]"),
        ("SELECT name FROM users WHERE city = 'Lisbon' AND age > 40", "[('Grace',)]"),
    ]
    values = re.findall(r"^  ([0-9+*()-]+) = (-?\d+)$", ran.out, re.MULTILINE)
    assert [int(value) for _, value in values] == [42, 528, 462]
    assert all(eval(text) == int(value) for text, value in values)
    assert ran.out == shown("code_in_a_grammar")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT password FROM users",
        "SELECT name FROM orders",
        "SELECT name FROM users WHERE age > 40; DROP TABLE users",
        "SELECT name FROM users WHERE age = 'Lisbon'",
        "DELETE FROM users",
    ],
)
def test_other_queries_are_not_in_the_grammar(query: str) -> None:
    module = loaded("code_in_a_grammar")
    grammar = module.queries(module.database(), "users")
    vocabulary = ffwd.tokenizer.load(ffwd.model.path()).vocabulary()
    matcher = ffwd.compile(grammar, vocabulary).matcher()
    ids = vocabulary.bpe.encode(query)
    assert matcher.validate_tokens(ids) < len(ids)


def test_a_form_fills_itself_in(example: Runner) -> None:
    ran = example("streaming_ui")
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in ran.out.splitlines()
        if line.startswith("│")
    ]
    assert rows == [
        ["Grace", "Lisbon", "Oslo", "2027-03-14"],
        ["Felix", "Prague", "Vienna", "2028-11-05"],
        ["Maria", "Seoul", "Tokyo", "2026-08-21"],
    ]
    assert ran.out == shown("streaming_ui")


def test_a_form_shows_what_is_certain() -> None:
    """Token by token: no field is green before its value has ended, and a cursor is in one only."""
    module = loaded("streaming_ui")
    vocabulary = ffwd.tokenizer.load(ffwd.model.path()).vocabulary()
    schema = ffwd.schema_of(module.Trip, whitespace="compact")
    matcher = ffwd.compile(schema, vocabulary).matcher()
    text = '{"traveler":"Ada","origin":"Rome","destination":"Oslo","date":"2027-03-14"}'
    form = module.Form()
    frames = []
    for token in vocabulary.bpe.encode(text):
        assert matcher.accept_token(token)
        form.take(matcher.events())
        console = Console(file=io.StringIO(), width=80)
        console.print(module.table([form]))
        (line,) = re.findall("^│(.*)│$", console.file.getvalue(), re.MULTILINE)
        frames.append([cell.strip() for cell in line.split("│")])
    assert frames[0] == ["·", "·", "·", "·"]
    assert frames[-1] == ["Ada", "Rome", "Oslo", "2027-03-14"]
    assert any(frame[3].endswith("▌") and len(frame[3]) > 3 for frame in frames)
    assert max(sum("▌" in cell for cell in frame) for frame in frames) == 1


RESULTS = [
    ("Grace", "paid", 129.95),
    ("Felix", "refunded", 48),
    ("Maria", "new", 310),
    ("Oscar", "returned", 75.51),
    None,
    ("Nina", "refused", 87),
    None,
    ("Linda", "paid", 22.15),
    ("Tom", "returned", 640),
    ("Emma", "refunded", 91.37),
]


def records(path: Path) -> list[tuple[int, tuple[Any, ...] | None]]:
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        (row["line"], tuple(row["record"].values()) if "record" in row else None) for row in found
    ]


def test_a_file_is_worked_through(example: Runner, tmp_path: Path) -> None:
    """A line that is bad has an error, and no other line suffers from it."""
    output = tmp_path / "records.jsonl"
    ran = example("batch", str(EXAMPLES / "letters.jsonl"), str(output))
    assert ran.status == 1
    assert ran.out == shown("batch")
    assert records(output) == list(enumerate(RESULTS, start=1))
    errors = [json.loads(line).get("error") for line in output.read_text().splitlines()]
    assert re.match("no JSON: .*control character", errors[4])
    assert errors[6] == 'no object with a string as its "text"'
    # A second run has nothing to do.
    before = output.read_bytes()
    ran = example("batch", str(EXAMPLES / "letters.jsonl"), str(output))
    assert ran.status == 0
    assert ran.out.startswith("10 lines were done, 0 new records")
    assert output.read_bytes() == before


@pytest.mark.parametrize("cut", [0, 1, 40, 90, 200, -1])
def test_an_interrupted_run_goes_on(cut: int, example: Runner, tmp_path: Path) -> None:
    """Cut anywhere, also in the middle of a line, the file becomes the same."""
    output = tmp_path / "records.jsonl"
    whole = "".join(
        json.dumps(
            {"line": number, "record": dict(zip(("customer", "status", "total"), row, strict=True))}
            if row
            else {"line": number, "error": "bad"}
        )
        + "\n"
        for number, row in enumerate(RESULTS, start=1)
    ).encode()
    output.write_bytes(whole[:cut])
    example("batch", str(EXAMPLES / "letters.jsonl"), str(output), "--batch-size", "3")
    assert records(output) == list(enumerate(RESULTS, start=1))


def test_a_row_that_fails_in_the_model_has_an_error(example: Runner, tmp_path: Path) -> None:
    """And the others of its batch have records."""
    source, output = tmp_path / "letters.jsonl", tmp_path / "records.jsonl"
    good = '{"text": "Order 4821 of Grace is paid. The total is 129.95."}\n'
    long = json.dumps({"text": "It is a long story. " * 400}) + "\n"
    source.write_bytes(good.encode() + long.encode() + b'{"text": "\xff"}\n' + good.encode())
    assert example("batch", str(source), str(output)).status == 1
    assert records(output) == [(1, RESULTS[0]), (2, None), (3, None), (4, RESULTS[0])]
    errors = [json.loads(line).get("error") for line in output.read_text().splitlines()]
    assert "leaves no room for an answer" in errors[1]
    assert "surrogate" in errors[2] or "UTF-8" in errors[2]


def test_one_command_runs_an_example(tmp_path: Path) -> None:
    """Without network and GPU, from wherever it is called."""
    program = (
        "import runpy, socket, sys\n"
        "def refuse(*arguments): raise OSError('no network')\n"
        "socket.socket.connect = refuse\n"
        f"runpy.run_path({str(EXAMPLES / 'classification.py')!r}, run_name='__main__')\n"
        "import torch; assert not torch.cuda.is_initialized()\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PATH": "", "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == shown("classification")


def test_the_page_has_every_example() -> None:
    """Each with its command, its code and a link; the docstring has the same command."""
    assert len(NAMES) == 7
    for name in NAMES:
        source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
        assert f'\n--8<-- "docs/examples/{name}.py"\n' in PAGE
        assert f"](examples/{name}.py)" in PAGE
        (command,) = re.findall(rf"^\$ (python docs/examples/{name}\.py.*)$", PAGE, re.MULTILINE)
        assert f"\n{command}\n" in source
