"""What an assignment changes, partition by partition, each with its reason."""

from __future__ import annotations

import numpy as np

from planner.model.build_problem import today
from planner.model.cluster import PartitionChange, Reason
from planner.model.problem import IntArray, LongArray, Problem
from planner.scoring import independent_check
from planner.scoring.broker_loads import leaders_after
from planner.scoring.score import adding


def changes(problem: Problem, assignment: IntArray) -> tuple[PartitionChange, ...]:
    """The partitions whose replica list an assignment (P, W) changes, or whose leader needs an election.

    Sorted by topic and partition. Partitions to be made aren't among them (see `new_partitions`).
    """
    before = today(problem)
    elects = problem.may_lead_anew & (problem.leaders != leaders_after(problem, assignment))
    rows = np.flatnonzero(~problem.is_new & ((before != assignment).any(axis=1) | elects))
    leaves = ((before >= 0) & ~problem.targets[before]).any(axis=1)
    broken = independent_check.broken_rules(problem, before)
    uneven, outside = broken["rack spread"], broken["placement"]
    resized = (before >= 0).sum(axis=1) != problem.replication_factors
    moved = (np.sort(before, axis=1) != np.sort(assignment, axis=1)).any(axis=1)
    # In the order of Reason: the first that applies is the reason.
    otherwise = np.ones(problem.rows, dtype=bool)
    applies = [leaves, outside & moved, uneven & moved, resized, moved, broken["leader"], otherwise]
    reasons, names = np.argmax(np.stack(applies), axis=0), tuple(Reason)
    ids = problem.broker_ids.tolist()
    named = zip(rows.tolist(), before[rows].tolist(), assignment[rows].tolist(), strict=True)
    return tuple(
        PartitionChange(
            topic=problem.topic_names[problem.topic_of[row]],
            partition=int(problem.partition_ids[row]),
            before=_named(ids, old),
            after=_named(ids, new),
            leader_before=ids[problem.leaders[row]] if problem.leaders[row] >= 0 else None,
            size_bytes=int(problem.size_bytes[row]),
            reason=names[reasons[row]],
        )
        for row, old, new in named
    )


def bytes_in_and_out(problem: Problem, assignment: IntArray) -> tuple[LongArray, LongArray]:
    """Bytes that each broker (B,) copies in, and that are copied from it as today's leader."""
    rows, slots = np.nonzero(adding(problem, assignment))
    source = np.where(problem.leaders >= 0, problem.leaders, problem.replicas[:, 0])
    arriving, leaving = (np.zeros(len(problem.broker_ids), dtype=np.int64) for _ in range(2))
    np.add.at(arriving, assignment[rows, slots], problem.size_bytes[rows])
    np.add.at(leaving, source[rows], problem.size_bytes[rows])
    return arriving, leaving


def _named(ids: list[int], brokers: list[int]) -> tuple[int, ...]:
    return tuple(ids[broker] for broker in brokers if broker >= 0)
