"""How often the host waits for the device between two forward passes: once, for the sampled ids."""

import functools
import itertools
import random
import warnings
from copy import deepcopy
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from accelerator import DEVICE, Accelerator, on_device, placed

from ffwd.adapters.logits import StagedBitmask
from ffwd.adapters.transformers import GenerationReport, fast_forward_generate
from ffwd.adapters.transformers.continuous_processor import GrammarBatchProcessor
from ffwd.adapters.transformers.generate import _LOST, _NOT_A_NUMBER, choose

GREEDY = {"do_sample": False, "max_new_tokens": 150}
WIDTH = 768


def waits_between_passes(model, run):
    """What waits on the stand-in between each two passes of a model, the passes included."""
    counted, before = [], model.forward
    with Accelerator() as accelerator:

        @functools.wraps(before)
        def forward(*args, **kwargs):
            counted.append(accelerator.waits.copy())
            return before(*args, **kwargs)

        model.forward = forward
        try:
            result = run()
        finally:
            del model.forward
    return [after - first for first, after in itertools.pairwise(counted)], result


def generated(model, inputs, grammar, device, **options):
    report = GenerationReport()
    given = {name: device(value) for name, value in inputs.items()}
    output = model.generate(
        **given, custom_generate=fast_forward_generate, grammar=grammar, report=report, **options
    )
    return output.as_subclass(torch.Tensor), report


@pytest.mark.parametrize("sampled", [False, True], ids=["greedy", "sampled"])
@pytest.mark.parametrize("prompts", [["Ada bought"], ["Ada bought", "Grace bought 3 apples"]])
def test_fast_forward_decoding_waits_once_a_pass(model, encode, order_grammar, prompts, sampled):
    options = {"max_new_tokens": 150, "do_sample": sampled, "top_k": None, "top_p": None}
    # The stand-in is in the processor's memory, also where the other tests are on a GPU.
    model, inputs = deepcopy(model).to("cpu"), encode(*prompts).to("cpu")
    torch.manual_seed(7)
    expected, on_cpu = generated(model, inputs, order_grammar, lambda t: t, **options)
    model = placed(model)
    torch.manual_seed(7)
    between, (output, report) = waits_between_passes(
        model, lambda: generated(model, inputs, order_grammar, on_device, **options)
    )
    assert torch.equal(output, expected)
    assert report.stats.forward_passes == on_cpu.stats.forward_passes > 3
    assert report.stats.forced_tokens == on_cpu.stats.forced_tokens > 0
    assert report.stats.masks == on_cpu.stats.masks
    assert report.stats.mask_nanoseconds > 0
    # The first pass makes the cache.
    assert between[0]["tolist"] == 1
    assert [dict(waits) for waits in between[1:]] == [{"tolist": 1}] * (len(between) - 1)


@pytest.mark.parametrize("sampled", [False, True], ids=["greedy", "sampled"])
def test_a_sampled_token_is_the_one_that_multinomial_draws(sampled):
    """Against `generate`'s own loop, which draws by `multinomial`."""
    scores = torch.randn(5, WIDTH).masked_fill(torch.rand(5, WIDTH) < 0.5, -torch.inf)
    lost = torch.zeros(5, dtype=torch.bool)
    torch.manual_seed(3)
    by_hand = torch.argmax(scores, -1)
    if sampled:
        by_hand = torch.multinomial(torch.softmax(scores, -1), 1).squeeze(1)
    torch.manual_seed(3)
    assert choose(scores, lost, do_sample=sampled) == by_hand.tolist()


def test_scores_without_a_token_and_without_numbers_are_told_apart():
    scores = torch.zeros(3, 8)
    scores[1] = -torch.inf
    scores[2, 3] = torch.nan
    lost = scores.amax(-1) == -torch.inf
    found = choose(scores, lost, do_sample=True)
    assert found[1:] == [_LOST, _NOT_A_NUMBER]
    assert found[0] >= 0


def test_the_server_waits_once_a_pass():
    pytest.importorskip("starlette")
    pytest.importorskip("prometheus_client")
    from tinymodels import random_llama

    from ffwd.adapters.server.sampling import Sampling, choose
    from ffwd.adapters.server.slots import SlotModel

    model = random_llama(seed=1)
    slots = SlotModel(model)
    chance = random.Random
    samplings = [
        Sampling(temperature=0),
        Sampling(temperature=0.7, chance=chance(1)),
        Sampling(top_k=5, top_p=0.9, chance=chance(2)),
    ]
    masks = [np.full(WIDTH // 32, -1, dtype=np.int32)] * 3
    chunks = [[1, 5, 6], [7], [8, 9]]

    def written():
        for sampling, seed in zip(samplings, (0, 1, 2), strict=True):
            sampling.chance.seed(seed)
        staged = StagedBitmask(4, WIDTH, slots.device)
        found = []
        for step in range(3):
            held = [0, 0, 0] if not step else [len(c) + step - 1 for c in chunks]
            given = chunks if not step else [[token] for token in found[-1]]
            logits = slots.logits([0, 1, 2], held, given)
            found.append(choose(logits, masks, samplings, vocab_size=WIDTH, staged=staged))
        slots.release()
        return found

    expected = written()
    slots = SlotModel(placed(model))
    between, found = waits_between_passes(slots._model, written)
    assert found == expected
    assert [dict(waits) for waits in between] == [{"tolist": 1}] * 2


def request(grammar, tokens):
    output = SimpleNamespace(prompt_ids=[1, 5], generated_tokens=tokens)
    state = SimpleNamespace(
        request_id="one",
        error=None,
        max_new_tokens=50,
        logit_processor_kwargs={"grammar": grammar},
        to_generation_output=lambda: output,
        generated_len=lambda: len(tokens),
    )
    return SimpleNamespace(state=state)


def test_continuous_batching_waits_for_nothing(order_grammar, colour_grammar, vocabulary):
    """The scheduler of transformers fetches the ids; the processor adds no wait to that."""
    processor = GrammarBatchProcessor(vocabulary)
    tokens: list[list[int]] = [[], []]
    requests = [request(order_grammar, tokens[0]), request(colour_grammar, tokens[1])]
    twins = [order_grammar.matcher(), colour_grammar.matcher()]
    for _ in range(6):
        # One more row than requests: a part of a prompt.
        scores = torch.randn(3, WIDTH)
        with Accelerator() as accelerator:
            argument = processor.prepare_tensor_args(requests)
            masked = processor(on_device(scores), argument)
        # Without CUDA there is no page-locked memory, so the masks are copied when they are used.
        assert not accelerator.waits
        masked = masked.as_subclass(torch.Tensor)
        assert torch.equal(masked[2], scores[2])
        for row, twin in enumerate(twins):
            allowed = twin.allowed_token_ids()
            assert torch.isfinite(masked[row]).nonzero().flatten().tolist() == allowed
            tokens[row].append(allowed[-1])
            twin.accept_token(allowed[-1])


def test_an_error_beside_the_pass_is_raised_where_the_masks_are_used():
    staged = StagedBitmask(1, WIDTH, DEVICE)
    staged.start(lambda bits: bits.no_such_thing)
    with pytest.raises(AttributeError, match="no_such_thing"):
        staged.apply(torch.zeros(1, WIDTH))
    staged.start(lambda bits: bits.fill(0))
    assert not staged.bits.any()


def test_the_stand_in_finds_what_waits():
    tensor = on_device(torch.arange(6.0))
    calls = {
        "item": lambda: tensor[1].item(),
        "tolist": lambda: tensor.tolist(),
        "cpu": lambda: tensor.cpu(),
        "__bool__": lambda: bool((tensor > 1).all()),
        "to": lambda: tensor.to("cpu"),
        "list as index": lambda: tensor[[0, 2]],
        "truth values as index": lambda: tensor[tensor > 1],
        "bound of a slice": lambda: tensor[: on_device(torch.tensor(2))],
        "numbers of the host": lambda: torch.tensor([1], device=DEVICE),
        "equal": lambda: torch.equal(tensor, tensor),
    }
    for name, call in calls.items():
        with Accelerator() as accelerator:
            call()
        assert sum(accelerator.waits.values()) == 1, name
    with Accelerator() as accelerator:
        moved = torch.softmax(tensor + 1, -1).argmax(-1)
        assert moved.device == DEVICE
        assert not accelerator.waits


@pytest.mark.gpu
def test_a_gpu_waits_once_a_pass(model, encode, order_grammar):
    """By torch's own count; copies of pageable memory are in it."""
    inputs = encode("Ada bought", "Grace bought 3 apples").to("cuda")
    on_gpu = deepcopy(model).to("cuda")
    counted = []
    before = on_gpu.forward

    @functools.wraps(before)
    def forward(*args, **kwargs):
        counted.append(len(caught))
        return before(*args, **kwargs)

    on_gpu.forward = forward
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            generated(on_gpu, inputs, order_grammar, lambda t: t, **GREEDY)
    finally:
        torch.cuda.set_sync_debug_mode("default")
        del on_gpu.forward
    between = [after - first for first, after in itertools.pairwise(counted)]
    assert len(between) > 3
    # The first pass makes the cache.
    assert set(between[1:]) == {1}, [str(warning.message) for warning in caught]
