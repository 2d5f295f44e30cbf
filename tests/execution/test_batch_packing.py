"""Loads in batches: few batches, none longer than it must be, risk first, and every load after those before it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from planner.execution.batch_exchanges import bring_forward, few_enough, polish
from planner.execution.batch_filling import BatchFilling, BatchLoads
from planner.execution.batch_packing import AT_RISK, pack
from planner.model.spec import BatchRules

CAN_WAIT = 2


def loads_of(sizes: Sequence[dict[int, int]], lanes: int, risks: Sequence[int] = ()) -> BatchLoads:
    """A load for each {lane: bytes}, one replica on each lane."""
    loads = BatchLoads(lanes)
    for number, own in enumerate(sizes):
        risk = risks[number] if risks else CAN_WAIT
        loads.add((list(own), list(own.values()), [1] * len(own)), sum(own.values()), risk)
    return loads


def lengths(loads: BatchLoads, batches: Sequence[int]) -> list[int]:
    """The bytes of the busiest lane of each batch, counted load by load."""
    filled: list[dict[int, int]] = [{} for _ in range(max(batches) + 1)]
    for load, batch in enumerate(batches):
        for lane, size, _ in loads.listed(load):
            filled[batch][lane] = filled[batch].get(lane, 0) + size
    return [max(batch.values()) for batch in filled]


def many(count: int, lanes: int, risk: int = CAN_WAIT) -> BatchLoads:
    """Loads of unlike sizes on two lanes each, the same every time."""
    random = Random(3)
    sizes = [dict.fromkeys(random.sample(range(lanes), 2), int(random.lognormvariate(6, 1))) for _ in range(count)]
    return loads_of(sizes, lanes, [risk] * count)


def test_lanes_that_have_nothing_in_common_run_side_by_side() -> None:
    """Two batches of 30 and 20, each full on both lanes, not the 30 of one lane beside the 20 of the other."""
    loads = loads_of([{0: 30}, {0: 20}, {1: 20}, {1: 30}], 2)

    batches = pack(loads, BatchRules(moves_per_broker=1))

    assert [20, 30] == sorted(lengths(loads, batches))


def test_without_limits_a_load_is_right_behind_those_before_it() -> None:
    """Rounds make the batches; risk has nothing to wait for."""
    loads = BatchLoads(1)
    first = loads.add(([0], [5], [1]), 5, CAN_WAIT, (), (0, 2))
    loads.add(([0], [5], [1]), 5, CAN_WAIT, (first,), (1, 2))
    loads.add(([0], [5], [1]), 5, AT_RISK)

    assert [0, 1, 0] == pack(loads, BatchRules())


def test_the_rounds_of_a_path_share_the_batches() -> None:
    """First rounds don't take the last batch, in which no second round could follow."""
    loads = BatchLoads(4)
    for lane in range(4):
        first = loads.add(([lane], [10], [1]), 10, CAN_WAIT, (), (0, 2))
        loads.add(([lane], [10], [1]), 10, CAN_WAIT, (first,), (1, 2))

    batches = pack(loads, BatchRules(bytes=40))

    assert [0, 1] * 4 == batches


def test_a_load_larger_than_a_batch_is_alone_but_for_what_has_no_bytes() -> None:
    """The others share a batch of their own."""
    loads = loads_of([{0: 500}, {1: 40}, {2: 60}, {3: 0}], 4)

    large, *others, empty = pack(loads, BatchRules(bytes=100))

    assert 1 == len(set(others))
    assert {large} != set(others)
    assert empty in (large, others[0])


@pytest.mark.parametrize("rules", [BatchRules(bytes=60_000), BatchRules(moves_per_broker=6)])
@pytest.mark.parametrize("risk", [AT_RISK, CAN_WAIT])
def test_batches_are_packed_close_to_the_busiest_lane(rules: BatchRules, risk: int) -> None:
    """One lane's bytes are the least that all batches can take, one after the other."""
    loads = many(300, 10, risk)

    batches = pack(loads, rules)

    assert sum(lengths(loads, batches)) <= 1.1 * loads.sizes_of(range(300)).max()


def test_loads_at_risk_are_brought_forward_however_many_there_are() -> None:
    """With too many of them for pairs to be looked at, none has room in an earlier batch either."""
    loads = many(1_000, 250, AT_RISK)
    rules = BatchRules(bytes=int(loads.sizes.sum()) // 7)
    filling = BatchFilling(loads, rules)
    assert not few_enough(filling, range(1_000))

    batches = pack(loads, rules)

    filled = [0] * (max(batches) + 1)
    for load, batch in enumerate(batches):
        filled[batch] += loads.bytes_moved[load]
    assert all(
        filled[earlier] + loads.bytes_moved[load] > int(loads.sizes.sum()) // 7
        for load, batch in enumerate(batches)
        for earlier in range(batch)
    )


def test_polishing_exchanges_what_makes_two_batches_long() -> None:
    """A large and a small load of both lanes, packed crosswise: exchanged, 130 become 120."""
    loads = loads_of([{0: 100}, {1: 10}, {0: 20}, {1: 30}], 2)
    filling = BatchFilling(loads, BatchRules(moves_per_broker=1))
    filling.open(2)
    for load, batch in enumerate((0, 0, 1, 1)):
        filling.put(load, batch)
    assert 130 == filling.length_bytes(0)

    polish(filling, range(4), 0, move=False)

    assert 120 == filling.length_bytes(0)
    assert [100, 20] == sorted(lengths(loads, filling.batch_of), reverse=True)


def test_polishing_moves_a_load_to_where_it_is_no_longer_in_the_way() -> None:
    """Two loads of one lane beside each other took 120, and the other batch 60 more."""
    loads = loads_of([{0: 60}, {0: 60}, {1: 60}], 2)
    filling = BatchFilling(loads, BatchRules(bytes=180))
    filling.open(2)
    for load, batch in enumerate((0, 0, 1)):
        filling.put(load, batch)

    polish(filling, range(3), 0, move=True)

    assert 120 == filling.length_bytes(0)


def test_bringing_forward_takes_what_lengthens_least() -> None:
    """The first batch has room for one of two; the one on its idle lane makes it no longer."""
    loads = loads_of([{0: 50}, {0: 40}, {1: 40}], 2)
    filling = BatchFilling(loads, BatchRules(bytes=95))
    filling.open(2)
    for load, batch in enumerate((0, 1, 1)):
        filling.put(load, batch)

    assert [0, 1, 0] == bring_forward(filling, range(3), 0).batch_of


def test_what_was_taken_out_leaves_nothing_behind() -> None:
    """A batch that a load was put into and taken from is as empty as before, and has room for it again."""
    loads = loads_of([{0: 50, 1: 50}], 2)
    filling = BatchFilling(loads, BatchRules(100, 1))
    filling.open(1)
    filling.put(0, 0)
    assert [False] == filling.has_room(0, 0, 1).tolist()

    filling.take(0)

    assert [True] == filling.has_room(0, 0, 1).tolist()
    assert (0, 0, 0, -1) == (filling.length_bytes(0), filling.bytes_moved[0], filling.moves.sum(), filling.batch_of[0])
