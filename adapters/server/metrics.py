"""The metrics of `/metrics`."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ffwd.adapters.shared.metrics import GrammarMetrics

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_MASKS = (1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class ServerMetrics:
    """The metrics of one server, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def counter(name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
            return Counter(name, text, labels, namespace="ffwd_server", registry=self.registry)

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(name, text, namespace="ffwd_server", registry=self.registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(
                name, text, namespace="ffwd_server", registry=self.registry, buckets=buckets
            )

        self.grammars_asked = GrammarMetrics(self.registry)
        self.requests = counter("requests", "Requests that were answered.", ("endpoint", "status"))
        self.cancelled = counter("cancelled_requests", "Requests whose client went away.")
        self.prompt_tokens = counter("prompt_tokens", "Tokens of prompts.")
        self.completion_tokens = counter("completion_tokens", "Tokens of answers.")
        self.forced_tokens = counter(
            "forced_tokens", "Tokens of answers that took no forward pass of their own."
        )
        self.forward_passes = counter("forward_passes", "Forward passes of the model.")
        self.late_masks = counter("late_masks", "Tokens and masks that were not waited for.")
        self.mask_seconds = histogram(
            "mask_seconds",
            "Time of accepting and forcing tokens and finding masks, for texts of one grammar.",
            _MASKS,
        )
        self.compile_seconds = histogram(
            "prepare_seconds", "Time of rendering a prompt and compiling its grammar.", _SECONDS
        )
        self.first_seconds = histogram(
            "first_token_seconds", "Time from a request to its first text.", _SECONDS
        )
        self.request_seconds = histogram(
            "request_seconds", "Time from a request to the end of its answer.", _SECONDS
        )
        self.batch = histogram("batch_texts", "Texts of a forward pass.", _ROWS)
        self.running = gauge("running_texts", "Texts that are being written.")
        self.waiting = gauge("waiting_texts", "Texts that wait for a place.")
        self.preparing = gauge("open_requests", "Requests that are not answered yet.")
        self.held = gauge("open_texts", "Texts that the process holds on to, ended or not.")
        self.grammar_bytes = gauge("grammar_cache_bytes", "Memory of the kept grammars.")
        self.grammars = gauge("grammar_cache_grammars", "Grammars that are kept.")

    def watch(self, gauge: Gauge, value: Callable[[], float]) -> None:
        """Set the function that returns a gauge's value."""
        gauge.set_function(value)

    def text(self) -> bytes:
        """Return all of it, in Prometheus' text format."""
        return generate_latest(self.registry)
