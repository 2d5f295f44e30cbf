"""Better plans where slots of `together` were given common brokers one after the other.

With the broker of each slot decided, what is left is the optimum's own flow again: the replicas by which those brokers
lead are settled, and all others are placed anew. So no plan with these common brokers misses the windows less, and of
those that miss them as little none copies less. Replicas are settled in the layout, which then places one replica less
of each such partition, in the racks that are left to it. That says enough only where a rack holds one replica of a
partition, so other clusters keep the plan that they have.
"""

from dataclasses import replace

import numpy as np

from planner.model.problem import IntArray, Problem
from planner.scoring.broker_loads import counts_by_group
from planner.scoring.window_excess import BROKER_PRICE, TOPIC_PRICE, excess
from planner.scoring.windows import Windows
from planner.strategies.flow.layout import Layout
from planner.strategies.flow.placement import copied, place
from planner.strategies.flow.tie_breaks import settled


def placed_around(problem: Problem, layout: Layout, wanted: Windows, placed: IntArray, led: IntArray) -> IntArray:
    """The replicas (P, W) that miss the windows least, then copy the fewest bytes, with one of each partition on the
    broker that is to lead it, `led` (P,), -1: any. Those that are placed where that can't be found.
    """
    brokers = layout.numbered(led[layout.rows])
    rows = np.flatnonzero(brokers >= 0)
    racks = layout.racks[brokers[rows]]
    anew = problem.rebalance == "all" and problem.leader_ranks is None and not problem.is_new.any()
    if not anew or layout.replaced.any() or (layout.most[rows, racks] > 1).any():
        return placed
    around = without_settled(layout, brokers)
    chosen, _ = settled(problem, around, wanted, place(problem, around, wanted))
    found = placed.copy()
    found[layout.rows] = chosen
    found[layout.rows[rows], around.factors[rows]] = layout.targets[brokers[rows]]
    return found


def outside_and_copied(problem: Problem, layout: Layout, wanted: Windows, assignment: IntArray) -> tuple[int, int]:
    """How far the counts of an assignment (P, W) are outside of the windows by weight, and the bytes that it copies."""
    outside = 0
    for held, of_brokers, of_topics in (
        (assignment, wanted.replicas, wanted.topic_replicas),
        (assignment[:, :1], wanted.leaders, wanted.topic_leaders),
    ):
        cells = counts_by_group(problem, held, problem.topic_of, len(problem.topic_names))
        outside += int(excess(of_brokers, cells.sum(axis=0), BROKER_PRICE))
        outside += 0 if of_topics is None else int(excess(of_topics, cells, TOPIC_PRICE).sum())
    return outside, copied(problem, layout, assignment[layout.rows])


def without_settled(layout: Layout, brokers: IntArray) -> Layout:
    """The layout without a replica of each row on its broker (M,), -1: it has none, which counts as one that is fixed
    there.
    """
    rows = np.flatnonzero(brokers >= 0)
    on, racks = brokers[rows], layout.racks[brokers[rows]]
    factors, fixed, (least, most) = layout.factors.copy(), layout.fixed_cells.copy(), (layout.least, layout.most)
    factors[rows] -= 1
    np.add.at(fixed, (layout.topics[rows], on), 1)
    one = np.zeros_like(most)
    one[rows, racks] = 1
    # A rack with its replica has no room for another, not even one that is there today.
    full = np.take_along_axis(most - one, layout.racks[layout.home], axis=1) == 0
    home = np.where((brokers >= 0)[:, None] & full, -1, layout.home)
    return replace(layout, factors=factors, fixed_cells=fixed, least=(least - one).clip(0), most=most - one, home=home)
