"""What becomes of partitions when brokers fail: Kafka's rules of leadership, for many partitions at once.

The controller keeps a leader that lives; else it elects the first live in-sync replica in the order of the replica
list, and without one, where `unclean.leader.election.enable` is true, the first live replica
(`PartitionChangeBuilder.electLeader`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.failures.stages import Rows
from planner.model import BoolArray, IntArray, LongArray

# offline: no leader. unclean: led by a replica that was behind. writes_refused: fewer live in-sync replicas than
# min.insync.replicas, so that acks=all is refused (offline ones among them). at_risk: exactly one live in-sync replica.
# lost: every broker that has the data failed: it is gone if their disks are; lost_bytes is the size of one copy.
# leaders_moved: another broker leads.
FACTS = ("offline", "unclean", "writes_refused", "at_risk", "lost", "lost_bytes", "leaders_moved")


@dataclass(frozen=True, eq=False)
class Outcome:
    """`facts` (N, len(FACTS)); `leaders` (N,) who leads then, -1 nobody; `written` and `sent` (N,) are the bytes/s that
    each live replica is written and that the leader sends.
    """

    facts: LongArray
    leaders: IntArray
    written: LongArray
    sent: LongArray


def outcome(rows: Rows, failed: BoolArray) -> Outcome:
    """What becomes of the partitions when the brokers of these replicas (N, W) fail."""
    leaders, live = _elected(rows, failed)
    online = leaders >= 0
    lost: BoolArray = ~np.any(rows.holding & ~failed, axis=1)
    facts = _facts(rows, leaders, live, lost)
    followers = np.maximum(((rows.replicas >= 0) & ~failed).sum(axis=1) - 1, 0)
    written = np.where(online, rows.bytes_in, 0)
    return Outcome(facts, leaders, written, np.where(online, rows.bytes_in * followers + rows.bytes_out, 0))


def worse(one: LongArray, other: LongArray) -> LongArray:
    """The worse of two facts (N, F) of the same partitions, each by itself; what is offline in one isn't at risk."""
    both = np.maximum(one, other)
    both[:, FACTS.index("at_risk")] *= 1 - both[:, FACTS.index("offline")]
    return both


def _elected(rows: Rows, failed: BoolArray) -> tuple[IntArray, LongArray]:
    """Who leads then, and how many in-sync replicas live, both (N,)."""
    serving = rows.in_sync & ~failed
    live = serving.sum(axis=1)
    kept = (serving & (rows.replicas == rows.leaders[:, None])).any(axis=1)
    leaders = np.where(kept, rows.leaders, _first(rows.replicas, serving))
    left = (leaders < 0) & rows.unclean & (rows.leaders >= 0)
    if left.any():
        leaders = np.where(left, _first(rows.replicas, (rows.replicas >= 0) & ~failed), leaders)
        live = np.where(left & (leaders >= 0), 1, live)
    return leaders, live


def _first(replicas: IntArray, among: BoolArray) -> IntArray:
    """The first of each row (N,), -1 where there is none."""
    slots = among.argmax(axis=1)
    every = np.arange(len(replicas))
    return np.where(among[every, slots], replicas[every, slots], -1)


def _facts(rows: Rows, leaders: IntArray, live: LongArray, lost: BoolArray) -> LongArray:
    online = leaders >= 0
    behind = online & ~(rows.in_sync & (rows.replicas == leaders[:, None])).any(axis=1)
    columns = (
        ~online,
        behind,
        ~online | (live < rows.min_insync),
        online & (live == 1),
        lost,
        lost * rows.size_bytes,
        online & (leaders != rows.leaders),
    )
    return np.stack([column.astype(np.int64) for column in columns], axis=1)
