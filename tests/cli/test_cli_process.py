"""The command line from outside: streams, colours, the environment, packages that are missing."""

import json
import os
import pty
import subprocess
import sys

import pytest
from climodels import ffwd, process

import ffwd as library
from ffwd.cli.commands import COMMANDS, group

# Hides packages from the interpreter that is started with it on its path.
_HIDE = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ImportError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
"""


def without(tmp_path, *names):
    """The value of PYTHONPATH that hides packages."""
    (tmp_path / "sitecustomize.py").write_text(_HIDE.format(names=set(names)))
    return os.pathsep.join([str(tmp_path), *sys.path])


def on_a_terminal(*arguments, **environment):
    """What a command writes to a terminal."""
    leader, follower = pty.openpty()
    paths = os.pathsep.join(sys.path)
    environment = {**os.environ, "PYTHONPATH": paths, "TERM": "xterm", **environment}
    command = [sys.executable, "-m", "ffwd.cli", *map(str, arguments)]
    with subprocess.Popen(command, stdout=follower, stderr=follower, env=environment) as started:
        os.close(follower)
        written = b""
        while True:
            try:
                part = os.read(leader, 4096)
            except OSError:  # how Linux ends a terminal
                break
            if not part:
                break
            written += part
        code = started.wait(timeout=600)
    os.close(leader)
    return code, written.decode()


def test_piped_output_is_data_only(schema):
    done = process("check", "-", "--json", input=schema.read_bytes())
    assert done.returncode == 0
    assert done.stderr == b""
    assert json.loads(done.stdout)["ok"]
    assert b"\x1b" not in process("check", schema).stdout


def test_colours_are_for_terminals_and_can_be_switched_off(tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text('{"type": "objct"}')
    code, written = on_a_terminal("check", bad)
    assert code == 1
    assert "\x1b[31m" in written
    code, written = on_a_terminal("check", bad, NO_COLOR="1")
    assert code == 1
    assert "\x1b" not in written
    assert "objct" in written


def test_a_schema_from_a_pipe_and_a_closed_pipe(schema):
    """`ffwd … | head -1` is no error with a traceback."""
    command = f'"{sys.executable}" -m ffwd.cli check "{schema}" --all --json | head -n 1'
    done = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert done.stdout == b"{\n"
    assert b"Traceback" not in done.stderr


def test_version_and_module():
    done = process("--version")
    assert done.stdout.decode() == f"ffwd, version {library.__version__}\n"


def test_a_command_that_needs_torch_says_what_installs_it(schema, model, tmp_path):
    paths = without(tmp_path, "torch")
    done = process("generate", model, schema, "--prompt", "a", PYTHONPATH=paths)
    assert done.returncode == 4
    assert done.stdout == b""
    assert (
        done.stderr.decode() == "error: torch is not installed: pip install 'ffwd[transformers]'\n"
    )


def test_commands_without_a_model_need_click_only(schema, messages, model, tmp_path):
    """Neither torch nor any tokenizer's library nor rich."""
    names = ["torch", "transformers", "tokenizers", "rich", "jinja2", "jsonschema", "pydantic"]
    paths = without(tmp_path, *names)
    assert process("check", schema, "--json", PYTHONPATH=paths).returncode == 0
    done = process("chat", "render", model, messages, PYTHONPATH=paths)
    assert done.returncode == 4
    assert b"pip install 'ffwd[chat]'" in done.stderr or b"'ffwd[tokenizers]'" in done.stderr


def test_without_click_it_says_what_installs_it(tmp_path):
    done = process("check", PYTHONPATH=without(tmp_path, "click"))
    assert done.returncode == 1
    assert done.stderr == b"the command line needs click: pip install 'ffwd[cli]'\n"


def test_shells_can_complete_commands():
    done = process(_FFWD_COMPLETE="bash_source")
    assert b"_ffwd_completion" in done.stdout or b"complete" in done.stdout


def every_command():
    return [*([name] for name in sorted(COMMANDS)), ["chat", "render"]]


@pytest.mark.parametrize("names", every_command(), ids=" ".join)
def test_every_command_has_help_with_examples_and_exit_statuses(names):
    done = ffwd(*names, "--help")
    assert done.exit_code == 0
    if names in (["chat"], ["serve"]):
        return
    assert "Examples:\n" in done.stdout
    assert f"ffwd {' '.join(names)} " in done.stdout
    assert "Exit status:" in done.stdout
    assert "--json" in done.stdout


def test_the_list_of_commands_loads_none_of_them():
    code = (
        "import sys; from ffwd.cli.commands import group\n"
        "try: group(['--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in sys.modules if m.startswith('ffwd.cli.') or m == 'torch'],"
        " file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    loaded = set(eval(done.stderr.strip().splitlines()[-1]))
    assert loaded <= {"ffwd.cli.commands", "ffwd.cli.output", "ffwd.cli.exits"}
    assert all(name in done.stdout for name in group.list_commands(None))


def test_doctor_without_the_engine():
    done = ffwd("doctor", "sglang", "--json")
    data = json.loads(done.stdout)
    assert (done.exit_code, data["ok"]) == (1, False)
    (finding,) = data["findings"]
    assert finding["text"] == "sglang is not installed"
    assert "ffwd supports SGLang" in finding["advice"]


def test_doctor_where_the_engine_is_broken(tmp_path):
    """A library that an engine was built with is missing."""
    (tmp_path / "vllm.py").write_text("raise OSError('libcudart.so.12: cannot open')")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = process("doctor", "vllm", PYTHONPATH=path)
    assert done.returncode == 1
    assert b"libcudart.so.12" in done.stdout


def test_doctor_reads_the_tokenizer(tmp_path):
    from transformers import AutoTokenizer

    from ffwd import model
    from ffwd.adapters.shared.diagnosis import tokenizer_findings

    tokenizer = AutoTokenizer.from_pretrained(model.path())
    assert [finding.status for finding in tokenizer_findings(tokenizer)] == ["ok", "ok"]
    (refused,) = tokenizer_findings(object())
    assert refused.status == "bad"
    assert "VocabularyError" in refused.text
    done = ffwd("doctor", "vllm", "--tokenizer", tmp_path)
    assert done.exit_code == 5
