"""Loads are exchanged between batches to shorten them, and loads at risk move to earlier batches."""

from __future__ import annotations

from batch_loads import lengths, loads_of, many

from planner.execution.batch_exchanges import bring_forward, few_enough, polish
from planner.execution.batch_filling import BatchFilling
from planner.execution.batch_packing import AT_RISK, pack
from planner.model.spec import BatchRules


def test_loads_at_risk_are_brought_forward_however_many_there_are() -> None:
    """1,000 loads at risk are too many to compare in pairs; still none of them fits into an earlier batch."""
    loads = many(1_000, 250, AT_RISK)
    sizes = loads.bytes_moved(range(1_000))
    rules = BatchRules(bytes=int(sizes.sum()) // 7)
    filling = BatchFilling(loads, rules)
    assert not few_enough(filling, range(1_000))

    batches = pack(loads, rules)

    filled = [0] * (max(batches) + 1)
    for load, batch in enumerate(batches):
        filled[batch] += sizes[load]
    assert all(
        filled[earlier] + sizes[load] > int(sizes.sum()) // 7
        for load, batch in enumerate(batches)
        for earlier in range(batch)
    )


def test_polishing_exchanges_what_makes_two_batches_long() -> None:
    """Each batch has a large load on one lane and a small one on the other; an exchange shortens 130 in all to 120."""
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
    """Two loads of 60 share a lane in one batch; one moves to the other batch, which has room on that lane."""
    loads = loads_of([{0: 60}, {0: 60}, {1: 60}], 2)
    filling = BatchFilling(loads, BatchRules(bytes=180))
    filling.open(2)
    for load, batch in enumerate((0, 0, 1)):
        filling.put(load, batch)

    polish(filling, range(3), 0, move=True)

    assert 120 == filling.length_bytes(0)


def test_bringing_forward_takes_what_lengthens_least() -> None:
    """The first batch has room for one of two loads; it gets the one on its idle lane, which doesn't lengthen it."""
    loads = loads_of([{0: 50}, {0: 40}, {1: 40}], 2)
    filling = BatchFilling(loads, BatchRules(bytes=95))
    filling.open(2)
    for load, batch in enumerate((0, 1, 1)):
        filling.put(load, batch)

    assert [0, 1, 0] == bring_forward(filling, range(3), 0).batch_of
