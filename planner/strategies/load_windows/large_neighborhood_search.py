"""Large neighborhood search: an integer program places the replicas of a few brokers anew, then those of a few others.

If partitions are large beside their windows, a cheaper plan often differs in several partitions on several brokers.
Exchanges between two brokers don't lead there, and a program of all brokers takes too long unless the cluster is small.
"""

from random import Random

import numpy as np
import scipy  # its parts are imported where they are first used: most commands use none

from planner.model.problem import BoolArray
from planner.strategies.load_windows.attempts_at_prices import Best, PlacedPlan, Task
from planner.strategies.load_windows.local_search_state import SearchPlacement
from planner.strategies.load_windows.lp_relaxation import whole_program
from planner.strategies.load_windows.price_program import Program
from planner.strategies.work_limits import (
    FEW_BROKERS,
    FROM_NOTHING,
    MOST_OF_BROKERS,
    NEIGHBORHOOD_CLOSE,
    NEIGHBORHOOD_COLUMNS,
    NEIGHBORHOOD_NODES,
    NEIGHBORHOODS,
    NEIGHBORHOODS_IN_VAIN,
    SHARE_OF_NEIGHBORHOODS,
    Effort,
)


def by_few_brokers(task: Task, best: Best) -> PlacedPlan | None:
    """The best plan made cheaper, with no window missed by more; a generator with a fixed seed draws the brokers.

    None without a plan within all windows of loads, for large placements, for fewer than eight brokers, and for
    balances that weren't asked for.
    """
    plan, random, in_vain = best.plan, Random(0), 0
    most = min(int(MOST_OF_BROKERS * len(task.layout.targets)), FEW_BROKERS[1])
    if plan is None or plan.outside or task.is_large or most < FEW_BROKERS[0]:
        return None
    if task.effort is None or not task.effort.topic_flows:
        return None
    effort = task.effort.part(SHARE_OF_NEIGHBORHOODS)
    program = whole_program(task.layout, task.windows, task.loads).program
    for _ in range(NEIGHBORHOODS):
        is_on = plan.placement.on
        brokers = np.array(random.sample(range(is_on.shape[1]), most))
        rows = np.logical_or.accumulate(is_on[:, brokers], axis=1).sum(axis=0)
        brokers = brokers[np.arange(1, len(brokers) + 1) * rows <= NEIGHBORHOOD_COLUMNS]
        if effort.spent or in_vain == NEIGHBORHOODS_IN_VAIN or len(brokers) < FEW_BROKERS[0]:
            break
        free = np.zeros_like(is_on)
        free[:, brokers] = is_on[:, brokers].any(axis=1, keepdims=True)
        if task.layout.reachable is not None:
            free &= task.layout.reachable
        changed = placed_anew(program, is_on, free, effort)
        in_vain += 1
        # The program's numbers are rounded; those of a placement aren't.
        candidate = plan if changed is None else PlacedPlan.of(SearchPlacement(task.search, changed))
        if not candidate.outside and candidate.cost < plan.cost:
            plan, in_vain = candidate, 0
    return plan


def placed_anew(program: Program, is_on: BoolArray, free: BoolArray, effort: Effort) -> BoolArray | None:
    """The cheapest placement (M, Bt) that differs from another only in the free places (M, Bt), and misses no window by
    more; None if there are none, or if the program's nodes are used up.
    """
    columns, values = np.flatnonzero(free), is_on.ravel().astype(np.float64)
    if not len(columns):
        return None
    reached, part = program.matrix @ values, program.matrix[:, columns]
    rows = np.unique(part.tocsc().indices)
    part = part[rows]
    low, high = np.minimum(program.low, reached)[rows], np.maximum(program.high, reached)[rows]
    others = reached[rows] - part @ values[columns]
    solved = scipy.optimize.milp(
        program.costs[columns],
        integrality=np.ones(len(columns)),
        bounds=scipy.optimize.Bounds(0, 1),
        constraints=scipy.optimize.LinearConstraint(part, low - others, high - others),
        options={"node_limit": NEIGHBORHOOD_NODES, "mip_rel_gap": NEIGHBORHOOD_CLOSE},
    )
    effort.spend(FROM_NOTHING * len(columns) * (1 + (solved.mip_node_count or 0)))
    if solved.x is None:
        return None
    changed = is_on.copy()
    changed[free] = solved.x.round() > 0
    return changed
