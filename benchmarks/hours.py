"""Compares plans for the mean with plans for the busiest hours, on generated clusters with a known week of load."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import numpy as np

from benchmarks.cases import make, to_spec
from benchmarks.load_history import week
from benchmarks.table import Entries
from planner.model import build_problem
from planner.model.balance import Balance, Tolerance
from planner.model.build_problem import build
from planner.model.cluster import Broker, Cluster, Partition, Topic
from planner.model.formats import size
from planner.model.load_history import HOUR_SECONDS, WeekOfLoad
from planner.model.problem import IntArray, Problem
from planner.model.spec import Changes, Spec, Sweep
from planner.scoring.broker_loads import leaders_after
from planner.scoring.growth_scenarios import without
from planner.scoring.score import added_replicas
from planner.strategies import optimum
from planner.sweep import evaluate
from planner.sweep.candidates import candidates

SEEDS = (1, 2, 3, 4)
BROKERS, ADDED, FACTOR = 12, 3, 3
PARTITIONS = 600
BALANCE = Balance(
    leaders=Tolerance("spread", 2), network_in=Tolerance("percent", 10), network_out=Tolerance("percent", 10)
)


def spec(seed: int, partitions: int = PARTITIONS) -> Spec:
    """12 brokers in 3 racks, to which 3 are added, with partitions placed at random over the racks."""
    random = np.random.default_rng(seed)
    topic_of, ids, hours_in, hours_out = week(random, partitions)
    means = np.stack([hours_in.mean(axis=1), hours_out.mean(axis=1)])
    rates = np.rint(means).astype(np.int64).tolist()
    topics: dict[str, list[Partition]] = {}
    rows: dict[tuple[str, int], int] = {}
    for row, (topic, number) in enumerate(zip(topic_of.tolist(), ids.tolist(), strict=True)):
        name, first = f"topic-{topic:04d}", int(random.integers(BROKERS))
        # Replicas are five brokers apart, so that each is in another of the three racks.
        replicas = tuple((first + step * 5) % BROKERS + 1 for step in range(FACTOR))
        topic_partitions = topics.setdefault(name, [])
        rate_in, rate_out = rates[0][row], rates[1][row]
        topic_partitions.append(
            Partition(number, replicas, replicas[0], None, rate_in * HOUR_SECONDS, rate_in, rate_out)
        )
        rows[name, number] = row
    brokers = [Broker(number, f"r{number % 3}") for number in range(1, BROKERS + ADDED + 1)]
    cluster_topics = tuple(Topic(name, tuple(topic_partitions)) for name, topic_partitions in topics.items())
    cluster = Cluster("hours", tuple(brokers[:BROKERS]), cluster_topics)
    load_week = WeekOfLoad(rows, means, np.stack([hours_in, hours_out]))
    return Spec(cluster, Changes(add_brokers=tuple(brokers[BROKERS:])), balance=BALANCE, week=load_week)


def worst(problem: Problem, load_week: WeekOfLoad, assignment: IntArray) -> tuple[int, int, int]:
    """The highest bytes/s in and out of any broker in any of the 168 hours, and the number of hours of brokers above
    the limit. The limit is 10 % more, in or out, than an even share of the cluster's busiest hour.
    """
    hours = build_problem.hours_of_partitions(problem, load_week)
    loads = build_problem.hours_of_brokers(problem, hours, assignment, leaders_after(problem, assignment))
    limit = 1.1 * loads.sum(axis=1).max(axis=1) / problem.targets.sum()
    above = (loads > limit[:, None, None]).any(axis=0)
    return int(loads[0].max()), int(loads[1].max()), int(above.sum())


CASE, CANDIDATES = "expand-mid", 5_000


def with_week(base: Spec, seed: int) -> Spec:
    """The spec with a random week of load for its partitions, only to judge plans, not to plan for."""
    keys = [(topic.name, each.id) for topic in base.cluster.topics for each in topic.partitions]
    random = np.random.default_rng(seed)
    *_, hours_in, hours_out = week(random, len(keys))
    hours = np.stack([hours_in, hours_out])
    load_week = WeekOfLoad({key: row for row, key in enumerate(keys)}, hours.mean(axis=2), hours, planned_for=False)
    rates = dict(zip(keys, np.rint(load_week.means).astype(np.int64).T.tolist(), strict=True))
    topics = []
    for topic in base.cluster.topics:
        pairs = [(each, rates[topic.name, each.id]) for each in topic.partitions]
        rows = [replace(each, bytes_in_per_sec=pair[0], bytes_out_per_sec=pair[1]) for each, pair in pairs]
        topics.append(replace(topic, partitions=tuple(rows)))
    return replace(base, cluster=replace(base.cluster, topics=tuple(topics)), week=load_week)


def replayed(base: Spec, count: int) -> tuple[int, float, float, float]:
    """The number of candidates of a sweep, and its CPU seconds in this process: without the hours of the week, with
    them, and with consumers that read from the nearest replica, equally many in each rack.
    """
    problem = build(base)
    all_candidates = candidates(problem, Sweep(count))
    racks = len(problem.rack_names)
    near = replace(problem, read_in_racks=np.full(racks, 1_000_000 // racks))
    seconds = []
    for variant in (replace(problem, week=None), problem, near):
        started = process_time()
        evaluate.run(variant, all_candidates)
        seconds.append(process_time() - started)
    return len(all_candidates), seconds[0], seconds[1], seconds[2]


def entries() -> Entries:
    """A row for each seed and plan, and the CPU time of replaying a sweep over the hours."""
    yield "## Plans for the mean and for the busiest hours"
    yield ""
    yield (
        f"{BROKERS} brokers and {ADDED} more, {PARTITIONS} partitions, traffic in and out within 10 %. The worst hour "
        "is that of the most loaded broker, of all 168. Hours above are those of brokers with more traffic, in or out, "
        "than 10 % above an even share of the cluster's busiest hour."
    )
    yield ""
    yield "| seed | plan for | worst hour in | worst hour out | hours above | copied | proven minimum |"
    yield "|---|---|---|---|---|---|---|"
    for seed in SEEDS:
        base = spec(seed)
        problem = build(base)
        assert base.week is not None
        for name, variant in (("the mean", without(problem)), ("the busiest hours", problem)):
            solution = optimum.solve(variant, BALANCE)
            moved = int((added_replicas(problem, solution.assignment).sum(axis=1) * problem.size_bytes).sum())
            rate_in, rate_out, above = worst(problem, base.week, solution.assignment)
            yield (
                f"| {seed} | {name} | {size(rate_in)}/s | {size(rate_out)}/s | {above} | {moved / 1e6:,.0f} MB | "
                f"{solution.least_bytes / 1e6:,.0f} MB |"
            )
    yield ""
    count, without_hours, with_hours, near = replayed(with_week(to_spec(make(CASE)), SEEDS[0]), CANDIDATES)
    yield (
        f"{count:,} candidates of {CASE} in one process: {without_hours:.1f} s of CPU; each of them replayed over the "
        f"168 hours of the week, too: {with_hours:.1f} s, and {near:.1f} s with reads from the nearest replica."
    )
