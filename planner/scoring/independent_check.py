"""The independent judge: is an assignment one that may be carried out at all?

It knows the problem and the rules, and nothing of how assignments are made or scored. Every assignment is judged
before it is scored, and the winner again before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from planner.model.problem import BoolArray, IntArray, Problem, uneven_racks

_Rule = Callable[[Problem, IntArray], BoolArray]


@dataclass(frozen=True)
class Violation:
    """One broken rule at one partition, in words that name the value seen and what is allowed."""

    rule: str
    topic: str
    partition: int
    message: str

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}: {self.rule}: {self.message}"


def check(problem: Problem, assignment: IntArray, at_most: int = 20) -> tuple[Violation, ...]:
    """What is wrong with an assignment (P, W), the first few of each rule; empty where nothing is.

    AssertionError where the array hasn't one row a partition: then partitions were lost or invented.
    """
    if assignment.shape != (problem.rows, problem.width):
        raise AssertionError(f"assignment of shape {assignment.shape} for {problem.rows} partitions x {problem.width}")
    found: list[Violation] = []
    for name, broken in broken_rules(problem, assignment).items():
        found += [_violation(problem, name, row, assignment[row]) for row in np.flatnonzero(broken)[:at_most]]
    return tuple(found)


def broken_rules(problem: Problem, replicas: IntArray) -> Mapping[str, BoolArray]:
    """For each rule, which partitions (P,) break it with these replicas (P, W)."""
    # Column by column: numpy is ten times slower where what it goes along is short and innermost.
    columns = np.asfortranarray(replicas)
    return {name: rule(problem, columns) for name, (rule, _) in _RULES.items()}


def _duplicate(problem: Problem, replicas: IntArray) -> BoolArray:
    broken = np.zeros(len(replicas), dtype=bool)
    for one, other in combinations(replicas.T, 2):
        broken |= (one == other) & (one >= 0)
    return broken


def _wrong_factor(problem: Problem, replicas: IntArray) -> BoolArray:
    wanted = (np.arange(replicas.shape[1])[:, None] < problem.replication_factors).T
    return ((replicas >= 0) != wanted).any(axis=1)


def _not_a_target(problem: Problem, replicas: IntArray) -> BoolArray:
    known = replicas < len(problem.targets)
    target = problem.targets[replicas.clip(0, len(problem.targets) - 1)]
    broken: BoolArray = ((replicas >= 0) & ~(known & target)).any(axis=1)
    # What waits for a later step is held to today's replicas by another rule.
    return broken if problem.deferred is None else broken & ~problem.deferred


def _uneven_racks(problem: Problem, replicas: IntArray) -> BoolArray:
    """The rule leaves rows alone that nothing forces to move where `rebalance` isn't `all`, and excluded topics."""
    return uneven_racks(problem, replicas) & problem.movable & (problem.forced | (problem.rebalance == "all"))


def _excluded(problem: Problem, replicas: IntArray) -> BoolArray:
    return ~problem.movable & _differs(problem, replicas)


def _unforced(problem: Problem, replicas: IntArray) -> BoolArray:
    """With `rebalance: leaders` replicas stay on their brokers, with `none` in their order too, unless forced."""
    if problem.rebalance == "all":
        return np.zeros(problem.rows, dtype=bool)
    stays = ~problem.forced
    if problem.rebalance == "none":
        return stays & _differs(problem, replicas)
    return stays & (np.sort(_today(problem, replicas), axis=1) != np.sort(replicas, axis=1)).any(axis=1)


def _under_min_insync(problem: Problem, replicas: IntArray) -> BoolArray:
    """Fewer replicas than `min.insync.replicas` refuse every write with acks=all; blamed only on a changed factor."""
    count = (replicas >= 0).sum(axis=1)
    today = (np.asfortranarray(problem.replicas) >= 0).sum(axis=1)
    return (count < problem.min_insync) & (count != today)


def _differs(problem: Problem, replicas: IntArray) -> BoolArray:
    return (_today(problem, replicas) != replicas).any(axis=1)


def _today(problem: Problem, replicas: IntArray) -> IntArray:
    """Today's replicas at the width of the assignment (P, W)."""
    padded = np.full(replicas.shape, -1, dtype=np.int32, order="F")
    padded[:, : problem.replicas.shape[1]] = problem.replicas
    return padded


def _ids(problem: Problem, brokers: IntArray) -> str:
    known = [int(problem.broker_ids[b]) if b < len(problem.broker_ids) else int(b) for b in brokers if b >= 0]
    return str(known)


def _violation(problem: Problem, rule: str, row: int, replicas: IntArray) -> Violation:
    allowed = _RULES[rule][1](problem, row)
    topic = problem.topic_names[problem.topic_of[row]]
    return Violation(rule, topic, int(problem.partition_ids[row]), f"replicas {_ids(problem, replicas)}; {allowed}")


def _target_ids(problem: Problem, row: int) -> str:
    return f"allowed: brokers that stay, {_ids(problem, np.flatnonzero(problem.targets))}"


_RULES: Mapping[str, tuple[_Rule, Callable[[Problem, int], str]]] = {
    "no broker twice": (_duplicate, lambda problem, row: "allowed: each broker once"),
    "replication factor": (
        _wrong_factor,
        lambda problem, row: f"allowed: exactly {problem.replication_factors[row]} replicas",
    ),
    "live brokers": (_not_a_target, _target_ids),
    "rack spread": (_uneven_racks, lambda problem, row: "allowed: spread over racks as evenly as the brokers let it"),
    "excluded topic": (
        _excluded,
        lambda problem, row: (
            f"allowed: today's {_ids(problem, problem.replicas[row])} (topics.include, topics.exclude)"
        ),
    ),
    "unforced move": (
        _unforced,
        lambda problem, row: (
            f"allowed: today's {_ids(problem, problem.replicas[row])} (changes.rebalance: {problem.rebalance})"
        ),
    ),
    "min.insync.replicas": (
        _under_min_insync,
        lambda problem, row: f"allowed: at least min.insync.replicas = {problem.min_insync[row]} replicas",
    ),
}
