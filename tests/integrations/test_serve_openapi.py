"""What `/openapi.json` says of the server is so."""

import json

import pytest

httpx = pytest.importorskip("httpx")
pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")
jsonschema_rs = pytest.importorskip("jsonschema_rs")

from serve_models import COLOURS, HELLO, TOOLS, Running, schema_format, write_model

FLAT = [{"type": "function", "name": "paint", "parameters": COLOURS, "strict": True}]
PARTS = [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]
CALLED = [
    *HELLO,
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "paint", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "done"},
]
ITEMS = [
    {"role": "user", "content": "Hello"},
    {"type": "function_call", "call_id": "c1", "name": "paint", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "done"},
]

GOOD = [
    ("/v1/chat/completions", {"messages": HELLO}),
    ("/v1/chat/completions", {"messages": PARTS, "n": 2, "seed": None, "user": "me"}),
    ("/v1/chat/completions", {"messages": CALLED, "tools": TOOLS, "tool_choice": "required"}),
    (
        "/v1/chat/completions",
        {"messages": HELLO, "tools": FLAT, "tool_choice": "auto", "response_format": None},
    ),
    (
        "/v1/chat/completions",
        {"messages": HELLO, "response_format": schema_format(COLOURS), "logprobs": True},
    ),
    ("/v1/chat/completions", {"messages": HELLO, "structured_outputs": {"regex": "a|b"}}),
    ("/v1/completions", {"prompt": ["a", "b"], "stop": ["x"], "logit_bias": {"7": -100}}),
    ("/v1/completions", {"prompt": [5], "stream": True, "stream_options": {"include_usage": True}}),
    ("/v1/responses", {"input": "Hello", "instructions": "Be short", "store": False}),
    ("/v1/responses", {"input": ITEMS, "tools": FLAT, "temperature": 0, "metadata": {"a": "b"}}),
    (
        "/v1/responses",
        {
            "input": ITEMS,
            "text": {"format": {"type": "json_schema", "name": "answer", "schema": COLOURS}},
            "reasoning": {"effort": "low"},
        },
    ),
    ("/tokenize", {"prompt": "Hello", "return_token_strs": True}),
    ("/tokenize", {"messages": HELLO, "tools": TOOLS}),
    ("/detokenize", {"tokens": [5, 6]}),
]
CUSTOM = {"id": "c1", "type": "custom", "custom": {"name": "note", "input": "a"}}
# What clients send that has no effect, is older, or is null.
GOOD += [
    (
        "/v1/chat/completions",
        {
            "messages": [
                {"role": "user", "content": ["Hello"], "name": None, "tool_calls": None},
                {"role": "assistant", "content": None, "tool_calls": [CUSTOM]},
                {"role": "tool", "tool_call_id": "c1", "content": "done"},
            ],
            "tools": [{"type": "custom", "custom": {"name": "note"}}],
        },
    ),
    (
        "/v1/chat/completions",
        {"messages": HELLO, "guided_regex": "a|b", "functions": [], "function_call": None},
    ),
    ("/v1/completions", {"prompt": "a", "best_of": 1, "echo": False, "suffix": None}),
    (
        "/v1/responses",
        {
            "input": [{"role": "user", "content": [{"type": "input_text", "text": "Hello"}]}],
            "tools": [{"type": "custom", "name": "note"}],
            "truncation": "disabled",
            "previous_response_id": None,
            "max_tool_calls": 3,
            "reasoning": {"effort": None},
        },
    ),
]
BAD = [
    ("/v1/completions", {"prompt": "a", "best_of": 2}),
    ("/v1/responses", {"input": "Hello", "truncation": "auto"}),
    ("/v1/chat/completions", {"messages": []}),
    ("/v1/chat/completions", {"messages": HELLO, "temprature": 1}),
    ("/v1/chat/completions", {"messages": HELLO, "temperature": 3}),
    ("/v1/chat/completions", {"messages": [{"role": 5, "content": "Hello"}]}),
    ("/v1/chat/completions", {"messages": HELLO, "tools": [{"type": "function"}]}),
    (
        "/v1/chat/completions",
        {"messages": [{"role": "assistant", "content": "", "tool_calls": [{"function": {}}]}]},
    ),
    ("/v1/chat/completions", {"messages": HELLO, "structured_outputs": {"regexp": "a"}}),
    ("/v1/completions", {}),
    ("/v1/completions", {"prompt": "a", "logprobs": 21}),
    ("/v1/responses", {"input": "Hello", "max_output_tokens": 0}),
    ("/v1/responses", {"input": "Hello", "messages": HELLO}),
    ("/v1/responses", {"input": "Hello", "metadata": {"a": 1}}),
    ("/tokenize", {"messages": "Hello"}),
    ("/detokenize", {"tokens": "Hello"}),
]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with Running(write_model(tmp_path_factory.mktemp("tiny"))) as running:
        yield running


@pytest.fixture(scope="module")
def document(running):
    return httpx.get(f"{running.url}/openapi.json", timeout=600).json()


def validator(document, *steps):
    """A validator of the schema at a place in the document."""
    escaped = (step.replace("~", "~0").replace("/", "~1") for step in steps)
    return jsonschema_rs.Draft202012Validator({**document, "$ref": "#/" + "/".join(escaped)})


def test_every_route_is_described(running, document):
    described = {
        (path.replace("{name}", "{name:path}"), method.upper())
        for path, item in document["paths"].items()
        for method in item
    }
    routes = {
        (route.path, method)
        for route in running.app.routes
        for method in route.methods or ()
        if method != "HEAD"
    }
    assert described == {*routes, *((path, "POST") for path, _ in GOOD)}
    assert {route.path for route in running.app.routes} == {path for path, _ in described}


@pytest.mark.parametrize(("path", "body"), [*GOOD, *BAD])
def test_a_body_conforms_if_the_server_takes_it(running, document, path, body):
    schema = ("requestBody", "content", "application/json", "schema")
    described = validator(document, "paths", path, "post", *schema).is_valid(body)
    limit = {"/v1/responses": "max_output_tokens"}.get(path, "max_tokens")
    limited = {limit: 40, **body} if path.startswith("/v1/") else body
    response = httpx.post(f"{running.url}{path}", json=limited, timeout=600)
    assert described == (response.status_code == 200), response.text
    assert response.status_code in (200, 400)
    if response.status_code == 400:
        answer = document["paths"][path]["post"]["responses"]["4XX"]["content"]
        assert answer["application/json"]["schema"] == {"$ref": "#/components/schemas/Error"}
        assert validator(document, "components", "schemas", "Error").is_valid(response.json())


def test_the_models_of_requests_are_described_whole(document):
    """A field that a request may have has no other name in the description."""
    for path, body in GOOD:
        schema = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        assert schema["schema"]["additionalProperties"] is False
        older = {name for name in body if name.startswith("guided_")}
        assert set(body) - older <= set(schema["schema"]["properties"])
    assert "$defs" not in json.dumps(document)
