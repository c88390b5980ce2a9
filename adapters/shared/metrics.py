"""Prometheus metrics of an engine's grammars; needs prometheus-client, which engines bring.

| metric | type | labels |
|---|---|---|
| ffwd_grammar_requests_total | counter | result: `cached`, `compiled` or `refused` |
| ffwd_grammar_refusals_total | counter | reason: the error's class |
| ffwd_grammar_compile_seconds | histogram | |
| ffwd_mask_seconds | histogram | |
"""

import functools
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Histogram

_COMPILING = (1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0)
_MASKS = (1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.1, 1.0)


class GrammarMetrics:
    """Counts requests for compiled grammars, and times compilations.

    Args:
        registry: Collects the metrics.

    """

    def __init__(self, registry: "CollectorRegistry") -> None:
        from prometheus_client import Counter, Histogram

        named = functools.partial(Counter, namespace="ffwd", registry=registry)
        self._requests = named(
            "grammar_requests", "Requests for a compiled grammar.", labelnames=("result",)
        )
        self._refusals = named(
            "grammar_refusals", "Requests whose grammar was refused.", labelnames=("reason",)
        )
        self._compile_seconds = Histogram(
            "grammar_compile_seconds",
            "Time of compiling a grammar.",
            namespace="ffwd",
            registry=registry,
            buckets=_COMPILING,
        )

    def cached(self) -> None:
        """Count a request whose grammar was there, or was being compiled."""
        self._requests.labels("cached").inc()

    def compiled(self, seconds: float) -> None:
        """Count a request whose grammar was compiled, and its seconds."""
        self._requests.labels("compiled").inc()
        self._compile_seconds.observe(seconds)

    def refused(self, error: BaseException) -> None:
        """Count a request whose grammar was refused."""
        self._requests.labels("refused").inc()
        self._refusals.labels(type(error).__name__).inc()


@functools.cache
def process_metrics() -> GrammarMetrics:
    """Return the metrics in the registry of this process, beside those of its engine.

    If `PROMETHEUS_MULTIPROC_DIR` is set, the engine shows those of all its processes.
    """
    from prometheus_client import REGISTRY

    return GrammarMetrics(REGISTRY)


@functools.cache
def mask_seconds() -> "Histogram | None":
    """Return the histogram of the time that a step's masks take.

    It is None unless `PROMETHEUS_MULTIPROC_DIR` is set: no page shows it otherwise, since masks are
    not filled in the process that serves the page.
    """
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return None
    from prometheus_client import REGISTRY, Histogram

    return Histogram(
        "mask_seconds",
        "Time of the masks of a step.",
        namespace="ffwd",
        registry=REGISTRY,
        buckets=_MASKS,
    )
