"""The condensed network at prices of loads against the full one: the same least cost if it has an answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from clusters import cordoned, problem_of, problems, specs
from full_network import assert_is_a_flow, spread_out
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from benchmarks import cases
from planner.model.balance import SPREAD_1, Balance, Tolerance
from planner.model.build_problem import build
from planner.model.cluster import Broker
from planner.model.problem import LongArray, Problem
from planner.model.spec import Changes
from planner.scoring.windows import windows
from planner.strategies.flow import min_cost_flow, priced_network
from planner.strategies.flow.placement_network import Layout, Network, lay_out, windowed
from planner.strategies.lagrangian_bound import GRAIN
from planner.strategies.load_windows.byte_loads import byte_loads, priced


@pytest.fixture(autouse=True)
def _small_clusters_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(priced_network, "LARGE_PLACEMENT", -1)


def at_prices(problem: Problem, prices: LongArray) -> tuple[Layout, Network, tuple[min_cost_flow.Windowed, ...]]:
    """The network of a problem with disks at these prices (Bt,), which are in parts of GRAIN."""
    asked = replace(problem, balance=replace(problem.balance, disk=Tolerance("percent", 20)))
    wanted, layout = windows(asked, asked.balance), lay_out(asked, 0, 1024)
    loads = byte_loads(asked, layout, wanted)
    of_price = priced(layout, loads, prices[None])
    return of_price, Network.of(of_price, np.zeros(len(layout.rows), dtype=bool)), windowed(of_price, wanted)


def empty(problem: Problem) -> LongArray:
    """(Bt,): 1 for target brokers that hold nothing today."""
    held = np.bincount(problem.replicas[problem.replicas >= 0], minlength=len(problem.broker_ids))
    return (held[np.flatnonzero(problem.targets)] == 0).astype(np.int64)


def same_as_in_full(problem: Problem, prices: LongArray) -> bool:
    """True if the condensed network has an answer, which is then a flow of the full network, and the cheapest one."""
    layout, network, bounds = at_prices(problem, prices)
    quick = priced_network.solve(layout, network, (bounds[0], bounds[1]))
    if quick is None:
        return False
    full = min_cost_flow.solve(network.arcs, bounds, network.supplies)
    assert full is not None
    assert quick.cost == full.cost
    assert_is_a_flow(network, bounds, quick)
    return True


@examples(200)
@given(problems() | cordoned(specs()), st.integers(0, 1000), st.sampled_from([GRAIN // 2, GRAIN, 2 * GRAIN]))
def test_it_costs_what_the_full_network_costs(problem: Problem, seed: int, price: int) -> None:
    """With prices on the new brokers, and with some on any of them."""
    if not lay_out(problem, 0).rows.size:
        return
    rng = np.random.default_rng(seed)
    sized = replace(problem, size_bytes=rng.integers(10**6, 10**8, problem.rows))
    fresh = empty(sized)
    same_as_in_full(sized, price * fresh)
    same_as_in_full(sized, price // 2 * fresh + price // 2 * fresh * rng.integers(0, 2, len(fresh)))
    same_as_in_full(sized, price * rng.integers(0, 2, len(fresh)))


@pytest.mark.slow
@pytest.mark.parametrize("case", ["expand-small", "expand-mid", "no-racks"])
def test_cases_of_the_benchmark_are_condensed(case: str) -> None:
    """New brokers are paid a byte for each byte: there is an answer, and it costs what the full network's does."""
    problem = build(cases.to_spec(cases.make(case)))
    assert same_as_in_full(problem, GRAIN * empty(problem))


@pytest.mark.parametrize("partitions", [1, 2, 5])
def test_newcomers_that_change_racks_are_given_to_rows(partitions: int) -> None:
    """With more racks than replicas, a replica that leaves may go to any rack without a replica of its partition."""
    problem = spread_out(partitions, 10**6)
    assert same_as_in_full(problem, GRAIN * empty(problem))


def test_a_rack_without_new_brokers_sends_its_replicas_across() -> None:
    """Only the new rack d has a price: replicas that leave the other racks change racks."""
    racks = {1: "a", 2: "b", 3: "c"}
    lists = {"t": [(1, 2), (2, 3), (3, 1)] * 4}
    sizes = {"t": [10**6 + at for at in range(12)]}
    balance = Balance(topic_replicas=SPREAD_1)
    problem = problem_of(racks, lists, sizes=sizes, changes=Changes(add_brokers=(Broker(4, "d"),)), balance=balance)
    assert same_as_in_full(problem, GRAIN * empty(problem))


def test_topics_that_fail_are_laid_out_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a topic's new replicas can't be given to its rows, the topic is solved again in full, at the same cost."""
    given_back, rounds = priced_network._Condensed._dealt_to_rows, []

    def fails_once(self, solved, newcomers):
        entered, failed = given_back(self, solved, newcomers)
        rounds.append(int(self._full.sum()))
        return entered, failed | (np.arange(len(failed)) == 0) if len(rounds) == 1 else failed

    monkeypatch.setattr(priced_network._Condensed, "_dealt_to_rows", fails_once)
    problem = build(cases.to_spec(cases.make("expand-small")))
    assert same_as_in_full(problem, GRAIN * empty(problem))
    assert [0, 1] == rounds


def test_too_many_prices_and_small_clusters_are_left_to_the_full_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """If every broker has another price, or the cluster has few rows, the condensed network gives no answer."""
    problem = build(cases.to_spec(cases.make("expand-small")))
    assert not same_as_in_full(problem, np.arange(len(empty(problem))))
    monkeypatch.setattr(priced_network, "LARGE_PLACEMENT", 10**6)
    assert not same_as_in_full(problem, GRAIN * empty(problem))
