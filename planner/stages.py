"""The first step of a change that its budget can't pay for in one: which partitions wait for a later step.

What the changes force costs each partition at least so much, whatever the others do, so the choice is a knapsack of
whole partitions. Brokers that leave are emptied one by one, the cheapest first, then topics; what is left of the budget
takes the largest partitions that still fit, from the next broker on, so that the change needs few steps. A partition
that waits keeps its replicas and its leader; planned again from the state after the step, it has its turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from planner.balance import NO_TOLERANCE, Balance
from planner.budget import TERMS, asked
from planner.errors import InfeasibleError
from planner.model import BoolArray, IntArray, LongArray, Problem
from planner.scenarios import without
from planner.score import adding
from planner.strategies import optimum

_OPEN = Balance(*[NO_TOLERANCE] * 7)


def first_step(problem: Problem) -> Problem:
    """The problem as it is where its budget pays for everything, or for nothing of what must change; else without the
    partitions that wait: not movable, with the replicas that they have, and `deferred` if they must change.
    """
    if not asked(problem.budget) or (costs := _costs(problem)) is None:
        return problem
    # What isn't forced copies for the rack rule alone; a leader that isn't the preferred one may well stay.
    must = problem.forced | (costs[1] > 0)
    done = _affordable(problem, costs, must)
    deferred = must & ~done
    if done.all() or (deferred.any() and not costs[:, must & done].any()):
        return problem
    held = (problem.replicas >= 0).sum(axis=1).astype(problem.replication_factors.dtype)
    return replace(
        problem,
        movable=problem.movable & done,
        forced=problem.forced & done,
        replication_factors=np.where(done, problem.replication_factors, held),
        deferred=deferred,
    )


def _costs(problem: Problem) -> LongArray | None:
    """(3, P): the least of TERMS that each partition takes, however uneven the plan; None where there is no plan."""
    try:
        roomy = replace(without(problem), disk_limit_bytes=np.full_like(problem.disk_limit_bytes, -1))
        chosen = optimum.solve(roomy, _OPEN).assignment
    except InfeasibleError:
        return None
    copies = adding(problem, chosen).sum(axis=1)
    elected = problem.may_lead_anew & ~problem.is_new & (problem.leaders != chosen[:, 0])
    return np.stack([copies * problem.size_bytes, copies, elected]).astype(np.int64)


def _affordable(problem: Problem, costs: LongArray, must: BoolArray) -> BoolArray:
    """(P,): the partitions whose turn it is: first of those that must change, then of the others."""
    done: BoolArray = (costs == 0).all(axis=0)
    left = _room(problem)
    for among in (must, ~must):
        _pay_groups(problem, costs, among, done, left)
        _pay_partitions(problem, costs, among, done, left)
    return done


def _pay_groups(problem: Problem, costs: LongArray, among: BoolArray, done: BoolArray, left: LongArray) -> None:
    """What the money that is left pays for as a whole is done, and leaves less of it."""
    for rows in _groups(problem, costs, among, done):
        price = costs[:, rows].sum(axis=1)
        if (price <= left).all():
            done[rows] = True
            left -= price


def _pay_partitions(problem: Problem, costs: LongArray, among: BoolArray, done: BoolArray, left: LongArray) -> None:
    """The same partition by partition, the largest of each group first."""
    for rows in _groups(problem, costs, among, done):
        for row in rows[np.argsort(-costs[0, rows], kind="stable")].tolist():
            if (costs[:, row] <= left).all():
                done[row] = True
                left -= costs[:, row]


def _room(problem: Problem) -> LongArray:
    """(3,): what may be spent of each of TERMS."""
    endless = np.iinfo(np.int64).max
    limits = (getattr(problem.budget, term) for term in TERMS)
    return np.array([endless if limit is None else limit for limit in limits], dtype=np.int64)


def _groups(problem: Problem, costs: LongArray, among: BoolArray, done: BoolArray) -> Iterator[IntArray]:
    """Partitions of `among` that aren't done: those of each broker that leaves, the cheapest first, then by topic."""
    waiting = [(problem.replicas == broker).any(axis=1) for broker in np.flatnonzero(~problem.targets)]
    others = ~done & ~np.any([np.zeros_like(done), *waiting], axis=0)
    while waiting:
        # Two brokers may have partitions in common: what is left of one depends on what became of the other.
        prices = [tuple(costs[:, each & ~done].sum(axis=1).tolist()) for each in waiting]
        yield np.flatnonzero(waiting.pop(prices.index(min(prices))) & among & ~done)
    rows = np.flatnonzero(others)
    topics = np.split(rows, np.flatnonzero(np.diff(problem.topic_of[rows])) + 1) if len(rows) else []
    for topic in sorted(topics, key=lambda each: tuple(costs[:, each].sum(axis=1).tolist())):
        yield topic[among[topic]]
