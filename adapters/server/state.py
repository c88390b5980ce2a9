"""The state that all routes share: the model, its threads, and what is open."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from starlette.types import Scope

from ffwd.adapters.server.errors import ApiError, overloaded, stopping
from ffwd.adapters.server.keys import Account, Keys
from ffwd.adapters.server.lanes import heavy_lane, quick_lane
from ffwd.adapters.server.loading import LoadedModel
from ffwd.adapters.server.metrics import ServerMetrics
from ffwd.adapters.server.options import ServerOptions
from ffwd.adapters.server.preparing import EFFORTS, Effort, Preparer, Rendered, TooMuchEffort
from ffwd.adapters.server.protocol import AnyRequest, read_json
from ffwd.adapters.server.scheduler import Scheduler
from ffwd.adapters.server.streams import Stream
from ffwd.adapters.server.texts import Text, num_open
from ffwd.adapters.server.weighing import QUICK_BYTES, QUICK_VALUES, check_size
from ffwd.adapters.shared.priority import NICER_IN_PYTHON
from ffwd.adapters.shared.warming import Warming

_log = logging.getLogger("ffwd.server")

_T = TypeVar("_T")
_R = TypeVar("_R", bound=AnyRequest)


class Server:
    """The shared state of the routes.

    Args:
        loaded: The model.
        options: Limits.

    """

    def __init__(self, loaded: LoadedModel, options: ServerOptions) -> None:
        self.loaded = loaded
        self.options = options
        self.metrics = ServerMetrics()
        self.preparer = Preparer(loaded, options, self.metrics.grammars_asked)
        self.scheduler = Scheduler(
            loaded.slots,
            vocab_size=loaded.vocabulary.vocab_size,
            max_cached_tokens=loaded.max_cached_tokens,
            options=options,
            metrics=self.metrics,
        )
        # Quick work never waits for heavy work, and the needs of every request never wait for
        # grammars.
        self.rendering = quick_lane("render", 2)
        self.heavy_rendering = heavy_lane("render", nicer=NICER_IN_PYTHON)
        # The right lane of a grammar is found by trying: each lane passes on what takes too long.
        self.compiling: dict[Effort, Executor] = {
            "least": quick_lane("compile", options.compile_threads),
            "small": heavy_lane("compile-small"),
            "any": heavy_lane("compile"),
        }
        self._lanes = (self.rendering, self.heavy_rendering, *self.compiling.values())
        self.warming = (
            None
            if options.warm is None
            else Warming(
                options.warm,
                read=self.preparer.named,
                build=self.preparer.warm,
                logger=_log,
            )
        )
        self.keys = Keys(options.api_key, options.api_keys)
        self.num_open = 0
        self.stopping = False
        cache = self.preparer.cache
        self.metrics.watch(self.metrics.preparing, lambda: self.num_open)
        self.metrics.watch(self.metrics.held, num_open)
        self.metrics.watch(self.metrics.grammar_bytes, lambda: cache.stats().memory_bytes)
        self.metrics.watch(self.metrics.grammars, lambda: cache.stats().grammars)

    def start(self) -> None:
        """Begin to work."""
        self.scheduler.start()
        if self.warming is not None:
            self.warming.start()

    def stop(self) -> None:
        """End all threads; what is in progress ends with an error."""
        self.stopping = True
        if self.warming is not None:
            self.warming.stop()
        self.scheduler.stop()
        for lane in self._lanes:
            lane.shutdown(wait=False, cancel_futures=True)
        self.preparer.cache.close()

    def account(self, scope: Scope) -> Account:
        """Return the account of a request's key; raise an `ApiError` if it has none."""
        return self.keys.account(dict(scope["headers"]).get(b"authorization", b""))

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Count a request as open.

        Raises:
            ApiError: The server stops, or as many are open as it takes.

        """
        if self.stopping:
            raise stopping()
        if self.num_open >= self.options.max_queue + self.options.max_batch:
            raise overloaded(
                f"{self.num_open} requests are open, and this server takes no more at a time"
            )
        self.num_open += 1
        try:
            yield
        finally:
            self.num_open -= 1

    async def read(self, read: Callable[[dict[str, Any]], _R], body: bytes) -> tuple[_R, bool]:
        """Return the request in a body, and whether its prompt is heavy work.

        Raises:
            ApiError: It is none, asks for another model, or is larger than this server takes.

        """

        def work() -> tuple[_R, int]:
            request = read(read_json(body))
            self.check_model(request.model)
            with request.errors():
                return request, check_size(request, self.options.max_prompt_values)

        if len(body) <= QUICK_BYTES:
            request, size = work()
            return request, size > QUICK_VALUES
        request, _ = await _run_in(self.heavy_rendering, work)
        return request, True

    def check_model(self, name: str | None) -> None:
        """Raise an `ApiError` for the name of another model; `None` is no name."""
        if name not in (None, self.loaded.name):
            raise ApiError(
                404,
                f"there is no model {name!r} here, only {self.loaded.name!r}",
                param="model",
                code="model_not_found",
            )

    async def render(self, render: Callable[[_R], _T], request: _R, *, heavy: bool) -> _T:
        """Return what a function such as `Preparer.chat` makes of a request."""
        lane = self.heavy_rendering if heavy else self.rendering
        return await _run_in(lane, lambda: render(request))

    async def texts(self, rendered: Rendered, stream: Stream, deadline: float) -> list[Text]:
        """Return the sequences of a request; see `Preparer.texts`."""

        def prepare(effort: Effort) -> Callable[[], list[Text]]:
            return lambda: self.preparer.texts(rendered, stream, deadline=deadline, effort=effort)

        least = self.preparer.effort(rendered)
        quick = least == "least" and self.preparer.is_kept(rendered)
        for effort in EFFORTS[EFFORTS.index(least) : -1]:
            lane = self.rendering if quick else self.compiling[effort]
            quick = False
            with suppress(TooMuchEffort):
                return await _run_in(lane, prepare(effort))
        return await _run_in(self.compiling["any"], prepare("any"))


async def _run_in(lane: Executor, work: Callable[[], _T]) -> _T:
    return await asyncio.get_running_loop().run_in_executor(lane, work)
