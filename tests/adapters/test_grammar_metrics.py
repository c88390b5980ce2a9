"""The metrics of grammars: requests by result, refusals by reason, times of compilations."""

import pytest

from ffwd import FfwdError, Limits, Vocabulary
from ffwd.adapters.shared.cache import GrammarCache
from ffwd.adapters.shared.metrics import GrammarMetrics, mask_seconds
from ffwd.adapters.shared.requests import GrammarRequest

prometheus = pytest.importorskip("prometheus_client")


@pytest.fixture
def registry():
    return prometheus.CollectorRegistry()


@pytest.fixture
def cache(registry):
    tokens = [*(bytes([byte]) for byte in range(256)), None]
    made = GrammarCache(Vocabulary(tokens, eos_token_ids=[256]), metrics=GrammarMetrics(registry))
    yield made
    made.close()


def counts(registry):
    """The counters that are not zero, by their label."""
    return {
        next(iter(sample.labels.values())): sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name.endswith("_total")
    }


def test_requests_by_their_result(cache, registry):
    for _ in range(3):
        cache.get(GrammarRequest("regex", "a+"))
    cache.submit(GrammarRequest("regex", "b+")).result(600)
    cache.submit(GrammarRequest("regex", "b+")).result(600)
    assert counts(registry) == {"compiled": 2, "cached": 3}
    assert registry.get_sample_value("ffwd_grammar_compile_seconds_count") == 2


def test_refusals_by_their_reason(cache, registry):
    for _ in range(2):
        with pytest.raises(FfwdError):
            cache.get(GrammarRequest("regex", "("))
    with pytest.raises(FfwdError):
        cache.get(GrammarRequest("json", '{"type": 1}'))
    found = counts(registry)
    assert found.pop("refused") == 3
    assert sum(found.values()) == 3
    assert found["InvalidSchemaError"] == 1


def test_a_first_try_with_smaller_limits_is_no_refusal(cache, registry):
    request = GrammarRequest("json", '{"type": "object", "properties": {"a": {"type": "null"}}}')
    with pytest.raises(FfwdError):
        cache.get(request, limits=Limits(compile_steps=1))
    assert counts(registry) == {}
    cache.get(request)
    assert counts(registry) == {"compiled": 1}


def test_masks_are_timed_if_a_page_shows_it(monkeypatch):
    # Its cached result belongs to the environment of the process.
    made = mask_seconds.__wrapped__
    monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR", raising=False)
    assert made() is None
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "anywhere")
    histogram = made()
    try:
        histogram.observe(0.002)
        assert prometheus.REGISTRY.get_sample_value("ffwd_mask_seconds_sum") == 0.002
    finally:
        prometheus.REGISTRY.unregister(histogram)
