"""What `execution` means where the YAML leaves it out: a throttle, and what one batch may hold.

An operator who said nothing gets a plan that a running cluster bears; whatever is derived here is in the plan with the
key of the YAML that changes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from planner.execution.batch_costs import flows
from planner.execution.batch_cutting import Batch, Step, split, steps_of
from planner.model.build_problem import brokers_after, today
from planner.model.formats import size
from planner.model.partition_changes import PartitionChange
from planner.model.problem import IntArray, LongArray, Problem
from planner.model.spec import BatchRules, Derived, Execution, Spec
from planner.scoring.broker_loads import MEASURES, leaders_after, measured, on_all_brokers

# The rate that Kafka's documentation throttles an expansion to. It leaves room on a network of 1 Gbit/s (125 MB/s) and
# on a network disk of 125 MB/s; Confluent's balancers take 10 MB/s, Cruise Control sets none.
THROTTLE_BYTES_PER_SEC = 50_000_000
# Of what a network has left: the rates that are stated are averages, and disks may be slower than networks.
NETWORK_SHARE = 4
# A batch is what is waited for, verified, and rolled back as one.
SECONDS = 3_600
# A partition that adds all its replicas at once holds up to twice as many, all of them read from one leader.
REPLICAS_PER_PARTITION = 1
# A controller moves as many leaders within seconds; Kafka's own balancing takes 1,000 at a time, Cruise Control too.
ELECTIONS = 500
# Where sizes aren't known: an hour at 50 MB/s copies ten replicas of 18 GB.
MOVES_PER_BROKER = 10

_MEGABYTE = 10**6


class _Default(NamedTuple):
    """A limit of a batch that is left out: its field in BatchRules, its value, and what is said of it."""

    field: str
    value: int
    told: Derived


def settled(spec: Spec, problem: Problem, assignment: IntArray, changed: Sequence[PartitionChange]) -> Execution:
    """The spec's `execution` with its defaults filled in, for a plan's assignment (P, W) and changes.

    `derived` says which; nothing is `unset` any more.
    """
    stated, limits = spec.execution, list(_limits(spec))
    rules = replace(stated.batches, **{each.field: each.value for each in limits})
    throttle, derived = stated.throttle_bytes_per_sec, [each.told for each in limits]
    if "throttle" in stated.unset:
        throttle, why = _throttle(spec, problem, assignment, changed, rules)
        derived = [Derived("execution.throttle", f"{throttle // _MEGABYTE}MB/s", why), *derived]
    if rules.seconds is not None and rules.bytes_per_sec is None:
        # Without a throttle batches are as large as they would be with the one that is derived.
        rate = throttle or _throttle(spec, problem, assignment, changed, rules)[0]
        rules = replace(rules, bytes_per_sec=rate)
    return replace(stated, throttle_bytes_per_sec=throttle, batches=rules, unset=(), derived=tuple(derived))


def _limits(spec: Spec) -> Iterator[_Default]:
    """The limits of a batch that the YAML leaves out and that apply."""
    cluster = spec.cluster
    sized = cluster.sizes_known and not cluster.unsized
    found = (
        ("duration", "seconds", SECONDS, "1h", "that the busiest broker of a batch copies, at the throttle"),
        (
            "moves_per_broker",
            "moves_per_broker",
            MOVES_PER_BROKER,
            "",
            "replicas copied to or from a broker in a batch, as not all sizes are known",
        ),
        (
            "replicas_per_partition",
            "replicas_per_partition",
            REPLICAS_PER_PARTITION,
            "",
            "replica of a partition added in a batch",
        ),
        ("elections", "elections", ELECTIONS, "", "preferred leaders elected in a batch"),
    )
    for key, field, value, text, why in found:
        if f"batches.{key}" in spec.execution.unset and not (sized and key == "moves_per_broker"):
            yield _Default(field, value, Derived(f"execution.batches.{key}", text or str(value), why))


def _throttle(
    spec: Spec, problem: Problem, assignment: IntArray, changed: Sequence[PartitionChange], rules: BatchRules
) -> tuple[int, str]:
    """Bytes/s, and why so many: what networks leave, with what producers write to what moves where that is much."""
    rate, why = _room(spec, problem, assignment)
    racks = {broker.id: broker.rack for broker in brokers_after(spec) if broker.rack is not None}
    produced = _produced(changed, rules, racks)
    if 2 * produced <= rate:
        return rate, why
    above = -(-produced // _MEGABYTE) * _MEGABYTE
    return rate + above, f"{why}; and {size(produced)}/s on top, which producers write to partitions that move"


def _produced(changed: Sequence[PartitionChange], rules: BatchRules, racks: Mapping[int, str]) -> int:
    """The most bytes/s that producers take of a throttle wherever batches are cut.

    Batches of so many seconds are cut smaller where producers take much, down to a single step.
    """
    written = [change for change in changed if change.bytes_in_per_sec]
    if not written:
        return 0
    if rules.seconds is None:
        batches: Iterable[Batch] = split(changed, rules, racks)
    else:
        batches = (_alone(step) for change in written for step in steps_of(change, rules, racks))
    return max((flow.produced_bytes_per_sec for batch in batches for flow in flows(batch)), default=0)


def _alone(step: Step) -> Batch:
    return Batch(1, (step,), (), step.bytes_moved, len(step.adding))


def _room(spec: Spec, problem: Problem, assignment: IntArray) -> tuple[int, str]:
    """A share of what the stated networks leave, of the broker with the least; the constant where one isn't stated."""
    brokers = (*spec.cluster.brokers, *spec.changes.add_brokers)
    networks = {each.id: each.network_bytes_per_sec for each in brokers if each.network_bytes_per_sec is not None}
    if not networks:
        return THROTTLE_BYTES_PER_SEC, "no broker states capacity.network, so the rate of Kafka's own documentation"
    used = _traffic(problem, assignment)
    left = {broker: max(rate - used[broker], 0) for broker, rate in networks.items()}
    least = min(left, key=lambda broker: (left[broker], broker))
    rate = max(left[least] // NETWORK_SHARE // _MEGABYTE, 1) * _MEGABYTE
    if len(networks) < len(brokers) and rate > THROTTLE_BYTES_PER_SEC:
        return THROTTLE_BYTES_PER_SEC, "not every broker states capacity.network, so the rate of Kafka's documentation"
    known = measured(problem) == len(MEASURES)
    users = "clients and replication leave" if known else "are there, with no rates stated (cluster.rates),"
    return rate, f"a quarter of the {size(left[least])}/s that {users} of broker {least}'s network"


_TRAFFIC = [MEASURES.index("network_in"), MEASURES.index("network_out")]


def _traffic(problem: Problem, assignment: IntArray) -> dict[int, int]:
    """Broker id to bytes/s that its network carries in the busier direction, before or after; 0 without rates."""
    states = ((today(problem), problem.leaders), (assignment, leaders_after(problem, assignment)))
    sums = [on_all_brokers(problem, replicas, leaders)[_TRAFFIC] for replicas, leaders in states]
    most: LongArray = np.max(np.concatenate(sums), axis=0)
    return dict(zip(problem.broker_ids.tolist(), most.tolist(), strict=True))
