"""Decoding on a GPU writes the tokens that it writes on the processor.

Every test of this folder is about a device as far as its models are: `FFWD_TEST_DEVICE=cuda` puts
the models and inputs of `conftest.py` there. These tests name both devices.
"""

from copy import deepcopy

import pytest
import torch
from transformers import CompileConfig

from ffwd.adapters.transformers import (
    GrammarLogitsProcessor,
    constrained_generate_batch,
    fast_forward_generate,
)

DEVICES = [pytest.param("cpu"), pytest.param("cuda", marks=pytest.mark.gpu)]
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
GREEDY = {"do_sample": False, "max_new_tokens": 120}
PROMPTS = (["Ada bought"], ["Ada bought 3 apple express, shipped.", "Alan"])

pytestmark = pytest.mark.parametrize("device", DEVICES)


@pytest.fixture(scope="module")
def expected(trained_model, encode, order_grammar):
    """What the processor writes in float32, by prompts."""
    model = deepcopy(trained_model).to("cpu")
    return [
        model.generate(
            **encode(*prompts).to("cpu"),
            logits_processor=[GrammarLogitsProcessor(order_grammar, narrow=True)],
            **GREEDY,
        ).tolist()
        for prompts in PROMPTS
    ]


def on(device, dtype, model):
    return deepcopy(model).to(device=device, dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("batch", [0, 1], ids=["one row", "padded"])
def test_masks(device, dtype, batch, trained_model, encode, order_grammar, expected):
    output = on(device, dtype, trained_model).generate(
        **encode(*PROMPTS[batch]).to(device),
        logits_processor=[GrammarLogitsProcessor(order_grammar, narrow=True)],
        **GREEDY,
    )
    assert output.tolist() == expected[batch]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("batch", [0, 1], ids=["one row", "padded"])
def test_forced_tokens(device, dtype, batch, trained_model, encode, order_grammar, expected):
    output = on(device, dtype, trained_model).generate(
        **encode(*PROMPTS[batch]).to(device),
        custom_generate=fast_forward_generate,
        grammar=order_grammar,
        **GREEDY,
    )
    assert output.device.type == device
    assert output.tolist() == expected[batch]


@pytest.mark.parametrize("batch", [0, 1], ids=["one row", "padded"])
def test_static_caches(device, batch, trained_model, encode, order_grammar, expected):
    """On a GPU `generate` compiles the forward pass of a static cache to CUDA graphs."""
    options = {"compile_config": CompileConfig(mode="reduce-overhead")} if device == "cuda" else {}
    output = on(device, torch.float32, trained_model).generate(
        **encode(*PROMPTS[batch]).to(device),
        logits_processor=[GrammarLogitsProcessor(order_grammar, narrow=True)],
        cache_implementation="static",
        **GREEDY,
        **options,
    )
    assert output.tolist() == expected[batch]


@pytest.mark.gpu
def test_continuous_batching(device, trained_model, encode, order_grammar, expected):
    prompts = [encode(prompt)["input_ids"][0].tolist() for prompt in PROMPTS[1]]
    model = on(device, torch.float32, trained_model)
    outputs = constrained_generate_batch(model, prompts, order_grammar, max_new_tokens=120)
    on_cpu = constrained_generate_batch(
        on("cpu", torch.float32, trained_model), prompts, order_grammar, max_new_tokens=120
    )
    found, twins = (
        [output.generated_tokens for output in each.values()] for each in (outputs, on_cpu)
    )
    assert found == twins
