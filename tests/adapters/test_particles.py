"""`ffwd.generate(sampling=…)`: the model's distribution given the grammar, by enumeration."""

import itertools
import math

import pytest
import torch
from exactsampling import CASES, EOS, bigrams, compiled, distance, exact, letters, uniform, weighted
from transformers import GenerationConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

import ffwd
from ffwd.adapters.transformers import (
    GenerationReport,
    NoTokenLeftError,
    UnsupportedGenerationError,
)
from ffwd.adapters.transformers.adaptive import expected_weights
from ffwd.adapters.transformers.particles import _Batch, log_mean, systematic

BOTH = pytest.mark.parametrize("sampling", ["weighted", "smc"])
ALL = pytest.mark.parametrize("sampling", ["weighted", "smc", "adaptive"])


class Zeros(LlamaForCausalLM):
    """What is improbable is impossible."""

    def forward(self, input_ids=None, attention_mask=None, position_ids=None, **options):
        outputs = super().forward(input_ids, attention_mask, position_ids, **options)
        outputs.logits = torch.where(outputs.logits < -30, -torch.inf, outputs.logits)
        return outputs


@pytest.fixture(scope="module")
def bytewise():
    return letters()


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(5)


@BOTH
@pytest.mark.parametrize("case", CASES)
def test_they_are_from_the_model_given_the_grammar(sampling, case, bytewise):
    table, grammar, limit = CASES[case]
    model = bigrams(bytewise, table)
    grammar = compiled(bytewise, model, grammar)
    made = ffwd.generate(
        model, bytewise, "x", grammar, sampling=sampling, particles=6000, max_new_tokens=limit
    )
    wanted = exact(model, grammar, made.prompt_tokens, max_tokens=limit)
    assert distance(wanted.given, wanted.masked) > 0.45
    assert distance(wanted.given, weighted(made.particles)) < 0.01
    assert math.exp(made.log_evidence) == pytest.approx(wanted.evidence, rel=0.05)
    if sampling == "weighted":
        # Without their weights they are those of masks.
        assert distance(wanted.masked, uniform(made.particles)) < 0.03
        assert distance(wanted.given, uniform(made.particles)) > 0.4
    elif case == "brackets":
        # Resampling has moved them.
        assert distance(wanted.given, uniform(made.particles)) < 0.3
    assert sum(particle.probability for particle in made.particles) == pytest.approx(1)
    chosen = next(one for one in made.particles if one.tokens == made.tokens)
    assert chosen.text == made.text == made.value


@BOTH
def test_the_cache_follows_the_texts(sampling, model, tokenizer):
    """The model of this test reads all that is before a token."""
    schema = ffwd.regex("(red|green|blue)(ish)?( and (red|blue))?")
    vocabulary = ffwd.tokenizer.load(tokenizer).vocabulary(
        vocab_size=model.config.vocab_size, eos_token_ids=[EOS]
    )
    grammar = ffwd.compile(schema, vocabulary)
    options = {"temperature": 1.5, "max_new_tokens": 14}
    made = ffwd.generate(
        model, tokenizer, "Ada bought", grammar, sampling=sampling, particles=1500, **options
    )
    wanted = exact(model, grammar, made.prompt_tokens, max_tokens=14, temperature=1.5)
    assert len(wanted.given) > 10
    assert distance(wanted.given, wanted.masked) > 0.3
    assert distance(wanted.given, weighted(made.particles)) < 0.06
    assert made.log_evidence == pytest.approx(math.log(wanted.evidence), abs=0.15)
    # Forced tokens have masses too: the weights are exact.
    for particle in made.particles if sampling == "weighted" else ():
        ratio = wanted.given[particle.tokens] / wanted.masked[particle.tokens]
        log = math.log(ratio * wanted.evidence)
        assert particle.log_weight == pytest.approx(log, abs=1e-2)


@pytest.mark.parametrize("case", CASES)
def test_each_text_learns_from_those_before(case, bytewise):
    table, grammar, limit = CASES[case]
    model = bigrams(bytewise, table)
    grammar = compiled(bytewise, model, grammar)
    made = ffwd.generate(
        model, bytewise, "x", grammar, sampling="adaptive", particles=300, max_new_tokens=limit
    )
    wanted = exact(model, grammar, made.prompt_tokens, max_tokens=limit)
    # The first one knows nothing, and has the weight of masks; later draws of it are expected ones.
    first = made.particles[0].tokens
    share, copies = wanted.given[first], [one for one in made.particles if one.tokens == first]
    total = wanted.evidence * share * (299 + 1 / wanted.masked[first])
    weight = math.log(total / len(copies))
    assert all(one.log_weight == pytest.approx(weight, abs=1e-3) for one in copies)
    # At the end the bounds are nearly exact, so that texts come as often as they are probable.
    assert distance(wanted.given, uniform(made.particles[150:])) < 0.1
    assert distance(wanted.given, weighted(made.particles)) < 0.01
    assert math.exp(made.log_evidence) == pytest.approx(wanted.evidence, rel=0.02)
    # The cache of a prompt of one token has nothing that is kept.
    assert len(made.prompt_tokens) == 1


def test_adaptive_texts_continue_the_prompt(model, tokenizer):
    """Their masses and weights are those of a model that reads all that is before a token."""
    vocabulary = ffwd.tokenizer.load(tokenizer).vocabulary(
        vocab_size=model.config.vocab_size, eos_token_ids=[EOS]
    )
    grammar = ffwd.compile(ffwd.regex("(red|green|blue)(ish)?( and (red|blue))?"), vocabulary)
    made = ffwd.generate(
        model,
        tokenizer,
        "Ada bought",
        grammar,
        sampling="adaptive",
        particles=60,
        max_new_tokens=14,
        temperature=1.5,
    )
    wanted = exact(model, grammar, made.prompt_tokens, max_tokens=14, temperature=1.5)
    chosen = math.log(wanted.given[made.tokens] / wanted.masked[made.tokens] * wanted.evidence)
    assert made.log_weight == pytest.approx(chosen, abs=1e-2)
    assert made.log_evidence == pytest.approx(math.log(wanted.evidence), abs=0.2)
    assert distance(wanted.given, weighted(made.particles)) < 0.15


def test_repetitions_count_as_often_as_they_are_expected():
    """Totals over all sequences of draws, by their probability."""
    p, q = {"a": 0.3, "b": 0.1, "dead": 0.0}, {"a": 0.5, "b": 0.2, "dead": 0.3}
    logs = {text: math.log(share) if share else -math.inf for text, share in p.items()}
    totals = dict.fromkeys(p, 0.0)
    for texts in itertools.product(p, repeat=4):
        weights = [logs[text] - math.log(q[text]) for text in texts]
        found = expected_weights(
            [(text,) for text in texts], weights, [logs[text] for text in texts]
        )
        for text, weight in zip(texts, found, strict=True):
            totals[text] += math.prod(map(q.get, texts)) * math.exp(weight)
    assert totals == pytest.approx({text: 4 * share for text, share in p.items()})


def test_texts_that_have_ended_leave_the_model(bytewise):
    """Each text goes through the model until its end is chosen; the first pass is of all."""
    model = bigrams(bytewise, {None: {"a": 0.3, "b": 0.3, "": 0.4}})
    rows = []
    model.register_forward_pre_hook(
        lambda _, __, given: rows.append(given["input_ids"].shape[0]), with_kwargs=True
    )
    grammar = compiled(bytewise, model, ffwd.regex("[ab]*"))
    options = {"particles": 40, "max_new_tokens": 12}
    made = ffwd.generate(model, bytewise, "x", grammar, sampling="weighted", **options)
    lengths = [len(particle.tokens) for particle in made.particles]
    assert min(lengths) == 1
    assert max(lengths) > 4
    assert sum(rows) == 1 + sum(length - 1 for length in lengths)
    assert len(rows) == made.stats.forward_passes == max(lengths)


@BOTH
def test_what_leaves_the_model_changes_nothing(sampling, model, tokenizer, monkeypatch):
    def drawn():
        torch.manual_seed(7)
        schema = ffwd.regex("[a-d]{1,3}")
        options = {"particles": 300, "max_new_tokens": 5, "temperature": 20.0}
        return ffwd.generate(model, tokenizer, "Ada bought", schema, sampling=sampling, **options)

    made = drawn()
    assert len({len(particle.tokens) for particle in made.particles}) > 2
    monkeypatch.setattr(_Batch, "keep", lambda self, rows: None)
    padded = drawn()
    assert made.text == padded.text
    for one, other in zip(made.particles, padded.particles, strict=True):
        assert one.tokens == other.tokens
        assert one.log_weight == pytest.approx(other.log_weight, abs=1e-3)


def test_an_answer_is_drawn_by_its_weight(bytewise):
    """Of two texts, many times."""
    ends = {"a": {"": 0.9, "c": 0.1}, "b": {"": 0.1, "c": 0.9}}
    model = bigrams(bytewise, {None: {"a": 0.5, "b": 0.5}, **ends})
    grammar = compiled(bytewise, model, ffwd.choice(["a", "b"]))
    prompts = ["x"] * 120
    made = ffwd.generate(model, bytewise, prompts, grammar, sampling="weighted", particles=20)
    assert len(made) == 120
    assert 0.8 < sum(one.value == "a" for one in made) / len(made) < 0.97
    assert made[0].stats == made[-1].stats
    # The prompt goes through the model once, and the end is forced.
    assert made[0].stats.forward_passes == 2 * 120


@ALL
def test_one_particle_is_masked_sampling(sampling, model, tokenizer):
    options = {"max_new_tokens": 60, "whitespace": "compact", "top_k": 0, "top_p": 1.0}
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
    made = ffwd.generate(model, tokenizer, "Ada", schema, sampling=sampling, particles=1, **options)
    (particle,) = made.particles
    assert particle.tokens == made.tokens
    assert particle.log_weight == pytest.approx(made.log_weight) == pytest.approx(made.log_evidence)
    assert particle.probability == 1
    assert isinstance(made.value["a"], bool)
    torch.manual_seed(5)
    plain = ffwd.generate(model, tokenizer, "Ada", schema, do_sample=True, masses=True, **options)
    assert plain.particles == ()
    assert plain.log_evidence is None
    assert plain.log_masses == pytest.approx(made.log_masses, abs=1e-3)


@ALL
def test_texts_without_probability_end(sampling, bytewise):
    """The model never writes what must follow an "a"."""
    model = bigrams(bytewise, {None: {"a": 0.6, "b": 0.4}, "b": {"": 1.0}, "a": {"": 1.0}})
    model.__class__ = Zeros
    grammar = compiled(bytewise, model, ffwd.regex("a[cd]|b"))
    made = ffwd.generate(model, bytewise, "x", grammar, sampling=sampling, particles=400)
    assert made.value == "b"
    assert all(one.text == "b" for one in made.particles if one.probability > 0)
    assert math.exp(made.log_evidence) == pytest.approx(0.4, abs=0.06)
    never = compiled(bytewise, model, ffwd.choice(["c", "d"]))
    with pytest.raises(NoTokenLeftError):
        ffwd.generate(model, bytewise, "x", never, sampling=sampling, particles=3)


@ALL
def test_all_of_it_is_forced(sampling, model, tokenizer):
    made = ffwd.generate(
        model, tokenizer, "Ada", ffwd.choice(["apple banana"]), sampling=sampling, particles=3
    )
    assert [one.text for one in made.particles] == ["apple banana"] * 3
    assert [one.log_weight for one in made.particles] == pytest.approx([made.log_weight] * 3)
    assert made.stats.forward_passes == (3 if sampling == "adaptive" else 1)


def test_reports_and_the_configuration(model, tokenizer):
    """Cuts and penalties of the model's own configuration do not apply."""
    report = GenerationReport()
    before = model.generation_config
    model.generation_config = GenerationConfig(
        top_k=1, top_p=0.1, min_p=0.5, repetition_penalty=2.0, eos_token_id=EOS, pad_token_id=0
    )
    try:
        made = ffwd.generate(
            model,
            tokenizer,
            ["Ada", "Grace"],
            ffwd.regex("[a-z]{3}"),
            sampling="smc",
            particles=50,
            report=report,
        )
    finally:
        model.generation_config = before
    for one, masses in zip(made, report.log_masses, strict=True):
        assert len({particle.tokens for particle in one.particles}) > 5
        assert one.log_masses == masses
        assert one.stats == report.stats


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"sampling": "mcmc"}, ValueError, "'masks', 'weighted', 'smc', 'adaptive'"),
        ({"particles": 4}, TypeError, "sampling='weighted'"),
        ({"sampling": "smc", "particles": 0}, ValueError, "at least 1"),
        ({"sampling": "smc", "particles": 2.5}, TypeError, "2.5"),
        ({"sampling": "smc", "particles": True}, TypeError, "True"),
        ({"sampling": "smc", "fast_forward": False}, TypeError, "fast_forward=False"),
        ({"sampling": "smc", "complete": False}, TypeError, "complete=False"),
        ({"sampling": "smc", "top_p": 0.9}, TypeError, "give top_p=1.0"),
        ({"sampling": "smc", "top_k": 5}, TypeError, "give top_k=0"),
        ({"sampling": "smc", "repetition_penalty": 1.1}, TypeError, "repetition_penalty"),
        (
            {"sampling": "smc", "generation_config": GenerationConfig(top_p=0.5)},
            TypeError,
            "top_p=0.5",
        ),
        ({"sampling": "weighted", "do_sample": False}, TypeError, "do_sample=False"),
        ({"sampling": "weighted", "num_beams": 2}, TypeError, "num_beams=2"),
        ({"sampling": "weighted", "report": GenerationReport(trace=True)}, TypeError, "trace"),
        ({"sampling": "weighted", "bad_words_ids": [[5]]}, UnsupportedGenerationError, "BadWords"),
    ],
)
def test_what_is_refused(options, error, text, model, tokenizer):
    with pytest.raises(error, match=text):
        ffwd.generate(model, tokenizer, "Ada", ffwd.choice(["x", "y"]), **options)


def test_streams_and_windows_are_refused(model, tokenizer):
    with pytest.raises(TypeError, match="nothing to stream"):
        ffwd.stream(model, tokenizer, "Ada", ffwd.choice(["x", "y"]), sampling="smc")
    config = MistralConfig(
        vocab_size=768,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        sliding_window=8,
        eos_token_id=EOS,
    )
    with pytest.raises(UnsupportedGenerationError, match="sliding-window"):
        ffwd.generate(
            MistralForCausalLM(config).eval(),
            tokenizer,
            "Ada",
            ffwd.choice(["x", "y"]),
            sampling="smc",
        )


def test_resampling_is_in_proportion():
    shares = torch.tensor([0.0, 0.5, 0.2, 0.0, 0.3, 0.0], dtype=torch.double)
    for offset in (0.0, 0.3, 0.999999):
        found = systematic(shares, offset)
        assert len(found) == 6
        counts = torch.tensor([found.count(i) for i in range(6)])
        assert bool(((counts - 6 * shares).abs() < 1).all())
        assert not counts[shares == 0].any()
    assert log_mean([0.0, -math.inf]) == pytest.approx(-math.log(2))
    assert log_mean([-5.0, -5.0]) == pytest.approx(-5)
