"""Bitmasks on scores, against the list of allowed tokens."""

import numpy as np
import pytest
import torch

from ffwd import VocabularyError
from ffwd.adapters.logits.torch_bitmask import blocked_on_device
from ffwd.adapters.transformers.mask import ScoreMask

EOS, WIDTH = 2, 768


@pytest.fixture
def matchers(order_grammar, colour_grammar):
    first, second = order_grammar.matcher(), colour_grammar.matcher()
    for matcher in (first, second):
        matcher.accept_token(matcher.allowed_token_ids()[0])
    return [first, second]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("width", [WIDTH, WIDTH + 1, WIDTH + 70])
def test_exactly_the_allowed_tokens_keep_their_scores(matchers, vocabulary, dtype, width):
    mask = ScoreMask(vocabulary, 4)
    mask.fill(matchers, [0, 2])
    mask.set_free(1)
    mask.set_ended(3)
    torch.manual_seed(0)
    scores = torch.randn(4, width).to(dtype)
    before = scores.clone()

    masked = mask.apply(scores)

    assert torch.equal(scores, before)
    assert masked.dtype == dtype
    assert torch.equal(mask.apply(scores.T.contiguous().T), masked)
    own = scores.clone()
    assert mask.apply(own, in_place=True) is own
    assert torch.equal(own, masked)
    allowed = [
        matchers[0].allowed_token_ids(),
        range(width),
        matchers[1].allowed_token_ids(),
        [EOS],
    ]
    for row, tokens in enumerate(allowed):
        expected = torch.full((width,), -torch.inf, dtype=dtype)
        expected[list(tokens)] = before[row, list(tokens)]
        assert torch.equal(masked[row], expected)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_without_a_token_to_choose(matchers, vocabulary, dtype, in_place):
    mask = ScoreMask(vocabulary, 4)
    mask.fill([*matchers, matchers[0]], [0, 1, 3])
    mask.set_free(2)
    scores = torch.full((4, WIDTH + 5), -torch.inf, dtype=dtype)
    refused = next(t for t in range(WIDTH) if t not in matchers[0].allowed_token_ids())
    scores[0, refused] = 1.0
    scores[1, matchers[1].allowed_token_ids()[-1]] = torch.nan
    scores[3, matchers[0].allowed_token_ids()[-1]] = -5.0
    by_hand = scores.clone()
    masked = mask.apply(scores, in_place=in_place)
    assert mask.starved(masked) == [0]
    # As on an accelerator, where free rows are looked at, too.
    mask.apply(by_hand.requires_grad_())
    assert mask.starved(masked) == [0, 2]


@pytest.mark.parametrize("width", [WIDTH, WIDTH + 70])
def test_a_gradient_goes_through(matchers, vocabulary, width):
    mask = ScoreMask(vocabulary, 2)
    mask.fill(matchers[:1], [0])
    mask.set_free(1)
    scores = torch.randn(2, width, requires_grad=True)
    masked = mask.apply(scores)
    assert torch.equal(masked.detach(), mask.apply(scores.detach()))
    masked[torch.isfinite(masked)].sum().backward()
    assert torch.equal(scores.grad, torch.isfinite(masked).float())


def test_a_row_that_was_free_is_masked_again(matchers, vocabulary):
    mask = ScoreMask(vocabulary, 1)
    mask.set_free(0)
    mask.fill(matchers[:1], [0])
    masked = mask.apply(torch.zeros(1, WIDTH + 5))
    assert (masked == 0).nonzero()[:, 1].tolist() == matchers[0].allowed_token_ids()


@pytest.mark.parametrize("vocab_size", [1, 31, 32, 33, 95, 96])
def test_unpacking_on_a_device_equals_unpacking_by_hand(vocab_size):
    rng = np.random.default_rng(vocab_size)
    words = -(-vocab_size // 32)
    bits = rng.integers(-(2**31), 2**31, size=(3, words), dtype=np.int64).astype(np.int32)
    blocked = blocked_on_device(torch.from_numpy(bits), vocab_size)
    for row in range(3):
        for token in range(vocab_size):
            allowed = (int(bits[row, token // 32]) >> (token % 32)) & 1
            assert blocked[row, token].item() == (not allowed)


def test_counts_and_only_token(order_grammar, vocabulary):
    matcher = order_grammar.matcher()
    mask = ScoreMask(vocabulary, 1)
    seen_single = seen_many = False
    while not matcher.is_terminated():
        mask.fill([matcher], [0])
        allowed = matcher.allowed_token_ids()
        assert mask.count(0) == len(allowed)
        assert mask.only_token(0) == (allowed[0] if len(allowed) == 1 else None)
        seen_single |= len(allowed) == 1
        seen_many |= len(allowed) > 1
        matcher.accept_token(allowed[-1])
    assert seen_single
    assert seen_many


def test_a_vocabulary_larger_than_the_logits_is_refused(vocabulary):
    mask = ScoreMask(vocabulary, 1)
    with pytest.raises(VocabularyError, match=r"768 tokens.*logits only 767"):
        mask.apply(torch.zeros(1, WIDTH - 1))
