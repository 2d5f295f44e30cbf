"""Plans for the mean against plans for the busiest hours, on generated clusters with a week of load known."""

from __future__ import annotations

import numpy as np

from benchmarks.load_history import week
from benchmarks.table import Entries
from planner.model import build_problem
from planner.model.balance import Balance, Tolerance
from planner.model.build_problem import build
from planner.model.cluster import Broker, Cluster, Partition, Topic
from planner.model.formats import size
from planner.model.load_history import HOUR_SECONDS, WeekOfLoad
from planner.model.problem import IntArray, Problem
from planner.model.spec import Changes, Spec
from planner.scoring.broker_loads import leaders_after
from planner.scoring.growth_scenarios import without
from planner.scoring.score import adding
from planner.strategies import optimum

SEEDS = (1, 2, 3)
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
        # Five apart: each in another of the three racks.
        replicas = tuple((first + step * 5) % BROKERS + 1 for step in range(FACTOR))
        held = topics.setdefault(name, [])
        rate_in, rate_out = rates[0][row], rates[1][row]
        held.append(Partition(number, replicas, replicas[0], None, rate_in * HOUR_SECONDS, rate_in, rate_out))
        rows[name, number] = row
    brokers = [Broker(number, f"r{number % 3}") for number in range(1, BROKERS + ADDED + 1)]
    frozen = tuple(Topic(name, tuple(held)) for name, held in topics.items())
    cluster = Cluster("hours", tuple(brokers[:BROKERS]), frozen)
    known = WeekOfLoad(rows, means, np.stack([hours_in, hours_out]))
    return Spec(cluster, Changes(add_brokers=tuple(brokers[BROKERS:])), balance=BALANCE, week=known)


def worst(problem: Problem, known: WeekOfLoad, assignment: IntArray) -> tuple[int, int]:
    """The highest bytes/s in and out of any broker in any of the 168 hours."""
    hours = build_problem.of_partitions(problem, known)
    loads = build_problem.of_brokers(problem, hours, assignment, leaders_after(problem, assignment))
    return int(loads[0].max()), int(loads[1].max())


def entries() -> Entries:
    """A row for each seed and plan."""
    yield "## Plans for the mean and for the busiest hours"
    yield ""
    yield (
        f"{BROKERS} brokers and {ADDED} more, {PARTITIONS} partitions, traffic in and out within 10 %. The worst hour "
        "is that of the most loaded broker, of all 168."
    )
    yield ""
    yield "| seed | plan for | worst hour in | worst hour out | copied | proven minimum |"
    yield "|---|---|---|---|---|---|"
    for seed in SEEDS:
        asked = spec(seed)
        problem = build(asked)
        assert asked.week is not None
        for name, each in (("the mean", without(problem)), ("the busiest hours", problem)):
            solution = optimum.solve(each, BALANCE)
            moved = int((adding(problem, solution.assignment).sum(axis=1) * problem.size_bytes).sum())
            rate_in, rate_out = worst(problem, asked.week, solution.assignment)
            yield (
                f"| {seed} | {name} | {size(rate_in)}/s | {size(rate_out)}/s | {moved / 1e6:,.0f} MB | "
                f"{solution.least_bytes / 1e6:,.0f} MB |"
            )
