"""The plan that moves the fewest bytes for a stated balance: one min-cost flow, so its optimum is a proof.

Nodes: partition → (partition, rack) → (topic, broker) → broker → sink. Keeping a replica costs nothing, entering a
broker costs the partition's bytes. A broker that the partition isn't on is reached through a pool of its topic and
rack, since all of them cost the same: that keeps the arcs at partitions × (factor + racks). Where a rack may hold two
replicas of a partition, the pool's brokers are dealt out afterwards by a bipartite flow; partitions that can't be
dealt different brokers get arcs of their own and the flow is solved again, which keeps the answer exact.

Windows (see `windows`) that can't all hold are relaxed in this order, least excess first: those of single topics, then
the brokers' totals. Racks, replication factors and brokers are never relaxed. Where `rebalance` isn't `all`, bytes come
first: the fewest that the other changes force, and the least excess among those.

Partitions to be made cost nothing wherever they go; see `new_partition_placement` for what chooses among all those
places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from planner.model.balance import Balance
from planner.model.build_problem import today
from planner.model.problem import IntArray, Problem
from planner.scoring.growth_scenarios import Scenario, scenarios
from planner.scoring.windows import Windows, windows
from planner.strategies import leaders, new_partition_placement
from planner.strategies.bounds import GRAIN, Certificate, least
from planner.strategies.flow.layout import Layout, lay_out
from planner.strategies.flow.tie_breaks import settled
from planner.strategies.leaders import led_in_sync
from planner.strategies.load_windows.balanced_placement import even
from planner.strategies.load_windows.byte_loads import byte_loads
from planner.strategies.load_windows.certificates import Question, certified, outside_more
from planner.strategies.load_windows.window_positions import cheapest
from planner.strategies.work_limits import ASKED, Effort, Worth

# Loads may cost up to three times the bytes, in parts of GRAIN.
_ROOM = 4 * GRAIN


@dataclass(frozen=True)
class Solution:
    """An assignment (P, W), and the least bytes that any plan must move that keeps the same windows.

    `least_replicas` likewise where no sizes are known, so that replicas are all there is to count; else -1.
    `certificate` lets anyone work out the bound again; None where it wasn't asked for and none was needed.
    """

    assignment: IntArray
    least_bytes: int
    least_replicas: int
    certificate: Certificate | None = None


def solve(
    problem: Problem, balance: Balance, seed: int = 0, *, certify: bool = False, worth: Worth = ASKED
) -> Solution:
    """The optimum for a balance. Different seeds give different plans of the same cost where there are several.

    `worth` is the work that may be done where partitions are as large as the windows: with less of it the plan comes
    sooner, and its bound may prove less.
    InfeasibleError where no assignment keeps the replication factors on the target brokers.
    """
    wanted = windows(problem, balance)
    grown = scenarios(replace(problem, balance=balance))
    of_bytes = any(each.disk is not None or each.network_in is not None for each in (wanted, *_windows(grown)))
    layout = lay_out(problem, seed, _ROOM if of_bytes else 1)
    found = cheapest(
        problem,
        balance,
        layout,
        wanted,
        lambda wanted, placed, effort, begun: (
            even(problem, layout, wanted, placed, grown, effort, begun) if of_bytes and len(layout.rows) else None
        ),
        Effort.of(worth, len(layout.rows) * len(layout.targets)),
    )
    wanted, placed, evened = found.best
    assignment = today(problem)
    assignment[layout.rows] = settled(problem, layout, wanted, placed) if evened is None else evened.chosen
    ordered = leaders.order(problem, assignment, wanted)
    ordered = led_in_sync(problem, ordered)
    if problem.is_new.any():
        ordered = new_partition_placement.levelled(replace(problem, balance=balance), ordered, wanted)
    question = Question(problem, layout, balance, byte_loads(problem, layout, wanted, grown) if of_bytes else None)
    if len(layout.rows) and (certify or evened is not None or outside_more(question, found, ordered)):
        return _certified(ordered, layout, certified(question, found, ordered))
    # Of all starts, the relaxed placement's cost is the least; where windows can't hold, that may be above the plan's.
    costs = [placed.solved.cost, *([] if found.relaxed is None else [found.relaxed.started.placed.solved.cost])]
    cost = min(costs)
    return Solution(ordered, layout.bytes_of(cost), layout.replicas_of(cost))


def _windows(grown: Iterable[Scenario]) -> Iterator[Windows]:
    return (scenario.windows for scenario in grown)


def _certified(assignment: IntArray, layout: Layout, certificate: Certificate) -> Solution:
    bound = least(certificate)
    if certificate.facts.measure == "bytes":
        return Solution(assignment, bound, -1, certificate)
    return Solution(assignment, 0, -1 if layout.replaced.any() else bound, certificate)
