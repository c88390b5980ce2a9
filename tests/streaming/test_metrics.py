"""Prometheus metrics, and that nothing is left of them when they are off."""

import importlib
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import realtokenizers
from prometheus_client import REGISTRY, CollectorRegistry

import ffwd
from ffwd import metrics
from ffwd.streaming import Decoder, DecodeStream, StopSequenceDecoder
from ffwd.tokenizer import Tokenizer, load


@cache
def tokenizer() -> Tokenizer:
    return load(realtokenizers.load("gpt2").tokenizer)


@pytest.fixture
def registry() -> Iterator[CollectorRegistry]:
    """A registry that the metrics go to for one test."""
    registry = CollectorRegistry()
    metrics.enable(registry)
    yield registry
    metrics.disable()


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"ffwd_{name}", {"tokenizer_type": "huggingface", **labels})


def test_encoding_and_decoding(registry: CollectorRegistry) -> None:
    ids = tokenizer().encode("two words")
    tokenizer().encode(text="more")
    tokenizer().encode_batch(iter(["a", "bc"]))
    tokenizer().encode_with_offsets("abc")
    tokenizer().encode_parts(["ab", ids[0], "c"])
    assert tokenizer().decode(ids) == "two words"
    tokenizer().decode_batch([ids, ids])
    for operation, calls in [
        ("encode", 2),
        ("encode_batch", 1),
        ("encode_with_offsets", 1),
        ("encode_parts", 1),
    ]:
        count = value(registry, "encode_duration_seconds_count", operation=operation)
        assert count == calls, operation
    assert value(registry, "decode_duration_seconds_count", operation="decode") == 3
    assert value(registry, "encode_duration_seconds_sum", operation="encode") != 0
    assert value(registry, "chars_per_encode_count") == 6
    assert value(registry, "chars_per_encode_sum") == 9 + 4 + 1 + 2 + 3 + 3
    assert value(registry, "tokens_per_encode_count") == 6


def test_loads(registry: CollectorRegistry, tmp_path: Any) -> None:
    load(realtokenizers.load("gpt2").tokenizer)
    assert value(registry, "factory_load_duration_seconds_count") == 1
    with pytest.raises(ffwd.VocabularyError):
        load(tmp_path / "missing.json")
    errors = {
        "tokenizer_type": "unknown",
        "operation": "load",
        "error_type": "TokenizerNotFoundError",
    }
    assert registry.get_sample_value("ffwd_errors_total", errors) == 1


def test_errors(registry: CollectorRegistry) -> None:
    with pytest.raises(ffwd.TokenError):
        tokenizer().decode([10**6])
    with pytest.raises(ffwd.TextError):
        tokenizer().encode("<|endoftext|>", special="forbidden")
    for operation, error in [("decode", "TokenError"), ("encode", "TextError")]:
        assert value(registry, "errors_total", operation=operation, error_type=error) == 1
    assert value(registry, "encode_duration_seconds_count", operation="encode") is None


def test_streams(registry: CollectorRegistry) -> None:
    ids = tokenizer().encode("a \u9f98 stop")
    decoder = StopSequenceDecoder(tokenizer(), stop_strings=["stop"], stop_tokens=ids[:1])
    decoder.step_batch(ids[1:])
    decoder.step_batch(ids)
    decoder.flush()
    assert value(registry, "stop_sequence_detected_total", operation="stop_string") == 1
    decoder.reset()
    decoder.step(ids[0])
    assert value(registry, "stop_sequence_detected_total", operation="stop_token") == 1
    stream = DecodeStream(tokenizer())
    stream.step_batch(ids)
    stream.flush()
    assert value(registry, "stream_incomplete_utf8_total") is None
    stream.step_batch(ids[:3])
    assert stream.flush() == "\ufffd"
    assert value(registry, "stream_incomplete_utf8_total") == 1
    decoder.reset()
    decoder.step_batch(ids[1:3])
    decoder.flush()
    assert value(registry, "stream_incomplete_utf8_total") == 2


def test_a_bare_decoder_is_of_unknown_type(registry: CollectorRegistry) -> None:
    stream = DecodeStream(Decoder([b"\xe4"]))
    stream.step(0)
    stream.flush()
    name = "ffwd_stream_incomplete_utf8_total"
    assert registry.get_sample_value(name, {"tokenizer_type": "unknown"}) == 1


def test_nothing_is_left_when_they_are_off() -> None:
    """The plain functions are there again, and the registry is free for others."""
    loading = importlib.import_module("ffwd.tokenizer.loading")
    before, load_before = dict(vars(Tokenizer)), loading._load
    registry = CollectorRegistry()
    for _ in range(2):
        metrics.enable(registry)
        assert metrics.enabled()
        assert vars(Tokenizer)["encode"] is not before["encode"]
        metrics.disable()
        metrics.disable()
        assert not metrics.enabled()
        assert dict(vars(Tokenizer)) == before
        assert loading._load is load_before
        assert list(registry.collect()) == []
    tokenizer().encode("not counted")


def test_another_registry_takes_over() -> None:
    first, second = CollectorRegistry(), CollectorRegistry()
    try:
        metrics.enable(first)
        metrics.enable(first)
        tokenizer().encode("a")
        metrics.enable(second)
        tokenizer().encode("a")
        assert list(first.collect()) == []
        assert value(second, "encode_duration_seconds_count", operation="encode") == 1
    finally:
        metrics.disable()


def test_the_default_is_the_registry_of_the_process() -> None:
    try:
        metrics.enable()
        tokenizer().encode("a")
        assert value(REGISTRY, "encode_duration_seconds_count", operation="encode") == 1
    finally:
        metrics.disable()


def test_a_registry_with_these_names_is_refused() -> None:
    """And left as it was."""
    from prometheus_client import Counter

    registry = CollectorRegistry()
    Counter("ffwd_stop_sequence_detected", "Somebody else's.", registry=registry)
    before = vars(Tokenizer)["encode"]
    with pytest.raises(ValueError, match="Duplicated"):
        metrics.enable(registry)
    assert not metrics.enabled()
    assert vars(Tokenizer)["encode"] is before
    assert [family.name for family in registry.collect()] == ["ffwd_stop_sequence_detected"]


def test_an_observer_that_fails_does_not_end_a_stream() -> None:
    from ffwd._native import observe_streams

    def fail(source: object, event: str) -> None:
        raise KeyError(event)

    unraisable: list[Any] = []
    hook, sys.unraisablehook = sys.unraisablehook, unraisable.append
    before = observe_streams(fail)
    try:
        stream = DecodeStream(Decoder([b"\xe4"]))
        stream.step(0)
        assert stream.flush() == "\ufffd"
    finally:
        observe_streams(before)
        sys.unraisablehook = hook
    assert [type(entry.exc_value) for entry in unraisable] == [KeyError]


def test_without_prometheus_client() -> None:
    """ffwd is imported and used without it, and `enable` says what is missing."""
    code = textwrap.dedent(
        """
        import sys
        sys.modules["prometheus_client"] = None
        import ffwd, ffwd.metrics
        try:
            ffwd.metrics.enable()
        except ImportError as error:
            assert "ffwd[metrics]" in str(error)
        else:
            raise AssertionError("enabled")
        assert not ffwd.metrics.enabled()
        """
    )
    subprocess.run([sys.executable, "-c", code], check=True)
