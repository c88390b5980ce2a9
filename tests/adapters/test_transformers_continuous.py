"""Continuous batching with a grammar for each request."""

import sys

import pytest
import torch
from tinymodels import COLOUR_SCHEMA, EOS, ORDER_SCHEMA, PAD
from transformers import GenerationConfig

import ffwd
from ffwd.adapters.transformers import (
    ContinuousBatchingError,
    GrammarLogitsProcessor,
    constrain_manager,
    constrained_generate_batch,
)

pytest.importorskip("transformers.generation.continuous_batching.cb_logits_processors")
from transformers import ContinuousBatchingConfig
from transformers.generation.continuous_batching.requests import RequestState

PROMPTS = ["Ada bought", "Grace bought 3 cherry", "x", "Alan bought 7 apple banana standard,"]


def config(**options):
    # Without a number of blocks, the cache takes most of the memory.
    return ContinuousBatchingConfig(
        **{
            "num_blocks": 64,
            "max_batch_tokens": 64,
            "page_size": 16,
            "use_async_batching": False,
            "use_cuda_graph": False,
            **options,
        }
    )


def generation(**options):
    given = {"max_new_tokens": 150, "do_sample": False, "eos_token_id": EOS, "pad_token_id": PAD}
    return GenerationConfig(**(given | options))


@pytest.fixture
def prompts(tokenizer):
    return [tokenizer.encode(f"<s>{prompt}", add_special_tokens=False) for prompt in PROMPTS]


@pytest.fixture
def alone(model):
    """What `generate` gives for one prompt, as new ids."""

    def alone(prompt, grammar=None, **options):
        processors = [] if grammar is None else [GrammarLogitsProcessor(grammar)]
        output = model.generate(
            torch.tensor([prompt]),
            generation_config=generation(**options),
            logits_processor=processors,
        )
        return output[0, len(prompt) :].tolist()

    return alone


def text_of(tokenizer, output):
    return tokenizer.decode(output.generated_tokens, skip_special_tokens=True)


def test_a_grammar_for_each_prompt(
    model, tokenizer, prompts, alone, order_grammar, colour_grammar, assert_valid
):
    grammars = [order_grammar, colour_grammar, colour_grammar, order_grammar]
    outputs = constrained_generate_batch(
        model,
        prompts,
        grammars,
        generation_config=generation(),
        continuous_batching_config=config(),
    )
    assert len(outputs) == 4
    for output, prompt, grammar in zip(outputs.values(), prompts, grammars, strict=True):
        assert output.error is None
        assert output.prompt_ids == prompt
        assert output.generated_tokens == alone(prompt, grammar)
        schema = ORDER_SCHEMA if grammar is order_grammar else COLOUR_SCHEMA
        assert_valid(text_of(tokenizer, output), schema)
    assert constrained_generate_batch(model, [], order_grammar) == {}


@pytest.fixture
def managed(model, vocabulary):
    """Requests through a manager of their own: outputs by request id."""

    def managed(requests, generation_config=None, **options):
        manager = model.init_continuous_batching(
            generation_config=generation_config or generation(),
            continuous_batching_config=config(**options),
        )
        constrain_manager(manager, vocabulary)
        manager.start()
        try:
            for name, (prompt, arguments) in requests.items():
                manager.add_request(prompt, request_id=name, **arguments)
            found = {}
            while len(found) < len(requests) * manager.num_return_sequences:
                output = manager.get_result(timeout=1)
                assert output is not None or manager.is_running()
                if output is not None and output.is_finished():
                    found[output.request_id] = output
            return found
        finally:
            manager.stop(block=True)
            manager.destroy()

    return managed


def test_requests_with_and_without_grammars(
    managed, tokenizer, prompts, alone, vocabulary, order_grammar
):
    date = ffwd.compile(ffwd.regex("[0-9]{4}-[0-9]{2}"), vocabulary)
    outputs = managed(
        {
            "order": (prompts[0], {"grammar": order_grammar}),
            "plain": (prompts[1], {"max_new_tokens": 30}),
            "date": (prompts[2], {"grammar": date, "canonical": True}),
            "other": (prompts[3], {"max_new_tokens": 20}),
        }
    )
    assert outputs["order"].generated_tokens == alone(prompts[0], order_grammar)
    assert outputs["plain"].generated_tokens == alone(prompts[1], max_new_tokens=30)
    assert outputs["other"].generated_tokens == alone(prompts[3], max_new_tokens=20)
    assert len(text_of(tokenizer, outputs["date"])) == 7


def test_a_request_fails_alone(
    managed, tokenizer, prompts, alone, order_grammar, colour_grammar, assert_valid
):
    other = ffwd.Vocabulary([bytes([b]) for b in range(256)] + [None], eos_token_ids=[256])
    outputs = managed(
        {
            "budget": (
                prompts[0],
                {"grammar": order_grammar, "max_new_tokens": 5, "complete": True},
            ),
            "good": (prompts[1], {"grammar": colour_grammar}),
            "type": (prompts[2], {"grammar": {"type": "object"}}),
            "vocabulary": (prompts[2], {"grammar": ffwd.compile(ffwd.lit("yes"), other)}),
            "unknown": (prompts[2], {"grammer": colour_grammar}),
            "short": (
                prompts[3],
                {"grammar": colour_grammar, "max_new_tokens": 20, "complete": True},
            ),
        }
    )
    assert "5" in outputs["budget"].error
    assert "CompiledGrammar" in outputs["type"].error
    assert "another vocabulary" in outputs["vocabulary"].error
    assert "grammer" in outputs["unknown"].error
    for name in ("budget", "type", "vocabulary"):
        assert outputs[name].generated_tokens == [EOS]
    assert outputs["good"].error is None
    assert outputs["good"].generated_tokens == alone(prompts[1], colour_grammar)
    assert outputs["short"].error is None
    assert_valid(text_of(tokenizer, outputs["short"]), COLOUR_SCHEMA)


@pytest.mark.parametrize("per_request", [False, True])
def test_sampling(
    per_request, managed, tokenizer, prompts, order_grammar, colour_grammar, assert_valid
):
    """With processors that cut the distribution, for all requests or for each."""
    each = {"temperature": 0.7, "top_k": 5} if per_request else {}
    outputs = managed(
        {
            "a": (prompts[0], {"grammar": order_grammar}),
            "b": (prompts[1], {"grammar": colour_grammar, **each}),
            "c": (prompts[2], each),
        },
        generation(do_sample=True, temperature=1.4, top_k=20, top_p=0.9),
        per_request_processors=per_request,
        seed=3,
    )
    assert_valid(text_of(tokenizer, outputs["a"]))
    assert_valid(text_of(tokenizer, outputs["b"]), COLOUR_SCHEMA)
    assert {output.error for output in outputs.values()} == {None}


def test_several_sequences_for_each_prompt(model, tokenizer, prompts, order_grammar, assert_valid):
    """A request is forked after its prompt, its matcher with it."""
    outputs = constrained_generate_batch(
        model,
        prompts[:2],
        order_grammar,
        generation_config=generation(do_sample=True, num_return_sequences=3),
        continuous_batching_config=config(seed=4),
    )
    assert len(outputs) == 6
    texts = [text_of(tokenizer, output) for output in outputs.values()]
    for text in texts:
        assert_valid(text)
    assert len(set(texts)) > 3


def test_requests_that_are_taken_out_of_the_cache(
    managed, prompts, alone, order_grammar, monkeypatch
):
    """They begin anew, what was generated then being in the prompt."""
    restarts = []
    restart = RequestState.create_equivalent_initial_request

    def counted(state):
        restarts.append((state.request_id, len(state.generated_tokens)))
        return restart(state)

    monkeypatch.setattr(RequestState, "create_equivalent_initial_request", counted)
    requests = {
        str(number): (prompts[number % 4], {"grammar": order_grammar, "complete": True})
        for number in range(6)
    }
    outputs = managed(requests, num_blocks=8, max_batch_tokens=12)
    assert any(tokens > 3 for _, tokens in restarts)
    for number in range(6):
        output = outputs[str(number)]
        assert output.error is None
        assert output.generated_tokens == alone(prompts[number % 4], order_grammar)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"use_async_batching": True}, "use_async_batching"),
        ({"default_compile_level": 1}, "compile_config"),
    ],
)
def test_what_cannot_be_had_is_named(options, named, model, vocabulary):
    manager = model.init_continuous_batching(
        generation_config=generation(), continuous_batching_config=config(**options)
    )
    with pytest.raises(ContinuousBatchingError, match=named) as raised:
        constrain_manager(manager, vocabulary)
    assert named in raised.value.option


def test_managers_that_cannot_be_constrained(model, vocabulary, compile_schema):
    def manager():
        return model.init_continuous_batching(
            generation_config=generation(), continuous_batching_config=config()
        )

    graphs = manager()
    graphs.continuous_batching_config.use_cuda_graph = (False, True)
    with pytest.raises(ContinuousBatchingError, match="use_cuda_graph"):
        constrain_manager(graphs, vocabulary)
    parallel = manager()
    parallel.distributed_helper.tp_size = 2
    with pytest.raises(ContinuousBatchingError, match="tensor parallelism"):
        constrain_manager(parallel, vocabulary)
    twice = manager()
    constrain_manager(twice, vocabulary)
    with pytest.raises(ContinuousBatchingError, match="has been called"):
        constrain_manager(twice, vocabulary)
    warm = manager()
    warm.warmup()
    with pytest.raises(ContinuousBatchingError, match="started or warmed up"):
        constrain_manager(warm, vocabulary)
    wide = ffwd.Vocabulary([bytes([b]) for b in range(256)] * 4 + [None], eos_token_ids=[1024])
    with pytest.raises(ffwd.VocabularyError, match="768"):
        constrain_manager(manager(), wide)


def test_a_release_without_such_processors(model, vocabulary, monkeypatch):
    manager = model.init_continuous_batching(
        generation_config=generation(), continuous_batching_config=config()
    )
    name = "transformers.generation.continuous_batching.cb_logits_processors"
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ContinuousBatchingError, match="this release"):
        constrain_manager(manager, vocabulary)


def test_one_grammar_for_each_prompt_or_one_for_all(model, prompts, order_grammar):
    with pytest.raises(ValueError, match="2 grammars for 4 prompts"):
        constrained_generate_batch(model, prompts, [order_grammar] * 2)


def test_the_scheduler_dies(model, prompts, order_grammar, monkeypatch):
    from ffwd.adapters.transformers.continuous_processor import GrammarBatchProcessor

    def broken(self, scores, tensor_arg):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(GrammarBatchProcessor, "__call__", broken)
    outputs = constrained_generate_batch(
        model,
        prompts,
        order_grammar,
        generation_config=generation(),
        continuous_batching_config=config(),
    )
    assert [output.error for output in outputs.values()] == ["out of memory"] * 4
