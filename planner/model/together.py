"""Slots of `together`: the partitions of co-partitioned topics with the same number, which one broker should lead.

A slot has one partition of each topic of a group. Arrays of slots are (P,): each partition's slot, -1 for none.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.model.cluster import Topic
from planner.model.problem import (
    NEVER_LEADS,
    UNCAPPED,
    BoolArray,
    IntArray,
    LongArray,
    Problem,
    led_by_several,
    may_lead,
    replica_ranks,
)
from planner.model.spec import matches_any


def with_slots(problem: Problem, groups: Sequence[tuple[str, ...]], topics: Sequence[Topic]) -> Problem:
    """The problem with the slots of groups of patterns. Partitions of slots without a common broker are forced to move.

    Topics that are being deleted, and partitions without a leader that stay, are in no slot.
    """
    if not groups:
        return problem
    group_of = np.full(len(topics), -1, dtype=np.int64)
    for index, patterns in enumerate(groups):
        group_of[[not each.deleting and matches_any(each.name, patterns) for each in topics]] = index
    is_fixed = (problem.leaders < 0) & ~problem.is_new & ~problem.movable
    of_row = np.where(is_fixed, -1, group_of[problem.topic_of])
    keys = of_row * (1 + int(problem.partition_ids.max(initial=0))) + problem.partition_ids
    _, slots, sizes = np.unique(np.where(of_row < 0, -1, keys), return_inverse=True, return_counts=True)
    slots = slots.reshape(-1)
    problem = replace(problem, together=np.where((of_row < 0) | (sizes[slots] < 2), -1, slots).astype(np.int32))
    return replace(problem, forced=problem.forced | without_common_broker(problem))


def common_brokers(problem: Problem, replicas: IntArray) -> tuple[IntArray, IntArray]:
    """(K,) slots and (K,) brokers: each broker that may lead all partitions of a slot, with these replicas (P, W).

    A partition that may not move keeps its preferred leader. Any broker may lead a partition that is to be made.
    """
    together = problem.slot_of
    rows = np.flatnonzero((together >= 0) & (replicas[:, 0] >= 0))
    is_first = np.arange(replicas.shape[1]) == 0
    able = may_lead(problem, replicas, rows)
    if problem.leader_ranks is not None:
        able &= replica_ranks(problem, problem.leader_ranks, replicas[rows], rows) < NEVER_LEADS
    if problem.allowed is not None:
        # A replica that `placement` takes away leads nothing.
        able &= problem.allowed[problem.topic_of[rows][:, None], replicas[rows]]
    able = np.where(problem.movable[rows, None], able, is_first)
    indices, columns = np.nonzero(able)
    keys, counts = np.unique(
        together[rows[indices]].astype(np.int64) * len(problem.targets) + replicas[rows[indices], columns],
        return_counts=True,
    )
    slot, broker = np.divmod(keys, len(problem.targets))
    leads_all = problem.targets[broker] & (counts == np.bincount(together[rows], minlength=1)[slot])
    return slot[leads_all], broker[leads_all]


def without_common_broker(problem: Problem) -> BoolArray:
    """(P,): partitions that may move, of slots that no broker can lead with today's replicas.

    A broker in no ISR can't become the leader, but it may stay the preferred leader.
    """
    if problem.together is None:
        return np.zeros(problem.rows, dtype=bool)
    slot, broker = common_brokers(problem, problem.replicas)
    if problem.out_of_sync is not None:
        several = np.unique(problem.together[led_by_several(problem, problem.replicas)])
        slot = slot[~(problem.out_of_sync[broker] & np.isin(slot, several))]
    has_leader = np.isin(problem.together, slot) | ~np.isin(problem.together, problem.together[~problem.is_new])
    return (problem.together >= 0) & ~has_leader & problem.movable


def without_waiting(together: IntArray, waiting: BoolArray) -> IntArray:
    """Slots (P,) without those with a partition that waits (P,) for a later step; that step gives them one leader."""
    return np.where(np.isin(together, together[waiting]), -1, together)


def kept_leaders(problem: Problem, assignment: IntArray) -> IntArray:
    """(S,): the broker that must lead a slot with partitions to be made; -1 if any may. If only forced partitions move,
    new partitions get the leader that the slot's others share.
    """
    together = problem.slot_of
    slot_leaders = np.full(int(together.max(initial=0)) + 1, -1)
    leaders = np.where(problem.is_new, -1, assignment[:, 0])
    if problem.forced_only:
        follow = np.isin(together, together[problem.is_new & (together >= 0)])
        rows = np.flatnonzero(follow & (leaders >= 0) & ~led_by_several(problem, leaders[:, None]))
        slot_leaders[together[rows]] = leaders[rows]
    return slot_leaders


def caps_of_slots(problem: Problem) -> LongArray:
    """(2, B): the most replicas, and the most leaders of slots; while a broker that stays is in no ISR, any number."""
    caps = np.full((2, len(problem.targets)), UNCAPPED) if problem.caps is None else problem.caps.copy()
    if problem.lifts_leader_caps:
        caps[1] = UNCAPPED
    else:
        other_leaders = problem.leaders[~problem.may_lead_anew & (problem.slot_of < 0)]
        caps[1] -= np.bincount(other_leaders[other_leaders >= 0], minlength=caps.shape[1])
    return caps
