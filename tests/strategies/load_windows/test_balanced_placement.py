"""Placements within windows of bytes; if those can't all hold, the least outside them and then the fewest bytes."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from clusters import balance_of, crowded, ids_of, no_racks, problem_of, spec_of

from benchmarks import cases
from benchmarks.exact import Judge
from planner.model import build_problem
from planner.model.balance import Balance, Tolerance
from planner.model.document_fields import ReplicationFactorRow
from planner.model.problem import Problem
from planner.model.spec import Changes
from planner.scoring import independent_check
from planner.scoring.broker_loads import loads
from planner.scoring.score import ScoringBasis, score
from planner.strategies import lagrangian_bound, optimum
from planner.strategies.load_windows import balanced_placement
from planner.strategies.load_windows.attempts_at_prices import Task
from planner.strategies.load_windows.local_search import polish
from planner.strategies.load_windows.local_search_state import MostOutside, SearchPlacement, SearchState, takes_outward
from planner.strategies.optimum import solve

SMALL = ("raise-rf", "no-racks", "add-rack", "decommission", "skewed-sizes")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "seed"),
    # A few partitions of the last two cases are larger than the windows are wide.
    [*((name, seed) for name in SMALL for seed in ("public", "x1")), ("skewed-sizes", "x4"), ("skewed-sizes", "y5")],
)
def test_gap_with_disks_within_two_per_cent(name: str, seed: str) -> None:
    """Disk within 2 % of the share, and spreads of one: every window holds, within 0.05 % of the proven minimum."""
    balance = Balance(disk=Tolerance("percent", 2))
    problem = replace(build_problem.build(cases.to_spec(cases.make(name, seed))), balance=balance)
    solution = optimum.solve(problem, balance)
    scores = score(ScoringBasis.of(problem), solution.assignment)
    moved = int(scores.bytes_moved[0])
    assert ((), 0) == (independent_check.check(problem, solution.assignment), int(scores.excess[0]))
    assert solution.least_bytes <= moved <= solution.least_bytes * 1.0005
    assert solution.certificate is not None
    assert solution.least_bytes == lagrangian_bound.lower_bound(solution.certificate)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 19, 33])
def test_a_small_cluster_has_the_least_of_all(seed: int) -> None:
    """Ten partitions as large as the windows: as few bytes as an exact solver finds, and proven."""
    rng = np.random.default_rng(seed)
    held = [tuple((rng.permutation(5)[:2] + 1).tolist()) for _ in range(10)]
    balance, sizes = balance_of("none", "none", "none", "none", "5%"), rng.integers(20, 200, 10).tolist()
    problem = problem_of(no_racks(*range(1, 6)), {"a": held}, sizes={"a": sizes}, balance=balance)
    solution, judge = solve(problem, balance), Judge(problem)
    outside, moved = judge.outside(solution.assignment), judge.copied(solution.assignment)
    assert (0, moved, moved) == (outside.loads, judge.least_bytes(outside).exact, solution.least_bytes)


def unlike_racks(seed: int) -> Problem:
    """About 500 partitions on 20 brokers in racks of 9, 7 and 4, in topics of unlike sizes; disks within 20 %."""
    random, rows, sizes = Random(seed), {}, {}
    racks = {broker: "a" if broker <= 9 else "b" if broker <= 16 else "c" for broker in range(1, 21)}
    brokers = [[broker for broker in racks if racks[broker] == rack] for rack in "abc"]
    for topic in range(30):
        size, count = random.lognormvariate(22, 2), random.randint(3, 30)
        rows[f"t{topic}"] = [tuple(random.choice(each) for each in random.sample(brokers, 3)) for _ in range(count)]
        sizes[f"t{topic}"] = [int(size * random.lognormvariate(0, 0.5)) for _ in range(count)]
    problem = problem_of(racks, rows, sizes=sizes, balance=balance_of(1, 1, 1))
    return replace(problem, balance=replace(problem.balance, disk=Tolerance("percent", 20)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 7])
def test_partitions_below_the_windows_get_cases_too(seed: int) -> None:
    """No partition is as large as a window, but several together are: without cases, 1.6 and 2.5 % more are copied."""
    problem = unlike_racks(seed)
    solution = optimum.solve(problem, problem.balance)
    moved = int(score(ScoringBasis.of(problem), solution.assignment).bytes_moved[0])
    assert solution.least_bytes <= moved <= solution.least_bytes * 1.001


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_partitions_above_the_window_of_every_broker(seed: int) -> None:
    """No plan is within the windows; the bound is that of plans outside of them, and the plan is close to it."""
    rng = np.random.default_rng(seed)
    held = [tuple((3 * rng.integers(0, 6, 3) + rng.permutation(3) + 1).tolist()) for _ in range(60)]
    sizes = [5_000_000, *rng.lognormal(9, 1, 29).astype(int).tolist()]
    problem = problem_of(
        {broker: f"r{broker % 3}" for broker in range(1, 19)},
        {"a": held[:30], "b": held[30:]},
        sizes={"a": sizes, "b": sizes[::-1]},
        balance=(balance := Balance(disk=Tolerance("percent", 5))),
    )
    solution = solve(problem, balance)
    moved = int(score(ScoringBasis.of(problem), solution.assignment).bytes_moved[0])
    assert solution.least_bytes <= moved <= solution.least_bytes * 1.0005


@pytest.mark.parametrize("seed", [0, 2])
def test_capped_brokers_leave_bytes_outside_but_no_gap(seed: int) -> None:
    """With few replicas on four brokers, bytes are outside of their windows: the bound is as steep as that needs."""
    rng = np.random.default_rng(seed)
    held = [tuple((3 * rng.integers(0, 3, 3) + rng.permutation(3) + 1).tolist()) for _ in range(40)]
    sizes, balance = rng.integers(20_000, 200_000, 40).tolist(), Balance(disk=Tolerance("percent", 10))
    rows, of_rows = ({"a": each[:20], "b": each[20:]} for each in (held, sizes))
    spec = spec_of({broker: f"r{broker % 3}" for broker in range(1, 10)}, rows, sizes=of_rows, balance=balance)
    brokers = tuple(replace(each, max_replicas=6 if each.id < 5 else None) for each in spec.cluster.brokers)
    problem = build_problem.build(replace(spec, cluster=replace(spec.cluster, brokers=brokers)))
    solution = solve(problem, balance)
    moved = int(score(ScoringBasis.of(problem), solution.assignment).bytes_moved[0])
    assert solution.least_bytes <= moved <= solution.least_bytes * 1.0005


def test_traffic_in_and_out_beside_disk() -> None:
    """Disk, traffic in and traffic out are all within their windows; leaders and followers count as in Kafka."""
    problem = build_problem.build(cases.to_spec(cases.make("no-racks")))
    rate = 1000 + np.arange(problem.rows, dtype=np.int64) * 7919 % 5000
    within = Tolerance("percent", 5)
    balance = Balance(disk=within, network_in=within, network_out=within)
    problem = replace(problem, bytes_in_per_sec=rate, bytes_out_per_sec=rate * 3, balance=balance)
    solution = optimum.solve(problem, balance)
    for of in loads(problem, solution.assignment):
        assert of.min() / of.mean() >= 0.949
        assert of.max() / of.mean() <= 1.051
    moved = int(score(ScoringBasis.of(problem), solution.assignment).bytes_moved[0])
    assert solution.least_bytes <= moved <= solution.least_bytes * 1.002


@pytest.mark.slow
def test_the_same_plan_every_time() -> None:
    """Solving the same problem twice gives the same plan."""
    balance = Balance(disk=Tolerance("percent", 2))
    problem = build_problem.build(cases.to_spec(cases.make("skewed-sizes")))
    first, second = (optimum.solve(problem, balance) for _ in range(2))
    assert np.array_equal(first.assignment, second.assignment)


def test_what_is_far_outside_is_not_tried_without_prices_on_large_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large cluster with empty new brokers starts with prices: same bytes and bound, and no ties are looked into."""
    balance = Balance(disk=Tolerance("percent", 2))
    problem = replace(build_problem.build(cases.to_spec(cases.make("no-racks"))), balance=balance)
    small = optimum.solve(problem, balance)
    monkeypatch.setattr(Task, "is_large", property(lambda _: True))
    monkeypatch.setattr(balanced_placement.tie_breaking, "ties_broken", None)
    large = optimum.solve(problem, balance)
    basis = ScoringBasis.of(problem)
    moved = [int(score(basis, each.assignment).bytes_moved[0]) for each in (small, large)]
    assert (small.least_bytes, moved[0]) == (large.least_bytes, moved[1])


def search(loads: list[int], levels: list[list[int]], most: MostOutside | None) -> SearchState:
    """Rows of one topic on three brokers in one rack: at most 10 of a load on each, and a row costs its load."""
    rows, of = len(loads), np.array(loads, dtype=np.int64)
    return SearchState(
        topics=np.zeros(rows, dtype=np.int32),
        costs=of,
        levels=np.array(levels, dtype=np.int8),
        allowed=None,
        racks=np.zeros(3, dtype=np.int32),
        least=np.full((rows, 1), 1, dtype=np.int32),
        most=np.full((rows, 1), 1, dtype=np.int32),
        loads=of[None],
        scales=np.array([1]),
        load_windows=np.array([[[0, 0, 0], [10, 10, 10]]]),
        cell_windows=np.array([[[0, 0, 0]], [[9, 9, 9]]]),
        broker_windows=np.array([[0, 0, 0], [9, 9, 9]]),
        most_outside=most,
    )


HOME = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize(
    ("most", "cost"),
    [
        # Row 1 makes room for row 0, which costs a copy of row 1.
        (None, 3),
        (MostOutside(8, np.array([8])), 0),
        (MostOutside(8, np.array([7])), 3),
        (MostOutside(7, np.array([8])), 3),
    ],
)
def test_as_much_may_be_outside_as_is_allowed(most: MostOutside | None, cost: int) -> None:
    """Row 0 goes home: row 1 may stay beside it only if neither the total nor one broker is too far outside."""
    on = np.array([[False, True, False], [True, False, False]])
    placement = SearchPlacement(search([15, 3], [[0, 1, 1], [0, 1, 1]], most), on)
    polish(placement)
    assert placement.cost == cost


def test_outward_counts_all_brokers_together() -> None:
    """Without an allowance no load's total outside may grow; with one, the total and each broker have a maximum."""
    on = np.array([[True, False, False], [False, True, False], [False, True, False]])
    here = SearchPlacement(search([14, 8, 6], HOME, None), on)
    shifts = np.array([[[-4, -5, 3]], [[4, 5, -3]]])
    assert [False, True, False] == takes_outward(here, (0, 1), shifts).tolist()
    roomy = SearchPlacement(search([14, 8, 6], HOME, MostOutside(9, np.array([9]))), on)
    assert [False, False, False] == takes_outward(roomy, (0, 1), shifts).tolist()
    close = SearchPlacement(search([14, 8, 6], HOME, MostOutside(9, np.array([8]))), on)
    assert [False, True, False] == takes_outward(close, (0, 1), shifts).tolist()


def test_settled_is_within_what_may_be_outside() -> None:
    """A placement is settled if it is within its windows, or no further outside than is allowed."""
    on = np.array([[True, False, False], [False, True, False], [False, True, False]])
    assert not SearchPlacement(search([14, 8, 6], HOME, None), on).within_windows()
    assert SearchPlacement(search([14, 8, 6], HOME, MostOutside(8, np.array([4]))), on).within_windows()
    assert not SearchPlacement(search([14, 8, 6], HOME, MostOutside(7, np.array([4]))), on).within_windows()
    assert not SearchPlacement(search([14, 8, 6], HOME, MostOutside(8, np.array([3]))), on).within_windows()


def test_the_least_outside_and_then_the_fewest_bytes() -> None:
    """If windows of counts and bytes can't hold, an exact solver finds no better plan, and every claim is true."""
    problem = crowded()
    solution, judge = solve(problem, problem.balance, certify=True), Judge(problem)
    outside = judge.outside(solution.assignment)
    assert outside.replicas > 0 < outside.loads
    assert (outside.replicas, outside.loads) == (
        judge.least_replicas().exact,
        judge.least_loads(outside.replicas).exact,
    )
    assert judge.copied(solution.assignment) == judge.least_bytes(outside).exact >= solution.least_bytes
    assert solution.certificate is not None
    assert solution.certificate.outside is not None
    told = lagrangian_bound.least_outside(solution.certificate.facts, solution.certificate.outside)
    assert told.replicas == outside.replicas
    assert 0 <= told.loads <= outside.loads


def test_with_rebalance_none_an_empty_partition_keeps_its_replicas() -> None:
    """A copy of nothing costs no bytes, but a window on traffic in is no reason to make one."""
    factors = (ReplicationFactorRow("a", 3),)
    problem = problem_of(
        no_racks(*range(1, 7)),
        {"a": [(5, 3), (5, 3)]},
        sizes={"a": [0, 40]},
        changes=Changes(set_replication_factor=factors, rebalance="none"),
        balance=replace(balance_of("none", 1, 2, "none", "10%"), network_in=Tolerance("percent", 50)),
    )
    problem = replace(problem, bytes_in_per_sec=np.full(2, 4_000_000))
    placed = ids_of(problem, solve(problem, problem.balance).assignment)

    assert [[5, 3], [5, 3]] == [row[:2] for row in placed]


def test_with_rebalance_none_no_leader_changes_for_traffic_out() -> None:
    """Followers on broker 2 must move; a window on traffic out is no reason to elect other leaders."""
    problem = problem_of(
        no_racks(1, 2, 3, 4),
        {"a": [(1, 2)] * 3},
        changes=Changes(remove_brokers=(2,), rebalance="none"),
        balance=replace(balance_of(1, 1, 1), network_out=Tolerance("percent", 20)),
    )
    problem = replace(problem, bytes_in_per_sec=np.full(3, 4_000_000))
    placed = ids_of(problem, solve(problem, problem.balance).assignment)

    assert [1, 1, 1] == [row[0] for row in placed]
