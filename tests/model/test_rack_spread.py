"""Spreads over racks that could be more even, and spreads that are no less even than today's."""

from __future__ import annotations

from dataclasses import replace

import pytest
from clusters import assignment_of, problem_of

from planner.model.build_problem import today
from planner.model.problem import Problem
from planner.model.rack_spread import as_even_as_today, crowding, uneven_racks
from planner.scoring import independent_check


def test_a_spread_is_uneven_where_a_rack_with_room_has_two_less() -> None:
    """A spread is uneven if a rack with a free broker has at least two replicas fewer than another rack."""
    racks = {1: "a", 2: "a", 3: "a", 4: "b", 5: "b", 6: "c"}
    problem = problem_of(racks, {"x": [(1, 2, 3), (1, 2, 4), (1, 4, 6), (1, 2, 4, 5)]})
    assert [True, True, False, True] == uneven_racks(problem, today(problem)).tolist()
    full = problem_of({1: "a", 2: "a", 3: "a", 4: "b"}, {"x": [(1, 2, 3, 4)]})
    assert [False] == uneven_racks(full, today(full)).tolist()


RACKS = {1: "a", 2: "a", 3: "a", 4: "b", 5: "b", 6: "c"}


def as_today(*rows: tuple[int, ...]) -> Problem:
    """These partitions, which may stay spread as they are today."""
    return replace(problem_of(RACKS, {"x": rows}), racks_as_today=True)


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ((1, 2, 3), (1, 2, 3), True),
        ((1, 2, 4), (1, 3, 5), True),
        # More even than today, and as even as possible.
        ((1, 2, 3), (1, 2, 6), True),
        ((1, 2, 4), (1, 4, 6), True),
        # No rack with one replica may get a second.
        ((1, 2, 4), (1, 4, 5), False),
        ((1, 2, 4), (1, 2, 3), False),
        # An even spread must stay even.
        ((1, 4, 6), (1, 2, 6), False),
    ],
)
def test_no_rack_holds_more_than_today_or_than_is_even(
    before: tuple[int, ...], after: tuple[int, ...], kept: bool
) -> None:
    """A partition that breaks the rack rule may change, if it breaks the rule no more than today."""
    problem = as_today(before)
    placed = assignment_of(problem, [after])
    uneven = bool(uneven_racks(problem, placed)[0])
    assert kept == (not uneven or bool(as_even_as_today(problem, placed)[0]))
    assert kept == (() == independent_check.check(problem, placed))
    enforced = replace(problem, racks_as_today=False)
    assert uneven == bool(independent_check.check(enforced, placed))


def test_pairs_in_racks() -> None:
    """`crowding` counts pairs of replicas in the same rack, in both orders, and each replica with itself."""
    problem = as_today((1, 2, 3), (1, 2, 4), (1, 4, 6))
    assert [9, 5, 3] == crowding(today(problem), problem.broker_racks).tolist()
