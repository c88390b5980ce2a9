"""The server's answers, asked for with OpenAI's own client."""

import json
import re

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
    Running,
    schema_format,
    write_model,
)

import ffwd


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with Running(write_model(tmp_path_factory.mktemp("tiny"))) as running:
        yield running


@pytest.fixture(scope="module")
def client(running):
    with openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def ask(client):
    def ask(**options):
        given = {"model": "tiny", "messages": HELLO, "temperature": 0, "max_tokens": 60}
        return client.chat.completions.create(**(given | options))

    return ask


def test_text(ask, running):
    answer = ask(max_tokens=12)
    (choice,) = answer.choices
    assert choice.message.role == "assistant"
    assert choice.message.content
    assert choice.finish_reason == "length"
    assert answer.model == "tiny"
    usage = answer.usage
    assert usage.completion_tokens == 12
    assert usage.total_tokens == usage.prompt_tokens + 12
    template = running.loaded.template
    prompt = template.render(HELLO, tokenizer=running.loaded.tokenizer, add_generation_prompt=True)
    assert usage.prompt_tokens == len(prompt.ids)


def test_text_is_what_the_model_writes(ask, running):
    """Greedily, the same text as `generate` with fast-forward under the same grammar."""
    import torch

    from ffwd.adapters.transformers import fast_forward_generate

    loaded = running.loaded
    prompt = loaded.template.render(HELLO, tokenizer=loaded.tokenizer, add_generation_prompt=True)
    grammar = ffwd.compile(ffwd.openai.response_format(schema_format(COLOURS)), loaded.vocabulary)
    start = prompt.start(grammar)
    ids = torch.tensor([start.prompt_ids])
    output = loaded.slots._model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=200,
        custom_generate=fast_forward_generate,
        grammar=start,
        complete=True,
    )
    expected = start.answer(output[0, ids.shape[1] :].tolist()).text
    answer = ask(response_format=schema_format(COLOURS), max_tokens=200)
    assert answer.choices[0].message.content == expected
    assert answer.usage.completion_tokens == output.shape[1] - ids.shape[1]


@pytest.mark.parametrize("seed", range(4))
def test_json_schema(ask, seed):
    answer = ask(response_format=schema_format(COLOURS), temperature=1, seed=seed, max_tokens=40)
    (choice,) = answer.choices
    assert choice.finish_reason == "stop"
    jsonschema_rs.validate(COLOURS, json.loads(choice.message.content))
    details = answer.usage.completion_tokens_details
    # The keys, and the end.
    assert 3 <= details.forced_tokens < answer.usage.completion_tokens <= 40


def test_parse_into_a_pydantic_model(client):
    pydantic = pytest.importorskip("pydantic")

    class Paint(pydantic.BaseModel):
        colour: str
        layers: int

    answer = client.chat.completions.parse(
        model="tiny", messages=HELLO, temperature=0, max_tokens=50, response_format=Paint
    )
    assert isinstance(answer.choices[0].message.parsed, Paint)


def test_json_object(ask):
    answer = ask(response_format={"type": "json_object"}, max_tokens=30)
    assert isinstance(json.loads(answer.choices[0].message.content), dict)


def test_text_format_is_no_constraint(ask):
    assert ask(response_format={"type": "text"}).choices == ask().choices


@pytest.mark.parametrize(
    ("constraint", "pattern"),
    [
        ({"regex": "[0-9]{3}-[a-f]{2}"}, "[0-9]{3}-[a-f]{2}"),
        ({"choice": ["yes, gladly", "no, never"]}, "yes, gladly|no, never"),
        ({"grammar": 'root ::= "a" b\nb ::= "b" | "c" b'}, "ac*b"),
        ({"grammar": 'start: "x" /[0-9]+/ "y"'}, "x[0-9]+y"),
        ({"json": {"enum": [12, "v"]}, "disable_any_whitespace": True}, '12|"v"'),
        ({"json": '{"const": "w"}'}, r'\s*"w"\s*'),
        ({"json_object": True}, r"(?s)\s*\{.*\}\s*"),
        (
            {
                "structural_tag": {
                    "type": "structural_tag",
                    "format": {
                        "type": "tag",
                        "begin": "<b>",
                        "content": {"type": "regex", "pattern": "[xy]{2}"},
                        "end": "</b>",
                    },
                }
            },
            "<b>[xy]{2}</b>",
        ),
    ],
)
def test_structured_outputs(ask, constraint, pattern):
    """vLLM's field."""
    answer = ask(extra_body={"structured_outputs": constraint}, max_tokens=40)
    (choice,) = answer.choices
    assert re.fullmatch(pattern, choice.message.content), choice.message.content
    assert choice.finish_reason == "stop"


def test_the_older_guided_fields(ask):
    answer = ask(extra_body={"guided_regex": "[0-9]{4}"})
    assert re.fullmatch("[0-9]{4}", answer.choices[0].message.content)


@pytest.mark.parametrize("more", [0, 1, 5, 200])
def test_json_is_never_cut_off(ask, running, more):
    """Whatever fits is whole."""
    import ffwd

    grammar = ffwd.openai.response_format(schema_format(COLOURS))
    compiled = ffwd.compile(grammar, running.loaded.vocabulary)
    max_tokens = len(compiled.shortest_completion()) + more
    for seed in range(3):
        answer = ask(
            response_format=schema_format(COLOURS),
            max_tokens=max_tokens,
            temperature=1,
            seed=seed,
        )
        (choice,) = answer.choices
        jsonschema_rs.validate(COLOURS, json.loads(choice.message.content))
        assert choice.finish_reason == "stop"
        assert answer.usage.completion_tokens <= max_tokens


def test_what_cannot_fit_is_refused(ask):
    with pytest.raises(openai.BadRequestError, match=r"tokens: [0-9]+ suffice") as info:
        ask(response_format=schema_format(COLOURS), max_tokens=4)
    assert info.value.param == "max_tokens"
    assert info.value.code == "max_tokens_too_small"
    with pytest.raises(openai.BadRequestError) as info:
        ask(
            response_format=schema_format(COLOURS),
            max_tokens=openai.omit,
            max_completion_tokens=4,
        )
    assert info.value.param == "max_completion_tokens"


def test_being_cut_off_can_be_asked_for(ask):
    answer = ask(
        response_format=schema_format(COLOURS), max_tokens=3, extra_body={"complete": False}
    )
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 3


def test_n_and_seed(ask):
    options = {"temperature": 1, "seed": 7, "max_tokens": 10}
    several = ask(n=3, **options)
    texts = [choice.message.content for choice in several.choices]
    assert [choice.index for choice in several.choices] == [0, 1, 2]
    assert len(set(texts)) == 3
    assert several.usage.completion_tokens == 30
    again = ask(n=3, **options)
    assert [choice.message.content for choice in again.choices] == texts
    assert ask(**options).choices[0].message.content == texts[0]


def test_top_p_near_zero_is_greedy(ask):
    greedy = ask(max_tokens=10).choices[0].message.content
    for cut in ({"top_p": 1e-6}, {"extra_body": {"top_k": 1}}, {"extra_body": {"min_p": 1.0}}):
        assert ask(temperature=1, seed=1, max_tokens=10, **cut).choices[0].message.content == greedy


def test_stop(ask):
    whole = ask(max_tokens=20).choices[0].message.content
    stop = whole[5:8]
    answer = ask(max_tokens=20, stop=[stop, "never in it"])
    assert answer.choices[0].message.content == whole[: whole.index(stop)]
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.completion_tokens <= 20


def test_a_message_writes_no_control_tokens(ask, running):
    """The user's `<|im_end|>` is text: it takes more than one token."""
    short = ask(messages=[{"role": "user", "content": "a"}], max_tokens=1).usage.prompt_tokens
    long = ask(messages=[{"role": "user", "content": "a<|im_end|>"}], max_tokens=1)
    assert long.usage.prompt_tokens > short + 1


def test_parts_of_a_message(ask):
    parts = [
        {"type": "text", "text": "Hello! <|im_end|>"},
        {"type": "text", "text": " What colour?"},
    ]
    assert ask(messages=[{"role": "user", "content": parts}]).choices == ask().choices


@pytest.mark.parametrize("begun", ['{"colour":"gr', '{"colour":', '{"colour": "green', "{"])
def test_an_answer_that_was_begun(ask, begun):
    answer = ask(
        messages=[*HELLO, {"role": "assistant", "content": begun}],
        response_format=schema_format(COLOURS),
        extra_body={"continue_final_message": True, "add_generation_prompt": False},
    )
    value = json.loads(begun + answer.choices[0].message.content)
    jsonschema_rs.validate(COLOURS, value)
    assert "gr" not in begun or value["colour"] == "green"


def test_fields_that_change_nothing(ask):
    plain = ask()
    answer = ask(
        user="somebody",
        metadata={"a": "b"},
        store=False,
        logprobs=False,
        presence_penalty=0,
        frequency_penalty=0.0,
        logit_bias={},
    )
    assert answer.choices == plain.choices


def test_completions(client):
    answer = client.completions.create(model="tiny", prompt="Once", max_tokens=8, temperature=0)
    assert answer.object == "text_completion"
    assert answer.choices[0].text
    assert answer.choices[0].finish_reason == "length"
    pieces = client.completions.create(
        model="tiny", prompt="Once", max_tokens=8, temperature=0, stream=True
    )
    assert "".join(c.text for p in pieces for c in p.choices) == answer.choices[0].text
    structured = client.completions.create(
        model="tiny",
        prompt="Once",
        max_tokens=60,
        extra_body={"structured_outputs": {"json": PLACES}},
    )
    jsonschema_rs.validate(PLACES, json.loads(structured.choices[0].text))


@pytest.mark.parametrize("prompts", [["Once", "Twice, and", "Once"], [[5, 6, 7], [8], [5, 6, 7]]])
@pytest.mark.parametrize("n", [1, 2])
def test_several_prompts(client, prompts, n):
    """Each as if it were alone; the choices of one prompt are next to each other."""
    options = {"model": "tiny", "max_tokens": 8, "temperature": 1, "seed": 4, "n": n}
    usage = {"stream_options": {"include_usage": True}}
    answer = client.completions.create(prompt=prompts, **options)
    alone = [client.completions.create(prompt=prompt, **options) for prompt in prompts]
    texts = [choice.text for one in alone for choice in one.choices]
    assert [choice.text for choice in answer.choices] == texts
    assert [choice.index for choice in answer.choices] == list(range(3 * n))
    assert texts[:n] == texts[2 * n :] != texts[n : 2 * n]
    assert answer.usage.prompt_tokens == sum(one.usage.prompt_tokens for one in alone)
    assert answer.usage.completion_tokens == 24 * n
    came = [""] * (3 * n)
    for chunk in client.completions.create(prompt=prompts, stream=True, **options, **usage):
        for choice in chunk.choices:
            came[choice.index] += choice.text
    assert came == texts
    assert chunk.usage == answer.usage
    (one,) = client.completions.create(prompt=prompts[:1], **(options | {"n": 1})).choices
    assert one.text == texts[0]


def test_several_prompts_with_a_grammar(client):
    """They share it, and each answer has its own budget."""
    answer = client.completions.create(
        model="tiny",
        prompt=["Once", "Twice " * 300],
        temperature=1,
        extra_body={"structured_outputs": {"json": PLACES}},
    )
    assert len(answer.choices) == 2
    for choice in answer.choices:
        jsonschema_rs.validate(PLACES, json.loads(choice.text))


def test_models(client):
    (model,) = client.models.list().data
    assert model.id == "tiny"
    assert client.models.retrieve("tiny").id == "tiny"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other")


def test_health_and_metrics(client, ask, running):
    import httpx

    assert httpx.get(f"{running.url}/health", timeout=600).json() == {"status": "ok"}
    before = running.metric("forced_tokens_total"), running.metric("completion_tokens_total")
    answer = ask(response_format=schema_format(COLOURS))
    running.settle()
    after = running.metric("forced_tokens_total"), running.metric("completion_tokens_total")
    usage = answer.usage
    assert after[0] - before[0] == usage.completion_tokens_details.forced_tokens
    assert after[1] - before[1] == usage.completion_tokens
    text = httpx.get(f"{running.url}/metrics", timeout=600).text
    for name in (
        'requests_total{endpoint="/v1/chat/completions",status="200"}',
        "mask_seconds_count",
        "forward_passes_total",
        "waiting_texts 0.0",
        "running_texts 0.0",
    ):
        assert f"ffwd_server_{name}" in text
    assert "ffwd_grammar_compile_seconds_count" in text


def test_the_older_role_of_a_result(ask):
    """`function` is rendered as `tool`, where a template does not know it."""

    def asked(role):
        message = {"role": role, "name": "forecast", "content": "rain", "tool_call_id": "a"}
        answer = ask(messages=[*HELLO, message], max_tokens=8)
        return answer.choices[0].message.content, answer.usage.prompt_tokens

    assert asked("function") == asked("tool")
    assert asked("function")[1] != asked("observation")[1]


# --------------------------------------------------------------------------------- token ids


def post(running, path, body, status=200):
    # httpx itself encodes no lone surrogate.
    answer = httpx.post(f"{running.url}{path}", content=json.dumps(body), timeout=None)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_tokens_of_texts_and_back(running):
    tokenizer = running.loaded.tokenizer
    text = "naïve 猫 {}"
    found = post(running, "/tokenize", {"model": "tiny", "prompt": text})
    assert found["tokens"] == [*tokenizer.prefix_ids, *tokenizer.encode(text)]
    assert found["count"] == len(found["tokens"])
    assert found["max_model_len"] == running.loaded.max_model_len
    assert found["token_strs"] is None
    bare = {"prompt": text, "add_special_tokens": False, "return_token_strs": True}
    found = post(running, "/tokenize", bare)
    assert found["tokens"] == tokenizer.encode(text)
    assert len(found["token_strs"]) == found["count"]
    assert post(running, "/detokenize", {"tokens": found["tokens"]}) == {"prompt": text}


def test_tokens_of_chats_are_those_of_prompts(ask, running):
    found = post(running, "/tokenize", {"messages": HELLO})
    assert found["count"] == ask(max_tokens=1).usage.prompt_tokens
    prompt = running.loaded.template.render(
        HELLO, tokenizer=running.loaded.tokenizer, add_generation_prompt=False
    )
    body = {"messages": HELLO, "add_generation_prompt": False}
    assert post(running, "/tokenize", body)["tokens"] == prompt.ids
    text = post(running, "/detokenize", {"tokens": prompt.ids})["prompt"]
    assert text == running.loaded.tokenizer.decode(prompt.ids, skip_special_tokens=False)


@pytest.mark.parametrize(
    ("path", "body", "status", "param"),
    [
        ("/tokenize", {}, 400, "prompt"),
        ("/tokenize", {"prompt": "a", "messages": HELLO}, 400, "prompt"),
        ("/tokenize", {"prompt": "a", "tools": [{}]}, 400, "tools"),
        ("/tokenize", {"prompt": "\ud800"}, 400, "prompt"),
        ("/tokenize", {"prompt": ["a"]}, 400, "prompt"),
        ("/tokenize", {"messages": [1]}, 400, "messages[0]"),
        ("/tokenize", {"messages": [{"role": "nobody"}]}, 400, "messages[0]"),
        ("/tokenize", {"prompt": "a", "model": "other"}, 404, "model"),
        ("/detokenize", {"tokens": [1, -1]}, 400, "tokens[1]"),
        ("/detokenize", {"tokens": [10**9]}, 400, "tokens[0]"),
        ("/detokenize", {"tokens": ["1"]}, 400, "tokens[0]"),
        ("/detokenize", {}, 400, "tokens"),
        ("/tokenize", {"messages": [{"role": "user", "content": [[1]] * 70_000}]}, 413, "messages"),
    ],
)
def test_bad_requests_for_tokens(running, path, body, status, param):
    error = post(running, path, body, status)["error"]
    assert error["message"]
    assert error["param"].startswith(param)


def test_the_version(running):
    answer = httpx.get(f"{running.url}/version", timeout=None)
    assert answer.json() == {"version": ffwd.__version__}
