"""Requests that are wrong, hostile, too large or too many: typed errors, nobody else is hurt."""

import concurrent.futures
import contextlib
import json
import os
import re
import select
import socket
import sys
import threading
import time

import pytest

openai = pytest.importorskip("openai")
httpx = pytest.importorskip("httpx")
pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")

from serve_models import (
    COLOURS,
    HELLO,
    TOOLS,
    Running,
    closing,
    function,
    raw_request,
    schema_format,
    write_model,
)

import ffwd.chat

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def running(folder):
    with Running(folder, max_body_bytes=100_000) as running:
        yield running


@pytest.fixture(scope="module")
def http(running):
    with httpx.Client(base_url=running.url, timeout=600) as http:
        yield http


def error_of(response, status=400):
    """The error in OpenAI's form."""
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"]
    return error


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"3",
        b"\xff\xfe",
        b'{"messages": [{"role": "user", "content": "x"}], "temperature": NaN}',
        b'{"messages": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        b'{"messages": ' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}",
        b'{"max_tokens": ' + b"9" * 5_000 + b"}",
    ],
)
def test_bodies_that_are_no_request(http, data):
    error_of(http.post(CHAT, content=data))


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"messages": ["hello"]}, "messages[0]"),
        ({"messages": [{}]}, "messages[0].role"),
        ({"messages": [{"role": 3, "content": "a"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "messages[0].content[0]",
        ),
        (
            {
                "messages": [
                    {
                        "role": "assistant",
                        "tool_calls": [{"function": {"name": "f", "arguments": "{"}}],
                    }
                ]
            },
            "messages[0].tool_calls[0].function.arguments",
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": ""}}]}]},
            "messages[0].tool_calls[0].function.name",
        ),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": "3"}, "max_tokens"),
        ({"max_tokens": 3000}, "max_tokens"),
        ({"max_completion_tokens": -1}, "max_completion_tokens"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": 1e999}, None),
        ({"top_p": 0}, "top_p"),
        ({"top_p": 2}, "top_p"),
        ({"n": 0}, "n"),
        ({"n": 1000}, "n"),
        ({"seed": "a"}, "seed"),
        ({"stop": ""}, "stop"),
        ({"stop": ["a", 3]}, "stop[1]"),
        ({"stop": ["a"] * 100}, "stop"),
        ({"stream": "yes"}, "stream"),
        ({"nonsense": 1}, "nonsense"),
        ({"logprobs": 2}, "logprobs"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"modalities": ["audio"]}, "modalities"),
        ({"tool_choice": "sometimes", "tools": TOOLS}, "tool_choice"),
        ({"tools": TOOLS * 100}, "tools"),
        (
            {"tools": [{"type": "function", "function": {"name": ""}}]},
            "tools[0].function.name",
        ),
        (
            {"chat_template_kwargs": {"trusted_roles": ["user"]}},
            "chat_template_kwargs.trusted_roles",
        ),
        ({"response_format": {"type": "xml"}}, "response_format"),
        ({"response_format": {"type": "json_schema"}, "structured_outputs": {"regex": "a"}}, None),
        ({"response_format": schema_format(True)}, "response_format"),
        ({"response_format": schema_format({"type": "integer"})}, "response_format"),
        ({"structured_outputs": {}}, "structured_outputs"),
        ({"structured_outputs": {"regex": "a", "choice": ["b"]}}, "structured_outputs"),
        ({"structured_outputs": {"regex": "(a"}}, "structured_outputs.regex"),
        ({"structured_outputs": {"regex": r"(a)\1"}}, "structured_outputs.regex"),
        ({"structured_outputs": {"choice": []}}, "structured_outputs.choice"),
        ({"structured_outputs": {"grammar": "root ::= ("}}, "structured_outputs.grammar"),
        ({"structured_outputs": {"json": "{"}}, "structured_outputs.json"),
        ({"structured_outputs": {"json": {"type": "strin"}}}, "structured_outputs.json"),
        ({"structured_outputs": {"json": {"enum": []}}}, "structured_outputs.json"),
        ({"structured_outputs": {"structural_tag": "{}"}}, None),
        ({"structured_outputs": {"xml": "a"}}, "structured_outputs.xml"),
    ],
)
def test_fields_that_are_wrong(http, fields, param):
    body = {"messages": HELLO, "max_tokens": 20} | fields
    text = json.dumps(body).replace("Infinity", "1e999")
    error = error_of(http.post(CHAT, content=text))
    assert error["type"] == "invalid_request_error"
    if param is not None:
        assert error["param"] == param, error
        # The message says what, where, or what would work.
        assert len(error["message"]) > 10


def test_half_a_character(http):
    """A surrogate by itself is no text that a model can be given."""
    body = b'{"messages": [{"role": "user", "content": "a\\ud800b"}], "max_tokens": 3}'
    error_of(http.post(CHAT, content=body))
    body = b'{"messages": [{"role": "user", "content": "a"}], "stop": "\\udfff", "max_tokens": 3}'
    error_of(http.post(CHAT, content=body))
    body = (
        b'{"messages": [{"role": "user", "content": "a"}], "max_tokens": 9,'
        b' "structured_outputs": {"choice": ["\\ud800"]}}'
    )
    error_of(http.post(CHAT, content=body))


def test_other_models_paths_and_methods(http):
    body = {"model": "gpt-5", "messages": HELLO}
    error = error_of(http.post(CHAT, json=body), 404)
    assert (error["param"], error["code"]) == ("model", "model_not_found")
    error_of(http.get("/v1/embeddings"), 404)
    error_of(http.get(CHAT), 405)
    error_of(http.get("/v1/models/gpt-5"), 404)


def test_bodies_that_are_too_large(running, http):
    body = {"messages": [{"role": "user", "content": "a" * 200_000}]}
    assert "100000 bytes" in error_of(http.post(CHAT, json=body), 413)["message"]

    def chunks():
        for _ in range(100):
            yield b" " * 10_000

    # Without a length.
    assert error_of(http.post(CHAT, content=chunks()), 413)["code"] == "request_too_large"


def test_prompts_that_are_too_long(http):
    body = {"messages": [{"role": "user", "content": "ab cd " * 3000}]}
    error = error_of(http.post(CHAT, json=body))
    assert error["code"] == "context_length_exceeded"
    assert error["param"] == "messages"


def test_keys(folder):
    with Running(folder, api_key="secret") as running:
        url = f"{running.url}{CHAT}"
        body = {"messages": HELLO, "max_tokens": 1}
        error_of(httpx.post(url, json=body, timeout=600), 401)
        error_of(
            httpx.post(url, json=body, headers={"Authorization": "Bearer other"}, timeout=600), 401
        )
        error_of(httpx.get(f"{running.url}/v1/models", timeout=600), 401)
        good = httpx.post(url, json=body, headers={"Authorization": "Bearer secret"}, timeout=600)
        assert good.status_code == 200
        assert httpx.get(f"{running.url}/health", timeout=600).status_code == 200


HOSTILE = [
    {"type": "object", "properties": {f"p{i}": {"$ref": "#"} for i in range(400)}},
    {"type": "string", "pattern": "^(?=.*a)(?=.*b)(?=.*c)(?=.*d)(?=.*e)(?=.*f).{1,2000}$"},
    {"type": "array", "minItems": 100_000, "items": {"type": "string", "minLength": 50}},
    {"enum": [f"value {i}" for i in range(3000)]},
    {
        "allOf": [
            {"anyOf": [{"type": "integer", "multipleOf": p}, {"minimum": p}]} for p in (7, 11, 13)
        ]
    },
    {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
    {"type": "string", "pattern": "(((((a{1,100}){1,100}){1,100}){1,100}){1,100})"},
]


def test_hostile_schemas_hurt_nobody_else(running, http):
    """Each gets an answer or an error, and the harmless ones beside it are right."""

    def ask(schema, seed):
        body = {
            "messages": HELLO,
            "max_tokens": 60,
            "seed": seed,
            "structured_outputs": {"json": schema},
        }
        with httpx.Client(base_url=running.url, timeout=600) as client:
            return client.post(CHAT, json=body)

    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        hostile = [pool.submit(ask, schema, i) for i, schema in enumerate(HOSTILE)]
        harmless = [pool.submit(ask, COLOURS, i) for i in range(12)]
        for future in harmless:
            response = future.result()
            assert response.status_code == 200, response.text
            value = json.loads(response.json()["choices"][0]["message"]["content"])
            assert set(value) == {"colour", "shade"}
        statuses = [future.result().status_code for future in hostile]
    assert set(statuses) <= {200, 400}
    assert 400 in statuses
    assert http.get("/health").status_code == 200


@pytest.mark.parametrize("missing", ["tokens", "mask"])
def test_a_late_text_delays_itself_only(folder, monkeypatch, missing):
    """One whose tokens or mask are not there before the answer of another has come."""
    import ffwd.adapters.server.scheduler as scheduler
    from ffwd.adapters.server.texts import advance

    begun, answered = threading.Event(), threading.Event()

    def held(texts, tokens, settled):
        if not any(text.max_tokens == 77 for text in texts):
            return advance(texts, tokens, settled)
        if missing == "tokens":
            begun.set()
            assert answered.wait(600)
            return advance(texts, tokens, settled)

        def with_tokens():
            settled()
            begun.set()
            assert answered.wait(600)

        return advance(texts, tokens, with_tokens)

    late = {"max_tokens": 77, "structured_outputs": {"regex": "[a-z]{30,60}"}}

    def ask(running, **fields):
        body = {"messages": HELLO, "temperature": 0} | fields
        return httpx.post(f"{running.url}{CHAT}", json=body, timeout=600).json()

    with Running(folder) as running:
        alone = ask(running, **late)
    monkeypatch.setattr(scheduler, "advance", held)
    # The late one has the only thread for quick masks.
    with (
        Running(folder, mask_threads=1) as running,
        concurrent.futures.ThreadPoolExecutor(4) as pool,
    ):
        asked = pool.submit(ask, running, **late)
        assert begun.wait(600)
        answer = ask(running, max_tokens=40)
        assert answer["usage"]["completion_tokens"] == 40
        assert not asked.done()
        answered.set()
        assert asked.result()["choices"] == alone["choices"]
        assert running.metric("late_masks_total") >= 1


def test_masks_are_computed_while_the_model_runs(folder, monkeypatch):
    """A mask that comes only after the pass has begun would otherwise never come."""
    import ffwd.adapters.server.scheduler as scheduler
    from ffwd.adapters.server.slots import SlotModel
    from ffwd.adapters.server.texts import advance

    passes = threading.Semaphore(0)
    logits = SlotModel.logits

    def counted(self, *given):
        passes.release()
        return logits(self, *given)

    def after_the_pass(texts, tokens, settled):
        def held():
            settled()
            if any(text.open for text in texts):
                assert passes.acquire(timeout=600)

        return advance(texts, tokens, held)

    monkeypatch.setattr(SlotModel, "logits", counted)
    monkeypatch.setattr(scheduler, "advance", after_the_pass)
    # No mask is late.
    with Running(folder, late=600.0) as running:
        while passes.acquire(blocking=False):
            pass
        body = {"messages": HELLO, "structured_outputs": {"regex": "[a-z]{30}"}}
        answer = httpx.post(f"{running.url}{CHAT}", json=body, timeout=600).json()
        assert re.fullmatch("[a-z]{30}", answer["choices"][0]["message"]["content"])
        assert running.metric("late_masks_total") == 0


def test_full_queues_say_when_to_come_again(folder, monkeypatch):
    """One more than there is room for is told at once; those inside get their answers."""
    import ffwd.adapters.server.scheduler as scheduler
    from ffwd.adapters.server.texts import advance

    # Nobody leaves before both refusals have been seen, however long they take to come.
    refused_both = threading.Event()

    def held(texts, tokens, settled):
        assert refused_both.wait(600)
        return advance(texts, tokens, settled)

    monkeypatch.setattr(scheduler, "advance", held)
    with Running(folder, max_batch=2, max_queue=2) as running:
        body = {"messages": HELLO, "max_tokens": 300, "stream": True}
        connections = [raw_request(running.port, body) for _ in range(4)]
        with closing(*connections):
            until = time.monotonic() + 600
            while running.server.num_open < 4:
                assert time.monotonic() < until
                time.sleep(0.005)
            refused = httpx.post(f"{running.url}{CHAT}", json=body, timeout=600)
            assert error_of(refused, 429)["code"] == "queue_full"
            assert refused.headers["retry-after"] == "1"
            with pytest.raises(openai.RateLimitError):
                openai.OpenAI(
                    base_url=f"{running.url}/v1", api_key="-", max_retries=0
                ).chat.completions.create(model="tiny", messages=HELLO)
            refused_both.set()
            for connection in connections:
                data = b""
                while not data.endswith(b"0\r\n\r\n"):
                    part = connection.recv(65536)
                    assert part
                    data += part
                assert b"data: [DONE]" in data
        running.settle()


@pytest.mark.parametrize("stream", [True, False])
def test_deadlines(folder, monkeypatch, stream):
    """A text whose time is over once it has been begun."""
    import ffwd.adapters.server.scheduler as scheduler
    from ffwd.adapters.server.texts import advance

    begun = []

    def expires(texts, tokens, settled):
        begun.append(tokens)
        if len(begun) == 20:
            for text in texts:
                text.deadline = 0.0
        return advance(texts, tokens, settled)

    monkeypatch.setattr(scheduler, "advance", expires)
    with Running(folder) as running:
        endless = {"regex": "[a-z]{1900}"}
        body = {"messages": HELLO, "stream": stream, "structured_outputs": endless}
        response = httpx.post(f"{running.url}{CHAT}", json=body, timeout=600)
        if stream:
            lines = [line for line in response.text.splitlines() if line]
            assert lines[-1] == "data: [DONE]"
            assert json.loads(lines[-2][6:])["error"]["code"] == "deadline_exceeded"
        else:
            assert error_of(response, 504)["code"] == "deadline_exceeded"
            assert response.headers["x-should-retry"] == "false"
        running.settle()


def test_a_body_that_never_comes(folder):
    with Running(folder, read_timeout=0.3) as running:
        connection = socket.create_connection(("127.0.0.1", running.port), timeout=600)
        with closing(connection):
            connection.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
            )
            assert connection.recv(65536).startswith(b"HTTP/1.1 408")
        running.settle()


@pytest.fixture(scope="module")
def hasty(folder):
    with Running(folder, read_timeout=0.3) as running:
        yield running


SLOW = [
    pytest.param(b"", b"", id="nothing"),
    pytest.param(b"GET /health HTTP/1.1\r\nHost: x\r\nX-A: ", b"HTTP/1.1 408 ", id="half a head"),
    # Answered before the body is there, which nobody reads then.
    pytest.param(
        b"GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1",
        b"HTTP/1.1 200 ",
        id="the rest of a body",
    ),
    pytest.param(
        b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /hea", b"HTTP/1.1 200 ", id="a second head"
    ),
]


@pytest.mark.parametrize("trickles", [False, True])
@pytest.mark.parametrize(("sent", "answer"), SLOW)
def test_connections_that_do_not_send_are_closed(hasty, sent, answer, trickles):
    """Whatever the server waits for, and also where a byte comes now and then."""
    address = ("127.0.0.1", hasty.port)
    connections = [socket.create_connection(address, timeout=60) for _ in range(20)]
    with closing(*connections):
        for connection in connections:
            connection.sendall(sent)
        came = dict.fromkeys(connections, b"")
        open_ones = list(connections)
        until = time.monotonic() + 600
        while open_ones:
            assert time.monotonic() < until, f"{len(open_ones)} connections are still open"
            readable, _, _ = select.select(open_ones, [], [], 0.05)
            for connection in readable:
                try:
                    data = connection.recv(65536)
                except ConnectionResetError:
                    data = b""
                came[connection] += data
                if not data:
                    open_ones.remove(connection)
            for connection in open_ones if trickles else ():
                with contextlib.suppress(OSError):
                    connection.send(b"1")
        if not trickles:
            for data in came.values():
                assert data.startswith(answer) if answer else not data
    assert httpx.get(f"{hasty.url}/health", timeout=600).status_code == 200


def test_answers_may_take_longer_than_requests(hasty, monkeypatch):
    """The limit is on clients, not on the server; and it begins anew with each request."""
    import ffwd.adapters.server.scheduler as scheduler
    from ffwd.adapters.server.texts import advance

    def held(texts, tokens, settled):
        # Longer than the limit by far. How long exactly makes no difference.
        threading.Event().wait(0.4)
        return advance(texts, tokens, settled)

    monkeypatch.setattr(scheduler, "advance", held)
    body = {"messages": HELLO, "max_tokens": 3, "structured_outputs": {"regex": "[a-z]{9}"}}
    with httpx.Client(base_url=hasty.url, timeout=60) as client:
        for _ in range(2):
            answer = client.post(CHAT, json=body | {"complete": False})
            assert answer.status_code == 200


MANY = [{"role": "user", "content": "a"}] * 400


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": MANY}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}] * 400}]}, None),
        ({"messages": [{"role": "user", "content": "a", "other": [[]] * 1200}]}, "messages"),
        (
            {
                "messages": [
                    *HELLO,
                    {
                        "role": "assistant",
                        "tool_calls": [
                            {"function": {"name": "f", "arguments": json.dumps([1] * 2000)}}
                        ],
                    },
                ]
            },
            "messages",
        ),
        (
            {
                "tools": [
                    function("f", {"properties": {f"p{i}": {"type": "null"} for i in range(400)}})
                ]
            },
            "tools",
        ),
        ({"chat_template_kwargs": {"x": list(range(2000))}}, "chat_template_kwargs"),
    ],
)
def test_prompts_of_too_many_values_are_refused_before_they_are_rendered(
    folder, fields, param, monkeypatch
):
    rendered = []
    render = ffwd.chat.ChatTemplate.render
    monkeypatch.setattr(
        ffwd.chat.ChatTemplate,
        "render",
        lambda *given, **options: rendered.append(1) or render(*given, **options),
    )
    with Running(folder, max_prompt_values=1000) as running:
        # What loading a model renders to learn about its template.
        rendered.clear()
        url = f"{running.url}{CHAT}"
        error = error_of(httpx.post(url, json={"messages": HELLO} | fields, timeout=600), 413)
        assert error["code"] == "prompt_too_large"
        assert "max_prompt_values" in error["message"]
        assert error["param"] == (param or "messages")
        assert not rendered
        good = {"messages": HELLO, "max_tokens": 2}
        assert httpx.post(url, json=good, timeout=60).status_code == 200
        assert len(rendered) == 1


def test_heavy_prompts_and_grammars_wait_for_each_other_only(folder, monkeypatch):
    """While one heavy request is held up, others of its kind wait, and quick ones are answered."""
    from ffwd.adapters.server.preparing import Preparer

    going_on = threading.Event()
    entered = []
    chat, texts = Preparer.chat, Preparer.texts

    def held_chat(self, request):
        if len(request.messages) > 100:
            entered.append("prompt")
            assert going_on.wait(600)
        return chat(self, request)

    def held_texts(self, rendered, stream, *, deadline, effort):
        if effort == "any":
            entered.append("grammar")
            assert going_on.wait(600)
        return texts(self, rendered, stream, deadline=deadline, effort=effort)

    monkeypatch.setattr(Preparer, "chat", held_chat)
    monkeypatch.setattr(Preparer, "texts", held_texts)

    def ask(**fields):
        body = {"messages": HELLO, "max_tokens": 30} | fields
        return httpx.post(f"{running.url}{CHAT}", json=body, timeout=600)

    # A small pattern that takes more steps than a request may have beside others.
    heavy = "^(?=.*a.{4}b)(?=.*c.{5}d)(?=.*e.{6}%s).{1,9}$"
    # Steps bound the work on every machine, and no clock.
    monkeypatch.setattr("ffwd.adapters.server.preparing._SECONDS", None)
    limits = ffwd.Limits(compile_seconds=None, call_seconds=None)
    with (
        Running(folder, limits=limits) as running,
        concurrent.futures.ThreadPoolExecutor(16) as pool,
    ):
        prompts = [
            pool.submit(
                ask,
                messages=[
                    {"role": ("user", "assistant")[i % 2], "content": "a"} for i in range(1001)
                ],
            )
            for _ in range(3)
        ]
        grammars = [
            pool.submit(
                ask, structured_outputs={"json": {"type": "string", "pattern": heavy % "fgh"[i]}}
            )
            for i in range(3)
        ]
        until = time.monotonic() + 600
        while sorted(entered) != ["grammar", "prompt"]:
            assert time.monotonic() < until, entered
            time.sleep(0.01)
        for colour in ("red", "green", "blue"):
            # A grammar that nobody has asked for before, and then once more.
            for _ in range(2):
                answer = ask(
                    response_format=schema_format({"const": {"colour": colour}}, strict=False)
                )
                assert answer.status_code == 200, answer.text
                content = answer.json()["choices"][0]["message"]["content"]
                assert json.loads(content) == {"colour": colour}
        assert ask().status_code == 200
        assert sorted(entered) == ["grammar", "prompt"]
        assert not any(future.done() for future in (*prompts, *grammars))
        going_on.set()
        # Too many tokens for this model's context, which only rendering shows.
        assert {future.result().status_code for future in prompts} == {400}
        assert {future.result().status_code for future in grammars} <= {200, 400}
        assert sorted(entered) == ["grammar"] * 3 + ["prompt"] * 3


@pytest.mark.parametrize(
    ("schema", "compiled", "tried"),
    [
        # Small, a compilation of more than 10,000 steps, and one of more than 100,000.
        (COLOURS, 1, ["least"]),
        (
            {"type": "string", "pattern": "^(?=.*a.{3}b)(?=.*c.{2}d)(?=.*e.{1}f).{1,7}$"},
            2,
            ["least", "small"],
        ),
        ({"pattern": "^(?=.*a.{4}b)(?=.*c.{5}d)(?=.*e.{6}f).{1,9}$"}, 3, None),
        # Many bytes take time that is not counted in steps.
        ({"enum": ["a" * 20_000, "b"]}, 1, ["least", "small"]),
        ({"enum": ["a" * 80_000, "b"]}, 1, None),
        # Compiled in a moment; the end of a text is hard to find.
        (
            {"type": "array", "uniqueItems": True, "minItems": 30, "items": {"type": "object"}},
            1,
            None,
        ),
    ],
    ids=["least", "small", "any", "20 kB", "80 kB", "hard to end"],
)
def test_what_a_grammar_needs_decides_its_lane(folder, monkeypatch, schema, compiled, tried):
    """Each lane tries with its bound; what was compiled within it is not compiled again."""
    import ffwd.adapters.shared.cache as cache
    from ffwd.adapters.server.preparing import EFFORTS, Preparer

    compilations, calls = [], []
    compile_, texts = ffwd.compile, Preparer.texts

    def counted(*given, **options):
        compilations.append(options["limits"])
        return compile_(*given, **options)

    def noted(self, rendered, stream, *, deadline, effort):
        calls.append((effort, threading.current_thread().name.rpartition("_")[0]))
        return texts(self, rendered, stream, deadline=deadline, effort=effort)

    monkeypatch.setattr(cache.ffwd, "compile", counted)
    monkeypatch.setattr(Preparer, "texts", noted)
    tried = list(EFFORTS) if tried is None else tried
    lanes = {
        "least": "ffwd-compile",
        "small": "ffwd-heavy-compile-small",
        "any": "ffwd-heavy-compile",
    }
    # Steps decide on every machine, and no clock.
    monkeypatch.setattr("ffwd.adapters.server.preparing._SECONDS", None)
    limits = ffwd.Limits(compile_seconds=None, call_seconds=None)
    with Running(folder, limits=limits) as running:

        def ask():
            calls.clear()
            asked = {"messages": HELLO, "max_tokens": 20, "structured_outputs": {"json": schema}}
            return httpx.post(f"{running.url}{CHAT}", json=asked, timeout=600)

        first = ask()
        assert calls == [(effort, lanes[effort]) for effort in tried]
        assert len(compilations) == compiled
        second = ask()
        assert first.status_code == second.status_code
        # What needs little by now goes with the prompts, and what needs much goes there at once.
        if tried[-1] == "any":
            assert calls == [("any", lanes["any"])]
        else:
            assert calls == [("least", "ffwd-render")]
        assert len(compilations) == compiled


def test_requests_of_one_new_grammar_compile_it_once(folder, monkeypatch):
    import ffwd.adapters.shared.cache as cache

    compilations, all_wait = [], threading.Barrier(2)
    compile_ = ffwd.compile

    def counted(*given, **options):
        compilations.append(options["limits"])
        # Not before the other one has asked for it, too.
        all_wait.wait(600)
        return compile_(*given, **options)

    find = cache.GrammarCache._find

    def noted(self, work, metrics):
        found = find(self, work, metrics)
        if isinstance(found, tuple) and not found[1]:
            all_wait.wait(600)
        return found

    monkeypatch.setattr(cache.ffwd, "compile", counted)
    monkeypatch.setattr(cache.GrammarCache, "_find", noted)
    with Running(folder) as running, concurrent.futures.ThreadPoolExecutor(2) as pool:
        body = {"messages": HELLO, "response_format": schema_format(COLOURS)}
        asked = [
            pool.submit(httpx.post, f"{running.url}{CHAT}", json=body, timeout=600)
            for _ in range(2)
        ]
        assert [answer.result().status_code for answer in asked] == [200, 200]
    assert len(compilations) == 1


def test_a_call_that_takes_long_gives_its_place_up():
    from ffwd.adapters.server.lanes import ReplacingLane

    begun, end, ended = threading.Event(), threading.Event(), threading.Event()
    priorities = []

    def long():
        begun.set()
        assert end.wait(600)
        priorities.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        ended.set()

    lane = ReplacingLane("test", 1)
    waiting = [threading.Event() for _ in range(3)]
    job = lane.submit(long)
    jobs = [lane.submit(event.set) for event in waiting[:2]]
    # One that waits has no place, and one that was replaced has none any more.
    lane.replace(jobs[0])
    assert begun.wait(600)
    assert not waiting[0].is_set()
    # Time in the queue does not count.
    assert jobs[0].began is None
    assert job.began is not None
    lane.replace(job)
    lane.replace(job)
    assert all(event.wait(600) for event in waiting[:2])
    lane.replace(jobs[1])
    assert not ended.is_set()
    end.set()
    assert ended.wait(600)
    lane.submit(waiting[2].set)
    assert waiting[2].wait(600)
    lane.close()
    if sys.platform == "linux":
        assert priorities[0] > os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_heavy_lanes_have_lower_priority():
    from ffwd.adapters.server.lanes import heavy_lane, quick_lane

    def priority():
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    if sys.platform != "linux":
        pytest.skip("threads have no priorities here")
    with (
        quick_lane("test", 1) as quick,
        heavy_lane("test") as heavy,
        heavy_lane("test", nicer=5) as less_heavy,
    ):
        mine = priority()
        assert quick.submit(priority).result() == mine
        assert heavy.submit(priority).result() == min(mine + 15, 19)
        assert less_heavy.submit(priority).result() == min(mine + 5, 19)
        assert priority() == mine


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": []}, "prompt"),
        ({"prompt": [[]]}, "prompt[0]"),
        ({"prompt": [[1], []]}, "prompt[1]"),
        ({"prompt": ["a", 3]}, "prompt[1]"),
        ({"prompt": ["a", [3]]}, "prompt[1]"),
        ({"prompt": [["a"]]}, "prompt[0][0]"),
        ({"prompt": [[1, 640]]}, "prompt[0][1]"),
        ({"prompt": [5, -1]}, "prompt[1]"),
        ({"prompt": ["a", "b\ud800"]}, "prompt[1]"),
        ({"prompt": ["a"] * 65}, "prompt"),
        ({"prompt": ["a"] * 9, "n": 8}, "prompt"),
        ({"prompt": ["a", "ab cd " * 3000], "max_tokens": 1}, "prompt[1]"),
        ({"prompt": ["a", "ab cd " * 3000]}, "prompt[1]"),
    ],
)
def test_prompts_that_are_wrong(http, fields, param):
    error = error_of(http.post("/v1/completions", content=json.dumps(fields)))
    assert error["param"] == param, error


def test_metrics_and_keys(folder):
    for protect, status in ((False, 200), (True, 401)):
        with Running(folder, api_key="secret", protect_metrics=protect) as running:
            url = f"{running.url}/metrics"
            assert httpx.get(url, timeout=600).status_code == status
            assert (
                httpx.get(url, headers={"Authorization": "Bearer secret"}, timeout=600).status_code
                == 200
            )


def test_a_server_that_shuts_down_says_so(folder, monkeypatch):
    """On new connections, until what is in progress has ended."""
    import ffwd.adapters.server.scheduler as scheduler
    from ffwd.adapters.server.texts import advance

    going_on = threading.Event()

    def held(texts, tokens, settled):
        assert going_on.wait(600)
        return advance(texts, tokens, settled)

    monkeypatch.setattr(scheduler, "advance", held)
    body = {"messages": HELLO, "max_tokens": 3}
    with (
        Running(folder, shutdown_grace=120) as running,
        concurrent.futures.ThreadPoolExecutor(1) as pool,
    ):
        url = f"{running.url}{CHAT}"
        answer = pool.submit(httpx.post, url, json=body, timeout=600)
        until = time.monotonic() + 600
        while running.server.scheduler.idle:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert httpx.get(f"{running.url}/health", timeout=600).json() == {"status": "ok"}
        running.uvicorn.should_exit = True
        while (health := httpx.get(f"{running.url}/health", timeout=600)).status_code == 200:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert health.status_code == 503
        assert health.json() == {"status": "stopping"}
        assert error_of(httpx.post(url, json=body, timeout=600), 503)["code"] == "shutting_down"
        assert not answer.done()
        going_on.set()
        assert answer.result().status_code == 200
