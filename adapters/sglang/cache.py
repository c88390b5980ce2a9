"""A bounded cache for SGLang's grammar objects, because SGLang itself evicts none."""

from collections import OrderedDict
from collections.abc import Iterator, MutableMapping
from typing import Any

from ffwd import CompiledGrammar

GrammarKey = tuple[str, str]

# Grammars grow while they are used. A few are measured whenever one is added, each in its turn: the
# scheduler's thread does it, and the steps of all requests wait.
_REMEASURED = 4
_ENTRY_BYTES = 1024


class GrammarObjectCache(MutableMapping[GrammarKey, Any]):
    """SGLang's cache of the grammars of requests, with eviction of the least recently used.

    It replaces a `BaseGrammarBackend`'s dict, which only the scheduler's thread uses. Refused
    grammars are cached as well; their size is that of the client's text and the message.

    Args:
        max_bytes: The most bytes of all entries together. The newest always stays.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._values: OrderedDict[GrammarKey, Any] = OrderedDict()
        self._sizes: dict[GrammarKey, int] = {}
        self._total = 0
        self._turn: list[GrammarKey] = []
        self.evictions = 0

    @property
    def memory_bytes(self) -> int:
        """The estimated bytes held, by the last measurement of each entry."""
        return self._total

    def __getitem__(self, key: GrammarKey) -> Any:
        value = self._values[key]
        self._values.move_to_end(key)
        return value

    def __setitem__(self, key: GrammarKey, value: Any) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        self._measure(key)
        if not self._turn:
            self._turn = list(self._values)
        for other in self._turn[:_REMEASURED]:
            if other in self._values:
                self._measure(other)
        del self._turn[:_REMEASURED]
        while self._total > self._max_bytes and len(self._values) > 1:
            del self[next(iter(self._values))]
            self.evictions += 1

    def __delitem__(self, key: GrammarKey) -> None:
        del self._values[key]
        self._total -= self._sizes.pop(key)

    def __iter__(self) -> Iterator[GrammarKey]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def _measure(self, key: GrammarKey) -> None:
        size = _ENTRY_BYTES + sum(map(len, key)) + _held(self._values[key])
        self._total += size - self._sizes.get(key, 0)
        self._sizes[key] = size


def _held(value: Any) -> int:
    # SGLang's wrapper for reasoning has the request's grammar as `grammar`, and this the compiled.
    compiled = getattr(value, "grammar", None)
    compiled = getattr(compiled, "grammar", compiled)
    if isinstance(compiled, CompiledGrammar):
        return compiled.stats()["memory_bytes"]
    return len(getattr(value, "error_message", ""))
