"""The problem as a network: the brokers' order, replacements, the unit of costs, and how a flow is read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from clusters import balance_of, no_racks, problem_of

from planner.model.cluster import Broker
from planner.model.problem import Problem
from planner.model.spec import Changes
from planner.scoring.windows import windows
from planner.strategies.flow.placement import place
from planner.strategies.flow.placement_network import Layout, Network, bounds, lay_out


def without_broker_1() -> Problem:
    """Broker 1 of four leaves; it holds one of the two replicas of topic a's first partition."""
    rows = {"a": [(1, 2), (3, 4)], "b": [(2, 3)]}
    return problem_of(no_racks(1, 2, 3, 4), rows, changes=Changes(remove_brokers=(1,)))


def test_the_seed_shuffles_brokers_alone() -> None:
    """Seed 0 keeps the brokers in order; another seed changes their order, and `numbers` is its inverse."""
    problem = problem_of(no_racks(*range(1, 13)), {"a": [(1,)]})
    plain, shuffled = lay_out(problem, 0), lay_out(problem, 5)
    assert list(range(12)) == plain.targets.tolist() == sorted(shuffled.targets.tolist())
    assert plain.targets.tolist() != shuffled.targets.tolist() == lay_out(problem, 5).targets.tolist()
    assert list(range(12)) == shuffled.numbers[shuffled.targets].tolist()


def test_leaving_brokers_are_no_home() -> None:
    """A replica on a broker that leaves has no home, and the network doesn't have that broker."""
    layout = lay_out(without_broker_1(), 0)
    assert [[-1, 0], [1, 2], [0, 1]] == layout.home.tolist()
    assert [-1, 0, 1, 2] == layout.numbers.tolist()
    assert not layout.replaced.any()
    assert layout.pinned is None


def test_a_replacement_is_a_home_that_copies() -> None:
    """A replica of a replaced broker may stay on the replacement, which costs the bytes of a copy."""
    changes = Changes(add_brokers=(Broker(5),), replace_brokers=((1, 5),))
    layout = lay_out(problem_of(no_racks(1, 2, 3), {"a": [(1, 2)]}, changes=changes), 0)
    assert [[True, False]] == layout.replaced.tolist()
    assert [[layout.numbers[3], layout.numbers[1]]] == layout.home.tolist()
    assert layout.pinned is not None
    assert [[False, False, True]] == layout.pinned.tolist()
    assert layout.keep_costs[0, 0] == layout.enter_costs[0, 0] // layout.tie_scale * layout.tie_scale


def test_costs_are_bytes_or_replicas() -> None:
    """Costs are bytes; huge sizes have a unit of a hundred-thousandth at most; without sizes costs are replicas."""
    problem = without_broker_1()
    plain = lay_out(replace(problem, size_bytes=np.array([7, 8, 9])), 0)
    assert 1 == plain.cost_unit_bytes
    assert [7, 8, 9] == [plain.bytes_of(cost) for cost in plain.enter_costs[:, 0].tolist()]
    huge = lay_out(replace(problem, size_bytes=np.array([10**14, 10**14, 10**14])), 0)
    assert 1 < huge.cost_unit_bytes <= 10**14 // 100_000
    empty = lay_out(replace(problem, size_bytes=np.zeros(3, dtype=np.int64)), 0)
    assert [1, 1, 1] == [empty.replicas_of(cost) for cost in empty.enter_costs[:, 0].tolist()]
    assert -1 == plain.replicas_of(5)


def test_empty_partitions_leave_costs_fine() -> None:
    """Beside thousands of empty partitions, the unit stays a millionth of the mean; ties that don't fit beside it take
    bytes off what a cost proves, but no more than a few units.
    """
    rows = {"large": [(1, 2)] * 50, "empty": [(1, 2)] * 4_000}
    sizes = {"large": [10**9 + at for at in range(50)], "empty": [0] * 4_000}
    layout = lay_out(problem_of(no_racks(1, 2, 3), rows, sizes=sizes), 0, 1 << 12)
    assert layout.cost_unit_bytes < 2e-6 * layout.size_bytes.mean()
    assert 1 <= layout.tie_scale < 8_000 == layout.tie_scale + layout.ties_beyond_scale - 1
    for entered in (slice(40, 60), slice(0, 4_050)):
        copied, least = (
            int(layout.copy_bytes[entered].sum()),
            layout.bytes_of(int(layout.enter_costs[entered, 0].sum())),
        )
        assert copied - (8_000 // layout.tie_scale + 51) * layout.cost_unit_bytes <= least <= copied


def test_windows_are_those_of_what_may_move() -> None:
    """Replicas that may not move are subtracted from the windows of their topic and of their broker."""
    problem = problem_of(no_racks(1, 2), {"a": [(1,)] * 4, "b": [(1,)] * 2}, balance=balance_of(0, 0, 0))
    kept = replace(problem, movable=np.array([False] * 4 + [True] * 2))
    layout, wanted = lay_out(kept, 0), windows(kept, kept.balance)
    by_topic, in_all = bounds(layout, wanted)
    assert [[4, 0], [0, 0]] == layout.fixed_cells.tolist()
    assert (wanted.replicas - [4, 0]).tolist() == in_all.tolist()
    assert (wanted.topic_replicas[:, 0] - [4, 0]).tolist() == by_topic[:, 0].tolist()
    assert wanted.topic_replicas[:, 1].tolist() == by_topic[:, 1].tolist()


def read(layout: Layout, problem: Problem, own: list[bool]) -> tuple[Network, tuple[np.ndarray, ...]]:
    """The network of a placement, and what its flow's units mean."""
    placed = place(problem, layout, windows(problem, problem.balance), np.array(own))
    return placed.network, placed.network.read(placed.solved.units)


def test_a_flow_is_read_by_runs() -> None:
    """Every replica is decided or enters a group, and as many replicas arrive at brokers as enter groups."""
    problem = without_broker_1()
    layout = lay_out(problem, 0)
    for own in ([False] * 3, [True, False, False]):
        network, (decided, entered, arriving) = read(layout, problem, own)
        counts = np.bincount(decided[0], minlength=3) + entered.sum(axis=1)
        assert layout.factors.tolist() == counts.tolist()
        assert entered.sum() == arriving.sum() == (0 if own[0] else 1)
        assert network.ends[-1] <= len(network.arcs.tails)
