"""Gives a pool's brokers to partitions: different brokers to each one, and bytes as even as possible at no cost."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from clusters import ids_of, no_racks, problem_of, problems
from hypothesis import assume, given
from properties import examples

from planner.model.errors import InfeasibleError
from planner.model.problem import UNCAPPED, Problem
from planner.model.spec import Changes
from planner.strategies.flow.placement import deal
from planner.strategies.flow.placement_network import lay_out
from planner.strategies.optimum import solve


def nothing_decided() -> np.ndarray:
    """No (row, broker) pair."""
    return np.zeros((2, 0), dtype=np.int32)


@examples(80)
@given(problems())
def test_decided_rows_stay_as_they_are(problem: Problem) -> None:
    """Replicas that are all decided are handed on, with nothing dealt and nobody left with too few."""
    layout = lay_out(problem, 0)
    assume(len(layout.rows) > 0)
    pairs = [(row, broker) for row, factor in enumerate(layout.factors.tolist()) for broker in range(factor)]
    entered = np.zeros(layout.most.shape, dtype=np.int32)
    arriving = np.zeros((layout.topic_count, len(layout.targets)), dtype=np.int32)
    chosen, undealt = deal(layout, np.array(pairs, dtype=np.int32).T, entered, arriving, problem.width)
    assert not undealt.any()
    assert [sorted(layout.targets[:factor].tolist()) for factor in layout.factors.tolist()] == [
        [broker for broker in row if broker >= 0] for row in chosen.tolist()
    ]


@pytest.mark.parametrize(
    ("racks", "capped", "kept"),
    [
        ("aabbb", True, ", an even spread over racks (rack_aware) and max_replicas"),
        ("ab", False, " and an even spread over racks (rack_aware)"),
        ((None, None), True, " and max_replicas"),
        ((None, None), False, ""),
    ],
)
def test_what_no_placement_keeps_is_named(racks: Sequence[str | None], capped: bool, kept: str) -> None:
    """The refusal names the spread over racks only where racks count, and caps only where there are any."""
    ids = range(1, len(racks) + 1)
    problem = problem_of(dict(zip(ids, racks, strict=True)), {"t": [tuple(ids)[:4]] * 3})
    caps = np.full((2, len(racks)), UNCAPPED)
    caps[0, 1] = 1
    problem = replace(problem, caps=caps if capped else None)
    if not capped:
        problem = replace(problem, replication_factors=problem.replication_factors + 1)
    told = f"no assignment keeps every partition's replication factor{kept} on the brokers that stay; "
    with pytest.raises(InfeasibleError, match=f"^{re.escape(told)}"):
        solve(problem, problem.balance)


def test_largest_first_to_the_emptiest() -> None:
    """Partitions of 4, 3, 2, 1 bytes go to two empty brokers, largest first: 5 bytes each."""
    changes = Changes(remove_brokers=(1,))
    problem = problem_of(no_racks(1, 2, 3), {"a": [(1,)] * 4}, sizes={"a": [4, 3, 2, 1]}, changes=changes)
    found = ids_of(problem, solve(problem, problem.balance).assignment)
    size_bytes = {broker: sum(4 - at for at, row in enumerate(found) if row == [broker]) for broker in (2, 3)}
    assert {2: 5, 3: 5} == size_bytes


def test_several_newcomers_get_different_brokers() -> None:
    """Two rows need two brokers each from a pool of three brokers, one of which takes two replicas."""
    problem = problem_of(no_racks(1, 2, 3), {"a": [(1, 2), (1, 2)]})
    layout = lay_out(problem, 0)
    entered = np.full((2, 1), 2, dtype=np.int32)
    chosen, undealt = deal(layout, nothing_decided(), entered, np.array([[2, 1, 1]], dtype=np.int32), 2)
    assert not undealt.any()
    assert [0, 0, 1, 2] == sorted(chosen.ravel().tolist())
    assert all(len(set(row)) == 2 for row in chosen.tolist())


def test_a_newcomer_is_not_dealt_the_broker_that_the_row_keeps() -> None:
    """Rows 0 and 1 keep brokers 0 and 1, and the pool has one place on each: each row gets the other broker."""
    problem = problem_of(no_racks(1, 2), {"a": [(1, 2), (1, 2)]})
    layout = lay_out(problem, 0)
    decided = np.array([[0, 1], [0, 1]], dtype=np.int32)
    entered, arriving = np.ones((2, 1), dtype=np.int32), np.ones((1, 2), dtype=np.int32)
    chosen, undealt = deal(layout, decided, entered, arriving, 2)
    assert not undealt.any()
    assert [[0, 1], [0, 1]] == chosen.tolist()


def test_rows_that_cannot_be_dealt_are_named() -> None:
    """A row that needs two brokers gets one, because the pool's two places are on one broker; the row is reported."""
    problem = problem_of(no_racks(1, 2), {"a": [(1, 2)]})
    layout = lay_out(problem, 0)
    entered, arriving = np.full((1, 1), 2, dtype=np.int32), np.array([[2, 0]], dtype=np.int32)
    chosen, undealt = deal(layout, nothing_decided(), entered, arriving, 2)
    assert ([True], [[0, -1]]) == (undealt.tolist(), chosen.tolist())
