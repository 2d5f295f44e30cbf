"""The condensed network against the full one: the same least cost if it has an answer, and no flow if there is none."""

from __future__ import annotations

import numpy as np
import pytest
from clusters import cordoned, problem_of, problems, specs
from full_network import FOUR_RACKS, assert_is_a_flow, spread_out
from hypothesis import given
from properties import examples

from benchmarks import cases
from planner.model.balance import SPREAD_1, Balance, Tolerance
from planner.model.build_problem import build
from planner.model.cluster import Broker
from planner.model.problem import Problem
from planner.model.spec import Changes
from planner.scoring.windows import windows
from planner.strategies.flow import condensed_network, min_cost_flow
from planner.strategies.flow.placement_network import Network, lay_out, windowed
from planner.strategies.optimum import solve


def both(problem: Problem) -> tuple[min_cost_flow.Flow | None, min_cost_flow.Flow | None]:
    """The answers of the condensed and of the full network, within hard windows."""
    layout, wanted = lay_out(problem, 0), windows(problem, problem.balance)
    network, bounds = Network.of(layout, np.zeros(len(layout.rows), dtype=bool)), windowed(layout, wanted)
    return condensed_network.solve(layout, network, bounds), min_cost_flow.solve(network.arcs, bounds, network.supplies)


def crossing(partitions: int) -> Problem:
    """Three replicas in four racks, no replica of t in rack d, none of u in rack a; both racks get a new broker."""
    lists = {"t": [(1, 2, 3)] * partitions, "u": [(3, 4, 2)] * partitions}
    changes = Changes(add_brokers=(Broker(5, "d"), Broker(6, "a")))
    sizes = {"t": [3] * partitions, "u": [5] * partitions}
    return problem_of(FOUR_RACKS, lists, sizes=sizes, changes=changes, balance=Balance(topic_replicas=SPREAD_1))


@examples(200)
@given(problems() | cordoned(specs()))
def test_it_costs_what_the_full_network_costs(problem: Problem) -> None:
    """Where there is an answer its cost is the full optimum's, and where windows can't hold there is none."""
    quick, full = both(problem)

    assert full is not None or quick is None
    if quick is not None:
        assert full is not None
        assert full.cost == quick.cost


@examples(100)
@given(problems() | cordoned(specs()))
def test_its_flow_is_one_of_the_full_network(problem: Problem) -> None:
    """Every arc and window carries what it may, and every node passes on what it gets."""
    layout, wanted = lay_out(problem, 0), windows(problem, problem.balance)
    network, bounds = Network.of(layout, np.zeros(len(layout.rows), dtype=bool)), windowed(layout, wanted)
    solved = condensed_network.solve(layout, network, bounds)
    if solved is not None:
        assert_is_a_flow(network, bounds, solved)


@pytest.mark.parametrize("case", ["expand-small", "expand-mid", "raise-rf", "decommission", "no-racks"])
def test_cases_of_the_benchmark_are_condensed(case: str) -> None:
    """The condensed network has an answer, and it costs what the full network's does."""
    quick, full = both(build(cases.to_spec(cases.make(case))))

    assert quick is not None
    assert full is not None
    assert full.cost == quick.cost


@pytest.mark.parametrize("partitions", [1, 2, 5])
def test_newcomers_that_change_racks_are_given_to_rows(partitions: int) -> None:
    """With more racks than replicas, a replica that leaves may go to any rack without a replica of its partition."""
    quick, full = both(spread_out(partitions))

    assert quick is not None
    assert full is not None
    assert full.cost == quick.cost


def test_rows_that_the_relaxation_moves_twice_are_left_to_the_full_network() -> None:
    """Every topic must move to a rack that has none of it: cheap rows would put two of their replicas there."""
    quick, full = both(crossing(4))

    assert full is not None
    assert quick is None or full.cost == quick.cost


def test_topics_that_fail_are_laid_out_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a topic's new replicas can't be given to its rows, the topic is solved again in full, at the same cost."""
    given_back, rounds = condensed_network._dealt_to_rows, []

    def fails_once(layout, solved, full):
        entered, failed = given_back(layout, solved, full)
        rounds.append(int(full.sum()))
        return entered, failed | (np.arange(len(full)) == 0) if len(rounds) == 1 else failed

    monkeypatch.setattr(condensed_network, "_dealt_to_rows", fails_once)
    quick, full = both(spread_out(3))

    assert [0, 1] == rounds
    assert quick is not None
    assert full is not None
    assert full.cost == quick.cost


def test_topics_that_fail_round_after_round_leave_the_rest_to_the_full_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """With half of the rows in full, a second round is tried, but not a third."""
    given_back, rounds = condensed_network._dealt_to_rows, []

    def fails(layout, solved, full):
        rounds.append(int(full.sum()))
        return given_back(layout, solved, full)[0], np.arange(len(full)) == 0

    monkeypatch.setattr(condensed_network, "_dealt_to_rows", fails)
    quick, full = both(spread_out(3))

    assert rounds == [0, 1]
    assert quick is None
    assert full is not None


def test_brokers_of_unlike_price_are_not_condensed() -> None:
    """If brokers' prices differ, a row's cost depends on its broker, which a pool doesn't know: there is no answer."""
    problem = build(cases.to_spec(cases.make("expand-small")))
    layout, wanted = lay_out(problem, 0), windows(problem, problem.balance)
    network, bounds = Network.of(layout, np.zeros(len(layout.rows), dtype=bool)), windowed(layout, wanted)
    priced = np.array(layout.enter_costs)
    priced[:, 0] += 1
    object.__setattr__(layout, "enter_costs", priced)

    assert None is condensed_network.solve(layout, network, bounds)


@pytest.mark.slow
def test_plans_are_the_same_in_bytes_and_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan has the same bound with the condensed network as without it."""
    problem = build(cases.to_spec(cases.make("expand-mid")))
    balance = Balance(replicas=Tolerance("percent", 5))
    quick = solve(problem, balance, certify=True)
    monkeypatch.setattr(condensed_network, "solve", lambda *_: None)
    full = solve(problem, balance, certify=True)

    assert (full.least_bytes, full.least_replicas) == (quick.least_bytes, quick.least_replicas)
