"""Loads are packed into few short batches: loads at risk first, and each load after its predecessors."""

from __future__ import annotations

import pytest
from batch_loads import CAN_WAIT, lengths, loads_of, many

from planner.execution.batch_filling import BatchLoads
from planner.execution.batch_packing import AT_RISK, pack
from planner.model.spec import BatchRules


def test_lanes_that_have_nothing_in_common_run_side_by_side() -> None:
    """Loads of different lanes run side by side, so that there is one batch of 30 and one of 20."""
    loads = loads_of([{0: 30}, {0: 20}, {1: 20}, {1: 30}], 2)

    batches = pack(loads, BatchRules(moves_per_broker=1))

    assert [20, 30] == sorted(lengths(loads, batches))


def test_without_limits_a_load_is_right_behind_those_before_it() -> None:
    """Without limits each load directly follows its predecessors; its risk has no effect."""
    loads = BatchLoads(1)
    first = loads.add(([0], [5], [1]), 5, CAN_WAIT, (), (0, 2))
    loads.add(([0], [5], [1]), 5, CAN_WAIT, (first,), (1, 2))
    loads.add(([0], [5], [1]), 5, AT_RISK)

    assert [0, 1, 0] == pack(loads, BatchRules())


def test_the_rounds_of_a_path_share_the_batches() -> None:
    """First loads of a path aren't put into the last batch, because their second loads need a later one."""
    loads = BatchLoads(4)
    for lane in range(4):
        first = loads.add(([lane], [10], [1]), 10, CAN_WAIT, (), (0, 2))
        loads.add(([lane], [10], [1]), 10, CAN_WAIT, (first,), (1, 2))

    batches = pack(loads, BatchRules(bytes=40))

    assert [0, 1] * 4 == batches


def test_a_path_that_can_wait_begins_where_it_can_go_on() -> None:
    """A path that can wait doesn't start in the last batch, which has the most room: it would need one more batch."""
    loads = BatchLoads(2)
    path: tuple[int, ...] = ()
    for round_, size in enumerate((10, 10, 20)):
        path = (loads.add(([0], [size], [1]), size, AT_RISK, path, (round_, 3)),)
    first = loads.add(([1], [5], [1]), 5, CAN_WAIT, (), (0, 2))
    loads.add(([1], [5], [1]), 5, CAN_WAIT, (first,), (1, 2))

    assert [0, 1, 2, 0, 2] == pack(loads, BatchRules(moves_per_broker=1))


def test_a_load_larger_than_a_batch_is_alone_but_for_what_has_no_bytes() -> None:
    """A load larger than the limit shares its batch only with a load without bytes; the others share another batch."""
    loads = loads_of([{0: 500}, {1: 40}, {2: 60}, {3: 0}], 4)

    large, *others, empty = pack(loads, BatchRules(bytes=100))

    assert 1 == len(set(others))
    assert {large} != set(others)
    assert empty in (large, others[0])


@pytest.mark.parametrize("rules", [BatchRules(bytes=60_000), BatchRules(moves_per_broker=6)])
@pytest.mark.parametrize("risk", [AT_RISK, CAN_WAIT])
def test_batches_are_packed_close_to_the_busiest_lane(rules: BatchRules, risk: int) -> None:
    """The sum of the batches' busiest lanes is at most 10 % above the bytes of the busiest lane."""
    loads = many(300, 10, risk)

    batches = pack(loads, rules)

    assert sum(lengths(loads, batches)) <= 1.1 * loads.busiest_bytes(range(300))
