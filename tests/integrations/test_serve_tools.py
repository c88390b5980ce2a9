"""Calls of tools: what is asked, what comes, and how it is streamed."""

import json

import httpx
import jsonschema_rs
import pytest

openai = pytest.importorskip("openai")
pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")

from serve_models import (
    COLOURS,
    HELLO,
    PLACES,
    TOOLS,
    Running,
    function,
    schema_format,
    write_model,
)

from ffwd.adapters.server import ServerOptions
from ffwd.adapters.server.protocol import read_chat
from ffwd.adapters.server.responses import read_responses
from ffwd.adapters.server.tool_marks import with_strictness, without_marks

SCHEMAS = {"paint": COLOURS, "forecast": PLACES}


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with Running(write_model(tmp_path_factory.mktemp("tiny"))) as running:
        yield running


@pytest.fixture(scope="module")
def ask(running):
    with openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0) as client:

        def ask(**options):
            given = {"model": "tiny", "messages": HELLO, "temperature": 0, "max_tokens": 90}
            return client.chat.completions.create(**(given | {"tools": TOOLS} | options))

        yield ask


def check_call(call):
    assert call.type == "function"
    assert call.id.startswith("call_")
    jsonschema_rs.validate(SCHEMAS[call.function.name], json.loads(call.function.arguments))


@pytest.mark.parametrize("seed", range(3))
def test_required(ask, seed):
    (choice,) = ask(tool_choice="required", temperature=1, seed=seed).choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    assert choice.message.tool_calls
    for call in choice.message.tool_calls:
        check_call(call)


@pytest.mark.parametrize("name", SCHEMAS)
def test_named(ask, name):
    (choice,) = ask(tool_choice={"type": "function", "function": {"name": name}}).choices
    # As OpenAI's own: the request has stopped, it did not choose to call.
    assert choice.finish_reason == "stop"
    (call,) = choice.message.tool_calls
    assert call.function.name == name
    check_call(call)


def test_allowed(ask):
    allowed = {
        "mode": "required",
        "tools": [{"type": "function", "function": {"name": "forecast"}}],
    }
    for seed in range(3):
        (choice,) = ask(
            tool_choice={"type": "allowed_tools", "allowed_tools": allowed},
            temperature=1,
            seed=seed,
        ).choices
        assert {call.function.name for call in choice.message.tool_calls} == {"forecast"}


def test_none(ask):
    (choice,) = ask(tool_choice="none").choices
    assert choice.message.tool_calls is None
    assert "<tool_call>" not in choice.message.content


def test_none_with_a_format(ask):
    (choice,) = ask(tool_choice="none", response_format=schema_format(COLOURS)).choices
    jsonschema_rs.validate(COLOURS, json.loads(choice.message.content))


def test_auto(ask):
    """Text, or text and calls: whatever a random model says, calls are whole."""
    (choice,) = ask(tool_choice="auto").choices
    assert choice.message.content or choice.message.tool_calls
    for call in choice.message.tool_calls or []:
        check_call(call)


def test_auto_with_a_format(ask):
    """An answer in the format, or calls, and no other text."""
    seen = set()
    for seed in range(6):
        (choice,) = ask(response_format=schema_format(COLOURS), temperature=1, seed=seed).choices
        if choice.message.tool_calls:
            seen.add("calls")
            assert choice.message.content is None
            for call in choice.message.tool_calls:
                check_call(call)
        else:
            seen.add("text")
            jsonschema_rs.validate(COLOURS, json.loads(choice.message.content))
    assert "text" in seen or "calls" in seen


def test_parallel_calls(ask):
    counts = set()
    for seed in range(6):
        options = {"tool_choice": "required", "temperature": 1, "seed": seed, "max_tokens": 150}
        counts.add(len(ask(**options).choices[0].message.tool_calls))
        (call,) = ask(parallel_tool_calls=False, **options).choices[0].message.tool_calls
        check_call(call)
    assert max(counts) > 1


@pytest.mark.parametrize("seed", range(3))
def test_streamed_calls_join_to_the_whole(ask, seed):
    options = {"tool_choice": "required", "temperature": 1, "seed": seed, "max_tokens": 150}
    whole = ask(**options).choices[0]
    calls, reason, deltas = {}, None, 0
    for chunk in ask(stream=True, **options):
        (choice,) = chunk.choices
        reason = choice.finish_reason or reason
        assert not choice.delta.content
        for part in choice.delta.tool_calls or []:
            if part.id is not None:
                # The name comes once, at the beginning, and calls come in order.
                assert part.index == len(calls)
                calls[part.index] = [part.function.name, ""]
            else:
                assert part.function.name is None
                calls[part.index][1] += part.function.arguments
                deltas += 1
    assert reason == whole.finish_reason == "tool_calls"
    assert [tuple(call) for call in calls.values()] == [
        (call.function.name, call.function.arguments) for call in whole.message.tool_calls
    ]
    assert deltas > len(calls)


def test_a_conversation_goes_on(ask):
    """The call and its result are part of the next prompt."""
    (choice,) = ask(tool_choice="required", parallel_tool_calls=False).choices
    (call,) = choice.message.tool_calls
    messages = [
        *HELLO,
        choice.message,
        {"role": "tool", "tool_call_id": call.id, "content": "done"},
    ]
    answer = ask(messages=messages, tool_choice="none", max_tokens=5)
    assert answer.choices[0].message.content
    assert answer.usage.prompt_tokens > 10


def test_bad_tools_are_named(ask):
    bad = function("broken", {"type": "object", "properties": {"a": {"type": "strin"}}})
    with pytest.raises(openai.BadRequestError, match=r"broken.*strin") as info:
        ask(tools=[*TOOLS, bad])
    assert info.value.param == "tools[2].function.parameters"
    lax = function("lax", {"type": "object", "properties": {"a": {}}}, strict=True)
    with pytest.raises(openai.BadRequestError, match="additionalProperties") as info:
        ask(tools=[lax])
    assert info.value.param == "tools[0].function.parameters"
    with pytest.raises(openai.BadRequestError, match="asks for 'nothing'") as info:
        ask(tool_choice={"type": "function", "function": {"name": "nothing"}})
    assert info.value.param == "tool_choice"
    with pytest.raises(openai.BadRequestError, match="no `tools`") as info:
        ask(tools=openai.omit, tool_choice="required")
    assert info.value.param == "tool_choice"
    with pytest.raises(openai.BadRequestError, match="no function") as info:
        ask(tools=[{"type": "web_search"}])
    assert info.value.param == "tools[0].type"
    with pytest.raises(openai.BadRequestError, match="must be an object") as info:
        ask(tools=[{"type": "function", "function": "x"}])
    assert info.value.param == "tools[0].function"
    for nameless, param in (({"function": {}}, "tools[0].function.name"), ({}, "tools[0].name")):
        with pytest.raises(openai.BadRequestError, match="no name") as info:
            ask(tools=[{"type": "function", **nameless}])
        assert info.value.param == param
    with pytest.raises(openai.BadRequestError, match="objec") as info:
        ask(tools=[{"type": "function", "name": "flat", "parameters": {"type": "objec"}}])
    assert info.value.param == "tools[0].parameters"


def test_arguments_that_are_not_json(tmp_path):
    """Qwen3-Coder's calls stand between tags; clients get JSON."""
    nested = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "pattern": "^[A-Z][a-z]{2,8}$"},
            "days": {"type": "integer", "minimum": 1, "maximum": 9},
            "colours": {"type": "array", "items": {"enum": ["red", "blue"]}, "maxItems": 2},
            "digits": {"type": "string", "pattern": "^[0-9]{2}$"},
        },
        "required": ["city", "days", "colours", "digits"],
        "additionalProperties": False,
    }
    with Running(write_model(tmp_path, "coder")) as running:
        assert running.loaded.tool_format.name == "qwen3-coder"
        with openai.OpenAI(base_url=f"{running.url}/v1", api_key="-", max_retries=0) as client:
            for seed in range(3):
                options = {
                    "model": "tiny",
                    "messages": HELLO,
                    "tools": [function("trip", nested)],
                    "tool_choice": "required",
                    "seed": seed,
                    "max_tokens": 200,
                }
                answer = client.chat.completions.create(**options)
                texts = [call.function.arguments for call in answer.choices[0].message.tool_calls]
                for text in texts:
                    jsonschema_rs.validate(nested, json.loads(text))
                streamed = client.chat.completions.create(stream=True, **options)
                joined = [""] * len(texts)
                for chunk in streamed:
                    for part in chunk.choices[0].delta.tool_calls or []:
                        joined[part.index] += part.function.arguments or ""
                assert joined == texts


# ---------------------------------------------------------------------------------- strictness

FREE = [
    None,
    "auto",
    {
        "type": "allowed_tools",
        "allowed_tools": {
            "mode": "auto",
            "tools": [
                {"type": "function", "function": {"name": name}} for name in ("yes", "no", "open")
            ],
        },
    },
]
MARKS = {"yes": {"strict": True}, "no": {"strict": False}, "open": {}}
FOLLOWED = {
    "auto": {"yes", "open"},
    "always": {"yes", "no", "open"},
    "strict": {"yes"},
    "off": set(),
}


def accepted(running, name, arguments, **fields):
    """Whether an answer may call a function with these arguments."""
    tools = [function(name, COLOURS, **mark) for name, mark in MARKS.items()]
    request = read_chat({"messages": HELLO, "tools": tools} | fields)
    return may_call(running, request, name, arguments)


def may_call(running, request, name, arguments):
    preparer, loaded = running.server.preparer, running.loaded
    rendered = preparer.chat(request)
    matcher = rendered.begin(preparer.cache.get(rendered.key)).matcher()
    call = {"name": name, "arguments": arguments}
    text = f"<tool_call>\n{json.dumps(call)}\n</tool_call>"
    tokens = loaded.tokenizer.encode(text)
    return matcher.accept_tokens(tokens) and matcher.is_accepting()


GOOD, OTHER = {"colour": "red", "shade": True}, {"hue": 3}


@pytest.mark.parametrize("strictness", FOLLOWED)
@pytest.mark.parametrize("form", [None, schema_format(PLACES)])
def test_strictness(tmp_path, strictness, form):
    """Of the operator, for calls that the model may omit; others follow what the request says."""
    running = Running(write_model(tmp_path), tool_strictness=strictness)
    extra = {} if form is None else {"response_format": form}
    for name in MARKS:
        for choice in FREE:
            fields = extra | ({} if choice is None else {"tool_choice": choice})
            assert accepted(running, name, GOOD, **fields)
            assert accepted(running, name, OTHER, **fields) == (name not in FOLLOWED[strictness])
            # Arguments are always an object.
            assert not accepted(running, name, [3], **fields)
        for choice in ("required", {"type": "function", "function": {"name": name}}):
            assert accepted(running, name, GOOD, tool_choice=choice)
            assert accepted(running, name, OTHER, tool_choice=choice) == (name == "no")


FLAT = [
    *({"type": "function", "name": name, "parameters": COLOURS, **MARKS[name]} for name in MARKS),
    {
        "type": "custom",
        "name": "sum",
        "format": {"type": "grammar", "syntax": "regex", "definition": "[0-9]+"},
    },
]


@pytest.mark.parametrize("strictness", FOLLOWED)
def test_strictness_of_the_form_of_responses(tmp_path, strictness):
    """Flat functions are functions. Custom tools have no mark: their grammar is followed."""
    running = Running(write_model(tmp_path), tool_strictness=strictness)
    for request in (
        read_chat({"messages": HELLO, "tools": FLAT}),
        read_responses({"input": "Hello!", "tools": FLAT}),
    ):
        for name in MARKS:
            assert may_call(running, request, name, GOOD)
            assert may_call(running, request, name, OTHER) == (name not in FOLLOWED[strictness])
        assert may_call(running, request, "sum", {"input": "12"})
        assert not may_call(running, request, "sum", {"input": "a"})
        assert not may_call(running, request, "sum", OTHER)


def test_all_forms_of_tools_have_one_prompt(running):
    """Without marks, and custom tools as functions of one string."""
    flat = [{**tool, "strict": True} for tool in FLAT]
    inner = [
        {"type": tool["type"], tool["type"]: {k: v for k, v in tool.items() if k != "type"}}
        for tool in flat
    ]
    url = f"{running.url}/tokenize"
    asked = [
        httpx.post(url, json={"messages": HELLO, "tools": tools}, timeout=None).json()["tokens"]
        for tools in (flat, inner)
    ]
    preparer = running.server.preparer
    user = {"role": "user", "content": "Hello!"}
    rendered = [
        preparer.chat(read_chat({"messages": [user], "tools": flat})),
        preparer.chat(read_chat({"messages": [user], "tools": inner})),
        preparer.chat(read_responses({"input": "Hello!", "tools": flat})),
    ]
    prompts = [[*r.begin(preparer.cache.get(r.key)).prompt_ids] for r in rendered]
    assert asked[0] == asked[1]
    assert prompts[0] == prompts[1] == prompts[2]
    for ids in (asked[0], prompts[0]):
        text = running.loaded.tokenizer.decode(ids, skip_special_tokens=False)
        assert "strict" not in text
        assert text.count('"function": {') == len(FLAT)
        assert "[0-9]+" in text


@pytest.mark.parametrize("path", ["/tokenize", "/v1/chat/completions"])
def test_malformed_tools_are_refused_before_they_are_rendered(running, path):
    for tool, param in (
        ({"type": "web_search"}, "tools[0].type"),
        ({"type": []}, "tools[0].type"),
        ({"type": "function", "function": 3}, "tools[0].function"),
        ({"type": "custom", "custom": None}, "tools[0].custom"),
    ):
        answer = httpx.post(
            f"{running.url}{path}", json={"messages": HELLO, "tools": [tool]}, timeout=None
        )
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == param


def test_strictness_has_four_values():
    with pytest.raises(ValueError, match="give one of auto, always, strict, off"):
        ServerOptions(tool_strictness="never")


def test_marks_are_not_shown_to_the_model(running, monkeypatch):
    """The template dumps its tools: what is for the grammar is not there, the rest is."""
    scheduler, tokenizer = running.server.scheduler, running.loaded.tokenizer
    submit, texts = scheduler.submit, []
    monkeypatch.setattr(scheduler, "submit", lambda new: (texts.extend(new), submit(new)))
    tools = [
        function("paint", COLOURS, strict=True, description="Paints a strict line."),
        function("other", {"properties": {"strict": {"type": "boolean"}}}, strict=False),
    ]
    url = running.url
    form = {
        "type": "json_schema",
        "json_schema": {"name": "marked", "description": "Hidden.", "strict": True}
        | {"schema": PLACES},
    }
    bodies = [
        {"messages": HELLO, "tools": tools},
        {"messages": HELLO, "tools": tools, "response_format": form},
        {"messages": HELLO, "tools": tools, "tool_choice": "required"},
    ]
    for body in bodies:
        answer = httpx.post(
            f"{url}/v1/chat/completions", json=body | {"max_tokens": 90}, timeout=None
        )
        assert answer.status_code == 200, answer.text
    prompts = [
        tokenizer.decode(text.ids[: text.num_prompt], skip_special_tokens=False) for text in texts
    ]
    asked = httpx.post(f"{url}/tokenize", json={"messages": HELLO, "tools": tools}, timeout=None)
    ids = asked.json()["tokens"]
    assert ids == texts[0].ids[: len(ids)]
    assert len(prompts) == 3
    for prompt in prompts:
        assert prompt == prompts[0]
        # One after the other, up to the end of the message.
        listed = prompt[prompt.index("{") : prompt.index("}<|im_end|>") + 1]
        assert json.loads(f"[{listed.replace('}{', '},{')}]") == [
            function("paint", COLOURS, description="Paints a strict line."),
            function("other", {"properties": {"strict": {"type": "boolean"}}}),
        ]
        assert "marked" not in prompt
        assert "Hidden" not in prompt


def test_requests_keep_their_tools():
    """What a request says is not changed; only what becomes of it."""
    tools = [function("paint", COLOURS, strict=True)]
    (shown,) = without_marks(tools)
    (marked,) = with_strictness(tools, "auto", "off")
    assert tools == [function("paint", COLOURS, strict=True)]
    assert "strict" not in shown["function"]
    assert marked["function"]["strict"] is False
    assert with_strictness(tools, "required", "off") == tools
    # The grammar refuses these, and says why.
    for odd in ({"type": "function"}, {"type": "function", "function": {"strict": 3}}):
        assert with_strictness([odd], None, "strict") == [odd]
