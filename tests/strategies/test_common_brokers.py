"""Replicas placed around leaders that are fixed, against every plan of tiny clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from brute_force import as_plan, counts, moved, options
from clusters import balance_of, no_racks, problem_of

from planner.model.cluster import Broker
from planner.model.problem import IntArray, Problem
from planner.model.spec import Changes
from planner.scoring.window_excess import BROKER_PRICE, TOPIC_PRICE, excess
from planner.scoring.windows import Windows, windows
from planner.strategies.flow.placement_network import lay_out
from planner.strategies.optimum import outside_and_copied, placed_around


def drawn(rng: np.random.Generator) -> tuple[Problem, IntArray, IntArray]:
    """Three or four partitions on four to six brokers in three racks, one of which may leave; allowed replicas (P, W);
    and the leaders (P,), each one of those replicas, or -1 for some partitions.
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


def outside(problem: Problem, wanted: Windows, plan: Sequence[Sequence[int]]) -> int:
    """How far the replicas of a plan are outside their windows, priced by weight."""
    cells = counts(problem, plan, problem.size_bytes)[0]
    topics = excess(wanted.topic_replicas, cells, TOPIC_PRICE).sum()
    return int(topics + excess(wanted.replicas, cells.sum(axis=0), BROKER_PRICE))


@pytest.mark.parametrize("cases", [12, pytest.param(300, marks=pytest.mark.slow)])
def test_none_is_better_with_these_leaders(cases: int) -> None:
    """Of all plans with the same leaders, the one found is least outside its windows, and then the cheapest."""
    rng, better = np.random.default_rng(41), 0
    for _ in range(cases):
        problem, placed, led = drawn(rng)
        wanted, allowed = windows(problem, problem.balance), options(problem)
        around = placed_around(problem, lay_out(problem, 0), wanted, placed, led)
        found, anywhere = as_plan(around), np.stack([0 * wanted.leaders[0], wanted.leaders[1] + problem.rows])
        own = [[each for each in sets if by < 0 or by in each] for sets, by in zip(allowed, led.tolist(), strict=True)]
        tried = [(outside(problem, wanted, plan), moved(problem, plan)[0]) for plan in product(*own)]
        assert min(tried) == (outside(problem, wanted, found), moved(problem, found)[0])
        counted = outside_and_copied(problem, lay_out(problem, 0), replace(wanted, leaders=anywhere), around)
        assert counted == min(tried)
        assert all(tuple(sorted(row)) in sets for row, sets in zip(found, own, strict=True))
        better += min(tried) < (outside(problem, wanted, as_plan(placed)), moved(problem, as_plan(placed))[0])
    assert better >= cases / 4


def test_replicas_stay_where_a_rack_may_hold_two_of_a_partition() -> None:
    """Without racks, the flow can't tell which of a partition's replicas is fixed: the placement stays as it is."""
    problem = problem_of(no_racks(1, 2, 3), {"orders": [(1, 2), (2, 3)], "clicks": [(1, 3)]})
    placed = np.array([[0, 2], [1, 2], [0, 1]], dtype=np.int32)
    around = placed_around(problem, lay_out(problem, 0), windows(problem, problem.balance), placed, placed[:, 0])
    assert around is placed
