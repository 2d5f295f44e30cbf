"""Clusters that are uneven in every way at once, drawn by hypothesis. No heuristic is tuned to them.

Replication factors differ, even within a topic. Racks differ in size, and brokers have two sizes. One huge partition is
among small ones, and many topics have one partition. Brokers join, leave, or are dead already.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from planner.model.balance import Balance, Tolerance
from planner.model.build_problem import build
from planner.model.cluster import Broker, Cluster, Partition, Topic
from planner.model.problem import Problem
from planner.model.spec import Changes, Rebalance, Spec, TopicFilter

RACKS = ((1, 2, 4), (3, 1, 1), (2, 2, 3), (1, 1, 1, 1, 2), (6,), ())
HUGE_BYTES = 10**12
SMALL, BIG = (10**13, 10**8), (4 * 10**13, 10**9)


@st.composite
def uneven_specs(draw: st.DrawFn, rebalance: Sequence[Rebalance] = ("all", "all", "leaders", "none")) -> Spec:
    """A whole spec of 3 to 9 brokers and up to 36 partitions."""
    racks = _racks(draw(st.sampled_from(RACKS)))
    room = draw(st.sampled_from((((None, None),), (SMALL, BIG))))
    brokers = tuple(Broker(10 + at, rack, *room[at % len(room)]) for at, rack in enumerate(racks))
    joining = tuple(Broker(90 + at, racks[-at], *room[-1]) for at in range(draw(st.integers(0, 2))))
    leaving = draw(st.lists(st.sampled_from([each.id for each in brokers]), max_size=2, unique=True))
    dead = set(leaving) if draw(st.booleans()) else set()
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    factors = min(3, len(brokers) + len(joining) - len(leaving))
    topics = _topics(rng, [each.id for each in brokers], dead, factors, draw(st.integers(1, 15)))
    kept = [each.name for each in topics[:3] if not any(set(leaving) & set(row.replicas) for row in each.partitions)]
    return Spec(
        Cluster("uneven", brokers, topics),
        Changes(joining, tuple(leaving), rebalance=draw(st.sampled_from(rebalance))),
        TopicFilter(exclude=tuple(kept) if draw(st.booleans()) else ()),
        rack_aware=draw(st.sampled_from((True, True, False))),
        balance=draw(_balances()),
    )


def uneven_problems(**options: Sequence[Rebalance]) -> st.SearchStrategy[Problem]:
    """A spec of `uneven_specs` as flat arrays."""
    return uneven_specs(**options).map(build)


def _balances() -> st.SearchStrategy[Balance]:
    """Draws every mix of windows on counts with windows on bytes and traffic."""
    count, share = (
        st.sampled_from(texts).map(Tolerance.parse)
        for texts in (("0", "1", "1", "3", "10%", "none"), ("none", "2%", "10%", "60%"))
    )
    return st.builds(Balance, count, count, count, count, share, share, share)


def _racks(sizes: Sequence[int]) -> list[str | None]:
    return [f"r{rack}" for rack, size in enumerate(sizes) for _ in range(size)] or [None] * 5


def _topics(
    rng: np.random.Generator, brokers: Sequence[int], dead: set[int], most: int, singles: int
) -> tuple[Topic, ...]:
    """One wide topic with different replication factors, one with a huge partition, many with one partition."""
    shapes = [("wide", int(rng.integers(3, 20))), ("huge", 1), *((f"single-{at:02}", 1) for at in range(singles))]
    topics = []
    for name, count in shapes:
        rows = []
        for number in range(count):
            held = rng.permutation(brokers)[: rng.integers(1, most, endpoint=True)].tolist()
            size = HUGE_BYTES if name == "huge" else int(rng.integers(0, 10**9))
            alive = [broker for broker in held if broker not in dead]
            rates = rng.integers(0, 10**6, 2).tolist()
            rows.append(Partition(number, tuple(held), alive[0] if alive else None, None, size, *rates))
        topics.append(Topic(name, tuple(rows)))
    return tuple(topics)
