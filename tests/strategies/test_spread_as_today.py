"""`rack_aware: as_today` in the optimum: fewest bytes copied, against all plans of tiny clusters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from brute_force import countable, held, options
from clusters import balance_of, cordoned, placed_specs, problem_of, specs
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import examples
from test_cordoned_brokers import require_best, require_bound

from planner.model.build_problem import build
from planner.model.problem import Problem
from planner.model.spec import TopicFilter
from planner.strategies.optimum import solve

MODES = ("all", "all", "all", "leaders", "none")


def as_today(problem: Problem) -> Problem:
    """The problem, but partitions may stay spread over racks as they are."""
    return replace(problem, racks_as_today=True)


SMALL = st.one_of(
    specs(brokers=5, topics=2, partitions=3, rebalance=MODES).map(build),
    placed_specs(brokers=5, topics=2, partitions=3, rebalance=MODES).map(build),
    cordoned(specs(brokers=5, topics=2, partitions=3)),
)


@examples(250)
@given(SMALL.map(as_today).filter(countable))
def test_the_best_of_all_plans_that_spread_no_worse(problem: Problem) -> None:
    """Least excess, then fewest bytes, or bytes first where only what must move may."""
    assume(all(options(problem)))
    require_best(problem)


@examples(100)
@given(SMALL.map(as_today).filter(countable), st.sampled_from(("0%", "20%", "60%")))
def test_the_bound_holds_with_windows_of_bytes(problem: Problem, width: str) -> None:
    """No plan within all windows moves less than the bound; also as read back from its file."""
    require_bound(problem, width)


def test_a_full_broker_is_relieved_without_repairs() -> None:
    """All partitions have two replicas in rack a; only as many leave broker 1 as its disk requires."""
    racks = {1: "a", 2: "a", 3: "a", 4: "b", 5: "c"}
    asked = {"sizes": 10, "balance": balance_of("none", "none", "none"), "topics": TopicFilter(on_brokers=(1,))}
    spread = problem_of(racks, {"x": [(1, 2, 4)] * 6}, **asked)
    limit = np.where(spread.broker_ids == 1, 40, -1)
    enforced, kept = (replace(spread, racks_as_today=each, disk_limit_bytes=limit) for each in (False, True))
    copied = [
        sum(
            len({*row} - {*held(each, at)} - {-1})
            for at, row in enumerate(solve(each, each.balance).assignment.tolist())
        )
        for each in (enforced, kept)
    ]
    assert [6, 2] == copied
