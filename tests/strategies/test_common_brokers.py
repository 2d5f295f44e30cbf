"""Replicas placed around leaders that are decided, against every plan of tiny clusters."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from brute_force import as_plan, keeps, moved, options
from clusters import balance_of, no_racks, problem_of

from planner.model.cluster import Broker
from planner.model.problem import IntArray, Problem
from planner.model.spec import Changes
from planner.scoring.broker_loads import counts_by_group
from planner.scoring.windows import Windows, windows
from planner.strategies.common_brokers import placed_around
from planner.strategies.flow.layout import lay_out
from planner.strategies.flow.placement import as_wide


def drawn(rng: np.random.Generator) -> tuple[Problem, IntArray, IntArray]:
    """Three or four partitions on four to six brokers in three racks, of which one may leave; any allowed replicas
    (P, W), and for most partitions one of those as the leader (P,).
    """
    racks = {broker: "abc"[broker % 3] for broker in range(1, int(rng.integers(5, 7)))}
    factor = int(rng.integers(1, 4))
    lists = {
        name: [rng.choice(list(racks), factor, replace=False).tolist() for _ in range(count)]
        for name, count in (("orders", 2), ("clicks", int(rng.integers(1, 3))))
    }
    sizes = {name: rng.integers(1, 50, len(rows)).tolist() for name, rows in lists.items()}
    leaves = (1,) if len(racks) > 4 and rng.integers(2) else ()
    changes = Changes(remove_brokers=leaves, add_brokers=(Broker(9, "c"),) if rng.integers(2) else ())
    wide = int(rng.integers(1, 3))
    balance = balance_of(wide, "none", 1, "none")
    problem = problem_of(racks, lists, sizes=sizes, changes=changes, balance=balance)
    placed = np.array([each[int(rng.integers(len(each)))] for each in options(problem)], dtype=np.int32)
    led = np.where(rng.integers(4, size=problem.rows) > 0, placed[:, int(rng.integers(factor))], -1)
    return problem, placed, led


def widened(problem: Problem, placed: IntArray) -> Windows:
    """The windows of a problem, so wide that they contain these replicas."""
    wanted = windows(problem, problem.balance)
    cells = counts_by_group(problem, placed, problem.topic_of, len(problem.topic_names))
    topics, brokers = as_wide(wanted.topic_replicas, cells), as_wide(wanted.replicas, cells.sum(axis=0))
    return replace(wanted, topic_replicas=topics, replicas=brokers)


@pytest.mark.parametrize("cases", [12, pytest.param(300, marks=pytest.mark.slow)])
def test_none_copies_less_with_these_leaders(cases: int) -> None:
    """Of all plans with the same leaders that are no further outside of windows the cheapest is found."""
    rng, fewer = np.random.default_rng(41), 0
    for _ in range(cases):
        problem, placed, led = drawn(rng)
        wanted = windows(problem, problem.balance)
        found = placed_around(problem, lay_out(problem, 0), wanted, placed, led)
        wide, allowed = widened(problem, placed), options(problem)
        own = [[each for each in sets if by < 0 or by in each] for sets, by in zip(allowed, led.tolist(), strict=True)]
        least = min(moved(problem, plan)[0] for plan in product(*own) if keeps(problem, wide, plan))
        assert least == moved(problem, as_plan(found))[0]
        assert keeps(problem, wide, as_plan(found))
        assert all(tuple(sorted(row)) in sets for row, sets in zip(as_plan(found), own, strict=True))
        fewer += least < moved(problem, as_plan(placed))[0]
    assert fewer >= cases / 4


def test_replicas_stay_where_a_rack_may_hold_two_of_a_partition() -> None:
    """Without racks the flow doesn't know which of a partition's replicas is settled, and what is placed is kept."""
    problem = problem_of(no_racks(1, 2, 3), {"orders": [(1, 2), (2, 3)], "clicks": [(1, 3)]})
    placed = np.array([[0, 2], [1, 2], [0, 1]], dtype=np.int32)
    around = placed_around(problem, lay_out(problem, 0), windows(problem, problem.balance), placed, placed[:, 0])
    assert around is placed
