"""`masses: true`: the log masses and the log weight of answers in `usage`."""

import json

import httpx
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")

from serve_models import COLOURS, HELLO, Running, about, schema_format, write_model

CHAT, COMPLETIONS, RESPONSES = "chat/completions", "completions", "responses"


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    # Parts of forced text are read in passes of a few tokens.
    with Running(write_model(tmp_path_factory.mktemp("tiny")), prefill_tokens=16) as running:
        yield running


@pytest.fixture
def ask(running):
    def ask(path=CHAT, **fields):
        body = {"temperature": 0, "messages": HELLO, "response_format": schema_format(COLOURS)}
        if path != CHAT:
            body = {"temperature": 0}
        answer = httpx.post(f"{running.url}/v1/{path}", json=body | fields, timeout=None)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return ask


@pytest.fixture
def texts(running, monkeypatch):
    """What the scheduler has written since."""
    scheduler, found = running.server.scheduler, []
    submit = scheduler.submit
    monkeypatch.setattr(scheduler, "submit", lambda new: (found.extend(new), submit(new)))
    return found


def expected(running, text):
    """From the model's own pass over the whole text, and a matcher that follows it."""
    prompt, tokens = text.ids[: text.num_prompt], text.ids[text.num_prompt :]
    with torch.inference_mode():
        logits = running.loaded.slots._model(input_ids=torch.tensor([text.ids])).logits[0]
    logs = torch.log_softmax(logits[len(prompt) - 1 : -1].float(), -1)
    matcher, masses, forced = text.grammar.matcher(recent_tokens=prompt), [], []
    for place, token in enumerate(tokens):
        forced = forced or matcher.fast_forward_tokens()
        allowed = forced[:1] or matcher.allowed_token_ids()
        masses.append(logs[place, allowed].logsumexp(0).item())
        forced = forced[1:]
        assert matcher.accept_token(token)
    return masses


def test_chats(ask, running, texts):
    answer = ask(masses=True)
    details = answer["usage"]["completion_tokens_details"]
    (found,), (weight,) = details["log_masses"], details["log_weights"]
    (text,) = texts
    assert len(found) == answer["usage"]["completion_tokens"] == text.num_tokens
    assert details["forced_tokens"] > 3
    assert found == pytest.approx(expected(running, text), abs=1e-3)
    assert weight == pytest.approx(sum(found))
    plain = ask()
    assert plain["choices"] == answer["choices"]
    assert "log_masses" not in plain["usage"]["completion_tokens_details"]
    assert texts[1].scores is None


def test_with_log_probabilities(ask):
    answer = ask(masses=True, logprobs=True, top_logprobs=1)
    alone = ask(masses=True)
    assert answer["usage"] == about(alone["usage"])
    assert alone["choices"][0]["logprobs"] is None
    (found,) = answer["usage"]["completion_tokens_details"]["log_masses"]
    listed = answer["choices"][0]["logprobs"]["content"]
    # No token is likelier than all that were allowed with it. The end token is not listed.
    for mass, entry in zip(found[: len(listed)], listed, strict=True):
        assert entry["logprob"] <= mass + 1e-5


def test_biases_change_no_mass(ask, running, texts):
    bias = {str(token): -50 for token in range(3, 60)}
    answer = ask(masses=True, logit_bias=bias, temperature=1.5, seed=4)
    (found,) = answer["usage"]["completion_tokens_details"]["log_masses"]
    assert found == pytest.approx(expected(running, texts[0]), abs=1e-3)


def test_each_choice_has_its_own(ask, running, texts):
    answer = ask(
        COMPLETIONS,
        prompt=["a", "b c"],
        n=2,
        masses=True,
        temperature=1,
        seed=2,
        structured_outputs={"regex": "[a-f]{3} and no more[.!]"},
    )
    details = answer["usage"]["completion_tokens_details"]
    wanted = [expected(running, text) for text in sorted(texts, key=lambda text: text.index)]
    assert len(details["log_masses"]) == 4
    for found, weight, each in zip(
        details["log_masses"], details["log_weights"], wanted, strict=True
    ):
        assert found == pytest.approx(each, abs=1e-3)
        assert weight == pytest.approx(sum(each), abs=1e-2)


def test_all_of_it_is_forced(ask, running, texts):
    answer = ask(
        COMPLETIONS,
        prompt="a",
        masses=True,
        structured_outputs={"choice": ["One and the same größe 🙂."]},
    )
    assert answer["choices"][0]["text"] == "One and the same größe 🙂."
    (found,) = answer["usage"]["completion_tokens_details"]["log_masses"]
    assert found == pytest.approx(expected(running, texts[0]), abs=1e-3)


def test_streams(running, ask):
    body = {
        "messages": HELLO,
        "temperature": 0,
        "response_format": schema_format(COLOURS),
        "masses": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    with httpx.stream("POST", f"{running.url}/v1/{CHAT}", json=body, timeout=None) as answer:
        lines = [line[6:] for line in answer.iter_lines() if line.startswith("data: {")]
    chunks = [json.loads(line) for line in lines]
    assert chunks[-1]["usage"] == about(ask(masses=True)["usage"])


def test_responses(ask):
    answer = ask(RESPONSES, input="Hello!", masses=True, max_output_tokens=12)
    details = answer["usage"]["output_tokens_details"]
    (found,), (weight,) = details["log_masses"], details["log_weights"]
    assert len(found) == answer["usage"]["output_tokens"]
    assert weight == pytest.approx(sum(found))


@pytest.mark.parametrize("value", [1, "yes", []])
def test_what_is_refused(running, value):
    body = {"messages": HELLO, "masses": value}
    answer = httpx.post(f"{running.url}/v1/{CHAT}", json=body, timeout=None)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "masses"
