"""Dealing candidates to tasks: every one once, each task as much of every kind as any other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from planner.model.balance import Balance
from planner.sweep import task_split
from planner.sweep.candidates import Candidates, Run

STRATEGIES = ("unchanged", "optimum", "kafka_striped", "kafka_classic")


def sweep(*counts: int) -> Candidates:
    """A sweep with so many candidates of each of STRATEGIES."""
    return Candidates(
        tuple(Run(name, count, Balance()) for name, count in zip(STRATEGIES, counts, strict=True) if count)
    )


sweeps = st.lists(st.tuples(st.builds(sweep, *[st.integers(0, 40)] * 4), st.booleans()), min_size=1, max_size=4)


@examples(200)
@given(sweeps, st.integers(1, 30))
def test_every_candidate_is_dealt_once(fleet: list[tuple[Candidates, bool]], tasks: int) -> None:
    """A task goes from one sweep to the next, and never back, with numbers that never are too many at once."""
    dealt = [list(task_split.blocks(task_split.pieces(fleet, task, tasks))) for task in range(tasks)]
    found = [(number, each) for blocks in dealt for number, numbers in blocks for each in numbers.tolist()]
    assert sorted(found) == [(number, each) for number, (one, _) in enumerate(fleet) for each in range(len(one))]
    for blocks in dealt:
        assert [number for number, _ in blocks] == sorted(number for number, _ in blocks)


@examples(100)
@given(sweeps, st.integers(1, 30))
def test_what_is_made_one_by_one_is_dealt_evenly(fleet: list[tuple[Candidates, bool]], tasks: int) -> None:
    """Each task has as many of each kind of each sweep as any other, but for one."""
    for number, (every, has_tables) in enumerate(fleet):
        for name in STRATEGIES[: 3 if has_tables else 4]:
            counts = [
                sum(int(every.of(numbers, name).sum()) for at, numbers in blocks if at == number)
                for blocks in (task_split.blocks(task_split.pieces(fleet, task, tasks)) for task in range(tasks))
            ]
            assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("tasks", [1, 4, 7])
def test_few_tasks_make_the_tables_of_a_sweep(tasks: int) -> None:
    """What is scored from tables stays together."""
    fleet = [(sweep(1, 20, 10, 300), True)] * 3
    users = [
        (task, each.sweep)
        for task in range(tasks)
        for each in task_split.pieces(fleet, task, tasks)
        if each.from_tables
    ]
    assert len(users) <= 3 + tasks - 1


def test_a_billion_numbers_are_never_laid_out() -> None:
    """Only as many as are evaluated at once."""
    every = Candidates((Run("kafka_classic", 10**9, Balance()), Run("kafka_striped", 10**9, Balance())))
    for has_tables in (True, False):
        sizes = {
            len(next(iter(task_split.blocks([each])))[1]) for each in task_split.pieces([(every, has_tables)], 3, 16)
        }
        assert max(sizes) <= 16_384
