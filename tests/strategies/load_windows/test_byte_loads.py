"""Windows of bytes as side constraints of a layout, and the layout with prices on those windows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from clusters import balance_of, no_racks, problem_of

from planner.model.balance import Tolerance
from planner.model.cluster import Broker
from planner.model.problem import Problem
from planner.model.spec import Changes, TopicFilter
from planner.scoring.windows import windows
from planner.strategies.flow.min_cost_flow import CostRangeError
from planner.strategies.flow.placement_network import lay_out
from planner.strategies.lagrangian_bound import GRAIN
from planner.strategies.load_windows.byte_loads import ByteLoads, byte_loads, priced


def problem(**rest: object) -> Problem:
    """Two brokers become three; topic `fixed` keeps its 30 bytes on broker 1."""
    balance = replace(balance_of(1, 1, "none"), disk=Tolerance("percent", 10))
    made = problem_of(
        no_racks(1, 2),
        {"fixed": [(1,)], "free": [(1, 2), (2, 1), (1,)]},
        sizes={"fixed": [30], "free": [10, 20, 30]},
        changes=Changes(add_brokers=(Broker(3),)),
        topics=TopicFilter(exclude=("fixed",)),
        balance=balance,
    )
    return replace(made, **rest)


def loads_of(of: Problem) -> ByteLoads:
    """The loads of a problem's layout."""
    return byte_loads(of, lay_out(of, 0), windows(of, of.balance))


def test_windows_are_less_what_may_not_move() -> None:
    """120 bytes on three brokers are 40 each, ± 10 %; the 30 bytes that must stay on broker 1 are subtracted."""
    found = loads_of(problem())
    assert found is not None
    assert (("disk",), [[10, 20, 30]]) == (found.names, found.weights.tolist())
    assert [[[6, 36, 36], [14, 44, 44]]] == found.windows.tolist()


def test_a_unit_of_traffic_is_worth_its_part_of_all_bytes() -> None:
    """With 90 bytes of replicas and 5 bytes a second in total, a byte a second is worth 18 bytes."""
    within = Tolerance("percent", 10)
    asked = replace(balance_of(1, 1, "none"), disk=within, network_in=within)
    found = loads_of(problem(balance=asked, bytes_in_per_sec=np.array([9, 1, 0, 3])))
    assert found is not None
    assert (("disk", "network_in"), [1, 90 // 5]) == (found.names, found.scales.tolist())


def test_no_windows() -> None:
    """If no bytes must be even, there are no loads."""
    assert () == loads_of(problem(balance=balance_of(1, 1, 1))).names


def test_brokers_at_one_price_are_a_group() -> None:
    """Brokers with one price are a group: entering the one that is paid a byte a byte is free, others cost the copy."""
    of = problem()
    layout, loads = lay_out(of, 0), loads_of(of)
    made = priced(layout, loads, np.array([[0, 0, GRAIN]]))
    assert ([0, 0, 1], [2, 1], [0, 0]) == (
        made.groups.tolist(),
        made.group_sizes.tolist(),
        made.group_racks.tolist(),
    )
    by_row = made.enter_costs / GRAIN / layout.tie_scale * layout.cost_unit_bytes
    assert [[10, 0], [20, 0], [30, 0]] == by_row.tolist()
    assert [0, 0, 0] == made.keep_costs[:, 0].tolist()


def test_no_cost_is_negative() -> None:
    """Prices that would make costs negative raise all of a row's costs, so that the lowest is at least 0."""
    of = problem()
    loads = loads_of(of)
    made = priced(lay_out(of, 0), loads, np.array([[-2 * GRAIN, GRAIN // 2, 3 * GRAIN]]))
    assert made.enter_costs.min() >= 0
    assert made.keep_costs.min() >= 0


def test_prices_beyond_the_solvers_arithmetic_are_said() -> None:
    """Prices that would overflow raise an error; they aren't silently changed."""
    of = problem(size_bytes=np.array([1, 10**12, 1, 10**13]))
    loads = loads_of(of)
    with pytest.raises(CostRangeError):
        priced(lay_out(of, 0), loads, np.array([[0, 0, 10**6 * GRAIN]]))
