"""Who may use a server: pages of other origins, and keys with their limits."""

import concurrent.futures
import threading

import pytest

openai = pytest.importorskip("openai")
httpx = pytest.importorskip("httpx")
click_testing = pytest.importorskip("click.testing")
pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")

from serve_models import HELLO, Running, write_model

from ffwd.adapters.server import ApiKey, ApiKeysError, ServerOptions, read_api_keys
from ffwd.adapters.server.errors import ApiError
from ffwd.adapters.server.keys import Keys, Use, Window
from ffwd.cli.serve import serve

CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
BODY = {"messages": HELLO, "max_tokens": 3}
PAGE = "https://chat.example"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("tiny"))


# ------------------------------------------------------------------------------------ pages


@pytest.fixture(scope="module")
def open_to_pages(folder):
    origins = (PAGE, "http://localhost:3000")
    with (
        Running(folder, cors_origins=origins, api_key="secret") as running,
        httpx.Client(base_url=running.url, timeout=None) as http,
    ):
        yield http


def asked_before(http, origin, method="POST", path=CHAT, headers="authorization,content-type"):
    """The answer to a browser's question before a request."""
    return http.options(
        path,
        headers={
            "Origin": origin,
            "Access-Control-Request-Method": method,
            "Access-Control-Request-Headers": headers,
        },
    )


@pytest.mark.parametrize("origin", [PAGE, "http://localhost:3000"])
@pytest.mark.parametrize(("method", "path"), [("POST", CHAT), ("GET", "/v1/models")])
def test_browsers_ask_first(open_to_pages, origin, method, path):
    """Without a key, which they do not send with the question."""
    answer = asked_before(open_to_pages, origin, method, path)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == origin
    assert method in answer.headers["access-control-allow-methods"]
    assert answer.headers["access-control-allow-headers"] == "authorization,content-type"
    assert "Origin" in answer.headers["vary"]
    assert "access-control-allow-credentials" not in answer.headers


def test_other_pages_are_refused(open_to_pages):
    answer = asked_before(open_to_pages, "https://other.example")
    assert answer.status_code == 400
    assert "access-control-allow-origin" not in answer.headers
    assert asked_before(open_to_pages, PAGE, "DELETE").status_code == 400
    headers = {"Origin": "https://other.example", "Authorization": "Bearer secret"}
    answer = open_to_pages.post(CHAT, json=BODY, headers=headers)
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    ("method", "path", "body", "key", "status"),
    [
        ("POST", CHAT, BODY, "secret", 200),
        ("POST", CHAT, BODY | {"stream": True}, "secret", 200),
        ("POST", CHAT, {"messages": 3}, "secret", 400),
        ("POST", CHAT, BODY, "other", 401),
        ("GET", "/v1/models", None, "secret", 200),
        ("GET", "/v1/nothing", None, "secret", 404),
        ("GET", CHAT, None, "secret", 405),
        ("POST", "/tokenize", {"prompt": "a"}, "secret", 200),
        ("POST", RESPONSES, {"input": "a", "max_output_tokens": 3}, "secret", 200),
        ("POST", RESPONSES, {"input": 3}, "secret", 400),
        ("POST", RESPONSES, {"input": "a"}, "other", 401),
    ],
)
def test_pages_can_read_answers_and_errors(open_to_pages, method, path, body, key, status):
    headers = {"Origin": PAGE, "Authorization": f"Bearer {key}"}
    answer = open_to_pages.request(method, path, json=body, headers=headers)
    assert answer.status_code == status
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "Retry-After" in answer.headers["access-control-expose-headers"]
    assert "Origin" in answer.headers["vary"]


def test_all_pages_or_none(folder):
    with Running(folder, cors_origins=("*",)) as running:
        url = f"{running.url}{CHAT}"
        answer = httpx.post(url, json=BODY, headers={"Origin": PAGE}, timeout=None)
        assert answer.headers["access-control-allow-origin"] == "*"
    with Running(folder) as running, httpx.Client(base_url=running.url, timeout=None) as http:
        assert asked_before(http, PAGE).status_code == 405
        answer = http.post(CHAT, json=BODY, headers={"Origin": PAGE})
        assert answer.status_code == 200
        assert not any(name.startswith("access-control") for name in answer.headers)


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "chat.example",
        "https://chat.example/",
        "https://a@b",
        "https://",
        "https://Chat.example",
    ],
)
def test_what_is_no_origin(folder, origin):
    with pytest.raises(ValueError, match="is not an origin"):
        ServerOptions(cors_origins=(PAGE, origin))
    result = click_testing.CliRunner().invoke(serve, [str(folder), f"--cors-origin={origin}"])
    assert result.exit_code != 0
    assert "is not an origin" in str(result.exception) + result.output


# ------------------------------------------------------------------------------------- keys


class Clock:
    """Seconds that pass when a test says so."""

    now = 1000.0

    def __call__(self):
        return self.now


def refused(call, status, code):
    """The error of a call."""
    with pytest.raises(ApiError) as info:
        call()
    assert (info.value.status, info.value.code) == (status, code)
    return info.value


def test_any_sixty_seconds():
    window = Window(10)
    window.take(4, 0.0)
    window.take(6, 20.0)
    assert window.wait(1, 59.0) == 1.0
    assert window.wait(5, 59.0) == 21.0
    assert window.wait(4, 60.0) == 0.0
    assert window.wait(5, 60.0) == 20.0
    taken = window.take(4, 60.0)
    window.give_back(taken, 3)
    assert window.wait(3, 61.0) == 0.0
    # What the window has forgotten is not given back a second time.
    assert window.wait(10, 120.0) == 0.0
    window.take(10, 120.0)
    window.give_back(taken, 1)
    assert window.wait(1, 121.0) == 59.0


def test_a_window_against_counting():
    """Random amounts at random times: never more than the limit in any 60 seconds, and no less."""
    import random

    seed = 5
    print("seed", seed)
    rng = random.Random(seed)
    window, taken, now = Window(50), [], 0.0
    for _ in range(2000):
        now += rng.choice([0.0, 0.5, 1.0, 7.0])
        amount = rng.randrange(1, 20)
        recent = sum(size for time, size in taken if time + 60 > now)
        wait = window.wait(amount, now)
        assert (wait == 0) == (recent + amount <= 50)
        if wait:
            later = now + wait
            left = sum(size for time, size in taken if time + 60 > later)
            assert left + amount <= 50
            before = [time for time, _ in taken if time + 60 == later]
            assert before
        else:
            window.take(amount, now)
            taken.append((now, amount))


def test_requests_of_a_key():
    clock = Clock()
    keys = Keys(
        "free",
        [ApiKey(key="a", name="team", requests_per_minute=2), ApiKey(key="b", max_concurrent=1)],
        clock=clock,
    )
    account = keys.account(b"Bearer a")
    assert keys.account(b"Bearer a") is account
    for _ in range(2):
        with Use(account):
            clock.now += 10
    error = refused(account.begin, 429, "rate_limit_exceeded")
    assert error.headers == {"Retry-After": "40"}
    assert "'team'" in error.message
    clock.now += 39.5
    assert refused(account.begin, 429, "rate_limit_exceeded").headers["Retry-After"] == "1"
    clock.now += 0.5
    with Use(account):
        pass
    # Others are not concerned.
    other = keys.account(b"Bearer b")
    with Use(other):
        error = refused(other.begin, 429, "concurrency_limit_exceeded")
        assert error.headers == {"Retry-After": "1"}
        free = keys.account(b"Bearer free")
        with Use(free), Use(free):
            pass
    with Use(other):
        pass


def test_tokens_of_a_key():
    clock = Clock()
    keys = Keys(None, [ApiKey(key="a", tokens_per_minute=100)], clock=clock)
    account = keys.account(b"Bearer a")
    with Use(account) as use:
        use.reserve(60, lambda: 45)
        error = refused(lambda: account.reserve(41), 429, "rate_limit_exceeded")
        assert error.headers == {"Retry-After": "60"}
        assert error.kind == "tokens"
        clock.now += 20
        account.reserve(40)
    # 15 came back, once.
    use.close()
    account.reserve(15)
    error = refused(lambda: account.reserve(1), 429, "rate_limit_exceeded")
    assert error.headers == {"Retry-After": "40"}
    clock.now += 40
    account.reserve(45)
    # No minute is long enough.
    error = refused(lambda: account.reserve(101), 400, "tokens_per_minute_too_small")
    assert error.param == "max_tokens"
    # The requests themselves are not limited.
    with Use(account), Use(account):
        pass


@pytest.mark.parametrize(
    "header", [b"", b"a", b"Bearer", b"Bearer ", b"Bearer A", b"bearer a", b"Bearer a ", b"\xff"]
)
def test_wrong_keys(header):
    keys = Keys("single", [ApiKey(key="a")])
    with pytest.raises(ApiError) as info:
        keys.account(header)
    assert (info.value.status, info.value.code) == (401, "invalid_api_key")
    # Without keys, everybody may.
    with Use(Keys(None).account(header)):
        pass


def test_all_keys_are_compared(monkeypatch):
    """Whichever is right: how long it takes tells nothing."""
    import hmac

    compared = []
    compare = hmac.compare_digest

    def counted(one, other):
        compared.append(one)
        return compare(one, other)

    monkeypatch.setattr(hmac, "compare_digest", counted)
    keys = Keys("single", [ApiKey(key="a"), ApiKey(key="b")])
    for header in (b"Bearer a", b"Bearer single"):
        compared.clear()
        keys.account(header)
        assert len(compared) == 3
    compared.clear()
    with pytest.raises(ApiError):
        keys.account(b"Bearer nothing")
    assert len(compared) == 3


@pytest.fixture(scope="module")
def locked(folder):
    with Running(folder, api_key="free", api_keys=(ApiKey(key="x"),)) as running:
        yield running


def send(running, key, path=CHAT, **fields):
    body = {"prompt": "a"} if path == "/tokenize" else BODY | fields
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.post(f"{running.url}{path}", json=body, headers=headers, timeout=None)


def use(running, monkeypatch, *keys):
    clock = Clock()
    monkeypatch.setattr(running.server, "keys", Keys("free", keys, clock=clock))
    return clock


def test_a_server_with_keys(locked):
    assert send(locked, "free").status_code == 200
    assert send(locked, "x").status_code == 200
    assert send(locked, "y").status_code == 401
    assert httpx.get(f"{locked.url}/v1/models", timeout=None).status_code == 401
    assert "free" not in repr(locked.server.options)
    assert "'x'" not in repr(locked.server.options)


def test_a_servers_requests_per_minute(locked, monkeypatch):
    clock = use(locked, monkeypatch, ApiKey(key="a", requests_per_minute=3))
    assert send(locked, "a").status_code == 200
    # Errors count, and texts that are only tokenized.
    assert send(locked, "a", messages=3).status_code == 400
    assert send(locked, "a", "/tokenize").status_code == 200
    for path in (CHAT, "/tokenize"):
        answer = send(locked, "a", path)
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "60"
        assert answer.json()["error"]["code"] == "rate_limit_exceeded"
    assert send(locked, "free").status_code == 200
    with (
        openai.OpenAI(base_url=f"{locked.url}/v1", api_key="a", max_retries=0) as client,
        pytest.raises(openai.RateLimitError),
    ):
        client.chat.completions.create(model="tiny", messages=HELLO)
    clock.now += 60
    assert send(locked, "a").status_code == 200


@pytest.mark.parametrize("stream", [False, True])
def test_a_servers_tokens_per_minute(locked, monkeypatch, stream):
    usage = send(locked, "free").json()["usage"]
    prompt = usage["prompt_tokens"]
    limit = 2 * (prompt + 3) + 5
    clock = use(locked, monkeypatch, ApiKey(key="a", tokens_per_minute=limit))
    # The end comes with the first token: the rest is given back.
    ended = {"logit_bias": {"2": 100}, "stream": stream}
    assert send(locked, "a", **ended, max_tokens=prompt + 11).status_code == 200
    assert send(locked, "a", stream=stream).status_code == 200
    answer = send(locked, "a", stream=stream, max_tokens=9)
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "60"
    assert answer.json()["error"]["type"] == "tokens"
    answer = send(locked, "a", max_tokens=limit)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "tokens_per_minute_too_small"
    clock.now += 60
    assert send(locked, "a", n=2, max_tokens=3).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
def test_the_limits_of_a_key_are_those_of_responses_too(locked, monkeypatch, stream):
    def respond(limit):
        body = {"input": "a", "max_output_tokens": limit, "stream": stream, "ignore_eos": True}
        headers = {"Authorization": "Bearer a"}
        return httpx.post(f"{locked.url}{RESPONSES}", json=body, headers=headers, timeout=None)

    key = ApiKey(key="a", requests_per_minute=4, tokens_per_minute=300)
    clock = use(locked, monkeypatch, key)
    answer = respond(300)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == ("tokens_per_minute_too_small", "max_output_tokens")
    assert "`max_output_tokens`" in error["message"]
    assert respond(100).status_code == 200
    answer = respond(199)
    assert (answer.status_code, answer.json()["error"]["type"]) == (429, "tokens")
    assert respond(2).status_code == 200
    answer = respond(2)
    assert (answer.status_code, answer.json()["error"]["type"]) == (429, "requests")
    clock.now += 60
    assert respond(199).status_code == 200


def test_a_servers_concurrent_requests(locked, monkeypatch):
    import ffwd.adapters.server.scheduler as scheduler
    from ffwd.adapters.server.texts import advance

    begun, goes_on = threading.Event(), threading.Event()

    def held(texts, tokens, settled):
        begun.set()
        assert goes_on.wait(600)
        return advance(texts, tokens, settled)

    use(locked, monkeypatch, ApiKey(key="a", max_concurrent=1))
    monkeypatch.setattr(scheduler, "advance", held)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = pool.submit(send, locked, "a")
        assert begun.wait(600)
        answer = send(locked, "a")
        goes_on.set()
        assert first.result().status_code == 200
    assert answer.status_code == 429
    assert answer.json()["error"]["code"] == "concurrency_limit_exceeded"
    assert answer.headers["retry-after"] == "1"
    # A request has ended when its client has the answer.
    with httpx.Client(base_url=locked.url, timeout=None) as http:
        for stream in [False, True] * 5:
            body = BODY | {"max_tokens": 1, "stream": stream}
            answer = http.post(CHAT, json=body, headers={"Authorization": "Bearer a"})
            assert answer.status_code == 200


def test_a_file_of_keys(tmp_path):
    path = tmp_path / "keys.jsonl"
    path.write_text(
        '{"key": "sk-1", "name": "team", "max_concurrent": 4, "requests_per_minute": 60,'
        ' "tokens_per_minute": 100000}\n\n{"key": "sk-2"}\n'
    )
    one, other = read_api_keys(path)
    assert one == ApiKey(
        key="sk-1",
        name="team",
        max_concurrent=4,
        requests_per_minute=60,
        tokens_per_minute=100_000,
    )
    assert other == ApiKey(key="sk-2")
    with pytest.raises(ValueError, match="one of the keys"):
        ServerOptions(api_key="sk-2", api_keys=(one, other))


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", None, "there are none"),
        ("\n", None, "there are none"),
        ('{"key": "sk-secret"', 1, "not JSON"),
        ('{"key": "ok"}\n[]', 2, "the line"),
        ('{"name": "sk-secret"}', 1, "`key`"),
        ('{"key": ""}', 1, "`key`"),
        ('{"key": "sk secret"}', 1, "`key`"),
        ('{"key": "sk-sécret"}', 1, "`key`"),
        ('{"key": "sk-secret\\n"}', 1, "`key`"),
        ('{"key": 3}', 1, "`key`"),
        ('{"key": "sk-secret", "requests_per_minute": 0}', 1, "`requests_per_minute`"),
        ('{"key": "sk-secret", "tokens_per_minute": "9"}', 1, "`tokens_per_minute`"),
        ('{"key": "sk-secret", "max_concurrent": 1.5}', 1, "`max_concurrent`"),
        ('{"key": "sk-secret", "rpm": 4}', 1, "`rpm`"),
        ('{"key": "sk-secret"}\n{"key": "sk-secret"}', 2, "line 1"),
    ],
)
def test_files_that_are_wrong(folder, tmp_path, text, line, message):
    path = tmp_path / "keys.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ApiKeysError) as info:
        read_api_keys(path)
    assert info.value.line == line
    assert message in str(info.value)
    assert "cret" not in str(info.value).replace(str(tmp_path), "")
    result = click_testing.CliRunner().invoke(serve, [str(folder), f"--api-keys={path}"])
    assert result.exit_code != 0
    assert "cannot be used" in str(result.exception) + result.output


def test_a_file_that_is_no_text(tmp_path):
    with pytest.raises(ApiKeysError, match="cannot be used"):
        read_api_keys(tmp_path / "none")
    path = tmp_path / "keys"
    path.write_bytes(b"\xff")
    with pytest.raises(ApiKeysError, match="cannot be used"):
        read_api_keys(path)
