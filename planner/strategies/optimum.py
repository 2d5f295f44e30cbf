"""The plan that moves the fewest bytes for a stated balance: one min-cost flow, so its optimum is a proof.

Nodes: partition → (partition, rack) → (topic, broker) → broker → sink. Keeping a replica costs nothing, entering a
broker costs the partition's bytes. A broker that the partition isn't on is reached through a pool of its topic and
rack, because all of them cost the same: that keeps the arcs at partitions × (factor + racks). If a rack may hold two
replicas of a partition, a bipartite flow deals out the pool's brokers afterwards. Partitions that can't be dealt
different brokers get their own arcs, and the flow is solved again, which keeps the answer exact.

Windows (see `windows`) that can't all hold are relaxed in this order, least excess first: those of single topics, then
the brokers' totals. Racks, replication factors and brokers are never relaxed. If `rebalance` isn't `all`, bytes come
first: the fewest that the other changes force, and the least excess among those.

New partitions cost nothing wherever they go; `new_partition_placement` chooses among all those places. Slots of
`together` get common brokers by a linear and an integer program (`common_leader_program`), in large clusters one after
the other (`common_leaders`). With the broker of each slot decided, the rest is the flow again: the layout fixes the
replicas on those brokers, and places one replica less of each such partition, in the racks that are left to it. So no
plan with these common brokers misses the windows less, and none that misses them as little copies less.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from planner.model.balance import NO_TOLERANCE, Balance, Tolerance
from planner.model.build_problem import rows_to_place, today
from planner.model.errors import InfeasibleError
from planner.model.problem import IntArray, Problem
from planner.scoring.broker_loads import counts_by_group, loads
from planner.scoring.growth_scenarios import Scenario, scenarios
from planner.scoring.window_excess import BROKER_PRICE, TOPIC_PRICE, excess
from planner.scoring.windows import Windows, windows
from planner.strategies import leaders, new_partition_placement
from planner.strategies.common_leaders import led_together
from planner.strategies.flow.placement import copied, place
from planner.strategies.flow.placement_network import Layout, lay_out
from planner.strategies.flow.tie_breaking_exchanges import ties_broken
from planner.strategies.lagrangian_bound import GRAIN, Certificate, lower_bound
from planner.strategies.load_windows.balanced_placement import balance_loads
from planner.strategies.load_windows.byte_loads import ByteLoads, byte_loads
from planner.strategies.load_windows.certificates import Question, certify, is_further_outside
from planner.strategies.load_windows.common_leader_program import CommonLeaderProgram
from planner.strategies.load_windows.window_positions import BestPosition, Started, best_position
from planner.strategies.work_limits import FULL_WORK, Effort, WorkLimit

# Prices of loads may add up to three times the bytes to a cost, in units of 1 / GRAIN.
_ROOM = 4 * GRAIN
# What is given up, one after the other, for a plan that fills no disk above its limit.
_WIDENINGS = (
    ("disk", NO_TOLERANCE),
    ("topic_replicas", NO_TOLERANCE),
    ("replicas", Tolerance("percent", 25)),
    ("replicas", NO_TOLERANCE),
)


UNKNOWN = -1


class Proposal(NamedTuple):
    """An assignment (P, W), and the least bytes that any plan within the same windows moves, UNKNOWN without a proof.

    `least_replicas` is the least number of replicas, if no sizes are known; else UNKNOWN. With `certificate`, anyone
    can compute the bound again; None if it wasn't asked for and none was needed. `ties_proven`: no plan of the same
    flow costs takes fewer replicas from leaders, then touches fewer partitions, then spreads arriving replicas more
    evenly. `wider`: the windows that aren't kept as asked for, because a disk would be above its limit.
    """

    assignment: IntArray
    least_bytes: int = UNKNOWN
    least_replicas: int = UNKNOWN
    certificate: Certificate | None = None
    ties_proven: bool = False
    widened_windows: tuple[str, ...] = ()


class _Query(NamedTuple):
    """The question: the problem with its layout, the windows of the balance, and those of each scenario.

    `of_bytes`: some of these windows are of bytes or traffic in, which the flow alone doesn't keep. `exactly`: the
    objectives after bytes are worth integer programs.
    """

    problem: Problem
    balance: Balance
    layout: Layout
    windows: Windows
    scenarios: Sequence[Scenario]
    of_bytes: bool
    exactly: bool

    def loads(self, windows: Windows) -> ByteLoads:
        """The loads that have windows."""
        return byte_loads(self.problem, self.layout, windows, self.scenarios)


class _Replicas(NamedTuple):
    """The placed replicas of a problem (P, W), whoever leads, and whether ties are proven."""

    problem: Problem
    layout: Layout
    position: BestPosition
    assignment: IntArray
    ties_proven: bool

    def serves(self, problem: Problem) -> bool:
        """True if another problem, of the same spec except for the sides of `apart`, has the same replicas."""
        same = np.array_equal(rows_to_place(problem), rows_to_place(self.problem))
        either, other = problem.allowed, self.problem.allowed
        return same and (either is other if either is None or other is None else np.array_equal(either, other))


@dataclass
class Shared:
    """The last placed replicas. Solves of one spec at one balance, seed and worth share them if they differ only in
    which brokers may lead.
    """

    replicas: _Replicas | None = None


class OptimalAssignment(NamedTuple):
    """The optimum's assignment (P, W), before its bound is computed."""

    query: _Query
    replicas: _Replicas
    assignment: IntArray
    wider: tuple[str, ...] = ()

    def proven(self, *, with_certificate: bool = False) -> Proposal:
        """The assignment with the least that any plan moves, and with a certificate if that is asked for or needed."""
        problem, layout, position = self.query.problem, self.query.layout, self.replicas.position
        best = position.best
        # Caps on leaders and common leaders may move replicas afterwards, and new partitions are placed anew.
        later = problem.caps is not None or problem.together is not None or problem.is_new.any()
        proposal = Proposal(
            self.assignment, ties_proven=self.replicas.ties_proven and not later, widened_windows=self.wider
        )
        loads = self.query.loads(best.windows)
        question = Question(problem, layout, self.query.balance, loads, self.query.exactly)
        with_certificate |= self.query.exactly and problem.together is not None
        if len(layout.rows) and (
            with_certificate or best.evened is not None or is_further_outside(question, position, self.assignment)
        ):
            certificate = certify(question, position, self.assignment, exactly=with_certificate and self.query.exactly)
            bound = lower_bound(certificate)
            in_bytes, in_replicas = (bound, UNKNOWN) if certificate.facts.measure == "bytes" else (0, bound)
            return proposal._replace(least_bytes=in_bytes, least_replicas=in_replicas, certificate=certificate)
        # The relaxed placement has the least cost of all starts; if windows can't hold, that may be above the plan's.
        costs = [each.placed.solved.cost for each in (best, *([position.relaxed.started] if position.relaxed else []))]
        return proposal._replace(least_bytes=layout.bytes_of(min(costs)), least_replicas=layout.replicas_of(min(costs)))


def solve(
    problem: Problem, balance: Balance, seed: int = 0, *, certify: bool = False, work: WorkLimit = FULL_WORK
) -> Proposal:
    """The optimum for a balance. If there are several plans of the same cost, different seeds give different ones.

    `work` is the most to do if partitions are as large as the windows: with less of it the plan comes sooner, and its
    bound may prove less. InfeasibleError if no assignment keeps the replication factors on the target brokers.
    """
    return assign(problem, balance, seed, work, Shared()).proven(with_certificate=certify)


def assign(problem: Problem, balance: Balance, seed: int, work: WorkLimit, shared: Shared) -> OptimalAssignment:
    """The assignment that `solve` finds, without its bound. What is shared saves work and changes no plan.

    If it fills a disk above its limit, windows are widened until it doesn't; if that doesn't help, they aren't.
    """
    result, names = _assign(problem, balance, seed, work, shared), tuple[str, ...]()
    for name, wider in _WIDENINGS if _overfills_disk(problem, result.assignment) else ():
        tolerance = getattr(balance, name)
        if tolerance == NO_TOLERANCE or (tolerance.kind == wider.kind == "percent" and tolerance.value >= wider.value):
            continue
        balance, names = replace(balance, **{name: wider}), (*names, name)
        looser = _assign(problem, balance, seed, work, Shared())
        if not _overfills_disk(problem, looser.assignment):
            return looser._replace(wider=tuple(dict.fromkeys(names)))
    return result


def _overfills_disk(problem: Problem, assignment: IntArray) -> bool:
    """True if an assignment (P, W) fills a disk above its limit, everything may move, and all limits have room."""
    limits = problem.disk_limit_bytes[problem.targets]
    disk_bytes, limited = loads(problem, assignment)[0], limits >= 0
    has_room = not limited.all() or disk_bytes.sum() <= limits.sum()
    return problem.rebalance == "all" and bool(has_room and (disk_bytes > limits)[limited].any())


def _assign(problem: Problem, balance: Balance, seed: int, work: WorkLimit, shared: Shared) -> OptimalAssignment:
    """The assignment for a balance."""
    target_windows, growth = windows(problem, balance), scenarios(replace(problem, balance=balance))
    all_windows = (target_windows, *(scenario.windows for scenario in growth))
    of_bytes = any(each.disk is not None or each.network_in is not None for each in all_windows)
    last = None if shared.replicas is None or not shared.replicas.serves(problem) else shared.replicas
    layout = lay_out(problem, seed, _ROOM if of_bytes else 1) if last is None else last.layout
    query = _Query(problem, balance, layout, target_windows, growth, of_bytes, work == FULL_WORK)
    if last is None:
        position = _cheapest_position(query, Effort.of(work, len(layout.rows) * len(layout.targets)))
        last = _Replicas(problem, layout, position, *_choose_replicas(query, position.best, today(problem)))
    shared.replicas = last
    # The starts of the windows of replicas were chosen together with the placement.
    chosen, assignment = last.position.best.windows, last.assignment
    target_windows = replace(target_windows, replicas=chosen.replicas, topic_replicas=chosen.topic_replicas)
    for step in STEPS:
        assignment = step(query, target_windows, assignment)
    return OptimalAssignment(query, last, assignment)


def _cheapest_position(query: _Query, effort: Effort) -> BestPosition:
    """The flow's placement at the cheapest start of its windows, brought into the windows of bytes."""
    problem, balance, layout, windows, growth, of_bytes, _ = query
    return best_position(
        problem,
        balance,
        layout,
        windows,
        byte_loads(problem, layout, windows, growth),
        lambda windows, placed, effort, best_so_far: (
            balance_loads(problem, layout, windows, placed, growth, effort, best_so_far)
            if of_bytes and len(layout.rows)
            else None
        ),
        effort,
    )


def _choose_replicas(query: _Query, best: Started, assignment: IntArray) -> tuple[IntArray, bool]:
    """The placed replicas; of equal cost, those that keep more leaders and touch fewer partitions. True: proven."""
    windows, placed, evened = best
    chosen, proven = placed.chosen if evened is None else evened.chosen, False
    if evened is None or (
        query.exactly
        and copied(query.problem, query.layout, chosen) == copied(query.problem, query.layout, placed.chosen)
    ):
        tied, of_ties = ties_broken(query.problem, query.layout, windows, placed, exactly=query.exactly)
        loads = query.loads(windows)
        # If the best of all that cost as little is within the windows of bytes, it is the best of those within them.
        if evened is None or loads.within(query.layout.numbered(tied)):
            chosen, proven = tied, of_ties
    assignment[query.layout.rows] = chosen
    return assignment, proven


def _choose_leaders(query: _Query, windows: Windows, assignment: IntArray) -> IntArray:
    """Chooses preferred leaders, in sync if possible, by a second flow. Only `max_leaders` or `apart` move data."""
    leadable = leaders.leadable(query.problem, assignment, windows)
    return leaders.choose_leaders(query.problem, leadable, windows, query.scenarios)


def _place_new(query: _Query, windows: Windows, assignment: IntArray) -> IntArray:
    """New partitions cost nothing wherever they go: they make loads, leaders and topics more even."""
    if not query.problem.is_new.any():
        return assignment
    problem = replace(query.problem, balance=query.balance)
    return new_partition_placement.levelled(problem, assignment, windows)


def _bring_together(query: _Query, windows: Windows, assignment: IntArray) -> IntArray:
    """One leader for the partitions of each slot, whatever that copies."""
    if query.problem.together is None:
        return assignment
    candidates = []
    program = CommonLeaderProgram.of(query.problem, query.layout, windows, query.loads(windows), exactly=query.exactly)
    chosen = None if program is None else program.cheapest()
    if chosen is not None:
        joined = assignment.copy()
        joined[query.layout.rows] = chosen
        candidates.append(_lead_slots(query, windows, joined, assignment))
    # Little work on a program may find less than no program.
    if not candidates or not query.exactly or any(_missed(query, windows, candidates[0])[:2]):
        candidates.append(_lead_slots(query, windows, assignment, assignment))
    return min(candidates, key=lambda each: _missed(query, windows, each))


def _lead_slots(query: _Query, windows: Windows, assignment: IntArray, cheapest: IntArray) -> IntArray:
    """The assignment (P, W) with one leader for the partitions of each slot; `cheapest` is without that rule."""
    problem, layout = query.problem, query.layout
    replicas, must = led_together(problem, assignment, windows)
    replicas = leaders.leadable(problem, replicas, windows, must)
    ordered = leaders.choose_leaders(problem, replicas, windows, query.scenarios, must)
    if np.array_equal(replicas, cheapest) or query.of_bytes or windows.network_out is not None:
        return ordered
    around = placed_around(problem, layout, windows, replicas, must)
    # The other replicas may allow fewer choices of leaders, or none that keeps the caps.
    try:
        reordered = leaders.choose_leaders(problem, around, windows, query.scenarios, must)
    except InfeasibleError:
        return ordered
    return min(ordered, reordered, key=lambda each: outside_and_copied(problem, layout, windows, each))


def placed_around(problem: Problem, layout: Layout, windows: Windows, assignment: IntArray, must: IntArray) -> IntArray:
    """The replicas (P, W) that miss the windows least, then copy the fewest bytes, with one of each partition on the
    broker that must lead it, `must` (P,), -1: any. Those in `assignment` if that can't be found.
    """
    brokers = layout.numbered(must[layout.rows])
    rows = np.flatnonzero(brokers >= 0)
    racks = layout.racks[brokers[rows]]
    # The layout says enough only if a rack holds one replica of a partition.
    may_place = problem.rebalance == "all" and problem.leader_ranks is None and not problem.is_new.any()
    if not may_place or layout.replaced.any() or (layout.most[rows, racks] > 1).any():
        return assignment
    around = _without_settled(layout, brokers)
    chosen, _ = ties_broken(problem, around, windows, place(problem, around, windows))
    result = assignment.copy()
    result[layout.rows] = chosen
    result[layout.rows[rows], around.factors[rows]] = layout.targets[brokers[rows]]
    return result


def _missed(query: _Query, windows: Windows, assignment: IntArray) -> tuple[int, bool, int]:
    """As `outside_and_copied`; in the middle: True if loads are outside of their windows."""
    outside, moved = outside_and_copied(query.problem, query.layout, windows, assignment)
    return outside, not query.loads(windows).within(query.layout.numbered(assignment[query.layout.rows])), moved


def outside_and_copied(problem: Problem, layout: Layout, windows: Windows, assignment: IntArray) -> tuple[int, int]:
    """How far the counts of an assignment (P, W) are outside of the windows by weight, and the bytes that it copies."""
    outside = 0
    for replica_lists, of_brokers, of_topics in (
        (assignment, windows.replicas, windows.topic_replicas),
        (assignment[:, :1], windows.leaders, windows.topic_leaders),
    ):
        cells = counts_by_group(problem, replica_lists, problem.topic_of, len(problem.topic_names))
        outside += int(excess(of_brokers, cells.sum(axis=0), BROKER_PRICE))
        outside += 0 if of_topics is None else int(excess(of_topics, cells, TOPIC_PRICE).sum())
    return outside, copied(problem, layout, assignment[layout.rows])


def _without_settled(layout: Layout, brokers: IntArray) -> Layout:
    """The layout without each row's replica on its broker (M,), -1: none. That replica counts as fixed there."""
    rows = np.flatnonzero(brokers >= 0)
    settled_brokers, racks = brokers[rows], layout.racks[brokers[rows]]
    factors, fixed, (least, most) = layout.factors.copy(), layout.fixed_cells.copy(), (layout.least, layout.most)
    factors[rows] -= 1
    np.add.at(fixed, (layout.topics[rows], settled_brokers), 1)
    taken = np.zeros_like(most)
    taken[rows, racks] = 1
    # A rack with its replica has no room for another, not even one that is there today.
    full = np.take_along_axis(most - taken, layout.racks[layout.home], axis=1) == 0
    home = np.where((brokers >= 0)[:, None] & full, -1, layout.home)
    return replace(
        layout, factors=factors, fixed_cells=fixed, least=(least - taken).clip(0), most=most - taken, home=home
    )


# The steps, in order, from an assignment (P, W) with all replicas placed to the plan's assignment.
STEPS: tuple[Callable[[_Query, Windows, IntArray], IntArray], ...] = (_choose_leaders, _place_new, _bring_together)
