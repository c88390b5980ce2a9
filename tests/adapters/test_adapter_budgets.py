"""Answers of models that are complete within the tokens that `generate` may make."""

import json

import pytest
import torch

import ffwd
from ffwd.adapters.transformers import GrammarLogitsProcessor, fast_forward_generate

FREE_SCHEMA = {
    "type": "object",
    "properties": {
        "thoughts": {"type": "array", "items": {"type": "string"}},
        "answer": {"type": "string", "minLength": 2},
    },
    "required": ["thoughts", "answer"],
}


@pytest.fixture(scope="module")
def grammar(compile_schema):
    return compile_schema(FREE_SCHEMA)


@pytest.fixture(scope="module")
def needed(grammar):
    return len(grammar.shortest_completion())


@pytest.mark.parametrize("more", [0, 3, 30])
@pytest.mark.parametrize("options", [{"do_sample": False}, {"do_sample": True, "num_beams": 2}])
def test_the_processor_closes_in_time(more, options, model, encode, answers, grammar, needed):
    inputs = encode("Ada bought", "cherry")
    torch.manual_seed(7)
    processor = GrammarLogitsProcessor(grammar, max_tokens=needed + more)
    output = model.generate(
        **inputs, logits_processor=[processor], max_new_tokens=needed + more, **options
    )
    for answer in answers(output, inputs):
        assert set(json.loads(answer)) >= set(FREE_SCHEMA["required"])


@pytest.mark.parametrize("more", [0, 3, 30])
def test_fast_forward_closes_in_time(more, model, encode, answers, grammar, needed):
    inputs = encode("Ada bought", "cherry")
    torch.manual_seed(8)
    output = model.generate(
        **inputs,
        custom_generate=fast_forward_generate,
        grammar=grammar,
        complete=True,
        do_sample=True,
        max_new_tokens=needed + more,
    )
    for answer in answers(output, inputs):
        assert set(json.loads(answer)) >= set(FREE_SCHEMA["required"])


def test_too_few_tokens_are_an_error(model, encode, grammar, needed):
    inputs = encode("Ada bought")
    with pytest.raises(ffwd.BudgetError) as caught:
        model.generate(
            **inputs,
            custom_generate=fast_forward_generate,
            grammar=grammar,
            complete=True,
            max_new_tokens=needed - 1,
        )
    assert caught.value.needed == needed
    with pytest.raises(ffwd.BudgetError):
        model.generate(
            **inputs,
            logits_processor=[GrammarLogitsProcessor(grammar, max_tokens=needed - 1)],
            max_new_tokens=needed - 1,
        )
