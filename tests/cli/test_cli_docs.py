"""docs/cli.md: every command runs with the exit status that it says, and writes what is shown."""

import json
import re
import shlex

import pytest
from climodels import ROOT, ffwd

from ffwd.cli.commands import COMMANDS

PAGE = (ROOT / "docs/cli.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def commands():
    shell = [line for block in blocks("sh") for line in block.splitlines()]
    return [(line, None) for line in shell] + [shown(block) for block in blocks("console")]


def shown(block):
    first, _, output = block.partition("\n")
    assert first.startswith("$ ")
    return first[2:], output


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    """What the page's commands find."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "path/of/a").mkdir(parents=True)
    (folder / "path/of/a/model").symlink_to(model)
    (schema,) = blocks("json")
    (folder / "schema.json").write_text(schema)
    (folder / "typo.json").write_text('{"type": "array", "maxItem": 9}\n')
    (folder / "date.regex").write_text("[0-9]{4}-[0-9]{2}-[0-9]{2}\n")
    (folder / "messages.json").write_text(json.dumps([{"role": "user", "content": "Who?"}]))
    (folder / "answer.json").write_text('{"name": "Ada", "status": "new"}')
    (folder / "notes.txt").write_text("Ada ordered a kettle.\n")
    return folder


@pytest.mark.parametrize(("line", "output"), commands(), ids=lambda value: (value or "")[:60])
def test_commands_of_the_page_run(line, output, folder, monkeypatch):
    monkeypatch.chdir(folder)
    line, _, comment = line.partition("  # ")
    code = int(comment.removeprefix("exit status ")) if comment else 0
    words = shlex.split(line)
    assert words[0] == "ffwd"
    given = None
    if "<" in words:
        given = (folder / words.pop()).read_text()
        assert words.pop() == "<"
    done = ffwd(*words[1:], input=given)
    assert done.exit_code == code, (done.output, done.exception)
    if output is not None:
        assert measured(done.stdout) == measured(output)


def measured(text):
    """Times and sizes are those of another machine."""
    return re.sub(r"\d[\d.,]* (?:µs|ms|s|kB|MB)\b", "~", text)


def test_every_command_is_on_the_page():
    named = set(re.findall(r"`(?:ffwd )?([a-z-]+)", PAGE.partition("exit status")[0]))
    assert set(COMMANDS) <= named
