"""Which partitions a cordoned broker may hold, and how much at most."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from clusters import cordoned, no_racks, placed_specs, spec_of, specs, with_cordons
from hypothesis import given
from properties import examples

from planner.model.build_problem import build
from planner.model.cluster import Broker
from planner.model.cordons import may_hold, most_led, most_on_broker, only_cordoned, usable_sets
from planner.model.problem import UNCAPPED, Problem
from planner.model.spec import Changes, Spec

LISTS = {"x": [(1, 2), (3, 1)], "y": [(3,)]}


def spec() -> Spec:
    """Three brokers without racks; the last one holds two replicas."""
    return spec_of(no_racks(1, 2, 3), LISTS)


@pytest.mark.parametrize(("most", "expected"), [(None, 2), (1, 1), (7, 2)])
def test_a_cordoned_broker_leads_no_more_than_it_holds(most: int | None, expected: int) -> None:
    """A cordoned broker leads at most the partitions that it holds, or its cap if that is lower."""
    asked = with_cordons(spec(), 3)
    brokers = (*asked.cluster.brokers[:2], replace(asked.cluster.brokers[2], max_leaders=most))
    problem = build(replace(asked, cluster=replace(asked.cluster, brokers=brokers)))
    found = most_led(problem)
    assert found is not None
    assert problem.cordoned is not None
    assert ([False, False, True], [[UNCAPPED, UNCAPPED, expected]]) == (problem.cordoned.tolist(), found.tolist())
    assert (problem.caps is None) == (most is None)


@pytest.mark.parametrize("rule", [{"add_brokers": (Broker(4, cordoned_log_dirs=("*",)),)}, {}])
def test_none_is_cordoned_where_only_one_that_joins_is(rule: dict[str, tuple[Broker, ...]]) -> None:
    """Nothing is cordoned if only a joining broker is, if no broker is, or after `only_cordoned` of none."""
    problem = build(replace(spec(), changes=Changes(**rule)))  # type: ignore[arg-type]
    assert (None, None, None) == (problem.cordoned, most_led(problem), usable_sets(problem))
    assert build(only_cordoned(with_cordons(spec(), 3), ())).cordoned is None


@examples(80)
@given(cordoned(specs()) | cordoned(placed_specs()))
def test_who_may_be_where_is_the_same_by_sets_and_one_by_one(problem: Problem) -> None:
    """The sets of target brokers, for whole problems, and single partitions and brokers."""
    found = usable_sets(problem)
    assert found is not None
    brokers, of_row = np.flatnonzero(problem.targets), found[1]
    for row in range(problem.rows):
        assert may_hold(problem, row, brokers).tolist() == found[0][of_row[row]].tolist()
    for broker in brokers.tolist():
        alone = [may_hold(problem, row, broker)[0] for row in range(problem.rows)]
        assert alone == may_hold(problem, np.arange(problem.rows), broker).tolist()


def test_the_most_that_a_broker_may_hold() -> None:
    """A broker may hold each partition once; a cordoned one only those of today."""
    problem, sizes = build(with_cordons(spec(), 3)), np.array([[5], [7], [11]], dtype=np.int64)
    assert [[23, 23, 18]] == most_on_broker(problem, sizes, lambda each: each.sum(axis=0, keepdims=True)).tolist()
    free = build(spec())
    assert [[23]] == most_on_broker(free, sizes, lambda each: each.sum(axis=0, keepdims=True)).tolist()
