"""Defaults of `execution`: the throttle, derived from networks and producers, and the limits of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import plan_documents
import pytest
from clusters import no_racks, spec_of

from planner.execution.partition_changes import changes
from planner.execution.throttle_and_batch_defaults import with_defaults
from planner.model.build_problem import build
from planner.model.cluster import Broker
from planner.model.document_fields import DerivedRow
from planner.model.problem import IntArray, Problem
from planner.model.spec import BatchRules, Changes, Execution, Spec
from planner.sweep.candidates import candidates
from planner.sweep.evaluate import run

MB, GB = 10**6, 10**9
UNSET = Execution(
    unset=("throttle", *(f"batches.{key}" for key in ("duration", "moves_per_broker", "replicas_per_partition")))
)
ROWS = {"x": [(1, 2), (2, 1)]}
KAFKAS = "the rate in Kafka's own documentation, because no broker states capacity.network"


def spec(
    *,
    networks: Sequence[int | None] = (None, None, None),
    rate: int = 0,
    read: int = 0,
    execution: Execution = UNSET,
    **rest: Any,
) -> Spec:
    """Broker 3 replaces 2; `networks` in MB/s, and `rate` and `read` in MB/s of each partition."""
    made = spec_of(
        no_racks(1, 2),
        ROWS,
        sizes=GB,
        changes=Changes(
            add_brokers=(Broker(3, None, None, _bytes(networks[2])),), replace_brokers=((2, 3),), rebalance="none"
        ),
        execution=execution,
    )
    topics = [
        replace(
            topic,
            partitions=tuple(
                replace(part, bytes_in_per_sec=rate * MB, bytes_out_per_sec=read * MB) for part in topic.partitions
            ),
        )
        for topic in made.cluster.topics
    ]
    brokers = [
        replace(broker, network_bytes_per_sec=_bytes(network))
        for broker, network in zip(made.cluster.brokers, networks, strict=False)
    ]
    return replace(made, cluster=replace(made.cluster, topics=tuple(topics), brokers=tuple(brokers), **rest))


def _bytes(megabytes: int | None) -> int | None:
    return None if megabytes is None else megabytes * MB


def found(given: Spec) -> Execution:
    """The spec's execution with its defaults, for the plan that replaces broker 2 by 3."""
    problem = build(given)
    assignment: IntArray = problem.replicas.copy()
    assignment[assignment == 1] = 2
    return with_defaults(given, problem, assignment, changes_of(given, problem, assignment))


def changes_of(given: Spec, problem: Problem, assignment: IntArray) -> Sequence[Any]:
    """The plan's changes with their produce rates."""
    rate = given.cluster.topics[0].partitions[0].bytes_in_per_sec
    return [replace(change, bytes_in_per_sec=rate) for change in changes(problem, assignment)]


@pytest.mark.parametrize(
    ("given", "rate", "why"),
    [
        ({}, 50, KAFKAS),
        (
            {"networks": (125, 125, 125)},
            31,
            "a quarter of broker 1's network of 125 MB/s; what clients use is unknown (no",
        ),
        # Two partitions of 1 MB/s: each broker is written 2, and sends 1 to a follower.
        ({"networks": (125, 125, 125), "rate": 1}, 30, "a quarter of the 123 MB/s that clients and replication leave"),
        ({"networks": (125, 60, 125), "rate": 1}, 14, "a quarter of the 58.0 MB/s that clients and replication leave"),
        # Each broker leads one, after the plan broker 3, too: 1 to a follower, 30 to consumers.
        ({"networks": (125, 125, 80), "rate": 1, "read": 30}, 12, "a quarter of the 49.0 MB/s that clients and repl"),
        ({"networks": (1250, 1250, None)}, 50, "the rate in Kafka's own documentation, because not every"),
        ({"networks": (100, 100, None)}, 25, "a quarter of broker 1's network of 100 MB/s"),
        # 30 MB/s are written to a partition that moves: more than half of 50.
        ({"rate": 30}, 110, f"{KAFKAS}; and 60.0 MB/s on top, which producers write to partitions that move"),
        # Nothing is left of the network: the least there is, above what producers write.
        (
            {"networks": (10, 10, 10), "rate": 6},
            13,
            "the lowest default, although that is more than a quarter of the 0 B/s that clients and replication leave",
        ),
    ],
)
def test_the_throttle_is_what_networks_and_producers_leave(given: Mapping[str, Any], rate: int, why: str) -> None:
    """A share of the network with the least left, in whole MB/s, and always above what producers write."""
    execution = found(spec(**given))
    (throttle,) = [each for each in execution.derived if each.key == "execution.throttle"]

    assert (rate * MB, f"{rate}MB/s") == (execution.throttle_bytes_per_sec, throttle.value)
    assert throttle.why.startswith(why)
    assert () == execution.unset


def test_a_throttle_that_is_stated_or_ruled_out_stays() -> None:
    """A throttle of the YAML, or `none`, stays; with `none`, batches are as long as with the derived throttle."""
    slow = found(spec(execution=replace(UNSET, throttle_bytes_per_sec=7 * MB, unset=UNSET.unset[1:])))
    none = found(spec(execution=replace(UNSET, unset=UNSET.unset[1:])))

    assert (7 * MB, 7 * MB) == (slow.throttle_bytes_per_sec, slow.batches.bytes_per_sec)
    assert (None, 50 * MB) == (none.throttle_bytes_per_sec, none.batches.bytes_per_sec)
    assert ["execution.batches.duration", "execution.batches.replicas_per_partition"] == [
        each.key for each in none.derived
    ]


def test_limits_have_their_defaults() -> None:
    """The defaults are an hour, one replica of a partition and 500 elections in a batch; the YAML's own limits stay."""
    unset = ("batches.duration", "batches.replicas_per_partition", "batches.elections")
    execution = found(spec(execution=Execution(5 * MB, BatchRules(bytes=9), unset=unset)))

    assert BatchRules(9, None, 1, 3_600, 5 * MB, 500) == execution.batches
    assert (
        DerivedRow(
            "execution.batches.duration",
            "1h",
            "the longest time that the busiest broker of a batch copies, at the throttle",
        ),
        DerivedRow(
            "execution.batches.replicas_per_partition", "1", "at most so many replicas added to a partition in a batch"
        ),
        DerivedRow("execution.batches.elections", "500", "at most so many preferred leaders elected in a batch"),
    ) == execution.derived


@pytest.mark.parametrize(
    ("cluster", "moves"), [({}, None), ({"sizes_known": False}, 10), ({"unsized": 1}, 10)], ids=str
)
def test_replicas_are_counted_where_sizes_are_unknown(cluster: Mapping[str, Any], moves: int | None) -> None:
    """If any size is unknown, a batch is limited to 10 moves per broker, unless the YAML says otherwise."""
    assert moves == found(spec(**cluster)).batches.moves_per_broker
    assert found(spec(execution=Execution(), **cluster)).batches == BatchRules()


@pytest.mark.slow
def test_a_derived_throttle_lets_every_batch_complete() -> None:
    """If 60 partitions of 10 MB/s move at once, the derived throttle is 650 MB/s, so that every batch ends."""
    rows = {"x": [(1, 2), (2, 1)] * 30}
    made = spec_of(no_racks(1, 2), rows, sizes=GB, changes=spec().changes, execution=Execution(unset=("throttle",)))
    (topic,) = made.cluster.topics
    written = tuple(replace(each, bytes_in_per_sec=10 * MB) for each in topic.partitions)
    made = replace(made, cluster=replace(made.cluster, topics=(replace(topic, partitions=written),)))
    problem = build(made)

    plan = plan_documents.planned(made, problem, run(problem, candidates(problem, replace(made.sweep, candidates=20))))

    assert [650 * MB] == [plan["execution"]["throttle_bytes_per_sec"]]
    assert all(batch["seconds_at_throttle"] for batch in plan["batches"])
