"""Topics that share no broker: which brokers each has, against every plan of tiny clusters."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from clusters import assignment_of, no_racks, spec_of

from planner.model.build_problem import build, today
from planner.model.cluster import Apart
from planner.model.errors import InfeasibleError
from planner.model.spec import Changes, Spec, TopicFilter
from planner.scoring import independent_check
from planner.strategies.optimum import Solution, solve
from planner.sweep.broker_sides import with_sides

GROUP = (Apart(("orders", "payments")),)


def solved(spec: Spec) -> tuple[Spec, Solution]:
    """The spec with its sides, and the plan at its balance."""
    sided = with_sides(spec)
    problem = build(sided)
    solution = solve(problem, problem.balance)
    assert () == independent_check.check(problem, solution.assignment)
    # The check knows the rule itself, not only the sides.
    assert () == independent_check.check(replace(problem, allowed=None), solution.assignment)
    return sided, solution


def copied(before: tuple[tuple[int, ...], ...], after: tuple[tuple[int, ...], ...], sizes: list[int]) -> int:
    """Bytes of the replicas that are new."""
    return sum(len(set(b) - set(a)) * size for a, b, size in zip(before, after, sizes, strict=True))


def test_topics_that_are_apart_stay() -> None:
    """Balanced over all brokers they would move; each on its own brokers, nothing is copied."""
    lists = {"orders": ([1, 2], [2, 1]), "payments": ([3, 4], [4, 3])}
    sided, solution = solved(spec_of(no_racks(1, 2, 3, 4), lists, sizes=10, apart=GROUP))
    assert (Apart(("orders", "payments"), ((1, 2), (3, 4)), proven=True),) == sided.apart
    assert solution.least_bytes == 0
    assert (np.sort(solution.assignment, axis=1) == np.sort(today(build(sided)), axis=1)).all()


def test_fewest_bytes_of_all_plans() -> None:
    """Where only what must move does, no plan that keeps the rule copies less, of all plans that there are."""
    rng, agreed = np.random.default_rng(20), 0
    for _ in range(300):
        brokers = list(range(1, int(rng.integers(3, 6))))
        factors = [1, int(rng.integers(1, max(len(brokers) - 1, 2)))]
        if sum(factors) > len(brokers):
            continue
        rows = [(side, factors[side]) for side in (0, 1) for _ in range(int(rng.integers(1, 3)))]
        before = tuple(tuple(rng.choice(brokers, factor, replace=False).tolist()) for _, factor in rows)
        sizes = rng.integers(1, 50, len(rows)).tolist()
        names = ("orders", "payments")
        lists = {
            name: [b for b, (s, _) in zip(before, rows, strict=True) if s == side] for side, name in enumerate(names)
        }
        of = {n: [z for z, (s, _) in zip(sizes, rows, strict=True) if s == side] for side, n in enumerate(names)}
        changes = Changes(rebalance="none")
        spec = spec_of(no_racks(*brokers), lists, sizes=of, changes=changes, apart=GROUP)
        sided, solution = solved(spec)
        least = min(
            copied(before, plan, sizes)
            for plan in product(*(combinations(brokers, factor) for _, factor in rows))
            if not set()
            .union(*(b for b, (s, _) in zip(plan, rows, strict=True) if s == 0))
            .intersection(*(set().union(*(b for b, (s, _) in zip(plan, rows, strict=True) if s == 1)),))
        )
        assert least == solution.least_bytes, spec
        assert sided.apart[0].proven
        agreed += 1
    assert agreed > 200


def test_check_judges_the_rule() -> None:
    """An assignment that breaks it is named, without sides."""
    lists = {"orders": ([1],), "payments": ([2],), "other": ([1],)}
    problem = build(spec_of(no_racks(1, 2), lists, apart=GROUP))
    assert () == independent_check.check(problem, today(problem))
    found = independent_check.check(problem, assignment_of(problem, ([1], [2], [1])))
    assert {"apart"} == {each.rule for each in found}


def test_topics_that_stay_keep_their_brokers() -> None:
    """What may not move decides whose its brokers are."""
    lists = {"orders": ([1, 2],), "payments": ([1, 2], [2, 1])}
    spec = spec_of(no_racks(1, 2, 3, 4), lists, apart=GROUP, topics=TopicFilter(exclude=("payments",)))
    sided, solution = solved(spec)
    assert ((3, 4), (1, 2)) == sided.apart[0].sides
    assert solution.least_bytes == 2


def test_large_clusters_have_one_split() -> None:
    """Beyond the splits that are compared there is one, in each rack; nobody says that it is the least."""
    brokers = {broker: "abc"[broker % 3] for broker in range(18)}
    lists = {
        "orders": [[at, (at + 1) % 18, (at + 2) % 18] for at in range(18)],
        "payments": [[at, (at + 1) % 18, (at + 2) % 18] for at in range(18)],
    }
    sided, _ = solved(spec_of(brokers, lists, apart=GROUP))
    assert [9, 9] == [len(side) for side in sided.apart[0].sides]
    assert sided.apart[0].proven is False


def test_no_brokers_for_a_side() -> None:
    """Where racks leave no split, that is said before anything is planned."""
    lists = {"orders": ([1, 2],), "payments": ([1, 2],)}
    with pytest.raises(InfeasibleError, match="apart"):
        with_sides(spec_of({1: "a", 2: "b", 3: "a"}, lists, apart=GROUP))
