"""The rows of plan.json say what the changes and the batches say."""

from __future__ import annotations

from planner.execution.batch_costs import costs
from planner.execution.batch_cutting import Batch
from planner.execution.partition_changes import Step
from planner.model.cluster import PartitionChange, Reason
from planner.plan.brokers_topics_partitions import batch_rows, partition_rows
from planner.plan.document.codec import as_json


def test_a_batch_has_its_steps_its_elections_and_its_costs() -> None:
    """With the broker that is fullest while it runs; no log dirs where none are planned."""
    one = Batch(1, (Step("t", 0, (1,), (2,), 10, 1),), (("t", 0),), 10, 1)
    (row,) = batch_rows(costs([one], 2, {1: 10, 2: 0}, {2: 20}, True))

    assert {
        "number": 1,
        "partitions": [{"topic": "t", "partition": 0, "replicas_before": [1], "replicas": [2]}],
        "elect": [{"topic": "t", "partition": 0}],
        "bytes_moved": 10,
        "replicas_moved": 1,
        "seconds_at_throttle": 5,
        "fullest_broker": {"id": 2, "peak_size_bytes": 10, "disk_bytes": 20},
        "leaderless": False,
    } == as_json(row)


def test_a_partition_has_its_reason_and_what_is_known_of_it() -> None:
    """A rate and log dirs only where there are any."""
    plain = PartitionChange("t", 3, (1,), (2,), None, 10, Reason.BROKER_LEAVES)
    full = PartitionChange("t", 4, (1,), (1,), 1, 10, Reason.BALANCE_LOG_DIRS, 7, ("/a",), ("/b",))
    first, second = map(as_json, partition_rows([plain, full]))

    lists = {"replicas_before": [1], "replicas": [2], "leader_before": None}
    assert {"topic": "t", "partition": 3, **lists, "size_bytes": 10, "reason": "broker_leaves"} == first
    known = {"bytes_in_per_sec": 7, "log_dirs_before": ["/a"], "log_dirs": ["/b"], "reason": "balance_log_dirs"}
    assert known.items() <= second.items()
