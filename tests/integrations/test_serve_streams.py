"""Streams: deltas that join to the whole, reasoning, usage, several choices."""

import asyncio
import json
import time

import jsonschema_rs
import pytest

openai = pytest.importorskip("openai")
httpx = pytest.importorskip("httpx")
pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")

from serve_models import COLOURS, HELLO, Running, schema_format, write_model

from ffwd.adapters.server.answers import Choice
from ffwd.adapters.server.protocol import read_chat
from ffwd.adapters.server.streams import Stream


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with Running(write_model(tmp_path_factory.mktemp("thinking"), "thinking")) as running:
        yield running


@pytest.fixture(scope="module")
def ask(running):
    with openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0) as client:

        def ask(**options):
            given = {"model": "tiny", "messages": HELLO, "temperature": 0, "max_tokens": 60}
            return client.chat.completions.create(**(given | options))

        yield ask


def joined(chunks):
    """What a stream says of its choices: content, reasoning and reason of each; and the usage."""
    choices, usage, ids = {}, None, set()
    for chunk in chunks:
        assert chunk.object == "chat.completion.chunk"
        ids.add(chunk.id)
        usage = chunk.usage or usage
        for choice in chunk.choices:
            # Nothing comes after the reason.
            content, reasoning, reason = choices.setdefault(choice.index, ["", "", None])
            assert reason is None
            choices[choice.index] = [
                content + (choice.delta.content or ""),
                reasoning + (getattr(choice.delta, "reasoning_content", None) or ""),
                choice.finish_reason,
            ]
    assert len(ids) == 1
    return choices, usage


@pytest.mark.parametrize("extra", [{}, {"response_format": schema_format(COLOURS)}])
@pytest.mark.parametrize("seed", [3, 4])
def test_deltas_join_to_the_whole(ask, extra, seed):
    options = {"temperature": 1, "seed": seed, **extra}
    whole = ask(**options)
    chunks = list(ask(stream=True, stream_options={"include_usage": True}, **options))
    choices, usage = joined(chunks)
    (choice,) = whole.choices
    assert choices[0] == [
        choice.message.content,
        getattr(choice.message, "reasoning_content", None) or "",
        choice.finish_reason,
    ]
    assert usage == whole.usage
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices == []
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert len(chunks) > 4


def test_several_choices(ask):
    options = {"temperature": 1, "seed": 1, "n": 3, "max_tokens": 8}
    whole = ask(**options)
    choices, usage = joined(ask(stream=True, **options))
    assert usage is None
    assert {i: c[0] for i, c in choices.items()} == {
        c.index: c.message.content for c in whole.choices
    }


def test_stop_strings_in_a_stream(ask):
    whole = ask(max_tokens=20).choices[0].message.content
    stop = whole[4:7]
    choices, _ = joined(ask(max_tokens=20, stream=True, stop=stop))
    assert choices[0] == [whole[: whole.index(stop)], "", "stop"]


@pytest.mark.parametrize("stream", [False, True])
def test_reasoning_that_the_prompt_opens(ask, stream):
    """It comes in a field of its own, and the budget leaves room for the answer."""
    options = {
        "response_format": schema_format(COLOURS),
        "max_tokens": 50,
        "extra_body": {"chat_template_kwargs": {"enable_thinking": True}},
    }
    if stream:
        choices, usage = joined(ask(stream=True, stream_options={"include_usage": True}, **options))
        content, reasoning, reason = choices[0]
    else:
        answer = ask(**options)
        message = answer.choices[0].message
        content, reasoning, reason = (
            message.content,
            message.reasoning_content,
            answer.choices[0].finish_reason,
        )
        usage = answer.usage
    jsonschema_rs.validate(COLOURS, json.loads(content))
    assert reasoning
    assert "</think>" not in reasoning
    assert reason == "stop"
    assert 0 < usage.completion_tokens_details.reasoning_tokens < usage.completion_tokens <= 50


@pytest.mark.parametrize("thinks", [True, False])
def test_reasoning_that_the_model_opens(running, thinks):
    """A template that knows `</think>` tells that the model may begin with its reasoning."""
    server, tokenizer = running.server, running.loaded.tokenizer
    body = {"messages": HELLO, "response_format": schema_format(COLOURS), "max_tokens": 90}
    rendered = server.preparer.chat(read_chat(body))
    loop = asyncio.new_event_loop()
    try:
        (text,) = server.preparer.texts(rendered, Stream(loop), deadline=time.monotonic() + 600)
        opened = [tokenizer.token_to_id("<think>")]
        closed = [tokenizer.token_to_id("</think>")]
        thought = [*opened, *tokenizer.encode("\nHm."), *closed] if thinks else []
        answer = '{"colour":"red","shade":true}'
        assert text.matcher.accept_tokens([*thought, *tokenizer.encode(answer)])
        choice = Choice()
        choice.add(text._reader.read(finish=True))
        assert choice.message()["content"] == answer
        assert choice.message().get("reasoning_content") == ("\nHm." if thinks else None)
    finally:
        loop.close()


def test_the_bytes_of_a_stream(running):
    """Events as the specification has them, UTF-8, and [DONE]."""
    with httpx.stream(
        "POST",
        f"{running.url}/v1/chat/completions",
        json={
            "messages": HELLO,
            "stream": True,
            "structured_outputs": {"choice": ["größer 世界 🙂"]},
        },
    ) as response:
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        events = [line for line in response.iter_lines() if line]
    assert all(line.startswith("data: ") for line in events)
    assert events[-1] == "data: [DONE]"
    parts = [json.loads(line[6:])["choices"][0] for line in events[:-1]]
    assert "".join(p["delta"].get("content", "") for p in parts) == "größer 世界 🙂"
    assert parts[-1]["finish_reason"] == "stop"


def test_errors_before_a_stream_have_a_status(ask):
    with pytest.raises(openai.BadRequestError) as info:
        ask(stream=True, response_format=schema_format({"type": "array"}))
    assert info.value.param == "response_format"


def test_stream_options_need_a_stream(ask):
    with pytest.raises(openai.BadRequestError) as info:
        ask(stream_options={"include_usage": True})
    assert info.value.param == "stream_options"
