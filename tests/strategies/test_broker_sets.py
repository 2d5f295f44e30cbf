"""Rules of placement in the optimum, against every plan of tiny clusters: never broken, and the fewest bytes proven."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from brute_force import countable, even_sets, held, moved, options, plans_within
from clusters import ids_of, no_racks, placed_problems, problem_of
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import examples
from test_optimum import best_by_brute_force, of_assignment

from planner.model.balance import Tolerance
from planner.model.cluster import Broker
from planner.model.document_fields import PlacementRuleRow
from planner.model.problem import Problem
from planner.model.spec import Changes
from planner.plan import bound_json
from planner.scoring import independent_check
from planner.scoring.windows import windows
from planner.strategies.lagrangian_bound import lower_bound
from planner.strategies.optimum import solve


@examples(150)
@given(placed_problems(brokers=5, topics=2, partitions=3).filter(countable))
def test_least_excess_then_least_bytes(problem: Problem) -> None:
    """Of all plans that keep the rules, factors and racks, it has the least excess, and of those the fewest bytes."""
    solution = solve(problem, problem.balance)
    best = best_by_brute_force(problem)
    assert best == of_assignment(problem, solution.assignment)
    assert best[1] == solution.least_bytes


@examples(80)
@given(placed_problems(brokers=5, topics=2, partitions=3, rebalance=("leaders", "none")).filter(countable))
def test_forced_only_moves_the_fewest_bytes(problem: Problem) -> None:
    """Where only what must move may, partitions outside their set move, and no plan moves fewer bytes."""
    solution = solve(problem, problem.balance)
    assert best_by_brute_force(problem)[1] == of_assignment(problem, solution.assignment)[1] == solution.least_bytes


@examples(120)
@given(placed_problems(rebalance=("all", "all", "leaders", "none")), st.integers(0, 2))
def test_no_rule_is_broken(problem: Problem, seed: int) -> None:
    """Every partition that may move is on brokers that its topic may use, on racks as even as those let it be."""
    assignment = solve(problem, problem.balance, seed).assignment
    for row, brokers in enumerate(assignment.tolist()):
        if problem.movable[row] and (problem.forced[row] or problem.rebalance == "all"):
            assert tuple(sorted(broker for broker in brokers if broker >= 0)) in even_sets(problem, row)
    assert () == independent_check.check(problem, assignment)


@examples(80)
@given(placed_problems(brokers=5, topics=2, partitions=3).filter(countable), st.sampled_from(("0%", "20%", "60%")))
def test_bound_with_windows_of_bytes(problem: Problem, width: str) -> None:
    """With a window of bytes, no plan within all windows moves less than the bound; also as read back from its file."""
    problem = replace(problem, balance=replace(problem.balance, disk=Tolerance.parse(width)))
    assume(all(each.kind != "spread" or each.value < 2 for each in (problem.balance.topic_replicas,)))
    solution = solve(problem, problem.balance, certify=True)
    assert () == independent_check.check(problem, solution.assignment)
    costs = [moved(problem, plan)[0] for plan in plans_within(problem, windows(problem, problem.balance))]
    if costs:
        assert solution.least_bytes <= min(costs)
    if solution.certificate is not None and solution.certificate.facts.measure == "bytes":
        document = bound_json.to_document(solution.certificate)
        assert solution.least_bytes == lower_bound(bound_json.from_document(document))


@pytest.mark.slow
@examples(100)
@given(placed_problems(brokers=5, topics=2, partitions=3).filter(countable))
def test_certificate_proves_the_least(problem: Problem) -> None:
    """The certificate of a plan with the least excess of nothing comes to the fewest bytes there are, or fewer."""
    solution = solve(problem, problem.balance, certify=True)
    every = product(*options(problem))
    assume(solution.certificate is not None and problem.size_bytes.all())
    at_most = of_assignment(problem, solution.assignment)
    cheaper = [moved(problem, plan)[0] for plan in every if of_assignment_like(problem, plan) <= at_most[0]]
    assert solution.least_bytes <= min(cheaper)


def of_assignment_like(problem: Problem, plan: tuple[tuple[int, ...], ...]) -> int:
    """The excess of a plan given as tuples of brokers."""
    matrix = np.full((problem.rows, problem.width), -1, dtype=np.int32)
    for row, brokers in enumerate(plan):
        matrix[row, : len(brokers)] = brokers
    return of_assignment(problem, matrix)[0]


def test_a_topic_moves_to_its_set() -> None:
    """With `rebalance: none`, replicas outside their set move into it, and nothing else moves."""
    problem = problem_of(
        no_racks(1, 2, 3, 4),
        {"clicks": [(1, 2), (3, 4)], "orders": [(1, 3), (2, 4)]},
        changes=Changes(rebalance="none"),
        placement=(PlacementRuleRow("clicks", "hot", (3, 4), exclusive=False),),
    )
    assert [True, False, False, False] == problem.forced.tolist()
    lists = ids_of(problem, solve(problem, problem.balance).assignment)
    assert {3, 4} == set(lists[0])
    assert [[3, 4], [1, 3], [2, 4]] == lists[1:]


def test_exclusive_brokers_are_emptied_of_other_topics() -> None:
    """Other topics leave the brokers of an exclusive set; each set is balanced by itself."""
    lists = [(1, 2), (2, 3), (3, 4), (4, 1)]
    problem = problem_of(
        no_racks(1, 2, 3, 4),
        {"clicks": lists, "orders": lists},
        placement=(PlacementRuleRow("clicks", "hot", (3, 4), exclusive=True),),
    )
    placed = ids_of(problem, solve(problem, problem.balance).assignment)
    assert {(3, 4)} == {tuple(sorted(brokers)) for brokers in placed[:4]}
    assert {(1, 2)} == {tuple(sorted(brokers)) for brokers in placed[4:]}
    wanted = windows(problem, problem.balance)
    assert [4, 4, 4, 4] == wanted.replicas[0].tolist()


def test_a_shared_set_has_its_topics_beside_its_share_of_the_others() -> None:
    """A broker of a shared set should hold its share of the set's topics plus its share of all other topics."""
    rows = [(1, 2), (2, 3), (3, 4), (4, 1)]
    problem = problem_of(
        no_racks(1, 2, 3, 4),
        {"clicks": rows, "orders": rows},
        placement=(PlacementRuleRow("clicks", "hot", (3, 4), exclusive=False),),
    )
    assert [2, 2, 6, 6] == windows(problem, problem.balance).replicas[0].tolist()


@pytest.mark.parametrize("rebalance", ["all", "none"])
def test_new_brokers_in_a_set(rebalance: str) -> None:
    """A set may name brokers that join; a replacement takes only the replicas that it may have."""
    problem = problem_of(
        no_racks(1, 2, 3),
        {"clicks": [(1, 2)], "orders": [(2, 3)]},
        changes=Changes(add_brokers=(Broker(4), Broker(5)), replace_brokers=((2, 4),), rebalance=rebalance),
        placement=(PlacementRuleRow("clicks", "hot", (1, 5), exclusive=True),),
    )
    placed = ids_of(problem, solve(problem, problem.balance).assignment)
    assert {1, 5} == set(placed[0])
    assert {3, 4} == set(placed[1])


def test_the_check_names_what_is_allowed() -> None:
    """The independent check names the rule and the allowed brokers, for any plan."""
    problem = problem_of(
        no_racks(1, 2, 3), {"clicks": [(1, 2)]}, placement=(PlacementRuleRow("clicks", "hot", (2, 3), exclusive=False),)
    )
    (violation,) = independent_check.check(problem, problem.replicas)
    assert "clicks-0: placement: replicas [1, 2]; allowed: brokers that the topic may use, [2, 3]" == str(violation)
    assert held(problem, 0) == (0, 1)
