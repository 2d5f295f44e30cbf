"""The balance that an assignment reaches: each missed window, as narrow as the assignment lets it be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from clusters import assignment_of, balance_of, no_racks, problem_of, specs
from hypothesis import given
from properties import examples

from planner.model.balance import Tolerance
from planner.model.build_problem import build, today
from planner.model.spec import Changes, Spec
from planner.scoring.reached_balance import missed, reached

ROWS = {"a": [(1,), (1,), (1,), (1,)], "b": [(1,), (2,)]}


def test_spreads_become_what_is_reached():
    """Broker 1 holds five replicas, broker 2 one; four of topic a, and none."""
    problem = problem_of(no_racks(1, 2), ROWS, balance=balance_of(1, 1, 1))

    assert {"topic_replicas", "replicas", "leaders"} == set(missed(problem, today(problem)))
    assert balance_of(4, 4, 4) == reached(problem, today(problem))


def test_windows_that_are_kept_or_not_asked_for_stay():
    """Nothing becomes narrower."""
    problem = problem_of(no_racks(1, 2), ROWS, balance=balance_of(9, 1, "none"))

    assert balance_of(9, 4, "none") == reached(problem, today(problem))


def test_percentages_are_widened_in_hundredths():
    """Of 700 bytes, 600 are on one of two brokers: 71.43 % above its share."""
    problem = problem_of(
        no_racks(1, 2), {"a": [(1,), (2,)]}, sizes={"a": [600, 100]}, balance=balance_of(1, 1, 1, "none", "10%")
    )

    assert Tolerance("percent", 71.43) == reached(problem, today(problem)).disk


def test_brokers_of_unlike_capacity_have_windows_of_their_own():
    """A share of two thirds and one of a third, and everything on the smaller broker."""
    problem = problem_of(no_racks(1, 2), {"a": [(1,)] * 6}, balance=balance_of(1, 6, "none"))
    problem = replace(problem, disk_bytes=np.array([100, 200], dtype=np.int64))
    found = reached(problem, assignment_of(problem, [(1,)] * 6))

    assert found.replicas.value == 8  # 2 ± 4 and 4 ± 4
    assert () == missed(replace(problem, balance=found), today(problem))


@examples(40)
@given(specs())
def test_what_is_reached_is_kept_and_nothing_narrower_is(spec: Spec):
    """For today's assignment without any change: one step narrower misses the window."""
    spec = replace(spec, changes=Changes(), balance=balance_of(0, 0, 1, 1))
    problem = build(spec)
    found = reached(problem, today(problem))

    assert () == missed(replace(problem, balance=found), today(problem))
    for name in missed(problem, today(problem)):
        narrower = Tolerance("spread", getattr(found, name).value - 1)
        tighter = replace(problem, balance=replace(found, **{name: narrower}))
        assert name in missed(tighter, today(problem))
