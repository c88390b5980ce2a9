"""Clients of OpenAI's API as their users call them: structured output, tools, streams, errors."""

import asyncio
import os
from contextlib import contextmanager
from typing import Literal

import pytest

pydantic_ai = pytest.importorskip("pydantic_ai", reason="needs the environment clients")
# They would ask for prices and send traces over the network.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"

import agents
import instructor
import litellm
import openai
from langchain_core.tools import tool as langchain_tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits
from serve_models import Running, write_model

from ffwd.adapters.server.errors import overloaded

pytestmark = pytest.mark.engine

KEY = "secret"
ASKED = [{"role": "user", "content": "Which colour?"}]


class Paint(BaseModel):
    """A colour."""

    colour: Literal["red", "green", "blue"]
    coats: int = Field(ge=1, le=9)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = write_model(tmp_path_factory.mktemp("tiny"), length=16_384)
    with Running(folder, api_key=KEY, default_max_tokens=200) as running:
        yield running


@pytest.fixture(scope="module")
def url(running):
    return f"{running.url}/v1"


@pytest.fixture
def busy_once(running, monkeypatch):
    """Refuse the first request as a server with a full queue does; the refusals are counted."""
    opened, refused = running.server.opened, []

    @contextmanager
    def refusing():
        if not refused:
            refused.append(1)
            raise overloaded("the queue is full")
        with opened():
            yield

    monkeypatch.setattr(running.server, "opened", refusing)
    return refused


class TestOpenai:
    """What its helpers do beyond requests; tests/integrations/test_serve_*.py have the rest."""

    @pytest.fixture
    def client(self, url):
        with openai.OpenAI(base_url=url, api_key=KEY) as client:
            yield client

    def test_structured(self, client):
        answer = client.chat.completions.parse(
            model="tiny", messages=ASKED, response_format=Paint, temperature=0
        )
        assert isinstance(answer.choices[0].message.parsed, Paint)

    def test_tools(self, client):
        tool = openai.pydantic_function_tool(Paint)
        answer = client.chat.completions.parse(
            model="tiny", messages=ASKED, tools=[tool], tool_choice="required", temperature=0
        )
        for call in answer.choices[0].message.tool_calls:
            assert isinstance(call.function.parsed_arguments, Paint)
        tool = openai.pydantic_function_tool(Paint)["function"] | {"type": "function"}
        response = client.responses.parse(
            model="tiny", input=ASKED, tools=[tool], tool_choice="required", temperature=0
        )
        assert {type(item.parsed_arguments) for item in response.output} == {dict}

    def test_stream(self, client):
        with client.chat.completions.stream(
            model="tiny", messages=ASKED, response_format=Paint, temperature=0
        ) as stream:
            kinds = {event.type for event in stream}
            answer = stream.get_final_completion()
        assert {"content.delta", "content.done"} <= kinds
        assert isinstance(answer.choices[0].message.parsed, Paint)

    def test_retries(self, client, busy_once):
        assert client.responses.create(model="tiny", input="Hello!").output_text
        assert busy_once


class TestPydanticAi:
    """Both of its models: chats and responses."""

    @pytest.fixture(params=[OpenAIChatModel, OpenAIResponsesModel])
    def model(self, request, url):
        provider = OpenAIProvider(base_url=url, api_key=KEY)
        return request.param("tiny", provider=provider, settings={"temperature": 0.0})

    @pytest.mark.parametrize("kind", [pydantic_ai.NativeOutput, pydantic_ai.ToolOutput])
    def test_structured(self, model, kind):
        result = pydantic_ai.Agent(model, output_type=kind(Paint)).run_sync("Which colour?")
        assert isinstance(result.output, Paint)
        assert result.usage.output_tokens > 0

    def test_stream(self, model):
        async def run():
            agent = pydantic_ai.Agent(model, output_type=pydantic_ai.NativeOutput(Paint))
            async with agent.run_stream("Which colour?") as result:
                parts = [part async for part in result.stream_output(debounce_by=None)]
                return parts, await result.get_output()

        parts, output = asyncio.run(run())
        assert isinstance(output, Paint)
        assert parts[-1] == output

    def test_tools(self, model):
        called = []
        agent = pydantic_ai.Agent(model, output_type=pydantic_ai.ToolOutput(Paint))

        @agent.tool_plain
        def look(place: Literal["shed", "fence"]) -> str:
            """Look at a place."""
            called.append(place)
            return "needs paint"

        for seed in range(8):
            result = agent.run_sync(
                "Look.",
                model_settings={"temperature": 1.0, "extra_body": {"seed": seed}},
                usage_limits=UsageLimits(request_limit=20),
            )
            assert isinstance(result.output, Paint)
        assert called
        assert set(called) <= {"shed", "fence"}

    def test_retries(self, model, busy_once):
        assert pydantic_ai.Agent(model).run_sync("Hello!").output
        assert busy_once

    def test_errors(self, url):
        provider = OpenAIProvider(base_url=url, api_key="wrong")
        agent = pydantic_ai.Agent(OpenAIChatModel("tiny", provider=provider))
        with pytest.raises(pydantic_ai.ModelHTTPError) as info:
            agent.run_sync("Hello!")
        assert info.value.status_code == 401


class TestAgents:
    """OpenAI's Agents SDK, with both of its models."""

    @pytest.fixture(params=[agents.OpenAIResponsesModel, agents.OpenAIChatCompletionsModel])
    def model(self, request, url):
        client = openai.AsyncOpenAI(base_url=url, api_key=KEY)
        return request.param("tiny", openai_client=client)

    def test_structured(self, model):
        agent = agents.Agent(name="a", instructions="Be brief.", model=model, output_type=Paint)
        result = agents.Runner.run_sync(agent, "Which colour?")
        assert isinstance(result.final_output, Paint)
        assert result.context_wrapper.usage.output_tokens > 0

    def test_tools(self, model):
        called = []

        @agents.function_tool
        def look(place: Literal["shed", "fence"]) -> str:
            """Look at a place."""
            called.append(place)
            return "needs paint"

        agent = agents.Agent(
            name="a",
            model=model,
            tools=[look],
            output_type=Paint,
            model_settings=agents.ModelSettings(tool_choice="required", temperature=0.0),
        )
        result = agents.Runner.run_sync(agent, "Look.", max_turns=20)
        assert isinstance(result.final_output, Paint)
        assert called
        kinds = [type(item).__name__ for item in result.new_items]
        assert kinds[0] == "ToolCallItem"
        assert "ToolCallOutputItem" in kinds

    def test_stream(self, model):
        async def run():
            agent = agents.Agent(name="a", model=model, output_type=Paint)
            result = agents.Runner.run_streamed(agent, "Which colour?")
            deltas = [
                event.data.delta
                async for event in result.stream_events()
                if event.type == "raw_response_event"
                and event.data.type == "response.output_text.delta"
            ]
            return deltas, result.final_output

        deltas, output = asyncio.run(run())
        assert Paint.model_validate_json("".join(deltas)) == output

    def test_retries(self, model, busy_once):
        agent = agents.Agent(name="a", model=model, output_type=Paint)
        assert agents.Runner.run_sync(agent, "Hello!").final_output
        assert busy_once

    def test_errors(self, url):
        client = openai.AsyncOpenAI(base_url=url, api_key=KEY)
        model = agents.OpenAIResponsesModel("other", openai_client=client)
        with pytest.raises(openai.NotFoundError):
            agents.Runner.run_sync(agents.Agent(name="a", model=model), "Hello!")


class TestInstructor:
    @pytest.fixture
    def client(self, url):
        with openai.OpenAI(base_url=url, api_key=KEY) as client:
            yield client

    @pytest.mark.parametrize("mode", ["TOOLS", "TOOLS_STRICT", "JSON_SCHEMA", "RESPONSES_TOOLS"])
    def test_structured(self, client, mode):
        asking = instructor.from_openai(client, mode=instructor.Mode[mode])
        answer = asking.create(model="tiny", response_model=Paint, messages=ASKED, max_retries=0)
        assert isinstance(answer, Paint)

    def test_retries(self, client):
        """A validator refuses the first answer; its error is part of the next prompt."""
        seen = []

        class Picky(Paint):
            def model_post_init(self, context):
                seen.append(self)
                if len(seen) == 1:
                    raise ValueError("think again")

        asking = instructor.from_openai(client, mode=instructor.Mode.TOOLS)
        answer = asking.create(model="tiny", response_model=Picky, messages=ASKED, max_retries=2)
        assert len(seen) > 1
        assert answer == seen[-1]

    def test_stream(self, client):
        asking = instructor.from_openai(client, mode=instructor.Mode.TOOLS)
        parts = list(asking.create_partial(model="tiny", response_model=Paint, messages=ASKED))
        assert len(parts) > 1
        Paint.model_validate(parts[-1].model_dump())


class TestLangchain:
    @pytest.fixture(params=[False, True], ids=["chats", "responses"])
    def model(self, request, url):
        return ChatOpenAI(
            model="tiny", base_url=url, api_key=KEY, temperature=0, use_responses_api=request.param
        )

    @pytest.mark.parametrize("method", ["json_schema", "function_calling"])
    @pytest.mark.parametrize("strict", [None, True])
    def test_structured(self, model, method, strict):
        asked = model.with_structured_output(Paint, method=method, strict=strict)
        assert isinstance(asked.invoke("Which colour?"), Paint)

    def test_tools(self, model):
        @langchain_tool
        def paint(colour: Literal["red", "green"], coats: Literal[1, 2]) -> str:
            """Paint the fence."""
            return f"{coats} of {colour}"

        bound = model.bind_tools([paint], tool_choice="any", parallel_tool_calls=False)
        answer = bound.invoke("Paint!")
        (call,) = answer.tool_calls
        result = paint.invoke(call)
        assert result.content.endswith(call["args"]["colour"])
        assert answer.usage_metadata["output_tokens"] > 0
        after = model.bind_tools([paint], tool_choice="none").invoke(
            [("user", "Paint!"), answer, result]
        )
        assert after.text

    def test_stream(self, model):
        chunks = list(model.bind(response_format=Paint).stream("Which colour?"))
        assert len(chunks) > 2
        Paint.model_validate_json("".join(chunk.text for chunk in chunks))

    def test_retries(self, model, busy_once):
        assert model.invoke("Hello!").text
        assert busy_once

    def test_errors(self, url):
        model = ChatOpenAI(model="other", base_url=url, api_key=KEY)
        with pytest.raises(openai.NotFoundError):
            model.invoke("Hello!")


class TestLitellm:
    @pytest.fixture
    def given(self, url):
        return {"model": "openai/tiny", "api_base": url, "api_key": KEY, "temperature": 0}

    def test_structured(self, given):
        answer = litellm.completion(response_format=Paint, messages=ASKED, **given)
        Paint.model_validate_json(answer.choices[0].message.content)
        assert answer.usage.completion_tokens > 0

    def test_stream(self, given):
        given["stream_options"] = {"include_usage": True}
        chunks = list(
            litellm.completion(response_format=Paint, stream=True, messages=ASKED, **given)
        )
        texts = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
        Paint.model_validate_json("".join(texts))

    def test_tools(self, given):
        function = {"name": "paint", "parameters": Paint.model_json_schema()}
        tools = [{"type": "function", "function": function}]
        answer = litellm.completion(tools=tools, tool_choice="required", messages=ASKED, **given)
        assert answer.choices[0].message.tool_calls
        for call in answer.choices[0].message.tool_calls:
            Paint.model_validate_json(call.function.arguments)

    def test_responses(self, given):
        answer = litellm.responses(input="Which colour?", text_format=Paint, **given)
        Paint.model_validate_json(answer.output[0].content[0].text)
        events = list(litellm.responses(input="Which?", stream=True, **given))
        assert events[0].type.value == "response.created"
        assert events[-1].type.value in ("response.completed", "response.incomplete")

    def test_retries(self, given, busy_once):
        answer = litellm.completion(messages=ASKED, num_retries=1, **given)
        assert answer.choices[0].message.content
        assert busy_once

    def test_errors(self, given):
        with pytest.raises(litellm.AuthenticationError):
            litellm.completion(messages=ASKED, **(given | {"api_key": "wrong"}))
        with pytest.raises(litellm.BadRequestError, match="no field"):
            litellm.completion(messages=ASKED, extra_body={"nonsense": 1}, **given)
