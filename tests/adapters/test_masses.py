"""The masses of tokens: how probable the allowed ones were, of forced tokens too."""

import itertools
import math

import pytest
import torch
from tinymodels import PAD
from transformers import LogitsProcessorList

import ffwd
from ffwd.adapters.transformers import (
    GenerationReport,
    GrammarLogitsProcessor,
    Structured,
    fast_forward_generate,
)

GREEDY = {"do_sample": False, "max_new_tokens": 150}


@torch.no_grad()
def expected(model, prompt, tokens, grammar, forced=()):
    """One pass over the whole text, and the allowed tokens of a matcher that follows it."""
    logits = model(torch.tensor([[*prompt, *tokens]], device=model.device)).logits[0]
    logs = torch.log_softmax(logits[len(prompt) - 1 : -1].float(), dim=-1)
    matcher = grammar.matcher(recent_tokens=prompt)
    found = []
    for place, token in enumerate(tokens):
        allowed = [token] if place in forced else matcher.allowed_token_ids()
        found.append(logs[place, allowed].logsumexp(0).item())
        assert matcher.accept_token(token)
    return found


def without_padding(ids):
    return [token for token in ids if token != PAD]


@pytest.mark.parametrize("options", [GREEDY, {"do_sample": True, "max_new_tokens": 150}])
def test_rows_of_fast_forward(options, model, encode, order_grammar, colour_grammar):
    inputs = encode("Ada bought", "Grace bought 12 apple express.")
    grammars = [order_grammar, colour_grammar]
    report = GenerationReport(trace=True, masses=True)
    outputs, passes = [], []
    for asked in (GenerationReport(), report):
        torch.manual_seed(2)
        outputs.append(
            model.generate(
                **inputs,
                custom_generate=fast_forward_generate,
                grammar=grammars,
                report=asked,
                **options,
            ).tolist()
        )
        passes.append(asked.stats.forward_passes)
    assert outputs[0] == outputs[1]
    # The last tokens of both, the end included, are forced, and read once more.
    assert passes[0] < passes[1] <= passes[0] + 2
    width = inputs["input_ids"].shape[1]
    for row, grammar in enumerate(grammars):
        traced = [entry for entry in report.tokens if entry.row == row]
        tokens = [entry.token for entry in traced]
        assert tokens == without_padding(outputs[1][row][width:])
        forced = {place for place, entry in enumerate(traced) if entry.forced}
        assert len(forced) > 5
        prompt = without_padding(outputs[1][row][:width])
        wanted = expected(model, prompt, tokens, grammar, forced)
        assert report.log_masses[row] == pytest.approx(wanted, abs=1e-3)


def test_they_are_of_the_models_own_distribution(model, encode, colour_grammar):
    """Before penalties, temperature and cuts."""
    inputs = encode("Ada bought")
    options = {"do_sample": True, "temperature": 3.0, "top_k": 2, "repetition_penalty": 1.7}
    report = GenerationReport(trace=True, masses=True)
    model.generate(
        **inputs,
        custom_generate=fast_forward_generate,
        grammar=colour_grammar,
        report=report,
        max_new_tokens=80,
        **options,
    )
    forced = {place for place, entry in enumerate(report.tokens) if entry.forced}
    tokens = [entry.token for entry in report.tokens]
    prompt = inputs["input_ids"][0].tolist()
    wanted = expected(model, prompt, tokens, colour_grammar, forced)
    assert report.log_masses == [pytest.approx(wanted, abs=1e-3)]


def test_a_decided_text_is_read_once(model, encode, tokenizer, vocabulary):
    grammar = ffwd.compile(ffwd.choice(["Ada bought 12 apple express."]), vocabulary)
    inputs = encode("banana")
    prompt = inputs["input_ids"][0].tolist()
    report = GenerationReport(masses=True)
    arguments = {"custom_generate": fast_forward_generate, "grammar": grammar, "report": report}
    output = model.generate(**inputs, **arguments, **GREEDY)[0].tolist()
    tokens = output[len(prompt) :]
    assert report.stats.forward_passes == 1
    assert report.stats.forced_tokens == len(tokens) > 2
    wanted = expected(model, prompt, tokens, grammar, range(len(tokens)))
    assert report.log_masses == [pytest.approx(wanted, abs=1e-3)]
    # The report is used again, without masses.
    report.masses = False
    model.generate(**inputs, **arguments, **GREEDY)
    assert (report.log_masses, report.stats.forward_passes) == ([], 0)


@pytest.mark.parametrize("in_place", [False, True])
def test_the_processor(in_place, model, encode, order_grammar):
    inputs = encode("Ada bought", "Grace bought 12 apple express.")
    processor = GrammarLogitsProcessor(order_grammar, masses=True, in_place=in_place)
    plain = GrammarLogitsProcessor(order_grammar, in_place=in_place)
    output = model.generate(**inputs, logits_processor=[processor], **GREEDY)
    assert output.tolist() == model.generate(**inputs, logits_processor=[plain], **GREEDY).tolist()
    assert plain.log_masses == [(), ()]
    width = inputs["input_ids"].shape[1]
    for row, found in zip(output.tolist(), processor.log_masses, strict=True):
        tokens = without_padding(row[width:])
        wanted = expected(model, without_padding(row[:width]), tokens, order_grammar)
        assert found == pytest.approx(wanted, abs=1e-3)


def test_narrow_masks_have_those_of_forced_tokens(model, encode, colour_grammar):
    inputs = encode("Ada bought")
    processor = GrammarLogitsProcessor(colour_grammar, masses=True, narrow=True)
    narrow = model.generate(**inputs, logits_processor=[processor], **GREEDY)
    report = GenerationReport(masses=True)
    fast = model.generate(
        **inputs,
        custom_generate=fast_forward_generate,
        grammar=colour_grammar,
        report=report,
        **GREEDY,
    )
    assert fast.tolist() == narrow.tolist()
    assert processor.log_masses[0] == pytest.approx(report.log_masses[0], abs=1e-3)


@pytest.mark.parametrize("how", ["prompt lookup", "assistant"])
def test_drafts_that_are_withdrawn_leave_no_masses(how, model, assistant, encode, order_grammar):
    inputs = encode("Ada bought 12 cherry")
    greedy = GrammarLogitsProcessor(order_grammar, masses=True)
    output = model.generate(**inputs, logits_processor=[greedy], **GREEDY)
    drafting = GrammarLogitsProcessor(order_grammar, masses=True, max_draft_tokens=10)
    drafts = (
        {"prompt_lookup_num_tokens": 4} if how != "assistant" else {"assistant_model": assistant}
    )
    same = model.generate(**inputs, logits_processor=[drafting], **drafts, **GREEDY)
    assert same.tolist() == output.tolist()
    number = output.shape[1] - inputs["input_ids"].shape[1]
    assert drafting.log_masses[0][:number] == pytest.approx(greedy.log_masses[0], abs=1e-3)


def test_masses_move_with_the_beams(model, encode, colour_grammar):
    inputs = encode("Ada bought")
    processor = GrammarLogitsProcessor(colour_grammar, masses=True)
    model.generate(**inputs, logits_processor=[processor], num_beams=4, **GREEDY)
    prompt = inputs["input_ids"][0].tolist()
    for row in processor._rows.rows:
        wanted = expected(model, prompt, row.tokens, colour_grammar)
        assert row.log_masses[: len(row.tokens)] == pytest.approx(wanted, abs=1e-3)
    assert len({tuple(row.tokens) for row in processor._rows.rows}) > 1


@pytest.mark.parametrize("fast_forward", [True, False])
def test_generate(fast_forward, model, tokenizer):
    options = {"max_new_tokens": 60, "whitespace": "compact", "fast_forward": fast_forward}
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
    made = ffwd.generate(model, tokenizer, ["Ada", "Grace bought"], schema, masses=True, **options)
    for one in made:
        assert len(one.log_masses) == len(one.tokens)
        assert all(mass <= 0 for mass in one.log_masses)
        assert one.log_weight == pytest.approx(sum(one.log_masses))
        # Of a random model, which wants something else all the time.
        assert one.log_weight < -5
    plain = ffwd.generate(model, tokenizer, ["Ada", "Grace bought"], schema, **options)
    assert [one.tokens for one in plain] == [one.tokens for one in made]
    assert [(one.log_masses, one.log_weight) for one in plain] == [(None, None)] * 2


def test_a_model_that_wants_what_is_allowed(model, tokenizer):
    """Everything is allowed, so the masses are 1, but for columns that are no tokens."""
    made = ffwd.generate(
        model,
        tokenizer,
        "Ada",
        ffwd.regex(r"(.|\n)*"),
        masses=True,
        max_new_tokens=12,
        complete=False,
        do_sample=True,
    )
    report = GenerationReport()
    made = ffwd.generate(
        model, tokenizer, "Ada", ffwd.choice(["x", "y"]), report=report, masses=True
    )
    assert report.masses
    assert report.log_masses == [made.log_masses]


def test_options_that_do_not_go_together(model, tokenizer, vocabulary):
    with pytest.raises(TypeError, match="num_beams"):
        ffwd.generate(
            model,
            tokenizer,
            "Ada",
            ffwd.choice(["x", "y"]),
            masses=True,
            fast_forward=False,
            num_beams=2,
        )
    structured = Structured(model, vocabulary=vocabulary)
    with pytest.raises(TypeError, match="GenerationReport"):
        structured(choice=["x", "y"], masses=True)
    arguments = structured(choice=["x", "y"], masses=True, fast_forward=False)
    assert isinstance(arguments["logits_processor"], LogitsProcessorList)


def test_pictures_have_the_weight(model, encode, order_grammar, colour_grammar):
    inputs = encode("Ada bought", "Grace bought 12 apple express.")
    grammars = [order_grammar, colour_grammar]
    for masses in (True, False):
        report = GenerationReport(record=True, masses=masses)
        model.generate(
            **inputs,
            custom_generate=fast_forward_generate,
            grammar=grammars,
            report=report,
            **GREEDY,
        )
        if not masses:
            assert [one.log_weight for one in report.recordings] == [None, None]
            continue
        for recording, found in zip(report.recordings, report.log_masses, strict=True):
            assert recording.log_weight == pytest.approx(sum(found), abs=1e-3)
            given = [math.log(step.allowed_probability) for step in recording.steps]
            assert given == pytest.approx(found, abs=1e-4)
            assert "log weight of the text" in recording.html()
            assert f'"weight":{recording.log_weight}' in recording.html().replace(" ", "")


def test_a_recording_without_masses_has_no_weight(vocabulary, order_grammar):
    recorder = ffwd.view.Recorder(vocabulary)
    assert recorder.recording().log_weight == 0
    for token in itertools.islice(order_grammar.matcher().fast_forward_tokens(), 2):
        recorder.forced([token])
    assert recorder.recording().log_weight is None
    recorder.weighed([-1.5])
    assert recorder.recording().log_weight is None
    recorder.weighed([-1.5, -800.0])
    assert recorder.recording().log_weight == -math.inf
    assert '"weight":null' in recorder.recording().html().replace(" ", "")
