"""The rows of a study of failures: the survivors' traffic, and all batches in one row."""

from __future__ import annotations

from dataclasses import replace

from clusters import no_racks, spec_of
from failure_studies import rows_of
from plan_documents import row

from planner.model.build_problem import build
from planner.model.spec import Changes
from planner.plan.document.partition_types import BatchRow
from planner.whatif.failure_sets import BROKERS


def test_traffic_of_the_survivors():
    """Followers that become leaders send to live replicas; offline partitions have no writes."""
    spec = spec_of(no_racks(1, 2, 3), {"t": [[1, 2, 3]], "u": [[1]]})
    rated = tuple(
        replace(t, partitions=tuple(replace(p, bytes_in_per_sec=10, bytes_out_per_sec=5) for p in t.partitions))
        for t in spec.cluster.topics
    )
    brokers = tuple(replace(each, network_bytes_per_sec=14) for each in spec.cluster.brokers)
    spec = replace(spec, cluster=replace(spec.cluster, topics=rated, brokers=brokers))
    rows = rows_of(spec, build(spec), [], [BROKERS])
    names = ("network_in_most", "network_out_most", "over_capacity")

    assert (10, 15, 1) == tuple(rows[BROKERS, "broker 1", "today"][name] for name in names)
    assert (20, 20, 1) == tuple(rows[BROKERS, "broker 3", "today"][name] for name in names)


def test_batches_fold_into_the_worst_for_many_brokers():
    """For sets of three brokers, all batches share one row, with the worst of each figure."""
    spec = spec_of(no_racks(1, 2, 3, 4), {"t": [[1], [2]]}, changes=Changes(rebalance="none"))
    moves = [("t", 0, [1], [3]), ("t", 1, [2], [4])]
    steps = [
        row(
            BatchRow,
            {
                "number": at,
                "partitions": [dict(zip(("topic", "partition", "replicas_before", "replicas"), move, strict=True))],
            },
        )
        for at, move in enumerate(moves, 1)
    ]
    rows = rows_of(spec, build(spec), steps, ["3"])

    assert [2, 2, 1] == [rows["3", "brokers 1, 2, 3", state]["offline"] for state in ("today", "batches", "planned")]
