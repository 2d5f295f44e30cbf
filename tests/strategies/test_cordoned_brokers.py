"""Cordoned brokers in the optimum, against all plans of tiny clusters: no copies to them, and fewest bytes proven."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, product

import numpy as np
import pytest
from brute_force import countable, even_sets, moved, options, plans_within
from clusters import balance_of, cordoned, ids_of, no_racks, placed_specs, problem_of, spec_of, specs, with_cordons
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import examples
from test_optimum import best_by_brute_force, of_assignment

from planner.model.balance import Tolerance
from planner.model.build_problem import build
from planner.model.cluster import Broker
from planner.model.document_fields import ReplicationFactorRow
from planner.model.errors import InfeasibleError
from planner.model.problem import Problem
from planner.model.spec import Changes, NewPartitions, TopicFilter
from planner.plan import bound_json
from planner.scoring import independent_check
from planner.scoring.windows import windows
from planner.strategies.lagrangian_bound import lower_bound
from planner.strategies.optimum import solve

MODES = ("all", "all", "all", "leaders", "racks", "none")
SMALL = cordoned(specs(brokers=5, topics=2, partitions=3, rebalance=MODES)).filter(countable)


def require_best(problem: Problem) -> None:
    """The optimum is the best of all plans, and its bound is met."""
    solution, best = solve(problem, problem.balance), best_by_brute_force(problem)
    assert () == independent_check.check(problem, solution.assignment)
    found = of_assignment(problem, solution.assignment)
    assert best == found if problem.rebalance == "all" else best[1] == found[1]
    # Windows of topics that may begin anywhere have a bound of their own, which isn't always met.
    several = problem.balance.topic_replicas == Tolerance("spread", 2)
    assert solution.least_bytes <= best[1] if several else solution.least_bytes == best[1]


def require_bound(problem: Problem, width: str) -> None:
    """Asserts that no plan within all windows, also of bytes, moves less than the bound, also from its file."""
    problem = replace(problem, balance=replace(problem.balance, disk=Tolerance.parse(width)))
    assume(all(options(problem)))
    solution = solve(problem, problem.balance, certify=True)
    assert () == independent_check.check(problem, solution.assignment)
    if costs := [moved(problem, plan)[0] for plan in plans_within(problem, windows(problem, problem.balance))]:
        assert solution.least_bytes <= min(costs)
    if solution.certificate is not None and solution.certificate.facts.measure == "bytes":
        document = bound_json.to_document(solution.certificate)
        assert solution.least_bytes == lower_bound(bound_json.from_document(document))


@examples(250)
@given(SMALL)
def test_the_best_of_all_plans_that_copy_nothing_there(problem: Problem) -> None:
    """Least excess, then fewest bytes, or bytes first where only what must move may; or nothing where no plan fits."""
    if not all(options(problem)):
        with pytest.raises(InfeasibleError, match="replication factor"):
            solve(problem, problem.balance)
        return
    require_best(problem)


@examples(120)
@given(SMALL, st.sampled_from(("0%", "20%", "60%")))
def test_the_bound_holds_with_windows_of_bytes(problem: Problem, width: str) -> None:
    """No plan within all windows moves less than the bound; also as read back from its file."""
    require_bound(problem, width)


@pytest.mark.slow
@examples(150)
@given(cordoned(placed_specs(rebalance=MODES)), st.integers(0, 2))
def test_no_rule_is_broken_beside_placement(problem: Problem, seed: int) -> None:
    """Every partition that may move is where it may be, on racks as even as that lets it be."""
    assume(all(options(problem)))
    assignment = solve(problem, problem.balance, seed).assignment
    for row, brokers in enumerate(assignment.tolist()):
        if problem.movable[row] and (problem.forced[row] or problem.rebalance == "all"):
            assert tuple(sorted(broker for broker in brokers if broker >= 0)) in even_sets(problem, row)
    assert () == independent_check.check(problem, assignment)


def test_every_plan_that_copies_there_is_a_violation() -> None:
    """The independent check objects to copies to a cordoned broker only; its replicas may stay or leave."""
    problem = build(with_cordons(spec_of(no_racks(1, 2, 3, 4), {"x": [(1, 2), (3, 1)]}), 3))
    at = {broker: index for index, broker in enumerate(problem.broker_ids.tolist())}
    for first, second in product(product((1, 2, 3, 4), repeat=2), repeat=2):
        assignment = np.array([[at[each] for each in first], [at[each] for each in second]], dtype=np.int32)
        found = {
            each.partition for each in independent_check.check(problem, assignment) if each.rule == "cordoned broker"
        }
        assert found == ({0} if 3 in first else set())


def test_new_replicas_and_partitions_go_elsewhere() -> None:
    """Nothing is copied to cordoned broker 3, whatever brokers, factors and partitions change; it gives replicas up."""
    spec = spec_of(
        no_racks(1, 2, 3, 4, 5),
        {"x": [(3, 2), (4, 3), (3, 1)], "y": [(3,), (5,), (3,)], "z": [(1,), (2,)]},
        changes=Changes(
            add_brokers=(Broker(6),),
            remove_brokers=(4,),
            set_replication_factor=(ReplicationFactorRow("y", 3),),
            new_partitions=(NewPartitions("z", 2, 5, 2),),
        ),
        balance=balance_of(1, 1, "none"),
    )
    problem = build(with_cordons(spec, 3))
    lists = ids_of(problem, solve(problem, problem.balance).assignment)
    before = ids_of(problem, problem.replicas)
    assert all(3 in before[row] for row, brokers in enumerate(lists) if 3 in brokers)
    assert [5, 5] == [[*chain(*before)].count(3), sum(3 in brokers for brokers in lists)]
    assert {6} <= {*chain(*lists)}


def test_a_broker_that_joins_though_it_is_cordoned_is_copied_to() -> None:
    """A broker that joins gets replicas even if it is cordoned, because the change asks for it."""
    changes = Changes(add_brokers=(Broker(3, cordoned_log_dirs=("*",)),))
    problem = problem_of(no_racks(1, 2), {"x": [(1,), (1,), (2,), (2,)]}, changes=changes)
    assert problem.cordoned is None
    assert any(3 in row for row in ids_of(problem, solve(problem, problem.balance).assignment))


def test_a_window_may_begin_where_fewer_bytes_move() -> None:
    """Its start isn't where the fewest replicas move: with brokers of 1 to 3 replicas nothing has to be copied."""
    rows = {"fixed": [(0,)], "free": [(1,), (0, 1, 2), (0,)]}
    spec = spec_of(
        {0: "b", 1: "a", 2: "a", 3: "a"},
        rows,
        sizes={"fixed": [0], "free": [0, 0, 1]},
        topics=TopicFilter(exclude=("fixed",)),
        balance=balance_of(2, 0, 0, 0),
    )
    problem = build(with_cordons(spec, 0))
    assert [[0, 0, 0, 0], [2, 2, 2, 2]] == windows(problem, problem.balance).replicas.tolist()
    require_best(problem)
    assert (0, 0) == (solve(problem, problem.balance).least_bytes, best_by_brute_force(problem)[1])
