"""Biases, penalties and ends that requests ask for: they steer the model, and the grammar rules."""

import json
import re

import httpx
import jsonschema_rs
import pytest

openai = pytest.importorskip("openai")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")

from serve_models import COLOURS, HELLO, TOOLS, Running, schema_format, write_model

from ffwd.adapters.server.penalties import Adjustments

END = 2
START = 1
"""A control token that ends nothing by itself."""


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with Running(write_model(tmp_path_factory.mktemp("tiny"))) as running:
        yield running


@pytest.fixture(scope="module")
def ask(running):
    with openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0) as client:

        def ask(*, regex=None, **options):
            """The only choice; the fields of vLLM go into the body as they are."""
            extra = {
                name: options.pop(name)
                for name in ("repetition_penalty", "min_tokens", "stop_token_ids", "ignore_eos")
                if name in options
            }
            if regex is not None:
                extra["structured_outputs"] = {"regex": regex}
            given = {"model": "tiny", "messages": HELLO, "temperature": 0, "max_tokens": 30}
            answer = client.chat.completions.create(**(given | options), extra_body=extra)
            (choice,) = answer.choices
            return choice.message.content, choice.finish_reason, answer.usage.completion_tokens

        yield ask


@pytest.fixture
def texts(running, monkeypatch):
    """The server's own texts, as requests submit them."""
    scheduler = running.server.scheduler
    submit, texts = scheduler.submit, []
    monkeypatch.setattr(scheduler, "submit", lambda new: (texts.extend(new), submit(new)))
    return texts


def token_of(running, text):
    (token,) = running.loaded.tokenizer.encode(text)
    return token


def adjusted(logits, ids, num_prompt, *, bias, presence, frequency, repetition):
    """vLLM's formula, by whole rows."""
    logits = logits.clone()
    for token, value in bias.items():
        logits[token] += value
    seen = torch.zeros_like(logits, dtype=torch.bool)
    seen[list(ids)] = True
    scaled = torch.where(logits > 0, logits / repetition, logits * repetition)
    logits = torch.where(seen, scaled, logits)
    counts = torch.zeros_like(logits)
    for token in ids[num_prompt:]:
        counts[token] += 1
    return logits - frequency * counts - presence * (counts > 0)


@pytest.mark.parametrize(
    "given",
    [
        {"bias": {3: 2.5, 40: -100.0}},
        {"presence": 1.5},
        {"frequency": -0.75},
        {"repetition": 1.3},
        {"bias": {7: 1.0}, "presence": -2.0, "frequency": 0.5, "repetition": 0.6},
    ],
)
def test_the_formula(given):
    generator = torch.Generator().manual_seed(3)
    made = Adjustments(**({"bias": {}} | given))
    full = {"bias": {}, "presence": 0.0, "frequency": 0.0, "repetition": 1.0} | given
    prompt = [7, 9, 7, 11]
    ids = list(prompt)
    # Several tokens at a time, as forced ones come.
    for new in ([], [3], [7, 7, 20], [9]):
        ids += new
        logits = torch.randn(64, generator=generator) * 3
        expected = adjusted(logits, ids, len(prompt), **full)
        made.apply(logits, ids, len(prompt))
        torch.testing.assert_close(logits, expected)


def test_repetition_is_that_of_transformers():
    logits = torch.randn(1, 50, generator=torch.Generator().manual_seed(5)) * 4
    ids = [3, 4, 4, 30]
    expected = transformers.RepetitionPenaltyLogitsProcessor(1.7)(torch.tensor([ids]), logits)
    Adjustments(bias={}, repetition=1.7).apply(logits[0], ids, 2)
    torch.testing.assert_close(logits, expected)


@pytest.mark.parametrize("repetition", [1e-45, 1e-30, 1e30, 1e300])
def test_finite_logits_stay_finite(repetition):
    logits = torch.tensor([3.0, -3.0, -torch.inf, torch.nan, 0.0])
    Adjustments(bias={0: 100.0}, repetition=repetition).apply(logits, [0, 1, 2, 3, 4], 5)
    assert torch.isfinite(logits[[0, 1, 4]]).all()
    assert logits[2] == -torch.inf
    assert torch.isnan(logits[3])


@pytest.mark.parametrize(
    "given",
    [
        {"logit_bias": {"70": 4, "71": -3.5}, "presence_penalty": 1.2},
        {"frequency_penalty": 2.0, "repetition_penalty": 1.4},
        {"frequency_penalty": -1.0, "presence_penalty": -0.5, "repetition_penalty": 0.8},
    ],
)
@pytest.mark.parametrize("regex", [None, "the [a-f]{4} and the [a-f]{4} and the [a-f]{4}"])
def test_answers_are_greedy_after_adjustment(ask, running, texts, given, regex):
    """At each token that the model chose, with the forced ones before it counted."""
    ask(regex=regex, max_tokens=40, **given)
    (text,) = texts
    ids, begin = text.ids, text.num_prompt
    with torch.inference_mode():
        rows = running.loaded.slots._model(input_ids=torch.tensor([ids])).logits[0].float()
    full = {
        "bias": {int(token): value for token, value in given.get("logit_bias", {}).items()},
        "presence": given.get("presence_penalty", 0.0),
        "frequency": given.get("frequency_penalty", 0.0),
        "repetition": given.get("repetition_penalty", 1.0),
    }
    matcher = text.grammar.matcher()
    checked = 0
    for place in range(begin, len(ids)):
        allowed = matcher.allowed_token_ids()
        logits = adjusted(rows[place - 1], ids[:place], begin, **full)
        assert ids[place] in allowed
        forced = matcher.fast_forward_tokens()
        if not forced and len(allowed) > 1:
            best = max(allowed, key=lambda token: logits[token].item())
            assert logits[ids[place]].item() == pytest.approx(logits[best].item(), abs=1e-3)
            checked += 1
        assert matcher.accept_token(ids[place])
    assert checked >= 10
    if regex is not None:
        assert text.forced >= 10


def test_a_bias_decides(ask, running):
    """A hundred is certain, and minus a hundred excludes."""
    letter = token_of(running, "g")
    assert ask(logit_bias={str(letter): 100}, max_tokens=6)[0] == "gggggg"
    greedy = ask(max_tokens=1)[0]
    (first,) = running.loaded.tokenizer.encode(greedy)
    assert ask(logit_bias={str(first): -100}, max_tokens=1)[0] != greedy


def test_the_grammar_wins(ask, running):
    """Whatever is wished: what it forbids does not come, and what it allows last does."""
    size = running.loaded.vocabulary.vocab_size
    letter = str(token_of(running, "g"))
    assert re.fullmatch("[ab]{5}", ask(regex="[ab]{5}", logit_bias={letter: 100})[0])
    unwanted = {str(token): -100 for token in range(size)}
    for given in (
        {"logit_bias": unwanted},
        {"logit_bias": unwanted, "frequency_penalty": 2, "presence_penalty": 2},
        {"repetition_penalty": 1e300},
        {"repetition_penalty": 1e-300, "temperature": 1},
    ):
        content, reason, _ = ask(response_format=schema_format(COLOURS), **given)
        jsonschema_rs.validate(COLOURS, json.loads(content))
        assert reason == "stop"


def test_samples_follow_biases(ask, running):
    """Above a temperature of 0 too."""
    letters = {str(token_of(running, letter)): 50 for letter in "gh"}
    content, _, _ = ask(logit_bias=letters, temperature=1, seed=3, max_tokens=20)
    assert set(content) <= set("gh")


# ------------------------------------------------------------------------------------- ends


ENDS = {"logit_bias": {str(END): 100}}


def test_min_tokens(ask):
    assert ask(**ENDS)[1:] == ("stop", 1)
    content, reason, tokens = ask(min_tokens=7, **ENDS)
    assert (reason, tokens) == ("stop", 8)
    assert content
    assert ask(min_tokens=0, **ENDS)[2] == 1


def test_ignore_eos(ask):
    assert ask(ignore_eos=True, **ENDS)[1:] == ("length", 30)
    # A stop token ends it, whichever it is.
    assert ask(ignore_eos=True, stop_token_ids=[END], **ENDS)[1:] == ("stop", 1)
    content, reason, _ = ask(ignore_eos=True, regex="[ab]{2,9}", **ENDS)
    assert re.fullmatch("[ab]{9}", content)
    assert reason == "stop"
    assert len(ask(regex="[ab]{2,9}", **ENDS)[0]) == 2


@pytest.mark.parametrize("given", [{"min_tokens": 25}, {"ignore_eos": True}])
def test_an_answer_that_can_only_end_does(ask, given):
    """No other token is allowed, and a mask is never empty."""
    content, reason, _ = ask(response_format=schema_format(COLOURS), **given)
    jsonschema_rs.validate(COLOURS, json.loads(content))
    assert reason == "stop"
    assert re.fullmatch("[ab]{3}", ask(regex="[ab]{3}", **given)[0])


def test_min_tokens_with_a_grammar(ask):
    content, reason, tokens = ask(min_tokens=5, regex="[ab]{2,20}", **ENDS)
    assert re.fullmatch("[ab]{2,20}", content)
    assert reason == "stop"
    assert tokens == 6


@pytest.mark.parametrize("stream", [False, True])
def test_stop_token_ids(ask, running, stream):
    """A control token that no text has, and a token of a text: neither is part of the answer."""
    letter = token_of(running, "g")
    wished = {"logit_bias": {str(START): 100, str(letter): 50}}
    assert ask(**wished, max_tokens=5) == ("ggggg", "length", 5)
    assert ask(**wished, stop_token_ids=[START]) == ("", "stop", 1)
    assert ask(**wished, stop_token_ids=[START], min_tokens=4) == ("gggg", "stop", 5)
    wished = {"logit_bias": {str(letter): 100}}
    assert ask(**wished, stop_token_ids=[5, letter]) == ("", "stop", 1)
    body = {"messages": HELLO, "stream": stream, "stop_token_ids": [letter], "min_tokens": 3}
    # While they do not count, they do not come either.
    text = httpx.post(f"{running.url}/v1/chat/completions", json=body | wished, timeout=None).text
    assert '"finish_reason":"stop"' in text
    assert "ggg" not in text


def test_stop_tokens_with_a_grammar(ask, running):
    """One that the grammar does not know ends the answer where it may end; one it knows cuts it."""
    wished = {"logit_bias": {str(START): 100}}
    content, reason, _ = ask(
        response_format=schema_format(COLOURS), stop_token_ids=[START], **wished
    )
    jsonschema_rs.validate(COLOURS, json.loads(content))
    assert reason == "stop"
    assert len(ask(regex="[ab]{3,9}", stop_token_ids=[START], **wished)[0]) == 3
    # The comma may be forced: it is where its token would begin.
    tokenizer = running.loaded.tokenizer
    ids = tokenizer.encode("12345")
    content, reason, tokens = ask(regex="12345", stop_token_ids=[ids[2]])
    assert content == tokenizer.decode(ids[:2])
    assert (reason, tokens) == ("stop", 3)
    # Until it counts, it is a token like others.
    assert ask(regex="12345", stop_token_ids=[ids[2]], min_tokens=3)[0] == "12345"


def test_a_stop_token_behind_calls(running):
    """The answer has ended with calls, as with its own end token."""
    body = {
        "messages": HELLO,
        "tools": TOOLS,
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "stop_token_ids": [START],
        "logit_bias": {str(START): 100},
        "max_tokens": 150,
    }
    answer = httpx.post(f"{running.url}/v1/chat/completions", json=body, timeout=None).json()
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert len(choice["message"]["tool_calls"]) == 1


def test_stop_strings_behind_min_tokens(ask):
    whole = ask(max_tokens=20)[0]
    stop = whole[1]
    assert ask(max_tokens=20, stop=stop)[0] == whole[: whole.index(stop)]
    prefix = ask(max_tokens=6)[0]
    content, reason, _ = ask(max_tokens=20, stop=stop, min_tokens=6)
    rest = whole[len(prefix) :]
    assert content == (whole if stop not in rest else prefix + rest[: rest.index(stop)])
    assert reason == ("stop" if stop in rest else "length")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"logit_bias": {"a": 1}}, "logit_bias"),
        ({"logit_bias": {"-1": 1}}, "logit_bias"),
        ({"logit_bias": {"05": 1}}, "logit_bias"),
        ({"logit_bias": {"٣": 1}}, "logit_bias"),
        ({"logit_bias": {"640": 1}}, "logit_bias"),
        ({"logit_bias": {"9" * 5000: 1}}, "logit_bias"),
        ({"logit_bias": {"5": 101}}, "logit_bias"),
        ({"logit_bias": {"5": "1"}}, "logit_bias"),
        ({"logit_bias": [5]}, "logit_bias"),
        ({"logit_bias": {str(token): 1 for token in range(1025)}}, "logit_bias"),
        ({"presence_penalty": 2.5}, "presence_penalty"),
        ({"frequency_penalty": -2.5}, "frequency_penalty"),
        ({"frequency_penalty": "1"}, "frequency_penalty"),
        ({"repetition_penalty": 0}, "repetition_penalty"),
        ({"repetition_penalty": -1}, "repetition_penalty"),
        ({"min_tokens": -1}, "min_tokens"),
        ({"min_tokens": 21}, "min_tokens"),
        ({"stop_token_ids": [5, 640]}, "stop_token_ids[1]"),
        ({"stop_token_ids": [-1]}, "stop_token_ids[0]"),
        ({"stop_token_ids": ["5"]}, "stop_token_ids[0]"),
        ({"stop_token_ids": 5}, "stop_token_ids"),
        ({"stop_token_ids": list(range(17))}, "stop_token_ids"),
        ({"ignore_eos": "yes"}, "ignore_eos"),
        ({"bad_words": ["a"]}, "bad_words"),
        ({"allowed_token_ids": [1]}, "allowed_token_ids"),
        ({"include_stop_str_in_output": True}, "include_stop_str_in_output"),
        ({"skip_special_tokens": False}, "skip_special_tokens"),
    ],
)
def test_what_is_refused(running, fields, param):
    body = {"messages": HELLO, "max_tokens": 20} | fields
    answer = httpx.post(f"{running.url}/v1/chat/completions", json=body, timeout=None)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["param"] == param, error
    assert len(error["message"]) < 400
