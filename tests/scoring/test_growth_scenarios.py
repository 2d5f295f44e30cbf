"""A cluster under growth, and how a plan fits it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from clusters import assignment_of, balance_of, loaded_problems, no_racks, problem_of, scrambled, spec_of
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from planner.model.build_problem import build
from planner.model.problem import Problem
from planner.model.spec import Growth, Sweep
from planner.scoring.growth_scenarios import OutsideRow, brokers_outside, grow, scenario_problem, scenarios, without
from planner.scoring.score import ScoringBasis, score

GROWTH = (Growth("x twice", "x*", 2.0), Growth("all by a tenth", "*", 1.1))
ROWS = {"x1": [(1,), (2,)], "y": [(2,)]}


def problem(**rest: object) -> Problem:
    """Two brokers with 100 and 200 bytes, and two scenarios; disks are within 20 %."""
    balance = balance_of("none", "none", "none", "none", "20%")
    return build(spec_of(no_racks(1, 2), ROWS, sizes=100, balance=balance, sweep=Sweep(growth=GROWTH), **rest))


@given(st.lists(st.tuples(st.integers(0, 2**50), st.integers(0, 1000 * 10**6)), min_size=1))
def test_growth_is_exact(pairs: list[tuple[int, int]]) -> None:
    """Rounded down and never wrapped, however large a partition: as Python's own integers have it."""
    values, ppm = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    fits = [value * factor // 10**6 < 2**62 for value, factor in pairs]
    expected = [value * factor // 10**6 for value, factor in pairs]
    found = grow(values, ppm).tolist()
    assert [e for e, ok in zip(expected, fits, strict=True) if ok] == [
        f for f, ok in zip(found, fits, strict=True) if ok
    ]


def test_patterns_choose_the_topics() -> None:
    """Sizes and rates grow for matching topics only; a scenario has no scenarios of its own."""
    rates = replace(problem(), bytes_in_per_sec=np.array([1, 2, 3]), bytes_out_per_sec=np.array([10, 0, 5]))
    first, second = (scenario_problem(rates, number) for number in (0, 1))
    assert [[200, 200, 100], [110, 110, 110]] == [first.size_bytes.tolist(), second.size_bytes.tolist()]
    assert [[2, 4, 3], [20, 0, 5]] == [first.bytes_in_per_sec.tolist(), first.bytes_out_per_sec.tolist()]
    assert ("x twice", "all by a tenth") == tuple(each.name for each in scenarios(rates))
    assert () == first.scenario_names == without(rates).scenario_names


def test_no_growth_is_no_scenario() -> None:
    """A spec without growth has no scenarios."""
    plain = problem_of(no_racks(1, 2), ROWS)
    assert ((), None, ()) == (plain.scenario_names, plain.scenario_ppm, scenarios(plain))


def test_where_a_plan_does_not_hold() -> None:
    """A row has the broker, the missed window in the scenario, the amount and what is allowed."""
    # If x doubles, 200 + 100 and 200: shares are 250, windows 200 to 300. Else 110 and 220, with shares of 165.
    assignment = assignment_of(problem(), [(1,), (2,), (2,)])
    found = {each.name: brokers_outside(each, assignment) for each in scenarios(problem())}
    assert {"x twice": 0, "all by a tenth": 2} == {name: len(rows) for name, rows in found.items()}
    assert OutsideRow("disk", broker=2, value=220, least=132, most=198) == found["all by a tenth"][1]


def test_full_disks_are_told_from_windows() -> None:
    """A broker above its disk's limit is reported as disk_used, with and without a window."""
    small = replace(problem(), disk_limit_bytes=np.array([190, 1000]))
    without_window = replace(small, balance=balance_of("none", "none", "none"))
    for each in (small, without_window):
        rows = brokers_outside(scenarios(each)[0], assignment_of(each, [(1,), (2,), (2,)]))
        assert [("disk_used", 1, 200, 190)] == [(row.window, row.broker, row.value, row.most) for row in rows]
    narrow = replace(problem(), disk_limit_bytes=np.array([1000, 205]))
    rows = brokers_outside(scenarios(narrow)[1], assignment_of(narrow, [(1,), (2,), (2,)]))
    assert ("disk_used", 2, 220, 205) == (rows[1].window, rows[1].broker, rows[1].value, rows[1].most)


@examples(100)
@given(loaded_problems(), st.integers(0, 2**32))
def test_months_until_full_are_those_of_a_plain_count(drawn: Problem, seed: int) -> None:
    """Replica by replica and month by month, of any assignment; brokers that leave hold what they are given."""
    assignment = scrambled(drawn, seed)
    found = int(score(ScoringBasis.of(drawn), assignment).months_until_full[0])
    if drawn.sizes_ahead is None:
        assert -1 == found
        return
    limits, full = drawn.disk_limit_bytes.tolist(), []
    for month, sizes in enumerate(drawn.sizes_ahead.T.tolist()):
        held = dict.fromkeys(range(len(limits)), 0)
        for size, brokers in zip(sizes, assignment.tolist(), strict=True):
            for broker in brokers:
                if broker >= 0:
                    held[broker] += size
        full += [month] * any(0 <= limit < held[broker] for broker, limit in enumerate(limits))
    assert min(full, default=13) == found
