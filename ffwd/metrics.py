"""Prometheus metrics of tokenizers and streams; needs `pip install ffwd[metrics]`.

`enable()` starts measuring, `disable()` stops it. It costs nothing while it is off: until `enable`
is called, the methods of `Tokenizer` are the plain ones, and streams check for an observer only
when a text stops or ends within a character.

| metric | type | labels |
|---|---|---|
| ffwd_encode_duration_seconds | histogram | tokenizer_type, operation |
| ffwd_decode_duration_seconds | histogram | tokenizer_type, operation |
| ffwd_tokens_per_encode | histogram | tokenizer_type |
| ffwd_chars_per_encode | histogram | tokenizer_type |
| ffwd_factory_load_duration_seconds | histogram | tokenizer_type |
| ffwd_stop_sequence_detected_total | counter | tokenizer_type, operation |
| ffwd_stream_incomplete_utf8_total | counter | tokenizer_type |
| ffwd_errors_total | counter | tokenizer_type, operation, error_type |

`tokenizer_type` is `Tokenizer.kind`, or "unknown" for a stream over a bare `Decoder` and for a load
that fails. `operation` is the method's name, "load", or for stops "stop_token" or "stop_string".
`error_type` is the name of the exception's class.
"""

import functools
import importlib
import inspect
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ffwd._native import observe_streams
from ffwd.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_DURATIONS = (1e-5, 2.5e-5, 1e-4, 2.5e-4, 1e-3, 2.5e-3, 1e-2, 2.5e-2, 0.1, 0.25, 1.0, 2.5, 10.0)
_LOADS = (1e-3, 1e-2, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576)

_lock = threading.Lock()
_active: "_Metrics | None" = None


def _begin_in_child() -> None:
    """Replace the lock in a forked process, because no thread of it holds the copied one."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)


def enable(registry: "CollectorRegistry | None" = None) -> None:
    """Start measuring all tokenizers and streams of the process.

    `registry` collects the metrics; the default is Prometheus' own. Enabling again with the same
    registry changes nothing; with another one the metrics move there and count from zero.

    Raises `ImportError` without prometheus-client, and `ValueError` if the registry already has
    metrics of these names.
    """
    global _active
    try:
        import prometheus_client
    except ImportError as error:
        raise ImportError(
            "metrics need prometheus-client: pip install 'ffwd[metrics]'", name="prometheus_client"
        ) from error
    chosen = prometheus_client.REGISTRY if registry is None else registry
    with _lock:
        if _active is not None:
            if _active.registry is chosen:
                return
            _active.end()
            _active = None
        metrics = _Metrics(chosen)
        metrics.begin()
        _active = metrics


def disable() -> None:
    """Stop measuring, and remove the metrics from the registry; do nothing if it is off."""
    global _active
    with _lock:
        if _active is not None:
            _active.end()
            _active = None


def enabled() -> bool:
    """Return whether measuring is on."""
    return _active is not None


class _Metrics:
    """The metrics in one registry, and the plain functions that measuring ones replace."""

    def __init__(self, registry: "CollectorRegistry") -> None:
        from prometheus_client import Counter, Histogram

        self.registry = registry
        self._collectors: list[Any] = []
        self._replaced: list[tuple[Any, str, Any]] = []
        self._observer: Callable[[Any, str], object] | None = None

        def add(make: Any, name: str, text: str, labels: tuple[str, ...], **options: Any) -> Any:
            try:
                collector = make(name, text, labels, namespace="ffwd", registry=registry, **options)
            except ValueError:
                self._unregister()
                raise
            self._collectors.append(collector)
            return collector

        kind, operation = ("tokenizer_type",), ("tokenizer_type", "operation")
        durations = {"buckets": _DURATIONS}
        self._encode = add(
            Histogram, "encode_duration_seconds", "Time of an encoding.", operation, **durations
        )
        self._decode = add(
            Histogram, "decode_duration_seconds", "Time of a decoding.", operation, **durations
        )
        self._tokens = add(
            Histogram, "tokens_per_encode", "Tokens of an encoded text.", kind, buckets=_SIZES
        )
        self._characters = add(
            Histogram, "chars_per_encode", "Characters of an encoded text.", kind, buckets=_SIZES
        )
        self._load = add(
            Histogram, "factory_load_duration_seconds", "Time of a load.", kind, buckets=_LOADS
        )
        self._stops = add(
            Counter, "stop_sequence_detected", "Texts that a stop has stopped.", operation
        )
        self._incomplete = add(
            Counter, "stream_incomplete_utf8", "Streams that ended within a character.", kind
        )
        self._errors = add(
            Counter, "errors", "Calls that raised an error.", (*operation, "error_type")
        )

    def begin(self) -> None:
        """Replace the plain functions with measuring ones."""
        for name, sizes in _ENCODINGS.items():
            self._replace(Tokenizer, name, self._encode, sizes)
        for name in _DECODINGS:
            self._replace(Tokenizer, name, self._decode, None)
        # The module, which the package's function of the same name hides.
        loading = importlib.import_module("ffwd.tokenizer.loading")
        plain = loading._load
        self._put(loading, "_load", self._loading(plain))
        self._observer = observe_streams(self._event)

    def end(self) -> None:
        """Restore the plain functions."""
        for owner, name, plain in reversed(self._replaced):
            setattr(owner, name, plain)
        self._replaced.clear()
        observe_streams(self._observer)
        self._unregister()

    def _unregister(self) -> None:
        for collector in self._collectors:
            self.registry.unregister(collector)
        self._collectors.clear()

    def _put(self, owner: Any, name: str, measuring: Any) -> None:
        self._replaced.append((owner, name, vars(owner)[name]))
        setattr(owner, name, measuring)

    def _replace(self, owner: type, name: str, histogram: Any, sizes: "_Sizes | None") -> None:
        plain = vars(owner)[name]
        parameter = list(inspect.signature(plain).parameters)[1]

        @functools.wraps(plain)
        def measuring(tokenizer: Tokenizer, *args: Any, **options: Any) -> Any:
            if args:
                options[parameter] = args[0]
            if sizes is not None and isinstance(options.get(parameter), Iterator):
                options[parameter] = list(options[parameter])
            begin = time.perf_counter()
            try:
                result = plain(tokenizer, *args[1:], **options)
            except Exception as error:
                self._errors.labels(tokenizer.kind, name, type(error).__name__).inc()
                raise
            histogram.labels(tokenizer.kind, name).observe(time.perf_counter() - begin)
            if sizes is not None:
                for characters, tokens in sizes(options[parameter], result):
                    self._characters.labels(tokenizer.kind).observe(characters)
                    self._tokens.labels(tokenizer.kind).observe(tokens)
            return result

        self._put(owner, name, measuring)

    def _loading(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(plain)
        def measuring(*args: Any, **options: Any) -> Any:
            begin = time.perf_counter()
            try:
                tokenizer = plain(*args, **options)
            except Exception as error:
                self._errors.labels("unknown", "load", type(error).__name__).inc()
                raise
            self._load.labels(tokenizer.kind).observe(time.perf_counter() - begin)
            return tokenizer

        return measuring

    def _event(self, source: Any, event: str) -> None:
        """Count an event of a stream."""
        kind = getattr(source, "kind", "unknown")
        if event == "incomplete_utf8":
            self._incomplete.labels(kind).inc()
        else:
            self._stops.labels(kind, event).inc()


_Sizes = Callable[[Any, Any], Iterable[tuple[int, int]]]

_ENCODINGS: dict[str, _Sizes] = {
    "encode": lambda text, ids: [(len(text), len(ids))],
    "encode_with_offsets": lambda text, encoding: [(len(text), len(encoding.ids))],
    "encode_batch": lambda texts, ids: zip(map(len, texts), map(len, ids), strict=True),
    "encode_parts": lambda parts, ids: [
        (sum(len(part) for part in parts if isinstance(part, str)), len(ids))
    ],
}
"""The methods that encode: the characters and tokens of each text, from argument and result."""

_DECODINGS = ("decode", "decode_bytes")
