"""The local server: who reaches it, and what it refuses."""

import http.client
import json
import signal
import subprocess
import sys
import urllib.parse

import pytest
from playing import SCHEMA, served, state

from ffwd.play import share
from ffwd.play.server import MAX_BODY, MAX_REQUESTS


@pytest.fixture(scope="module")
def server():
    with served() as found:
        yield found


def asked(server, method, path, body=None, **headers):
    """A response and its body; header names have `_` for `-`."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    try:
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        data = b"" if body is None else body
        if body is not None and "Content_Length" not in headers:
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data)
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def ask(server, request, **headers):
    body = request if isinstance(request, bytes) else json.dumps(request).encode()
    given = {"Content_Type": "application/json"} | headers
    response, text = asked(server, "POST", f"/{server.token}/ask", body, **given)
    return response.status, json.loads(text)


def test_the_page_is_one_document_with_its_policy(server):
    response, body = asked(server, "GET", f"/{server.token}/")
    assert response.status == 200
    assert body.startswith(b"<!doctype html>")
    policy = response.getheader("Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert response.getheader("X-Content-Type-Options") == "nosniff"
    assert response.getheader("Cache-Control") == "no-store"
    # Nothing is loaded from anywhere: no element of the page names an address.
    assert b' src="' not in body


def test_a_request_is_answered(server):
    status, answer = ask(server, {"kind": "look", "state": state('{"name": "A')})
    assert status == 200
    assert answer["refused"] is None
    status, answer = ask(server, {"kind": "look", "state": {}})
    assert (status, answer["error"]["type"]) == (200, "PlayError")


@pytest.mark.parametrize("path", ["/", "/ask", "/favicon.ico", "/x/", "/x/ask", "/../", "//"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_without_the_token_there_is_nothing(server, method, path):
    response, body = asked(server, method, path, b"{}", Content_Type="application/json")
    assert response.status == 404
    assert b"doctype" not in body


def test_other_paths_below_the_token_are_nothing(server):
    for path in ("", "/play.js", "/../", "/ask/", "/?x"):
        assert asked(server, "GET", f"/{server.token}{path}")[0].status == 404
    assert asked(server, "PUT", f"/{server.token}/")[0].status == 501


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "[::1]:{port}", ""]
)
def test_another_host_is_refused(server, host):
    """A name of a stranger that resolves to this machine reaches nothing."""
    host = host.format(port=server.server_port)
    response, _ = asked(server, "GET", f"/{server.token}/", Host=host)
    assert response.status == 403


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1", "http://localhost:1"]
)
def test_another_origin_is_refused(server, origin):
    status, _ = ask(server, {"kind": "hello"}, Origin=origin)
    assert status == 403
    status, _ = ask(server, {"kind": "hello"}, Origin=f"http://127.0.0.1:{server.server_port}")
    assert status == 200


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{}", {"Content_Type": "text/plain"}, 415),
        (b"{", {}, 400),
        (b"\xff\xfe\x00", {}, 400),
        (b"[" * 100_000, {}, 400),
        (b"", {"Content_Length": str(MAX_BODY + 1)}, 413),
        (b"", {"Content_Length": "-1"}, 411),
        (b"", {"Content_Length": "two"}, 411),
        (b"", {"Content_Length": ""}, 411),
    ],
)
def test_bad_requests_have_their_status(server, body, headers, status):
    found, answer = ask(server, body, **headers)
    assert found == status
    assert answer["error"]["message"]
    # The server goes on.
    assert ask(server, {"kind": "hello"})[0] == 200


def test_a_fault_of_ffwd_is_reported_as_one(server, monkeypatch, capfd):
    def fails(request, cancellation):
        raise ZeroDivisionError("a fault")

    monkeypatch.setitem(server.session._answers, "look", fails)
    status, answer = ask(server, {"kind": "look"})
    assert (status, answer["error"]["type"]) == (200, "InternalError")
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_a_number_of_requests_is_answered_at_a_time(server):
    # An answer that has come may still have its slot.
    for _ in range(MAX_REQUESTS):
        server.slots.acquire()
    try:
        status, answer = ask(server, {"kind": "hello"})
        assert status == 503
        assert f"at most {MAX_REQUESTS} requests" in answer["error"]["message"]
    finally:
        server.slots.release(MAX_REQUESTS)
    assert ask(server, {"kind": "hello"})[0] == 200


# ------------------------------------------------------------------------------------ the command


def run(*words, folder):
    return subprocess.Popen(
        [sys.executable, "-m", "ffwd.cli", "play", "--no-open", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that starts it in the background may ignore the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def test_the_command_prints_the_address_and_ends_with_a_signal(tmp_path):
    (tmp_path / "a.json").write_text(SCHEMA, encoding="utf-8")
    with run("a.json", "--any-order", folder=tmp_path) as process:
        address = urllib.parse.urlsplit(process.stdout.readline().strip())
        assert address.hostname == "127.0.0.1"
        assert len(address.path) > 40
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
        body = json.dumps({"kind": "hello"})
        headers = {"Content-Type": "application/json"}
        connection.request("POST", f"{address.path}ask", body, headers)
        found = json.loads(connection.getresponse().read())["state"]
        connection.close()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert found["grammar"]["text"] == SCHEMA
    assert found["grammar"]["options"] == {"property_order": "any"}
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("name", "text", "words", "code", "said"),
    [
        ("a.ffwd.json", "{", (), 1, "the file is not JSON"),
        ("a.ffwd.json", '{"ffwd_play": 1}', (), 1, "lacks `state`"),
        ("a.ffwd.json", share.dump(state()), ("--lenient",), 2, "has its options"),
        ("a.txt", "x", (), 2, "does not say what the grammar is written in"),
        ("a.json", "{}", ("--tokenizer", "gpt2"), 5, "no file or directory `gpt2`"),
        ("a.json", "{}", ("--tokenizer", "a.json"), 5, "a.json"),
        ("a.json", "{}", ("--model", "nowhere"), 2, "nowhere"),
    ],
)
def test_bad_files_and_options_are_refused(tmp_path, name, text, words, code, said):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with run(name, *words, folder=tmp_path) as process:
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (code, ""), errors
    assert said in errors


def test_a_port_in_use_is_refused(server, tmp_path):
    with run("--port", str(server.server_port), folder=tmp_path) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert f"port {server.server_port} cannot be used" in errors
