"""What a plan changes of one partition, and why; `planner.model.spec` has these among its values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from planner.model.cluster import ANY


class Reason(StrEnum):
    """Why a partition's replica list changes; the first that applies, in this order."""

    BROKER_LEAVES = "broker_leaves"
    PLACEMENT = "placement"
    RACK_RULE = "rack_rule"
    REPLICATION_FACTOR = "replication_factor"
    BALANCE_REPLICAS = "balance_replicas"
    BALANCE_LEADERS = "balance_leaders"
    BALANCE_LOG_DIRS = "balance_log_dirs"


@dataclass(frozen=True)
class PartitionChange:
    """One partition whose replica list, leader or log dirs the plan changes; broker ids, preferred leader first.

    `log_dirs_before` and `log_dirs` are parallel to `before` and `after`, ANY where Kafka isn't told a log dir; empty
    where log dirs aren't planned.
    """

    topic: str
    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    leader_before: int | None
    size_bytes: int
    reason: Reason
    bytes_in_per_sec: int = 0
    log_dirs_before: tuple[str, ...] = ()
    log_dirs: tuple[str, ...] = ()

    @property
    def adding(self) -> tuple[int, ...]:
        """Brokers that copy the partition, in the order of the new replica list."""
        return tuple(broker for broker in self.after if broker not in self.before)

    @property
    def removing(self) -> tuple[int, ...]:
        """Brokers that drop the partition, in the order of the old replica list."""
        return tuple(broker for broker in self.before if broker not in self.after)

    @property
    def reassigned(self) -> bool:
        """True where Kafka has to be told: the replica list differs, be it only in its order, or log dirs do."""
        return self.before != self.after or any(path != ANY for path in self.log_dirs)

    @property
    def dir_moves(self) -> tuple[int, ...]:
        """Brokers that keep the partition and move it to another of their log dirs."""
        kept = zip(self.after, self.log_dirs, strict=False)
        return tuple(broker for broker, path in kept if path != ANY and broker in self.before)

    @property
    def elects(self) -> bool:
        """True where the preferred leader isn't the one that leads today, unless only log dirs change."""
        return self.leader_before != self.after[0] and self.reason is not Reason.BALANCE_LOG_DIRS
