"""`ffwd.sample_by_rejection`: the distribution of its tokens, and the mean of its weights."""

import math

import numpy as np
import pytest

import ffwd

SHARES = np.array([0.55, 0.2, 0.1, 0.08, 0.05, 0.02])


def drawn(logits, fine, number, seed=3):
    random = np.random.default_rng(seed)
    return [
        ffwd.sample_by_rejection(logits, fine.__contains__, random=random) for _ in range(number)
    ]


@pytest.mark.parametrize("fine", [{1, 4}, {0, 5}, {5}, set(range(6)), {2, 3, 4}])
def test_tokens_and_weights_are_unbiased(fine):
    number = 20_000
    samples = drawn(np.log(SHARES) + 7.0, fine, number)
    mass = SHARES[sorted(fine)].sum()
    weights = np.array([math.exp(sample.log_mass) for sample in samples])
    tokens = np.array([sample.token for sample in samples])
    assert weights.max() <= 1
    for token in fine:
        share = SHARES[token] / mass
        error = math.sqrt(share * (1 - share) / number)
        assert (tokens == token).mean() == pytest.approx(share, abs=4 * error + 1e-9)
        # The pair is properly weighted: the weight does not depend on the token on average.
        own = np.where(tokens == token, weights, 0.0)
        spread = own.std() / math.sqrt(number)
        assert own.mean() == pytest.approx(SHARES[token], abs=4 * spread + 1e-9)
    assert set(tokens.tolist()) == fine


def test_few_tokens_are_checked():
    """And each once."""
    random = np.random.default_rng(0)
    logits = random.normal(size=50_000) * 4
    checked = []

    def fine(token):
        checked.append(token)
        return token % 2 == 0

    sample = ffwd.sample_by_rejection(logits, fine, random=random)
    assert sample.checks == len(checked) == len(set(checked)) < 100
    assert all(type(token) is int for token in checked)


def test_a_mass_that_is_hardly_ever_drawn():
    """All tokens are then checked, and the weight stays unbiased."""
    logits = np.array([0.0, *[-1.0] * 400])
    shares = np.exp(logits) / np.exp(logits).sum()
    # The likeliest allowed token is rare, and so are the rejected ones, one by one.
    samples = drawn(logits, {7}, 300)
    weights = np.array([math.exp(sample.log_mass) for sample in samples])
    assert {sample.token for sample in samples} == {7}
    assert max(sample.checks for sample in samples) == 401
    assert weights.mean() == pytest.approx(shares[7], abs=4 * weights.std() / math.sqrt(300))


def test_with_a_matcher():
    pieces = [bytes([byte]) for byte in range(256)]
    vocabulary = ffwd.Vocabulary([*pieces, b"ab", None], eos_token_ids=[257])
    matcher = ffwd.compile(ffwd.regex("ab+"), vocabulary).matcher()
    logits = np.random.default_rng(1).normal(size=258).astype(np.float32)
    sample = ffwd.sample_by_rejection(
        logits,
        lambda token: matcher.validate_tokens([token]) == 1,
        random=np.random.default_rng(2),
    )
    assert sample.token in (ord("a"), 256)
    assert sample.log_mass <= 0


@pytest.mark.parametrize(
    ("logits", "text"),
    [
        ([0.0, math.nan], "one row of numbers"),
        ([0.0, math.inf], "one row of numbers"),
        ([[0.0, 1.0]], "2 axes"),
        ([0.0, 1.0, -math.inf], "none of the 2 tokens"),
        ([-math.inf, -math.inf], "none of the 0 tokens"),
        ([], "none of the 0 tokens"),
    ],
)
def test_what_is_refused(logits, text):
    with pytest.raises(ValueError, match=text):
        ffwd.sample_by_rejection(logits, lambda token: token == 2)
