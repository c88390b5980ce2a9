"""`GenerationReport(record=True)`: what the decoding loop notes is what happened."""

import json

import pytest
import torch
from tinymodels import EOS, LOGITS_WIDTH

from ffwd.adapters.transformers import GenerationReport, fast_forward_generate

GREEDY = {"do_sample": False, "max_new_tokens": 150}


def record(model, inputs, grammar, **options):
    report = GenerationReport(record=True, title="orders", trace=True)
    output = model.generate(
        **inputs,
        custom_generate=fast_forward_generate,
        grammar=grammar,
        report=report,
        **{**GREEDY, **options},
    )
    return output, report


def test_every_token_is_recorded_as_it_came(model, encode, order_grammar):
    inputs = encode("Ada bought")
    output, report = record(model, inputs, order_grammar)
    plain = model.generate(
        **inputs, custom_generate=fast_forward_generate, grammar=order_grammar, **GREEDY
    )
    assert output.tolist() == plain.tolist()
    (recording,) = report.recordings
    new = output[0, inputs["input_ids"].shape[1] :].tolist()
    assert [step.token for step in recording.steps] == new
    assert recording.counts["forced"] == report.stats.forced_tokens
    assert sum(step.asked for step in recording.steps) == report.stats.forward_passes
    assert [step.kind == "forced" for step in recording.steps] == [t.forced for t in report.tokens]
    assert recording.title == "orders"
    assert [i for i, _ in recording.prompt] == inputs["input_ids"][0].tolist()
    # The matcher's own view of each place.
    matcher = order_grammar.matcher(recent_tokens=inputs["input_ids"][0].tolist())
    for step in recording.steps:
        if step.asked:
            assert step.allowed.count == len(matcher.allowed_token_ids())
            assert step.time.model > 0
        assert matcher.accept_token(step.token)


@torch.no_grad()
def test_probabilities_are_those_of_the_model(model, encode, order_grammar):
    inputs = encode("Grace bought")
    _, report = record(model, inputs, order_grammar)
    ids = inputs["input_ids"][0].tolist()
    for step in report.recordings[0].steps:
        if step.asked:
            logits = model(torch.tensor([ids])).logits[0, -1].float()
            raw = torch.softmax(logits, dim=-1)
            allowed = torch.zeros(LOGITS_WIDTH, dtype=torch.bool)
            if step.allowed.complete:
                allowed[list(step.allowed.tokens)] = True
                assert step.allowed_probability == pytest.approx(
                    raw[allowed].sum().item(), abs=1e-4
                )
                best = int(torch.argmax(raw))
                assert (step.preferred is None) == bool(allowed[best])
            likeliest = step.candidates[0]
            assert likeliest.token == step.token
            share = raw[step.token].item() / step.allowed_probability
            assert likeliest.probability == pytest.approx(share, abs=1e-3)
            assert sum(one.probability for one in step.candidates) <= 1.0001
        ids.append(step.token)


def test_rows_are_recorded_apart(model, encode, order_grammar, colour_grammar):
    inputs = encode("Ada bought", "Grace bought 12 apple express.")
    output, report = record(model, inputs, [order_grammar, colour_grammar])
    assert len(report.recordings) == 2
    texts = [json.loads(one.text) for one in report.recordings]
    assert "full_name_of_the_customer" in texts[0]
    assert set(texts[1]) == {"colour", "shade"}
    width = inputs["input_ids"].shape[1]
    for row, recording in enumerate(report.recordings):
        new = output[row, width:].tolist()
        assert [step.token for step in recording.steps] == new[: new.index(EOS) + 1]
        # Padding is no part of a prompt.
        mask = inputs["attention_mask"][row].bool()
        assert [i for i, _ in recording.prompt] == inputs["input_ids"][row][mask].tolist()


def test_an_error_leaves_what_happened_until_then(model, encode, order_grammar):
    """And a report can be used again."""
    report = GenerationReport(record=True)
    inputs = encode("Ada bought")
    options = {"custom_generate": fast_forward_generate, "grammar": order_grammar}

    class Broken(torch.nn.Module):
        def __call__(self, ids, scores):
            if ids.shape[1] > inputs["input_ids"].shape[1] + 20:
                raise RuntimeError("broken")
            return scores

    with pytest.raises(RuntimeError, match="broken"):
        model.generate(**inputs, **options, **GREEDY, report=report, logits_processor=[Broken()])
    (recording,) = report.recordings
    assert len(recording.steps) > 20
    model.generate(**inputs, **options, **GREEDY, report=report)
    assert json.loads(report.recordings[0].text)
    report.record = False
    model.generate(**inputs, **options, **GREEDY, report=report)
    assert report.recordings == []
