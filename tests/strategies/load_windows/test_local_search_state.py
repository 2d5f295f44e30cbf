"""Which rows may move, and which may change places, on a small example."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.strategies.load_windows import local_search_state
from planner.strategies.load_windows.local_search_state import (
    Moving,
    SearchPlacement,
    SearchState,
    can_exchange,
    leaving_rows,
    pairings,
    returning_rows,
)

# Rows 0 and 1 are of topic 0, rows 2 and 3 are of topic 1; brokers 0 and 1 are in rack 0, broker 2 is in rack 1.
ON = [[1, 0, 1], [0, 1, 1], [1, 0, 0], [0, 1, 0]]


def placement(**rest: Any) -> SearchPlacement:
    """The example: rows 0 and 1 have a replica in each rack, rows 2 and 3 have one in rack 0; windows are wide."""
    search = SearchState(
        topics=np.array([0, 0, 1, 1]),
        costs=np.array([7, 5, 3, 2]),
        levels=np.array([[0, 1, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1]], dtype=np.int8),
        allowed=None,
        racks=np.array([0, 0, 1]),
        least=np.array([[1, 1], [1, 1], [0, 0], [1, 0]]),
        most=np.array([[1, 1], [1, 1], [1, 1], [1, 0]]),
        loads=np.array([[70, 50, 30, 20]]),
        scales=np.ones(1, dtype=np.int64),
        load_windows=np.array([[[0, 0, 0], [1000, 1000, 1000]]]),
        cell_windows=np.array([np.zeros((2, 3)), np.full((2, 3), 9)], dtype=np.int64),
        broker_windows=np.array([[0, 0, 0], [9, 9, 9]]),
    )
    return SearchPlacement(replace(search, **rest), np.array(ON, dtype=bool))


def gone(of: SearchPlacement, here: int, there: int) -> list[int]:
    """The rows that may move from broker `here` to broker `there`."""
    return leaving_rows(of, here, np.array([there])).rows.tolist()


def test_going_within_a_rack() -> None:
    """Rows may move within a rack, if they are on the first broker and not on the second."""
    assert ([0, 2], [1, 3]) == (gone(placement(), 0, 1), gone(placement(), 1, 0))


def test_going_between_racks() -> None:
    """Rows 0 and 1 must keep a replica in each rack, and row 3 may not leave its rack; row 2 may."""
    assert ([2], []) == (gone(placement(), 0, 2), gone(placement(), 1, 2))
    assert [] == gone(placement(), 2, 0)


def test_rows_only_go_where_they_are_allowed() -> None:
    """A row moves only to brokers that are allowed for it; leaders, for example, only to the row's replicas."""
    allowed = np.ones((4, 3), dtype=bool)
    allowed[0, 1] = False
    assert [2] == gone(placement(allowed=allowed), 0, 1)


def test_what_moving_means() -> None:
    """A move has its rows with their loads and changes of cost, and a last row that stands for no row."""
    moving = Moving.of(placement(), np.array([0, 2]), 0, 1)
    assert ([0, 2, -1], [7, 3, 0], [[70, 30, 0]]) == tuple(each.tolist() for each in moving)
    assert [-5, 0] == Moving.of(placement(), np.array([1]), 0, 1).costs.tolist()


def all_pairs(of: SearchPlacement, *partners: int) -> list[list[tuple[int, int]]]:
    """For each partner, the pairs of rows that may leave broker 0 and come back, in order; -1 stands for no row."""
    to = np.array(partners or (1,))
    out, back = leaving_rows(of, 0, to), returning_rows(of, 0, to)
    pairs = pairings(of, 0, to, out, back)
    rows = [np.append(ends.rows, -1)[at].tolist() for ends, at in ((out, pairs.out), (back, pairs.back))]
    found = list(zip(*rows, strict=True))
    return [
        [each for each, by in zip(found, pairs.partners.tolist(), strict=True) if by == at] for at in range(len(to))
    ]


WITHIN = [(0, 1), (2, 3)]


def test_pairings_with_room_everywhere() -> None:
    """Pairs within a topic, single rows in either direction, and pairs across topics."""
    across = [(0, 1), (0, 3), (2, 1), (2, 3)]
    assert [[*WITHIN, (0, -1), (2, -1), (-1, 1), (-1, 3), *across]] == all_pairs(placement())


def test_several_partners_are_each_by_themselves() -> None:
    """A partner's pairs don't depend on the other partners; only row 2 may move to broker 2's rack."""
    both = all_pairs(placement(), 2, 1)
    assert [[(2, -1)], *all_pairs(placement(), 1)] == both
    assert [both[1], both[0]] == all_pairs(placement(), 1, 2)


def test_several_partners_at_once() -> None:
    """Rows to and from several partners are listed partner by partner."""
    of, partners = placement(), np.array([1, 2])
    out, back = leaving_rows(of, 0, partners), returning_rows(of, 0, partners)
    for at, partner in enumerate(partners.tolist()):
        assert gone(of, 0, partner) == out.rows[out.partners == at].tolist()
        assert gone(of, partner, 0) == back.rows[back.partners == at].tolist()


def test_pairings_without_room_on_a_broker() -> None:
    """Broker 1 is full: a row may move to it only in exchange for another one."""
    full = placement(broker_windows=np.array([[0, 0, 0], [9, 2, 9]]))
    assert [[*WITHIN, (-1, 1), (-1, 3), (0, 1), (0, 3), (2, 1), (2, 3)]] == all_pairs(full)


def test_pairings_without_room_for_a_topic() -> None:
    """Broker 1 may have no more replicas of topic 0: row 0 moves there only in exchange for a row of its topic."""
    most = np.full((2, 3), 9)
    most[0, 1] = 1
    tight = placement(cell_windows=np.array([np.zeros((2, 3)), most], dtype=np.int64))
    assert [[*WITHIN, (2, -1), (-1, 1), (-1, 3), (2, 1), (2, 3)]] == all_pairs(tight)


def test_pairings_where_a_topic_may_hold_no_fewer() -> None:
    """Broker 0 must keep its replica of topic 1: row 2 leaves only in exchange for a row of its topic."""
    least = np.zeros((2, 3))
    least[1, 0] = 1
    tight = placement(cell_windows=np.array([least, np.full((2, 3), 9)], dtype=np.int64))
    assert [[*WITHIN, (0, -1), (-1, 1), (-1, 3), (0, 1), (0, 3)]] == all_pairs(tight)


@pytest.mark.parametrize(("most", "large"), [((1, 9), 100), ((9, 1), 0)])
def test_of_many_rows_some_are_tried_across_topics(
    monkeypatch: pytest.MonkeyPatch, most: tuple[int, int], large: int
) -> None:
    """Pairs across topics use one sampled row of each side, of which there may be fewer in large placements; pairs
    within a topic are all there.
    """
    monkeypatch.setattr(local_search_state, "SAMPLED_ROWS", most[0])
    monkeypatch.setattr(local_search_state, "SAMPLED_ROWS_OF_LARGE", most[1])
    monkeypatch.setattr(local_search_state, "LARGE_PLACEMENT", large)
    (pairs,) = all_pairs(placement())
    assert [*WITHIN, (0, -1), (2, -1), (-1, 1), (-1, 3), (0, 1)] == pairs


@pytest.mark.parametrize("count", [1, 3, 4, 5, 8, 13])
def test_samples_are_evenly_spaced(count: int) -> None:
    """Each partner's rows are sampled separately, evenly spaced, up to the maximum."""
    partners = np.repeat([0, 1, 2], [count, 2, count])
    kept = np.arange(count) if count <= 4 else np.arange(4) * count // 4
    expected = [*kept, count, count + 1, *(count + 2 + kept)]
    assert expected == np.flatnonzero(local_search_state._sampled(partners, 4)).tolist()


@pytest.mark.parametrize(
    ("out", "back", "possible"),
    [
        (0, 1, True),  # one topic
        (0, 3, True),  # two topics, with room
        (2, -1, True),  # alone
        (-1, 3, True),
        (1, 3, False),  # row 1 isn't on broker 0
        (0, 0, False),  # row 0 isn't on broker 1
    ],
)
def test_exchanges_that_are_possible(out: int, back: int, possible: bool) -> None:
    """An exchange needs rows on the brokers that they leave, not on those they enter, and all counts in windows."""
    assert possible == can_exchange(placement(), 0, 1, out, back)


def test_exchanges_that_counts_forbid() -> None:
    """Broker 0 may lose a row only in exchange; a full topic on broker 1 only takes a row in exchange for its own."""
    held = placement(broker_windows=np.array([[2, 0, 0], [9, 9, 9]]))
    assert (False, True, True) == tuple(can_exchange(held, 0, 1, *pair) for pair in ((2, -1), (-1, 3), (0, 3)))
    most = np.full((2, 3), 9)
    most[1, 1] = 1
    tight = placement(cell_windows=np.array([np.zeros((2, 3)), most], dtype=np.int64))
    assert (False, True, False) == tuple(can_exchange(tight, 0, 1, *pair) for pair in ((2, -1), (2, 3), (2, 1)))


def test_a_row_that_is_there_already_does_not_go() -> None:
    """Row 0 has a replica on both brokers of the rack already, so it can't move between them."""
    search = placement(most=np.full((4, 2), 2), least=np.zeros((4, 2), dtype=np.int64)).search
    both = SearchPlacement(search, np.array([[1, 1, 0], *ON[1:]], dtype=bool))
    assert (False, True) == (can_exchange(both, 0, 1, 0, -1), can_exchange(both, 0, 1, 2, -1))


def test_exchanges_that_racks_forbid() -> None:
    """Row 3 may not leave its rack; row 2 may leave it."""
    assert (True, False) == (can_exchange(placement(), 0, 2, 2, -1), can_exchange(placement(), 1, 2, 3, -1))
