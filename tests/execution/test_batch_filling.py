"""Batches while they are filled: what each of them holds, and whether a load fits."""

from __future__ import annotations

from batch_loads import loads_of
from hypothesis import given
from hypothesis import strategies as st

from planner.execution.batch_filling import BYTES, NOWHERE, BatchFilling, BatchLoads
from planner.model.spec import BatchRules


def test_what_was_taken_out_leaves_nothing_behind() -> None:
    """If a load is put into a batch and taken out, the batch is as before and has room for the load again."""
    loads = loads_of([{0: 50, 1: 50}], 2)
    filling = BatchFilling(loads, BatchRules(100, 1))
    filling.open(1)
    filling.put(0, 0)
    assert [False] == filling.has_room(0, 0, 1).tolist()

    filling.take(0)

    assert [True] == filling.has_room(0, 0, 1).tolist()
    assert (0, 0, -1) == (filling.length_bytes(0), filling.held.sum(), filling.batch_of[0])


LANES = 3
sizes = st.lists(st.dictionaries(st.integers(0, LANES - 1), st.integers(0, 60), min_size=1), min_size=1, max_size=8)
limit = st.none() | st.integers(1, 100)
rules = st.builds(BatchRules, limit, st.none() | st.integers(1, 3), seconds=limit, bytes_per_sec=st.just(1))


@given(sizes, rules, st.data())
def test_a_batch_holds_the_sums_of_its_loads(
    own: list[dict[int, int]], given_rules: BatchRules, data: st.DataObject
) -> None:
    """Whatever was put in and taken out again; and room is the same for one batch as for all at once."""
    filling = BatchFilling(loads_of(own, LANES), given_rules)
    filling.open(2)
    for load in range(len(own)):
        filling.put(load, data.draw(st.integers(0, 1)))
    taken = data.draw(st.sets(st.integers(0, len(own) - 1), min_size=1))
    for load in taken:
        filling.take(load)

    for batch in range(2):
        inside = [each for load, each in enumerate(own) if filling.batch_of[load] == batch]
        lanes = [sum(each.get(lane, 0) for each in inside) for lane in range(LANES)]
        assert lanes == filling.held[filling.loads.sizes, batch].tolist()
        assert (sum(lanes), max(lanes)) == (filling.held[BYTES, batch], filling.busiest[batch])
        for load in taken:
            assert filling.fits(load, batch) == filling.has_room(load, 0, 2)[batch]
    assert taken == {load for load, batch in enumerate(filling.batch_of) if batch == NOWHERE}


def test_batches_are_appended_without_touching_those_there_are() -> None:
    """Appending batches to a copy changes nothing in the original."""
    filling = BatchFilling(loads_of([{0: 5}, {0: 7}], 1), BatchRules())
    filling.open(1)
    filling.put(0, 0)
    other = filling.copy()
    other.open(100)
    other.put(1, 100)
    assert (12, 5, 1, 101) == (other.length_bytes(0), filling.length_bytes(0), filling.count, other.count)


def test_a_load_comes_after_those_before_it() -> None:
    """A load can't be in a batch before those of its predecessors: the first possible one follows the last of them."""
    loads = BatchLoads(1)
    for after in ((), (), (0, 1)):
        loads.add(([0], [1], [1]), 1, after=after)
    filling = BatchFilling(loads, BatchRules())
    filling.open(4)
    filling.put(0, 2)
    filling.put(1, 0)
    assert (0, 3) == (filling.not_before(1), filling.not_before(2))
