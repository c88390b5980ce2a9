"""`/v1/responses`: the openai client reads each response and each event with its own types."""

import json

import jsonschema_rs
import pytest
from pydantic import BaseModel, TypeAdapter

openai = pytest.importorskip("openai")
pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")

from openai.types.responses import Response, ResponseStreamEvent
from serve_models import COLOURS, PLACES, Running, about, write_model

SCHEMAS = {"paint": COLOURS, "forecast": PLACES}
TOOLS = [
    {"type": "function", "name": "paint", "parameters": COLOURS, "strict": True},
    {"type": "function", "name": "forecast", "parameters": PLACES, "description": "Weather."},
]
FORMAT = {
    "format": {"type": "json_schema", "name": "answer", "strict": True, "schema": COLOURS},
}
LISTED = {"include": ["message.output_text.logprobs"], "top_logprobs": 2}
EVENT = TypeAdapter(ResponseStreamEvent)
SHARED = {"model": "tiny", "temperature": 0, "max_output_tokens": 90}


class Paint(BaseModel):
    colour: str
    shade: bool


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with Running(write_model(tmp_path_factory.mktemp("tiny"))) as running:
        yield running


@pytest.fixture(scope="module")
def thinking(tmp_path_factory):
    with Running(write_model(tmp_path_factory.mktemp("thinking"), "thinking")) as running:
        yield running


@pytest.fixture(scope="module")
def client(running):
    with openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def ask(client):
    def ask(**options):
        return client.responses.create(**(SHARED | {"input": "Hello!"} | options))

    return ask


def strictly(response):
    """The response, after its JSON was validated; the client itself only builds objects."""
    Response.model_validate_json(response.model_dump_json(by_alias=True))
    return response


def streamed(ask, **options):
    """The events of a stream, validated, in order and numbered."""
    events = list(ask(stream=True, **options))
    for number, event in enumerate(events):
        assert event.sequence_number == number
        EVENT.validate_json(event.model_dump_json(by_alias=True))
    return events


def without_names(output):
    """Items without what is different each time."""
    return [
        {k: v for k, v in item.model_dump().items() if k not in ("id", "call_id")}
        for item in output
    ]


def test_text(ask):
    response = strictly(ask(instructions="Be brief.", metadata={"a": "b"}))
    assert response.object == "response"
    assert response.id.startswith("resp_")
    (item,) = response.output
    assert item.type == "message"
    assert item.role == "assistant"
    assert response.output_text == item.content[0].text != ""
    assert response.instructions == "Be brief."
    assert response.metadata == {"a": "b"}
    usage = response.usage
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens
    assert usage.output_tokens_details.reasoning_tokens == 0


def test_a_response_is_that_of_a_chat(client, ask):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello!"},
    ]
    chat = client.chat.completions.create(
        model="tiny", temperature=0, max_tokens=20, messages=messages
    )
    response = ask(instructions="Be brief.", max_output_tokens=20)
    assert response.output_text == chat.choices[0].message.content
    assert response.usage.input_tokens == chat.usage.prompt_tokens
    assert response.usage.output_tokens == chat.usage.completion_tokens


def test_cut_off(ask):
    response = strictly(ask(max_output_tokens=3))
    assert response.status == "incomplete"
    assert response.incomplete_details.reason == "max_output_tokens"
    assert response.output[0].status == "incomplete"
    last = streamed(ask, max_output_tokens=3)[-1]
    assert last.type == "response.incomplete"
    assert last.response.usage.output_tokens == 3


def test_structured(ask):
    response = strictly(ask(text=FORMAT))
    assert response.status == "completed"
    jsonschema_rs.validate(COLOURS, json.loads(response.output_text))
    assert response.text.format.name == "answer"
    assert isinstance(json.loads(ask(text={"format": {"type": "json_object"}}).output_text), dict)


def test_parse(client):
    response = client.responses.parse(input="A colour?", text_format=Paint, **SHARED)
    assert isinstance(response.output_parsed, Paint)
    with client.responses.stream(input="A colour?", text_format=Paint, **SHARED) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_response()
    assert {"response.output_text.delta", "response.completed"} <= kinds
    assert final.output_parsed == response.output_parsed


def test_events_of_a_text(ask):
    whole = ask(text=FORMAT)
    events = streamed(ask, text=FORMAT)
    kinds = [event.type.removeprefix("response.") for event in events]
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert kinds == [
        *("created", "in_progress", "output_item.added", "content_part.added"),
        *["output_text.delta"] * len(deltas),
        *("output_text.done", "content_part.done", "output_item.done", "completed"),
    ]
    assert len(deltas) > 1
    assert "".join(deltas) == events[-4].text == whole.output_text
    assert events[0].response.status == "in_progress"
    assert events[0].response.output == []
    (item,) = events[-1].response.output
    assert item == events[-2].item
    assert {event.item_id for event in events if hasattr(event, "item_id")} == {item.id}
    assert without_names(whole.output) == without_names(events[-1].response.output)


@pytest.mark.parametrize("structured", [False, True])
def test_log_probabilities(client, ask, structured):
    """Those of a chat: in the part with the text, and in a stream with each piece of it."""
    options = LISTED | ({"text": FORMAT} if structured else {})
    chosen = {name: value for name, value in FORMAT["format"].items() if name != "type"}
    form = {"response_format": {"type": "json_schema", "json_schema": chosen}} if structured else {}
    chat = client.chat.completions.create(
        model="tiny",
        temperature=0,
        max_tokens=90,
        messages=[{"role": "user", "content": "Hello!"}],
        logprobs=True,
        top_logprobs=2,
        **form,
    )
    expected = [entry.model_dump() for entry in chat.choices[0].logprobs.content]
    listed = [other for entry in expected for other in entry["top_logprobs"]]
    for entry in (*expected, *listed):
        # The types of responses know no null here.
        entry["bytes"] = entry["bytes"] or []
    assert all(len(entry["top_logprobs"]) == 2 for entry in expected)
    whole = strictly(ask(**options))
    assert whole.top_logprobs == 2
    (part,) = whole.output[0].content
    assert [entry.model_dump() for entry in part.logprobs] == about(expected)
    events = streamed(ask, **options)
    deltas = [e.logprobs for e in events if e.type == "response.output_text.delta"]
    # Forced tokens come in one piece, or in several.
    assert structured or len(list(filter(None, deltas))) > 1
    assert [entry.model_dump() for listed in deltas for entry in listed] == about(expected)
    (done,) = [e for e in events if e.type == "response.output_text.done"]
    assert [entry.model_dump() for entry in done.logprobs] == about(expected)
    (last,) = events[-1].response.output[0].content
    assert last.model_dump() == about(part.model_dump())
    (unlisted,) = ask(include=["message.output_text.logprobs"]).output[0].content
    assert {len(entry.top_logprobs) for entry in unlisted.logprobs} == {0}


def test_each_text_has_its_own_tokens(running):
    """Also if two texts and the call between them come at once."""
    from ffwd.adapters.server.deltas import Delta
    from ffwd.adapters.server.logprobs import Scored
    from ffwd.adapters.server.responses import ResponseEnvelope, read_responses
    from ffwd.adapters.server.streams import Ending

    size = running.loaded.vocabulary.vocab_size
    deltas = [
        Delta("content", "aé"),
        Delta("call", "f", 0, "call_1"),
        Delta("arguments", "{}"),
        Delta("content", "c"),
    ]
    # The last id has no text.
    tokens = [Scored(5, -1.0), Scored(6, -2.0, offset=1), Scored(7, -3.0, ((size, -9.0),), 2)]
    ending = Ending(reason="stop", tokens=9, forced=0, reasoning=0)

    def opened():
        request = read_responses({"input": "a", **LISTED})
        return ResponseEnvelope(running.loaded, request, 3)

    collected = opened().choice()
    collected.add(deltas, tokens)
    collected.ending = ending
    response = Response.model_validate(opened().whole([collected]))
    first, call, second = response.output
    assert [entry.logprob for entry in first.content[0].logprobs] == [-1.0, -2.0]
    assert call.arguments == "{}"
    logprobs = second.content[0].logprobs
    assert logprobs is not None
    (entry,) = logprobs
    assert entry.logprob == -3.0
    assert entry.top_logprobs[0].bytes == []
    assert entry.top_logprobs[0].token == ""
    last = list(opened().chunks(0, deltas, ending, tokens))[-1]
    again = Response.model_validate(last["response"])
    assert without_names(again.output) == without_names(response.output)


@pytest.mark.parametrize("seed", range(3))
def test_calls(ask, seed):
    options = {
        "tools": TOOLS,
        "tool_choice": "required",
        "temperature": 1,
        "max_output_tokens": 150,
    }
    whole = strictly(ask(extra_body={"seed": seed}, **options))
    assert whole.output
    for item in whole.output:
        assert item.type == "function_call"
        assert item.call_id != item.id
        jsonschema_rs.validate(SCHEMAS[item.name], json.loads(item.arguments))
    events = streamed(ask, extra_body={"seed": seed}, **options)
    assert without_names(events[-1].response.output) == without_names(whole.output)
    arguments = {}
    for event in events:
        if event.type == "response.output_item.added":
            assert event.item.arguments == ""
            arguments[event.output_index] = ""
        elif event.type == "response.function_call_arguments.delta":
            arguments[event.output_index] += event.delta
        elif event.type == "response.function_call_arguments.done":
            assert event.arguments == arguments[event.output_index]
    assert list(arguments.values()) == [item.arguments for item in whole.output]


def test_choices(ask):
    for choice in (
        {"type": "function", "name": "forecast"},
        {
            "type": "allowed_tools",
            "mode": "required",
            "tools": [{"type": "function", "name": "forecast"}],
        },
    ):
        response = strictly(ask(tools=TOOLS, tool_choice=choice, parallel_tool_calls=False))
        (item,) = response.output
        assert item.name == "forecast"
    response = ask(tools=TOOLS, tool_choice="none")
    assert [item.type for item in response.output] == ["message"]


def test_a_conversation_goes_on(ask):
    """Items of an answer are input, as the client gives them back."""
    first = ask(tools=TOOLS, tool_choice="required", max_output_tokens=150)
    results = [
        {"type": "function_call_output", "call_id": call.call_id, "output": "done"}
        for call in first.output
    ]
    given = [{"role": "user", "content": "Hello!"}, *first.output, *results]
    second = ask(input=given, tools=TOOLS, tool_choice="none", max_output_tokens=5)
    assert second.output_text
    assert second.usage.input_tokens > first.usage.input_tokens


def test_items_become_messages(client):
    """What stands between a user's messages is one message of the assistant."""
    from ffwd.adapters.server.responses import read_responses

    request = read_responses(
        {
            "instructions": "Be brief.",
            "input": [
                {"role": "developer", "content": [{"type": "input_text", "text": "D"}]},
                {"type": "message", "role": "user", "content": "U"},
                {
                    "type": "reasoning",
                    "id": "rs_1",
                    "summary": [],
                    "content": [{"type": "reasoning_text", "text": "R"}],
                },
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "A", "annotations": []}],
                },
                {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
                {"type": "custom_tool_call", "call_id": "2", "name": "g", "input": 'a"b'},
                {"type": "function_call_output", "call_id": "1", "output": "X"},
                {
                    "type": "custom_tool_call_output",
                    "call_id": "2",
                    "output": [{"type": "input_text", "text": "Y"}],
                },
                {"role": "assistant", "content": "B"},
                {"role": "assistant", "content": "C"},
            ],
        }
    )
    assert request.messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "D"},
        {"role": "user", "content": "U"},
        {
            "role": "assistant",
            "reasoning_content": "R",
            "content": "A",
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {
                    "id": "2",
                    "type": "function",
                    "function": {"name": "g", "arguments": '{"input": "a\\"b"}'},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": "X"},
        {"role": "tool", "tool_call_id": "2", "content": "Y"},
        {"role": "assistant", "content": "B"},
        {"role": "assistant", "content": "C"},
    ]
    assert request.places[3] == "input[2]"


def test_reasoning(thinking):
    with openai.OpenAI(base_url=f"{thinking.url}/v1", api_key="-", max_retries=0) as client:

        def ask(**options):
            more = {"chat_template_kwargs": {"enable_thinking": True}}
            given = SHARED | {"input": "Hello!", "extra_body": more, "text": FORMAT}
            return client.responses.create(**(given | {"max_output_tokens": 300} | options))

        for seed in range(20):
            more = {"chat_template_kwargs": {"enable_thinking": True}, "seed": seed}
            response = strictly(ask(temperature=1, extra_body=more))
            if [item.type for item in response.output] == ["reasoning", "message"]:
                break
        reasoning, message = response.output
        assert reasoning.content[0].text
        assert reasoning.summary == []
        jsonschema_rs.validate(COLOURS, json.loads(message.content[0].text))
        assert response.usage.output_tokens_details.reasoning_tokens > 0
        events = streamed(ask, temperature=1, extra_body=more)
        assert without_names(events[-1].response.output) == without_names(response.output)
        deltas = [e.delta for e in events if e.type == "response.reasoning_text.delta"]
        assert "".join(deltas) == reasoning.content[0].text
        again = ask(input=[{"role": "user", "content": "Hello!"}, *response.output, *FOLLOWING])
        assert again.usage.input_tokens > response.usage.input_tokens


FOLLOWING = [{"role": "user", "content": "And?"}]


@pytest.mark.parametrize(
    ("options", "param", "said"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id", "stores no responses"),
        ({"background": True}, "background", "finished when its request is"),
        ({"conversation": "conv_1"}, "conversation", "stores no conversations"),
        ({"truncation": "auto"}, "truncation", "drops no items"),
        ({"include": ["file_search_call.results"]}, "include[0]", "reports no"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type", "runs no tools"),
        ({"tools": [{"type": []}]}, "tools[0].type", "runs no tools"),
        ({"tools": {}}, "tools", "must be a list"),
        ({"tools": [{**TOOLS[0], "defer_loading": True}]}, "tools[0].defer_loading", "at once"),
        ({"extra_body": {"messages": []}}, "messages", "no field"),
        ({"extra_body": {"n": 2}}, "n", "no field"),
        ({"extra_body": {"shown": {}}}, "shown", "no field"),
        ({"extra_body": {"nonsense": 1}}, "nonsense", "no field"),
        ({"input": []}, "input", "missing"),
        ({"input": 3}, "input", "string or a list"),
        ({"input": ["a"]}, "input[0]", "must be an object"),
        ({"input": [{"type": "item_reference", "id": "a"}]}, "input[0].type", "item_reference"),
        ({"input": [{"type": {}}]}, "input[0].type", "no items"),
        ({"input": [{"role": "tool", "content": "a"}]}, "input[0].role", "one of user"),
        ({"input": [{"role": "user"}]}, "input[0].content", "must be a string"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
            "input[0].content[0]",
            "input_image",
        ),
        (
            {"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]},
            "input[0].call_id",
            "must be a string",
        ),
        (
            {
                "instructions": "a",
                "input": [
                    {"role": "user", "content": "b"},
                    {"type": "function_call", "name": "f", "call_id": "1", "arguments": "{"},
                ],
            },
            "input[1].tool_calls[0].function.arguments",
            "is not JSON",
        ),
        ({"input": [{"type": "function_call_output"}]}, "input[0].call_id", "must be a string"),
        ({"input": [{"type": "reasoning", "summary": 3}]}, "input[0].summary", "must be a list"),
        (
            {"input": [{"type": "reasoning", "summary": [], "encrypted_content": "a"}]},
            "input[0].encrypted_content",
            "encrypted none",
        ),
        ({"instructions": ["a"]}, "instructions", "must be a string"),
        ({"max_output_tokens": 0}, "max_output_tokens", "at least 1"),
        ({"max_output_tokens": 1 << 20}, "max_output_tokens", "context has 2048"),
        ({"max_output_tokens": 2, "text": FORMAT}, "max_output_tokens", "`max_output_tokens`"),
        ({"text": {"form": 1}}, "text.form", "no field"),
        ({"text": {"format": {"type": "nothing"}}}, "text.format", "nothing"),
        ({"reasoning": {"effort": 3}}, "reasoning.effort", "must be a string"),
        ({"metadata": {"a": 1}}, "metadata", "object of strings"),
        ({"top_logprobs": 2}, "top_logprobs", "message.output_text.logprobs"),
        (
            {"top_logprobs": 21, "include": ["message.output_text.logprobs"]},
            "top_logprobs",
            "less than or equal to 20",
        ),
        ({"include": "message.output_text.logprobs"}, "include", "must be a list"),
        ({"extra_body": {"logprobs": True}}, "logprobs", "no field"),
        ({"extra_body": {"min_tokens": 91}}, "min_tokens", "`max_output_tokens`"),
        (
            {"tools": [{"type": "function", "name": "f", "parameters": {"type": "objec"}}]},
            "tools[0].parameters",
            "objec",
        ),
        ({"tool_choice": "required"}, "tool_choice", "no `tools`"),
        ({"tools": TOOLS, "tool_choice": {"type": "file_search"}}, "tool_choice", "file_search"),
    ],
)
def test_what_is_wrong_is_named(ask, options, param, said):
    with pytest.raises(openai.BadRequestError, match=said) as info:
        ask(**options)
    assert info.value.param == param


def test_what_changes_nothing_is_ignored(ask):
    response = ask(
        store=True,
        truncation="disabled",
        include=["reasoning.encrypted_content"],
        reasoning={"effort": "low", "summary": "auto"},
        service_tier="auto",
        user="a",
        stream_options={"include_obfuscation": False},
        background=False,
        top_logprobs=0,
    )
    assert response.store is False
    assert response.reasoning.effort == "low"


def test_names_of_events(running):
    """Readers of server-sent events that go by names find them."""
    httpx = pytest.importorskip("httpx")
    body = {"input": "Hello!", "max_output_tokens": 2, "temperature": 0, "stream": True}
    lines = httpx.post(f"{running.url}/v1/responses", json=body, timeout=600).text.splitlines()
    names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    datas = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert names == [data["type"] for data in datas]
    assert names[-1] == "response.incomplete"


def test_a_stream_that_fails(running, ask, monkeypatch):
    """An error behind the first event is the last event."""
    from ffwd.adapters.server.errors import ApiError
    from ffwd.adapters.server.texts import Text

    publish = Text.publish

    def failing(text):
        publish(text)
        if text.num_tokens > 3:
            text.fail(ApiError(500, "the model broke"))

    monkeypatch.setattr(Text, "publish", failing)
    events = streamed(ask)
    assert events[0].type == "response.created"
    assert events[-1].type == "response.failed"
    assert events[-1].response.error.message == "the model broke"
