"""Log probabilities of answers: the model's own, of forced tokens too, whole and streamed."""

import concurrent.futures
import json
import threading

import httpx
import pytest

openai = pytest.importorskip("openai")
torch = pytest.importorskip("torch")
pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")

from serve_models import COLOURS, HELLO, TOOLS, Running, about, schema_format, write_model

import ffwd
from ffwd.adapters.server.deltas import Piece
from ffwd.adapters.server.logprobs import LEAST, Listing, Scored, Scores, distributions, scored
from ffwd.chat import Start

PROMPT = [7, 8, 9]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = write_model(tmp_path_factory.mktemp("thinking"), "thinking")
    # Parts of prompts, and of forced text, are read in passes of a few tokens.
    with Running(folder, prefill_tokens=16) as running:
        yield running


@pytest.fixture(scope="module")
def client(running):
    with openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def ask(client):
    def ask(**options):
        given = {"model": "tiny", "messages": HELLO, "temperature": 0, "max_tokens": 60}
        return client.chat.completions.create(**(given | {"logprobs": True} | options))

    return ask


@pytest.fixture(scope="module")
def expected(running):
    """The model's own log probabilities of the ids after a prompt."""

    def expected(prompt, ids):
        with torch.inference_mode():
            logits = running.loaded.slots._model(input_ids=torch.tensor([[*prompt, *ids]])).logits
        return torch.log_softmax(logits[0, len(prompt) - 1 : -1].float(), -1)

    return expected


@pytest.fixture(scope="module")
def ids_of(running):
    """The ids of tokens that are listed."""
    tokenizer = running.loaded.tokenizer
    by_bytes = {tokenizer.token_bytes(i): i for i in range(tokenizer.vocab_size)}
    return lambda listed: [by_bytes[bytes(entry.bytes)] for entry in listed]


def prompt_ids(running, **options):
    loaded = running.loaded
    return loaded.template.render(
        HELLO, tokenizer=loaded.tokenizer, add_generation_prompt=True, **options
    ).ids


def check(listed, logs, ids):
    """Each token has the model's probability, and the likeliest ones beside it."""
    assert len(listed) == len(ids)
    for row, (entry, token) in enumerate(zip(listed, ids, strict=True)):
        assert entry.logprob == pytest.approx(logs[row, token].item(), abs=1e-3)
        best = logs[row].sort(descending=True).values
        found = [other.logprob for other in entry.top_logprobs]
        assert found == pytest.approx(best[: len(found)].tolist(), abs=1e-3)


@pytest.mark.parametrize(
    "extra",
    [
        {"max_tokens": 12},
        {"extra_body": {"structured_outputs": {"json": COLOURS}}},
        {"extra_body": {"structured_outputs": {"regex": "[a-f]{3} and no more than that, thanks"}}},
        # All of it is forced: the model reads it only to score it.
        {"extra_body": {"structured_outputs": {"choice": ["One and the same größe 🙂."]}}},
        {"temperature": 1, "seed": 3, "max_tokens": 20, "extra_body": {"top_k": 5}},
    ],
)
def test_they_are_the_models_own(ask, running, expected, ids_of, extra):
    answer = ask(top_logprobs=3, **extra)
    (choice,) = answer.choices
    listed = choice.logprobs.content
    assert b"".join(bytes(entry.bytes) for entry in listed).decode() == choice.message.content
    ids = ids_of(listed)
    check(listed, expected(prompt_ids(running), ids), ids)
    assert all(len(entry.top_logprobs) == 3 for entry in listed)
    # Nothing else about the answer changes.
    plain = ask(logprobs=False, **extra)
    assert plain.choices[0].message == choice.message
    assert plain.choices[0].finish_reason == choice.finish_reason
    assert plain.usage == answer.usage
    assert plain.choices[0].logprobs is None


def test_streams_list_the_same(ask):
    for options in (
        {"response_format": schema_format(COLOURS)},
        {"temperature": 1, "seed": 5, "max_tokens": 20},
        {"n": 2, "temperature": 1, "seed": 1, "max_tokens": 9},
    ):
        whole = ask(top_logprobs=2, **options)
        listed = {choice.index: [] for choice in whole.choices}
        chunks = 0
        for chunk in ask(top_logprobs=2, stream=True, **options):
            (choice,) = chunk.choices
            assert (choice.logprobs is not None) == bool(choice.delta.content)
            if choice.logprobs is not None:
                listed[choice.index] += choice.logprobs.content
                chunks += 1
        for choice in whole.choices:
            found = [entry.model_dump() for entry in listed[choice.index]]
            assert found == about([entry.model_dump() for entry in choice.logprobs.content])
        # They do not wait for the end. Forced tokens come in one piece, or in several.
        assert "response_format" in options or chunks > 2 * len(whole.choices)


def test_only_content_is_listed(ask, expected, ids_of, running, monkeypatch):
    """Neither reasoning nor calls; both are read, so the rest has the right context."""
    scheduler = running.server.scheduler
    submit, texts = scheduler.submit, []
    monkeypatch.setattr(scheduler, "submit", lambda new: (texts.extend(new), submit(new)))
    (choice,) = ask(
        response_format=schema_format(COLOURS),
        top_logprobs=1,
        extra_body={"chat_template_kwargs": {"enable_thinking": True}},
    ).choices
    assert choice.message.reasoning_content
    listed = choice.logprobs.content
    assert b"".join(bytes(entry.bytes) for entry in listed).decode() == choice.message.content
    (text,) = texts
    ids = ids_of(listed)
    written = text.ids[text.num_prompt :]
    # The last one ends the answer.
    before = written[: -1 - len(ids)]
    assert written == [*before, *ids, running.loaded.vocabulary.eos_token_ids[0]]
    assert running.loaded.tokenizer.token_to_id("</think>") in before
    check(listed, expected([*text.ids[: text.num_prompt], *before], ids), ids)
    (choice,) = ask(tools=TOOLS, tool_choice="required", max_tokens=150).choices
    assert choice.message.tool_calls
    assert choice.logprobs.content == []


def test_stop_strings_cut_the_list(ask):
    whole = ask(max_tokens=20).choices[0].message.content
    stop = whole[5:8]
    (choice,) = ask(max_tokens=20, stop=stop).choices
    text = b"".join(bytes(entry.bytes) for entry in choice.logprobs.content)
    content = choice.message.content.encode()
    assert content == whole[: whole.index(stop)].encode()
    assert text.startswith(content)
    # The last token listed has a byte of the content.
    assert len(text) - len(bytes(choice.logprobs.content[-1].bytes)) < len(content)


def test_an_answer_that_was_begun(ask):
    """What the prompt has of it is not listed."""
    begun = '{"colour":"gr'
    (choice,) = ask(
        messages=[*HELLO, {"role": "assistant", "content": begun}],
        response_format=schema_format(COLOURS),
        extra_body={"continue_final_message": True, "add_generation_prompt": False},
    ).choices
    text = b"".join(bytes(entry.bytes) for entry in choice.logprobs.content)
    assert text.decode().endswith(choice.message.content)
    json.loads(begun + choice.message.content)


def test_beside_others(ask):
    """In one batch with answers of other lengths, and with some whose tokens are not listed."""
    kinds = [
        {"response_format": schema_format(COLOURS), "top_logprobs": 1},
        {"extra_body": {"structured_outputs": {"choice": ["A long text without any choice."]}}},
        {"logprobs": False, "response_format": schema_format(COLOURS)},
        {"max_tokens": 25, "frequency_penalty": 1.0, "top_logprobs": 20},
        {"logprobs": False, "max_tokens": 25},
        {"tools": TOOLS, "tool_choice": "required", "max_tokens": 100},
    ]
    alone = [ask(**kind).choices[0] for kind in kinds]
    with concurrent.futures.ThreadPoolExecutor(18) as pool:
        together = list(pool.map(lambda kind: ask(**kind).choices[0], kinds * 3))
    for one, other in zip(alone * 3, together, strict=True):
        assert one.message.content == other.message.content
        assert (one.logprobs is None) == (other.logprobs is None)
        if one.logprobs is None:
            continue
        for a, b in zip(one.logprobs.content, other.logprobs.content, strict=True):
            assert a.bytes == b.bytes
            assert a.logprob == pytest.approx(b.logprob, abs=1e-3)
            assert len(a.top_logprobs) == len(b.top_logprobs)


@pytest.mark.parametrize("stream", [False, True])
def test_completions(client, running, expected, stream):
    """The older form."""
    options = {
        "model": "tiny",
        "prompt": PROMPT,
        "temperature": 0,
        "max_tokens": 40,
        "logprobs": 2,
        "extra_body": {"structured_outputs": {"regex": "größ[ea] 🙂 [a-c]{2}!"}},
    }
    answer = client.completions.create(stream=stream, **options)
    parts = [choice for chunk in answer for choice in chunk.choices] if stream else answer.choices
    text = "".join(part.text for part in parts)
    found = [part.logprobs for part in parts if part.logprobs is not None]
    tokens = [token for logprobs in found for token in logprobs.tokens]
    values = [value for logprobs in found for value in logprobs.token_logprobs]
    tops = [top for logprobs in found for top in logprobs.top_logprobs]
    offsets = [offset for logprobs in found for offset in logprobs.text_offset]
    tokenizer = running.loaded.tokenizer
    # Half characters are named by their bytes.
    assert any(token.startswith("bytes:\\x") for token in tokens)
    names = {}
    for token in range(tokenizer.vocab_size):
        data = tokenizer.token_bytes(token)
        if data is not None:
            names[Listing(tokenizer, chat=False)._name(token)] = token
    ids = [names[token] for token in tokens]
    assert b"".join(tokenizer.token_bytes(i) for i in ids).decode() == text
    logs = expected(PROMPT, ids)
    assert values == pytest.approx([logs[row, i].item() for row, i in enumerate(ids)], abs=1e-3)
    for row, (token, top) in enumerate(zip(tokens, tops, strict=True)):
        assert top[token] == values[row]
        assert 2 <= len(top) <= 3
    assert offsets == sorted(offsets)
    for place, token in zip(offsets, tokens, strict=True):
        if not token.startswith("bytes:"):
            assert text[place:].startswith(token)
        else:
            assert ord(text[place]) > 127


def test_zero_lists_the_tokens_alone(client):
    (choice,) = client.completions.create(
        model="tiny", prompt=PROMPT, max_tokens=3, logprobs=0
    ).choices
    logprobs = choice.logprobs
    assert [list(top) for top in logprobs.top_logprobs] == [[token] for token in logprobs.tokens]


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        ("chat/completions", {"top_logprobs": 2}, "top_logprobs"),
        ("chat/completions", {"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ("chat/completions", {"logprobs": True, "top_logprobs": -1}, "top_logprobs"),
        ("chat/completions", {"logprobs": 3}, "logprobs"),
        ("completions", {"logprobs": True}, "logprobs"),
        ("completions", {"logprobs": 21}, "logprobs"),
        ("completions", {"logprobs": 1, "prompt_logprobs": 1}, "prompt_logprobs"),
        ("completions", {"logprobs": 1, "echo": True}, "echo"),
    ],
)
def test_what_is_refused(running, path, fields, param):
    body = {"messages": HELLO} if path.startswith("chat") else {"prompt": "a"}
    answer = httpx.post(f"{running.url}/v1/{path}", json=body | fields, timeout=None)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param


def test_a_text_whose_mask_is_late_is_scored(tmp_path, monkeypatch):
    """Its logits are kept beyond the pass, and so is what they say."""
    import ffwd.adapters.server.scheduler as scheduler
    from ffwd.adapters.server.texts import advance

    folder = write_model(tmp_path / "tiny")
    body = {
        "messages": HELLO,
        "temperature": 0,
        "logprobs": True,
        "response_format": schema_format(COLOURS),
    }
    passes, kept = threading.Semaphore(0), []
    forward = scheduler.Scheduler._forward

    def counted(self, texts, *given):
        forward(self, texts, *given)
        kept.extend(text for text in texts if text.logits is not None)
        passes.release()

    def after_the_pass(texts, tokens, settled):
        def held():
            settled()
            if any(text.open for text in texts):
                assert passes.acquire(timeout=600)

        return advance(texts, tokens, held)

    def answer(**options):
        with Running(folder, **options) as running:
            url = f"{running.url}/v1/chat/completions"
            return httpx.post(url, json=body, timeout=None).json()["choices"]

    (one,) = answer()
    monkeypatch.setattr(scheduler.Scheduler, "_forward", counted)
    monkeypatch.setattr(scheduler, "advance", after_the_pass)
    (other,) = answer(late=0.0)
    assert kept
    assert one["message"] == other["message"]
    for a, b in zip(one["logprobs"]["content"], other["logprobs"]["content"], strict=True):
        assert a["bytes"] == b["bytes"]
        assert a["logprob"] == about(b["logprob"])


def test_numbers_that_json_lacks():
    logits = torch.tensor([[0.0, -torch.inf, 1.0], [torch.nan, 0.0, 0.0]])
    first, second = scored(distributions(logits), [1, 0], [3, 1])
    assert first.logprob == LEAST == -9999.0
    assert first.top[-1] == (1, LEAST)
    assert len(second.top) == 1
    assert second.logprob == LEAST
    json.dumps([first.logprob, first.top, second.top], allow_nan=False)


def test_tokens_and_pieces(running):
    """Each token with a byte of a piece is listed once, and its offset counts characters."""
    loaded = running.loaded
    tokenizer, vocabulary = loaded.tokenizer, loaded.vocabulary
    grammar = ffwd.compile(ffwd.openai.response_format(None), vocabulary)
    text = "aß🙂z"
    ids = tokenizer.encode(text)
    scores = Scores(Start(grammar=grammar, prompt_ids=(7,)), 0)
    # The second character is not content.
    pieces = [Piece(0, "a"), Piece(3, "🙂z")]
    scores.hold(len(ids), [], pieces)
    assert scores.release() == ([], [])
    scores.add([Scored(token, -1.0) for token in ids])
    _, tokens = scores.release()
    data = [tokenizer.token_bytes(token) for token in ids]
    places = [sum(map(len, data[:i])) for i in range(len(data))]
    wanted = [
        (token, 0 if place == 0 else 1 if place < 7 else 2)
        for token, place in zip(ids, places, strict=True)
        if place == 0 or place >= 3
    ]
    assert [(score.token, score.offset) for score in tokens] == wanted
