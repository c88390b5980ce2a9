"""Who may use a server: pages of other origins, and keys with their limits."""


import pytest

openai = pytest.importorskip("openai")
httpx = pytest.importorskip("httpx")
click_testing = pytest.importorskip("click.testing")
pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")

from serve_models import HELLO, Running, write_model

from ffwd.adapters.server import ServerOptions
from ffwd.cli.serve import serve

CHAT = "/v1/chat/completions"
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
