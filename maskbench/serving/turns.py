"""Calls of several peers in turns, and whether they give the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from maskbench.serving.peers import Peer


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measurement of one group, for each peer."""

    group: str
    case: str
    unit: str
    values: Mapping[str, float]
    more_is_better: bool = False
    other_answers: tuple[str, ...] = ()
    """The peers whose answers are not ffwd's."""

    def ratio(self, peer: str) -> float:
        """How many times better ffwd is."""
        own, other = self.values["ffwd"], self.values[peer]
        return own / other if self.more_is_better else other / own


@dataclass
class Turns:
    """What each peer took, and what it gave."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    answers: dict[str, list[Any]] = field(default_factory=dict)

    def other_answers(self) -> tuple[str, ...]:
        """The peers that gave something else than ffwd."""
        expected = self.answers["ffwd"]
        return tuple(name for name, given in self.answers.items() if given != expected)

    def medians(self) -> dict[str, float]:
        """Seconds of a call."""
        return {name: median(seconds) for name, seconds in self.seconds.items()}


def take_turns(peers: Mapping[str, Peer], rounds: int, call: Callable[[Peer, int], Any]) -> Turns:
    """Has every peer do the same, round by round, another one first in each."""
    turns = Turns()
    names = list(peers)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            begin = time.perf_counter()
            answer = call(peers[name], number)
            took = time.perf_counter() - begin
            turns.seconds.setdefault(name, []).append(took)
            turns.answers.setdefault(name, []).append(_plain(answer))
    return turns


def _plain(answer: Any) -> Any:
    """Lists of ids as lists, whatever sequences they came in."""
    if isinstance(answer, (list, tuple)):
        return [_plain(part) for part in answer]
    return answer
