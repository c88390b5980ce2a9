"""`ffwd serve` as a process, under a short load; `serve_load.py` is the long one."""

import asyncio
import json
import subprocess
import sys
import time

import pytest

openai = pytest.importorskip("openai")
httpx = pytest.importorskip("httpx")
pytest.importorskip("psutil")
pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")

from click.testing import CliRunner
from serve_load import CHAT, held, load, settled, spawn, stop
from serve_models import (
    COLOURS,
    HELLO,
    TOOLS,
    Running,
    closing,
    raw_request,
    schema_format,
    write_model,
)

from ffwd.cli.commands import group


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("tiny"))


def test_fifty_clients(folder):
    """Some slow, some vanishing, some wrong; every answer is whole and valid, and nothing stays."""
    process, url = spawn(folder)
    try:
        asyncio.run(load(url, requests=50, clients=50, seed=1))
        before = settled(process, url)
        came = asyncio.run(load(url, requests=150, clients=50, seed=2))
        assert sum(came.values()) == 150
        assert came["refused"] > 0
        assert came["vanished"] > 0
        assert not any(kind.startswith("status") or kind.endswith("Error") for kind in came), came
        after = settled(process, url)
        assert after["open_texts"] == 0
        assert after["threads"] <= before["threads"] + 2
        # The connections of the load are closed, or about to be.
        assert after["fds"] <= before["fds"] + 5
        assert after["rss_mb"] <= before["rss_mb"] + 60
    finally:
        assert stop(process) in (0, -15)


def test_a_process_that_is_told_to_stop_lets_answers_end(folder):
    process, url = spawn(folder)
    try:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="-", max_retries=0) as client:
            options = {"model": client.models.list().data[0].id, "messages": HELLO, "seed": 1}
            stream = client.chat.completions.create(
                stream=True,
                max_tokens=500,
                extra_body={"structured_outputs": {"regex": "[a-z]{200}"}},
                **options,
            )
            text = ""
            for number, chunk in enumerate(stream):
                if number == 2:
                    process.terminate()
                text += chunk.choices[0].delta.content or ""
                reason = chunk.choices[0].finish_reason
            assert len(text) == 200
            assert reason == "stop"
        assert process.wait(timeout=600) in (0, -15)
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/health")
    finally:
        process.kill()


def test_texts_are_written_together(folder):
    # No pass begins without the slowest of them.
    with Running(folder, late=600.0) as running:
        body = {"messages": HELLO, "n": 8, "structured_outputs": {"regex": "[a-z]{30}"}}
        answer = httpx.post(f"{running.url}{CHAT}", json=body, timeout=None).json()
        chosen = answer["usage"]["completion_tokens"]
        assert chosen > 8 * 10
        assert running.metric("forward_passes_total") <= chosen / 4


def test_vanishing_clients_are_noticed(folder):
    """Their texts are given up long before they would have ended."""
    with Running(folder) as running:
        endless = {"regex": "[a-z]{1500}"}
        body = {"messages": HELLO, "structured_outputs": endless}
        for stream in (True, False):
            before = running.metric("cancelled_requests_total")
            connections = [raw_request(running.port, body | {"stream": stream}) for _ in range(8)]
            with closing(*connections):
                until = time.monotonic() + 600
                while running.metric("running_texts") < 8:
                    assert time.monotonic() < until
                    time.sleep(0.01)
            running.settle()
            assert running.metric("cancelled_requests_total") == before + 8
        assert running.metric("completion_tokens_total") < 16 * 1000


def test_a_client_that_reads_nothing_holds_up_nobody(folder):
    with Running(folder) as running:
        body = {"messages": HELLO, "stream": True, "structured_outputs": {"regex": "[a-z]{900}"}}
        deaf = [raw_request(running.port, body) for _ in range(4)]
        with closing(*deaf):
            answer = httpx.post(
                f"{running.url}{CHAT}",
                json={"messages": HELLO, "response_format": schema_format(COLOURS)},
                timeout=600,
            )
            assert answer.status_code == 200
            # What they do not read is kept for them, and their texts end all the same.
            running.settle()


def test_a_client_that_takes_nothing_is_given_up(folder):
    """Where the connection is full for `write_timeout` seconds."""
    with Running(folder, write_timeout=0.3) as running:
        endpoint = running.app.routes[0].app

        sent = []

        async def send(message):
            sent.append(message)
            await asyncio.Event().wait()

        body = b'{"messages": [{"role": "user", "content": "a"}], "stream": true, "max_tokens": 9}'
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive():
            if messages:
                return messages.pop()
            return await asyncio.Event().wait()

        asyncio.run(endpoint({"headers": []}, receive, send))
        assert [message["type"] for message in sent] == ["http.response.start"]
        running.settle()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "does not exist"),
        (["."], "has no config.json"),
        ([".", "--port", "seventy"], "--port"),
    ],
)
def test_the_command_says_what_is_wrong(tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(group, ["serve", *arguments])
    assert isinstance(done.exception, SystemExit)
    assert done.exit_code != 0
    assert said in done.stderr


def test_named_grammars_are_compiled_before_requests_need_them(folder, tmp_path, caplog):
    """Constraints of every kind; a line that the model refuses is logged, and stops no other."""
    lines = [
        {"response_format": schema_format(COLOURS)},
        {"tools": TOOLS, "tool_choice": "required"},
        {"structured_outputs": {"regex": "("}},
        {"structured_outputs": {"choice": ["yes", "no"]}},
    ]
    warm = tmp_path / "warm.jsonl"
    warm.write_text("\n".join(map(json.dumps, lines)))
    with Running(folder, warm=warm) as running:
        running.server.warming.join(600)
        assert f"{warm}, line 3" in caplog.text
        assert running.metric("grammar_cache_grammars") == 3

        def counted(result):
            registry = running.server.metrics.registry
            return registry.get_sample_value("ffwd_grammar_requests_total", {"result": result})

        assert [counted("compiled"), counted("refused")] == [None, None]
        for line in (lines[0], lines[1], lines[3]):
            body = {"messages": HELLO, "max_tokens": 200, **line}
            answer = httpx.post(f"{running.url}{CHAT}", json=body, timeout=600)
            assert answer.status_code == 200, answer.text
        assert counted("compiled") is None
        assert counted("cached") == 3


@pytest.mark.parametrize("line", ['{"tools": 1}', '{"stop": ["a"]}', '{"messages": []}', "no"])
def test_a_line_that_names_no_grammar_keeps_the_server_from_starting(folder, tmp_path, line):
    warm = tmp_path / "warm.jsonl"
    warm.write_text('{"response_format": {"type": "json_object"}}\n' + line)
    done = CliRunner().invoke(group, ["serve", str(folder), "--warm", str(warm)])
    assert isinstance(done.exception, SystemExit)
    assert done.exit_code == 2, done.stderr
    assert f"cannot warm the grammars of {warm}, line 2: " in done.stderr


def test_the_list_of_commands_loads_none_of_them():
    code = (
        "import sys\nsys.argv = ['ffwd', '--help']\n"
        "from ffwd.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "assert 'torch' not in sys.modules and 'starlette' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "serve" in done.stdout


def test_what_is_held_is_read_off_the_process(folder):
    process, url = spawn(folder)
    try:
        found = held(process, url)
        assert found["rss_mb"] > 50
        assert found["open_texts"] == 0
    finally:
        stop(process)
