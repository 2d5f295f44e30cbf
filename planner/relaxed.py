"""Which windows an assignment doesn't keep, in words: a plan names every one, and why it could not be kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from planner.balance import Tolerance
from planner.model import IntArray, LongArray, Problem
from planner.score import Yardstick, by_topic


@dataclass(frozen=True)
class Relaxed:
    """One window that was relaxed: whose (None: of all topics together), what was wanted and what was reached."""

    window: str
    topic: str | None
    wanted: str
    reached: int
    why: str


def relaxed(yardstick: Yardstick, assignment: IntArray) -> tuple[Relaxed, ...]:
    """Every window of the balance asked for that the assignment (P, W) is outside of, cluster first, then topics."""
    problem, windows = yardstick.problem, yardstick.windows
    counts = by_topic(yardstick, assignment).per_broker
    wanted = problem.balance
    found = [
        *_cluster(problem, "replicas", wanted.replicas, windows.replicas, counts[:, 0].sum(axis=0)),
        *_cluster(problem, "leaders", wanted.leaders, windows.leaders, counts[:, 1].sum(axis=0)),
        *_topics(problem, "topic_replicas", wanted.topic_replicas, windows.topic_replicas, counts[:, 0]),
    ]
    if windows.topic_leaders is not None:
        found += _topics(problem, "topic_leaders", wanted.topic_leaders, windows.topic_leaders, counts[:, 1])
    return tuple(found)


def _cluster(
    problem: Problem, window: str, wanted: Tolerance, bounds: LongArray, counts: LongArray
) -> Iterable[Relaxed]:
    if _kept(wanted, bounds, counts):
        return
    yield Relaxed(window, None, str(wanted), int(counts.max() - counts.min()), _why(problem, window, bounds, counts))


def _topics(
    problem: Problem, window: str, wanted: Tolerance, bounds: LongArray, counts: LongArray
) -> Iterable[Relaxed]:
    """Bounds (2, T, Bt) and counts (T, Bt)."""
    spread = counts.max(axis=1) - counts.min(axis=1)
    outside = ((counts < bounds[0]) | (counts > bounds[1])).any(axis=1)
    for topic in np.flatnonzero(spread > wanted.value if wanted.kind == "spread" else outside):
        why = _why(problem, window, bounds[:, topic], counts[topic])
        yield Relaxed(window, problem.topic_names[topic], str(wanted), int(spread[topic]), why)


def _kept(wanted: Tolerance, bounds: LongArray, counts: LongArray) -> bool:
    if wanted.kind == "spread":
        return int(counts.max() - counts.min()) <= wanted.value
    return bool(((counts >= bounds[0]) & (counts <= bounds[1])).all())


def _why(problem: Problem, window: str, bounds: LongArray, counts: LongArray) -> str:
    if ((counts >= bounds[0]) & (counts <= bounds[1])).all():
        return "racks of unequal size: the rack rule makes brokers of small racks hold more"
    if problem.rebalance != "all":
        return f"changes.rebalance is {problem.rebalance}: only replicas that must move do"
    if not problem.movable.all():
        return "excluded topics keep their replicas where they are"
    if window.endswith("leaders"):
        return "not with the replicas where the fewest bytes put them"
    return "not together with the other windows, the racks and the replication factors"
