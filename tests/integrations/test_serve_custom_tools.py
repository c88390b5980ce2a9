"""Custom tools: calls whose input is text that follows a grammar, in chats and in responses."""

import re

import pytest

openai = pytest.importorskip("openai")
pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")

from serve_models import COLOURS, HELLO, Running, function, write_model

from ffwd.adapters.server.custom_tools import InputReader

QUERY = r'select "[a-z]{2,5}"\n(where \\[0-9]{1,3}\n)?'
SUM = (
    "start: N (OP N)~1..2\nOP: /[-+]/\nN: /[0-9]{1,3}/\n%import common.WS_INLINE\n%ignore WS_INLINE"
)
FORMATS = {
    "query": {"type": "grammar", "grammar": {"syntax": "regex", "definition": QUERY}},
    "sum": {"type": "grammar", "grammar": {"syntax": "lark", "definition": SUM}},
}
TOOLS = [
    function("paint", COLOURS),
    *(
        {"type": "custom", "custom": {"name": name, "format": form}}
        for name, form in FORMATS.items()
    ),
]
FOLLOWS = {
    "query": re.compile(QUERY),
    # Ignored text may stand where more could follow.
    "sum": re.compile(r"[0-9]{1,3}[ \t]*([-+][ \t]*[0-9]{1,3}[ \t]*){1,2}"),
}


@pytest.fixture(scope="module", params=["hermes", "coder"])
def ask(request, tmp_path_factory):
    folder = write_model(tmp_path_factory.mktemp(request.param), request.param)
    with (
        Running(folder) as running,
        openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0) as client,
    ):

        def ask(**options):
            given = {"model": "tiny", "messages": HELLO, "temperature": 1, "max_tokens": 200}
            return client.chat.completions.create(**(given | {"tools": TOOLS} | options))

        ask.client = client
        yield ask


def named(name):
    return {"type": "custom", "custom": {"name": name}}


@pytest.mark.parametrize("name", FOLLOWS)
def test_input_follows_its_grammar(ask, name):
    for seed in range(5):
        (choice,) = ask(tool_choice=named(name), seed=seed).choices
        (call,) = choice.message.tool_calls
        assert call.type == "custom"
        assert call.id.startswith("call_")
        assert call.custom.name == name
        assert FOLLOWS[name].fullmatch(call.custom.input), call.custom.input
        assert choice.finish_reason == "stop"


def test_text(ask):
    """Any text is an input, and comes as the model has written it."""
    tool = {"type": "custom", "custom": {"name": "note", "description": "Writes a note."}}
    options = {"tools": [tool], "tool_choice": named("note"), "seed": 3}
    (choice,) = ask(**options).choices
    (call,) = choice.message.tool_calls
    assert call.custom.input
    text = {"type": "custom", "custom": {"name": "note", "format": {"type": "text"}}}
    explicit = ask(**(options | {"tools": [text]}))
    assert explicit.choices[0].message.tool_calls[0].custom.name == "note"


@pytest.mark.parametrize("seed", range(3))
def test_streamed_calls_join_to_the_whole(ask, seed):
    """Functions and custom tools beside each other."""
    options = {"tool_choice": "required", "seed": seed, "max_tokens": 300}
    whole = ask(**options).choices[0]
    calls = []
    for chunk in ask(stream=True, **options):
        for part in chunk.choices[0].delta.tool_calls or []:
            said = part.model_dump(exclude_unset=True)
            if "id" in said:
                kind = said["type"]
                assert part.index == len(calls)
                calls.append([kind, said[kind]["name"], ""])
            kind = calls[-1][0]
            calls[-1][2] += said[kind]["arguments" if kind == "function" else "input"]
    assert calls == [
        ["custom", call.custom.name, call.custom.input]
        if call.type == "custom"
        else ["function", call.function.name, call.function.arguments]
        for call in whole.message.tool_calls
    ]


def test_a_conversation_goes_on(ask):
    (choice,) = ask(tool_choice=named("query")).choices
    (call,) = choice.message.tool_calls
    messages = [
        *HELLO,
        choice.message,
        {"role": "tool", "tool_call_id": call.id, "content": "no rows"},
    ]
    answer = ask(messages=messages, tool_choice="none", max_tokens=5)
    assert answer.choices[0].message.content


def test_responses(ask):
    flat = [
        {"type": "custom", "name": name, "format": {"type": "grammar", **form["grammar"]}}
        for name, form in FORMATS.items()
    ]
    given = {"model": "tiny", "input": "Hello!", "tools": flat, "temperature": 0}
    options = given | {"tool_choice": {"type": "custom", "name": "query"}}
    response = ask.client.responses.create(**options)
    (item,) = response.output
    assert item.type == "custom_tool_call"
    assert FOLLOWS["query"].fullmatch(item.input)
    events = list(ask.client.responses.create(stream=True, **options))
    deltas = [e.delta for e in events if e.type == "response.custom_tool_call_input.delta"]
    (done,) = [e for e in events if e.type == "response.custom_tool_call_input.done"]
    assert "".join(deltas) == done.input == item.input
    assert events[-1].response.output[0].input == item.input
    output = {"type": "custom_tool_call_output", "call_id": item.call_id, "output": "no rows"}
    again = given | {"input": [*response.output, output], "tool_choice": "none"}
    assert ask.client.responses.create(**again, max_output_tokens=5).output_text


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"type": "json"}, "`text` or `grammar`"),
        ({"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: b"}}, "no rule"),
        (
            {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: %json {}"}},
            "`%json` is not supported",
        ),
        (
            {"type": "grammar", "grammar": {"syntax": "regex", "definition": r"a\b"}},
            "word boundary",
        ),
    ],
)
def test_bad_formats_are_named(ask, form, said):
    tool = {"type": "custom", "custom": {"name": "f", "format": form}}
    with pytest.raises(openai.BadRequestError, match=said) as info:
        ask(tools=[function("paint", COLOURS), tool])
    assert info.value.param == "tools[1].custom.format"
    flat = {"type": "custom", "name": "f", "format": form}
    with pytest.raises(openai.BadRequestError, match=said) as info:
        ask.client.responses.create(model="tiny", input="a", tools=[flat])
    assert info.value.param == "tools[0].format"


@pytest.mark.parametrize("tool", [{"type": "custom"}, {"type": "custom", "custom": {"name": 3}}])
def test_malformed_tools_are_refused(ask, tool):
    with pytest.raises(openai.BadRequestError, match="no name"):
        ask(tools=[tool])


def test_the_form_of_responses_in_a_chat(ask):
    tools = [{"type": "custom", "name": "f"}, {"type": "function", "name": "g"}]
    for tool in tools:
        choice = {"type": tool["type"], "name": tool["name"]}
        (called,) = ask(tools=tools, tool_choice=choice).choices[0].message.tool_calls
        assert called.type == tool["type"]


@pytest.mark.parametrize("missing", ["name", "input"])
def test_earlier_calls_need_a_name_and_an_input(ask, missing):
    custom = {"name": "f", "input": "a"}
    del custom[missing]
    call = {"id": "1", "type": "custom", "custom": custom}
    with pytest.raises(openai.BadRequestError) as info:
        ask(messages=[*HELLO, {"role": "assistant", "tool_calls": [call]}])
    assert info.value.param == f"messages[1].tool_calls[0].custom.{missing}"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_an_input_that_comes_in_pieces(size):
    text = r"a\"\\\u0001\n\u001fé\\n"
    reader = InputReader()
    pieces = [reader.read(text[at : at + size]) for at in range(0, len(text), size)]
    assert "".join(pieces) == 'a"\\\x01\n\x1fé\\n'
