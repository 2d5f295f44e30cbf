"""The independent check of an assignment: which hard rules does it break?

It knows the problem and the rules, and nothing of how assignments are made or scored. Every assignment is checked
before it is scored, and the chosen one again before anything is written.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from planner.model.document_fields import LEADERS
from planner.model.problem import (
    UNCAPPED,
    BoolArray,
    IntArray,
    LongArray,
    Problem,
    badly_led,
    leaderless,
    led_by_several,
    may_be_reordered,
)
from planner.model.rack_spread import as_even_as_today, uneven_racks

_EXCLUDING = "topics.include, topics.exclude, topics.on_brokers"


@dataclass(frozen=True)
class Violation:
    """A rule that one partition breaks; the message names the value seen and what is allowed."""

    rule: str
    topic: str
    partition: int
    message: str

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}: {self.rule}: {self.message}"


def check(problem: Problem, assignment: IntArray, at_most: int = 20) -> tuple[Violation, ...]:
    """The violations of an assignment (P, W), the first `at_most` of each rule.

    AssertionError if the array doesn't have one row for each partition: partitions were lost or invented.
    """
    if assignment.shape != (problem.rows, problem.width):
        raise AssertionError(f"assignment of shape {assignment.shape} for {problem.rows} partitions x {problem.width}")
    violations: list[Violation] = []
    for name, broken in broken_rules(problem, assignment).items():
        violations += [_violation(problem, name, row, assignment[row]) for row in np.flatnonzero(broken)[:at_most]]
    violations += _on_one_broker(problem, assignment, at_most)
    if (limits := caps(problem)) is None:
        return tuple(violations)
    # A broker over a cap is a violation at the last partition that the assignment puts there.
    targets, keys = np.flatnonzero(problem.targets).tolist(), problem.partition_keys
    leaders = np.where(problem.may_lead_anew, assignment[:, 0], problem.leaders)
    lists = (assignment, problem.replicas), (leaders[:, None], problem.leaders[:, None])
    for rule, capped, (after, before) in zip(("max_replicas", "max_leaders"), limits.tolist(), lists, strict=True):
        for broker, cap in zip(targets, capped, strict=True):
            is_on = (after == broker).any(axis=1)
            if (count := np.count_nonzero(is_on)) > cap:
                is_new = is_on & ~(before == broker).any(axis=1)
                topic, number = keys[np.flatnonzero(is_new if is_new.any() else is_on)[-1]]
                message = f"broker {problem.broker_ids[broker]} would have {count}; allowed: at most {cap}"
                violations.append(Violation(rule, topic, number, message))
    return tuple(violations)


def _on_one_broker(problem: Problem, assignment: IntArray, at_most: int) -> list[Violation]:
    """The first partitions that share a broker or rack, or its leaders, with topics of another side of `apart`.

    Partitions that wait for a later step, or may not move, are where they are today.
    """
    violations: list[Violation] = []
    due = ~problem.waits
    for group, of_topic in enumerate(problem.apart):
        unit_of = problem.not_shared(group)
        sides, keys = of_topic[problem.topic_of], problem.partition_keys
        of_leaders = problem.apart_by[group].endswith(LEADERS)
        # The preferred leaders.
        lists = assignment[:, :1] if of_leaders else assignment
        is_judged = (lists >= 0) & (lists < len(problem.broker_ids)) & (due & (sides >= 0))[:, None]
        has_side = np.zeros((int(unit_of.max()) + 1, max(int(of_topic.max()) + 1, 1)), dtype=bool)
        rows, columns = np.nonzero(is_judged)
        has_side[unit_of[lists[rows, columns]], sides[rows]] = True
        mixed = np.append((has_side.sum(axis=1) > 1)[unit_of], False)
        broken = (mixed[np.where(is_judged, lists, -1)]).any(axis=1) & problem.movable
        for row in np.flatnonzero(broken)[:at_most]:
            allowed = (
                f"no {problem.apart_by[group].removesuffix(LEADERS)} {'that leads' if of_leaders else 'with'} topics"
            )
            message = f"replicas {_ids(problem, assignment[row])}; allowed: {allowed} that apart parts"
            violations.append(Violation("apart", keys[row][0], keys[row][1], message))
    return violations


def caps(problem: Problem) -> LongArray | None:
    """(2, Bt): the most replicas and leaders that a plan may leave on each target broker; None without any.

    A first step within a budget may leave as many as a broker holds today. If a broker that stays is in no ISR, the
    others lead in its place for that time, whatever their caps.
    """
    if problem.caps is None:
        return None
    limits = problem.caps[:, problem.targets]
    if problem.deferred is not None and problem.deferred.any():
        brokers_of = (each[each >= 0] for each in (problem.replicas, problem.leaders))
        counts_today = np.stack([np.bincount(each, minlength=len(problem.targets)) for each in brokers_of])
        limits = np.maximum(limits, counts_today[:, problem.targets])
    if problem.lifts_leader_caps:
        limits = np.stack([limits[0], np.full_like(limits[1], UNCAPPED)])
    return limits


def broken_rules(problem: Problem, replicas: IntArray) -> Mapping[str, BoolArray]:
    """For each rule, the mask of the partitions (P,) that break it with these replicas (P, W)."""
    # In column order, because numpy is ten times slower along a short innermost axis.
    columns = np.asfortranarray(replicas)
    today = np.full(columns.shape, -1, dtype=np.int32, order="F")
    today[:, : problem.replicas.shape[1]] = problem.replicas
    differs = (today != columns).any(axis=1)
    has_slot = (np.arange(columns.shape[1])[:, None] < problem.replication_factors).T
    # A first step's lists may be shorter than those asked for.
    too_short = problem.replication_factors > columns.shape[1]
    count = (columns >= 0).sum(axis=1)
    uneven = uneven_racks(problem, columns)
    if problem.racks_as_today:
        uneven = uneven & ~as_even_as_today(problem, columns)
    may_be_uneven = ~problem.movable | ~(problem.forced | (problem.rebalance in ("all", "racks")))
    twice = np.zeros(len(columns), dtype=bool)
    for column, other in combinations(columns.T, 2):
        twice |= (column == other) & (column >= 0)
    is_target = problem.targets[columns.clip(0, len(problem.targets) - 1)] & (columns < len(problem.targets))
    # Kafka would carry out the reassignment, but a cordon asks for no new replicas.
    to_cordoned = np.zeros(len(columns), dtype=bool)
    for broker in () if problem.cordoned is None else np.flatnonzero(problem.cordoned):
        to_cordoned |= (columns == broker).any(axis=1) & ~(today == broker).any(axis=1)
    # Another rule keeps partitions that wait for a later step on today's replicas.
    due = ~problem.waits
    return {
        "no broker twice": twice,
        "replication factor": ((columns >= 0) != has_slot).any(axis=1) | too_short,
        "live brokers": ((columns >= 0) & ~is_target).any(axis=1) & due,
        # Outside of the brokers that the topic may use, or without any replica that may lead.
        "placement": (_outside_set(problem, columns) | (leaderless(problem, columns) & problem.movable)) & due,
        "cordoned broker": to_cordoned,
        "rack spread": uneven & ~may_be_uneven,
        # `leader_racks` or `demote_brokers` put the preferred leader behind another replica.
        "leader": badly_led(problem, columns) & problem.movable & due,
        # Another broker leads the partition of this number in another topic of its group.
        "together": led_by_several(problem, columns) & problem.movable,
        # Its topic is excluded, or it has no leader to copy from and no change requires that it moves.
        "partition that stays": ~problem.movable & differs,
        "unforced move": _unforced(problem, columns, today, differs),
        # With fewer replicas, Kafka before 3.7 refuses all writes with acks=all. It counts if their number changes.
        "min.insync.replicas": (count < problem.min_insync) & (count != (today >= 0).sum(axis=1)),
    }


def _outside_set(problem: Problem, replicas: IntArray) -> BoolArray:
    """(P,): True if a replica is on a broker that `placement` forbids to the topic, and the partition may move."""
    broken = np.zeros(len(replicas), dtype=bool)
    if problem.allowed is None:
        return broken
    for column in replicas.T:
        rows = np.flatnonzero((column >= 0) & (column < len(problem.broker_ids)))
        broken[rows] |= ~problem.allowed[problem.topic_of[rows], column[rows]]
    return broken & problem.movable


def _unforced(problem: Problem, replicas: IntArray, today: IntArray, differs: BoolArray) -> BoolArray:
    """(P,): True if the brokers, or with `rebalance: none` or `racks` their order, change without being forced."""
    if problem.rebalance == "all":
        return np.zeros(problem.rows, dtype=bool)
    reordered = may_be_reordered(problem)
    if problem.rebalance == "leaders" or reordered.any():
        moved = (np.sort(today, axis=1) != np.sort(replicas, axis=1)).any(axis=1)
        differs = moved if problem.rebalance == "leaders" else np.where(reordered, moved, differs)
    return ~problem.forced & differs


def _ids(problem: Problem, brokers: IntArray) -> str:
    ids = [int(problem.broker_ids[b]) if b < len(problem.broker_ids) else int(b) for b in brokers if b >= 0]
    return str(ids)


def _violation(problem: Problem, rule: str, row: int, replicas: IntArray) -> Violation:
    today = f"today's {_ids(problem, problem.replicas[row])}"
    usable = problem.targets if problem.allowed is None else problem.targets & problem.allowed[problem.topic_of[row]]
    allowed = {
        "no broker twice": "each broker once",
        "replication factor": f"exactly {problem.replication_factors[row]} replicas",
        "live brokers": f"brokers that stay, {_ids(problem, np.flatnonzero(problem.targets))}",
        "placement": f"brokers that the topic may use, {_ids(problem, np.flatnonzero(usable))}",
        "cordoned broker": f"{today}, or brokers that aren't cordoned",
        "rack spread": "spread over racks as evenly as the brokers let it",
        "leader": "led by another of its replicas (leader_racks, changes.demote_brokers)",
        "together": "the preferred leader that this partition has in the other topics of its group",
        "partition that stays": f"{today} ({'no leader' if problem.leaders[row] < 0 else _EXCLUDING})",
        "unforced move": f"{today} (changes.rebalance: {problem.rebalance})",
        "min.insync.replicas": f"at least min.insync.replicas = {problem.min_insync[row]} replicas",
    }[rule]
    topic, partition = problem.topic_names[problem.topic_of[row]], int(problem.partition_ids[row])
    return Violation(rule, topic, partition, f"replicas {_ids(problem, replicas)}; allowed: {allowed}")
