"""ONNX Runtime GenAI's generator on a tiny random model, which its model builder exports."""

import os
import subprocess
import sys

import numpy as np
import pytest

og = pytest.importorskip("onnxruntime_genai", reason="needs the environment onnxruntime-genai")

from hostcases import CASES, MAX_TOKENS, NAMES, PROMPTS, write_host_model

import ffwd
from ffwd.adapters.onnxruntime_genai import (
    GrammarGenerator,
    NoTokenLeftError,
    RefusedTokenError,
    UnsupportedGenerationError,
    vocabulary_of,
)
from ffwd.chat import Prompt, TextPart

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    source, exported = write_host_model(folder / "source"), folder / "exported"
    builder = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-p", "fp32", "-e", "cpu"]
    builder += ["-i", str(source), "-o", str(exported), "-c", str(folder / "cache")]
    subprocess.run(
        builder, check=True, capture_output=True, env={**os.environ, "HF_HUB_OFFLINE": "1"}
    )
    return exported


@pytest.fixture(scope="module")
def model(folder):
    return og.Model(str(folder))


@pytest.fixture(scope="module")
def vocabulary(folder):
    return vocabulary_of(folder)


def params_of(model, **options):
    params = og.GeneratorParams(model)
    params.set_search_options(**{"max_length": 300, "do_sample": False, **options})
    return params


def encode(vocabulary, text):
    return np.array(vocabulary.encode(text.encode()), dtype=np.int32)


def run(generator, prompt):
    generator.append_tokens(prompt)
    steps = 0
    while not generator.is_done():
        generator.generate_next_token()
        steps += 1
    return steps


def text_of(vocabulary, output):
    assert output[-1] in vocabulary.eos_token_ids
    return b"".join(vocabulary.token_bytes(token) for token in output[:-1]).decode()


def generate(model, vocabulary, grammar, prompt=PROMPTS[0], *, fast_forward=True, **options):
    generator = GrammarGenerator(
        model,
        params_of(model, **options),
        grammar,
        fast_forward=fast_forward,
        max_tokens=MAX_TOKENS,
    )
    steps = run(generator, encode(vocabulary, prompt))
    assert len(generator.outputs[0]) == steps + generator.forced
    return text_of(vocabulary, generator.outputs[0]), generator, steps


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_outputs_are_valid(model, vocabulary, case):
    """By the libraries of others: greedy and sampled, with forced tokens and without."""
    grammar = ffwd.compile(case.grammar(), vocabulary)
    for fast_forward in (True, False):
        text, generator, _ = generate(model, vocabulary, grammar, fast_forward=fast_forward)
        case.check(text)
        assert generator.forced == 0 or fast_forward
        options = {"do_sample": True, "temperature": 1.5, "top_k": 40, "random_seed": 5}
        text, _, _ = generate(model, vocabulary, grammar, PROMPTS[1], **options)
        case.check(text)


def test_forced_tokens_save_steps(model, vocabulary):
    """The sequence of og is that of the grammar, and its logits are those of one token a time."""
    grammar = ffwd.compile(CASES[0].grammar(), vocabulary)
    _, generator, steps = generate(model, vocabulary, grammar)
    output = generator.outputs[0]
    prompt = encode(vocabulary, PROMPTS[0])
    # og drops the end token.
    assert generator.generator.get_sequence(0).tolist() == [*prompt.tolist(), *output[:-1]]
    assert generator.forced > steps

    follower = grammar.matcher(max_tokens=MAX_TOKENS)
    single = og.Generator(model, params_of(model))
    single.append_tokens(prompt)
    for token in output:
        forced = follower.fast_forward_tokens(max_tokens=1)
        logits = np.array(single.get_logits()).reshape(-1)
        best = max(follower.allowed_token_ids(), key=lambda one: logits[one])
        assert token == (forced[0] if forced else best)
        assert follower.accept_token(token)
        if token not in vocabulary.eos_token_ids:
            single.append_tokens(np.array([token], dtype=np.int32))


def test_batches(model, vocabulary):
    """A grammar for each row, or one for all; without forced tokens."""
    cases = [CASES[0], CASES[10], CASES[20]]
    grammars = [ffwd.compile(case.grammar(), vocabulary) for case in cases]
    prompt = np.array([[4, 5], [6, 7], [8, 9]], dtype=np.int32)
    generator = GrammarGenerator(
        model, params_of(model, batch_size=3), grammars, max_tokens=MAX_TOKENS
    )
    run(generator, prompt)
    for case, output in zip(cases, generator.outputs, strict=True):
        case.check(text_of(vocabulary, output))
    generator = GrammarGenerator(
        model, params_of(model, batch_size=3), grammars[0], max_tokens=MAX_TOKENS
    )
    run(generator, prompt)
    for output in generator.outputs:
        cases[0].check(text_of(vocabulary, output))
    with pytest.raises(UnsupportedGenerationError, match="one row"):
        generator.rewind_to(3)


def test_rewind(model, vocabulary):
    """The same tokens again, from any position."""
    grammar = ffwd.compile(CASES[0].grammar(), vocabulary)
    expected, generator, _ = generate(model, vocabulary, grammar, fast_forward=False)
    prompt = len(encode(vocabulary, PROMPTS[0]))
    for back in (1, 5, len(generator.outputs[0])):
        total = prompt + len(generator.outputs[0])
        generator.rewind_to(total - back)
        assert len(generator.outputs[0]) == total - back - prompt
        while not generator.is_done():
            generator.generate_next_token()
        assert text_of(vocabulary, generator.outputs[0]) == expected
    with pytest.raises(UnsupportedGenerationError, match="output tokens"):
        generator.rewind_to(prompt - 1)


def test_max_length_cuts_forced_tokens(model, vocabulary):
    grammar = ffwd.compile(ffwd.lit("The order of the customer is pending"), vocabulary)
    prompt = encode(vocabulary, "x")
    for length in range(len(prompt) + 1, len(prompt) + 8):
        generator = GrammarGenerator(model, params_of(model, max_length=length), grammar)
        run(generator, prompt)
        assert generator.generator.token_count() == length
        assert grammar.matcher().accept_tokens(generator.outputs[0])


def test_the_start_of_a_chat(model, vocabulary, folder):
    prompt = Prompt(
        parts=(TextPart(PROMPTS[0]), TextPart('{"express":')),
        tokenizer=ffwd.tokenizer.load(folder),
        end_token_ids=tuple(vocabulary.eos_token_ids),
        prefill='{"express":',
        generation_start=True,
    )
    schema = '{"type": "object", "properties": {"express": {"type": "boolean"}}}'
    start = prompt.start(ffwd.compile(ffwd.json_schema(schema), vocabulary))
    generator = GrammarGenerator(model, params_of(model), start, max_tokens=MAX_TOKENS)
    run(generator, list(start.prompt_ids))
    answer = start.answer(generator.outputs[0])
    assert answer.complete
    assert answer.text.startswith('{"express":')
    with pytest.raises(ValueError, match="prompt_ids"):
        GrammarGenerator(model, params_of(model), start).append_tokens([1, 2])


def test_errors(model, vocabulary, tmp_path):
    grammar = ffwd.compile(ffwd.regex("a{40}"), vocabulary)
    for options in ({"num_beams": 2}, {"num_return_sequences": 2, "do_sample": True}):
        with pytest.raises(UnsupportedGenerationError, match=next(iter(options))):
            GrammarGenerator(model, params_of(model, **options), grammar)
    with pytest.raises(UnsupportedGenerationError, match="2 grammars"):
        GrammarGenerator(model, params_of(model), [grammar, grammar])
    with pytest.raises(ffwd.BudgetError):
        GrammarGenerator(model, params_of(model), grammar, max_tokens=3)
    with pytest.raises(TypeError, match=r"ffwd\.compile"):
        GrammarGenerator(model, params_of(model), [ffwd.regex("a")])
    with pytest.raises(ffwd.VocabularyError, match="genai_config"):
        vocabulary_of(tmp_path)

    class Wrong:
        """What og does where another option chooses."""

        def __init__(self, inner, token):
            self.inner, self.token = inner, token

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def set_logits(self, logits):
            logits[...] = -np.inf
            logits[..., self.token] = 0
            self.inner.set_logits(logits)

        def get_logits(self):
            logits = self.inner.get_logits()
            return np.full_like(logits, -np.inf) if self.token is None else logits

    wrong = vocabulary.encode(b"z")[0]
    for token, error in ((wrong, RefusedTokenError), (None, NoTokenLeftError)):
        generator = GrammarGenerator(model, params_of(model), grammar, fast_forward=False)
        generator.append_tokens(encode(vocabulary, "x"))
        generator.generate_next_token()
        generator.generator = Wrong(generator.generator, token)
        with pytest.raises(error):
            generator.generate_next_token()
    with pytest.raises(UnsupportedGenerationError, match="append_tokens"):
        generator.append_tokens([1])
