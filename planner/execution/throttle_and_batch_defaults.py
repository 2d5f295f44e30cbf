"""The defaults of the YAML's `execution`: a throttle, and what one batch may hold.

They are chosen so that a running cluster bears the plan. The plan lists each default with the YAML key that changes it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from msgspec import structs

from planner.execution.batch_costs_and_risks import flows
from planner.execution.batch_cutting import Batch, split
from planner.execution.partition_changes import steps_of
from planner.model.build_problem import brokers_after, today
from planner.model.cluster import PartitionChange
from planner.model.document_fields import DerivedRow
from planner.model.formats import size
from planner.model.problem import IntArray, Problem
from planner.model.spec import BatchRules, Execution, Spec
from planner.scoring.broker_loads import MEASURES, leaders_after, measure_count, on_all_brokers

# The rate to which Kafka's documentation throttles an expansion. It leaves room on a network of 1 Gbit/s (125 MB/s) and
# on a network disk of 125 MB/s. Confluent's balancers use 10 MB/s; Cruise Control sets none.
THROTTLE_BYTES_PER_SEC = 50_000_000
# The throttle is a quarter of a network's free rate, because stated rates are averages and disks may be slower.
NETWORK_SHARE = 4
# A batch is waited for, verified and rolled back as a whole.
SECONDS = 3_600
# A partition that adds all replicas at once holds up to twice as many, and all are read from one leader.
REPLICAS_PER_PARTITION = 1
# A controller moves this many leaders within seconds; Kafka's own balancing and Cruise Control take 1,000 at a time.
ELECTIONS = 500
# Used if sizes are unknown: at 50 MB/s an hour copies ten replicas of 18 GB.
MOVES_PER_BROKER = 10

_MEGABYTE = 10**6


# The limits of a batch that apply if they are left out: the key, the value, and its description.
_FROM_OR_TO = "at most so many replicas copied to or from a broker in a batch, because some sizes are unknown"
_LIMITS = (
    ("duration", SECONDS, "the longest time that the busiest broker of a batch copies, at the throttle"),
    ("moves_per_broker", MOVES_PER_BROKER, _FROM_OR_TO),
    ("replicas_per_partition", REPLICAS_PER_PARTITION, "at most so many replicas added to a partition in a batch"),
    ("elections", ELECTIONS, "at most so many preferred leaders elected in a batch"),
)


def with_defaults(spec: Spec, problem: Problem, assignment: IntArray, changed: Sequence[PartitionChange]) -> Execution:
    """The spec's `execution` with its defaults filled in, for a plan's assignment (P, W) and changes.

    `derived` lists the defaults; nothing is `unset` any more.
    """
    stated, throttle, rules = spec.execution, spec.execution.throttle_bytes_per_sec, spec.execution.batches
    sized = spec.cluster.sizes_known and not spec.cluster.unsized
    derived = []
    for key, value, reason in _LIMITS:
        if f"batches.{key}" in stated.unset and not (sized and key == "moves_per_broker"):
            field, text = ("seconds", "1h") if key == "duration" else (key, str(value))
            rules = structs.replace(rules, **{field: value})
            derived.append(DerivedRow(f"execution.batches.{key}", text, reason))
    if "throttle" in stated.unset:
        throttle, reason = _throttle(spec, problem, assignment, changed, rules)
        derived = [DerivedRow("execution.throttle", f"{throttle // _MEGABYTE}MB/s", reason), *derived]
    if rules.seconds is not None and rules.bytes_per_sec is None:
        # Without a throttle, batches are as large as they would be with the derived throttle.
        rate = throttle or _throttle(spec, problem, assignment, changed, rules)[0]
        rules = structs.replace(rules, bytes_per_sec=rate)
    return replace(stated, throttle_bytes_per_sec=throttle, batches=rules, unset=(), derived=tuple(derived))


def _throttle(
    spec: Spec, problem: Problem, assignment: IntArray, changed: Sequence[PartitionChange], rules: BatchRules
) -> tuple[int, str]:
    """Bytes/s and the reason: a share of the networks' free rate, plus the producers' rate to what moves if high."""
    rate, reason = _free_rate(spec, problem, assignment)
    racks = {broker.id: broker.rack for broker in brokers_after(spec) if broker.rack is not None}
    written = [change for change in changed if change.bytes_in_per_sec]
    if rules.seconds is None:
        batches: Iterable[Batch] = split(changed, rules, racks) if written else ()
    else:
        # Batches that are limited in time get smaller if producers take much, down to a single step.
        batches = (Batch(1, (step,), ()) for change in written for step in steps_of(change, rules, racks))
    # The most bytes/s that producers can take of the throttle, however the batches are cut.
    produced = max((flow.produced_bytes_per_sec for batch in batches for flow in flows(batch)), default=0)
    if 2 * produced <= rate:
        return rate, reason
    above = -(-produced // _MEGABYTE) * _MEGABYTE
    return rate + above, f"{reason}; and {size(produced)}/s on top, which producers write to partitions that move"


def _free_rate(spec: Spec, problem: Problem, assignment: IntArray) -> tuple[int, str]:
    """A share of the least free rate of any stated network, and the reason; the constant if no network is stated."""
    brokers = spec.all_brokers
    networks = {each.id: each.network_bytes_per_sec for each in brokers if each.network_bytes_per_sec is not None}
    kafka_rate = "the rate in Kafka's own documentation, because {} states capacity.network"
    if not networks:
        return THROTTLE_BYTES_PER_SEC, kafka_rate.format("no broker")
    # The rate on each network in its busier direction, before or after the plan; 0 without rates.
    traffic = [MEASURES.index("network_in"), MEASURES.index("network_out")]
    states = ((today(problem), problem.leaders), (assignment, leaders_after(problem, assignment)))
    sums = [on_all_brokers(problem, replicas, leaders)[traffic] for replicas, leaders in states]
    used = dict(zip(problem.broker_ids.tolist(), np.max(np.concatenate(sums), axis=0).tolist(), strict=True))
    rate_left = {broker: max(rate - used[broker], 0) for broker, rate in networks.items()}
    least = min(rate_left, key=lambda broker: (rate_left[broker], broker))
    rate = max(quarter := rate_left[least] // NETWORK_SHARE // _MEGABYTE, 1) * _MEGABYTE
    if len(networks) < len(brokers) and rate > THROTTLE_BYTES_PER_SEC:
        return THROTTLE_BYTES_PER_SEC, kafka_rate.format("not every broker")
    rates_known = measure_count(problem) == len(MEASURES)
    share = "a quarter" if quarter else "the lowest default, although that is more than a quarter"
    network = f"broker {least}'s network"
    if rates_known:
        return rate, f"{share} of the {size(rate_left[least])}/s that clients and replication leave of {network}"
    return rate, f"{share} of {network} of {size(rate_left[least])}/s; what clients use is unknown (no cluster.rates)"
