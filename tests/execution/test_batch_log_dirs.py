"""Moves between a broker's log dirs keep the limits of a batch."""

from __future__ import annotations

import pytest

from planner.execution.batch_cutting import log_dir_batches
from planner.model.cluster import PartitionChange, Reason
from planner.model.spec import BatchRules

GB = 10**9


def inside(partition: int, size_bytes: int, rate: int = 0, brokers: tuple[int, ...] = (1, 2)) -> PartitionChange:
    """A change that moves the partition's first replica to another log dir of its broker."""
    dirs = {"log_dirs_before": ("/a", "any"), "log_dirs": ("/b", "any")}
    return PartitionChange(
        "t", partition, brokers, brokers, brokers[0], size_bytes, Reason.BALANCE_LOG_DIRS, rate, **dirs
    )


@pytest.mark.parametrize(
    ("rules", "wanted"),
    [
        (BatchRules(), [0, 0, 0, 1, 1]),
        (BatchRules(bytes=25 * GB), [0, 0, 1, 1, 2]),
        (BatchRules(moves_per_broker=1), [0, 1, 2, 0, 3]),
        # An hour at 5 MB/s is 18 GB. The fourth is on another broker, and the fifth is larger than that.
        (BatchRules(seconds=3_600, bytes_per_sec=5_000_000), [0, 1, 2, 0, 3]),
        (BatchRules(bytes=25 * GB, seconds=3_600, bytes_per_sec=5_000_000), [0, 1, 2, 0, 3]),
    ],
)
def test_moves_between_log_dirs_keep_a_batch_s_limits(rules: BatchRules, wanted: list[int]) -> None:
    """The limits on bytes, on a broker's replicas and on time hold; a replica above the limit moves alone."""
    sizes = [10, 10, 10, 10, 20]
    brokers = [(1, 2), (1, 2), (1, 2), (3, 4), (1, 2)]
    changes = [inside(at, size * GB, 0, on) for at, (size, on) in enumerate(zip(sizes, brokers, strict=True))]

    assert wanted == log_dir_batches(changes, rules, [0, 0])


def test_what_producers_write_takes_its_part_of_the_time() -> None:
    """Two replicas of 8 GB fit into an hour of 18 GB, but not if producers write 1 MB/s to each, 3.6 GB an hour."""
    rules = BatchRules(seconds=3_600, bytes_per_sec=5_000_000)

    assert [0, 0] == log_dir_batches([inside(at, 8 * GB) for at in range(2)], rules, [])
    assert [0, 1] == log_dir_batches([inside(at, 8 * GB, 1_000_000) for at in range(2)], rules, [])
