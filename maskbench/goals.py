"""The goals of ffwd's speed: for each statistic a required value and a desired one.

A goal is a time in microseconds, a multiple of the better peer's speed in the same run, or either
of both. Peers differ in what they pass, so each comparison is judged by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from maskbench.comparison import Comparison


@dataclass(frozen=True)
class Limit:
    """Met by a time of at most `us`, or by one that the better peer takes `faster` times."""

    us: float | None = None
    faster: float | None = None

    def is_met(self, own: float, peer: float | None) -> bool:
        """Return whether a time meets it; `peer` is the better peer's."""
        by_time = self.us is not None and own <= self.us
        return by_time or (
            self.faster is not None and peer is not None and own * self.faster <= peer
        )

    def __str__(self) -> str:
        parts = []
        if self.us is not None:
            parts.append(f"{self.us / 1000:g} ms" if self.us >= 1000 else f"{self.us:g} µs")
        if self.faster is not None:
            parts.append(f"1/{self.faster:g}")
        return "≤ " + " or ".join(parts)


@dataclass(frozen=True)
class Goal:
    """For one statistic of the masks or of compile + first mask."""

    title: str
    part: str
    statistic: str
    must: Limit
    aim: Limit


GOALS = (
    Goal("mask avg", "mask_us", "avg", Limit(faster=15), Limit(faster=20)),
    Goal("mask p50", "mask_us", "p50", Limit(us=2.5, faster=4), Limit(us=1.5)),
    Goal("mask p90", "mask_us", "p90", Limit(faster=12), Limit(faster=15)),
    Goal("mask p99", "mask_us", "p99", Limit(faster=15), Limit(faster=20)),
    Goal("mask p99.9", "mask_us", "p99.9", Limit(faster=20), Limit(faster=25)),
    Goal("slowest mask", "mask_us", "max", Limit(us=5_000), Limit(us=2_000)),
    Goal("compile + first mask p50", "first_mask_us", "p50", Limit(faster=5), Limit(faster=10)),
    Goal("compile + first mask p99", "first_mask_us", "p99", Limit(faster=6), Limit(faster=20)),
    Goal("slowest compile + first mask", "first_mask_us", "max",
         Limit(us=20_000), Limit(us=10_000)),
)  # fmt: skip


@dataclass(frozen=True)
class GoalJudgement:
    """One goal in one comparison. Times are in microseconds."""

    goal: Goal
    own: float
    peers: tuple[float | None, ...]
    """In the order of the comparison's peers."""

    ratio: float | None
    """How many times longer the better of the peers takes that are no variants of the subject."""

    must: bool
    aim: bool


def judge(comparison: Comparison) -> list[GoalJudgement]:
    """Return all goals; none if nothing was measured, or no other engine was."""
    found: list[GoalJudgement] = []
    if not comparison.rivals:
        return found
    for goal in GOALS:
        own = comparison.own(goal.part, goal.statistic)
        if own is None:
            continue
        better = comparison.better_peer(goal.part, goal.statistic)
        found.append(
            GoalJudgement(
                goal=goal,
                own=own,
                peers=tuple(
                    comparison.time(peer, goal.part, goal.statistic) for peer in comparison.peers
                ),
                ratio=None if better is None or own == 0 else better / own,
                must=goal.must.is_met(own, better),
                aim=goal.aim.is_met(own, better),
            )
        )
    return found
