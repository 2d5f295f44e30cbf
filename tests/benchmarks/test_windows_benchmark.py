"""The benchmark of windows on bytes: published balances become windows, and rows show what was reached."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import cases, peers, windows
from benchmarks.table import Figures
from benchmarks.windows import EVEN_DISKS, balance_of, measure
from planner.model.balance import NO_TOLERANCE, SPREAD_1, Balance, Tolerance

PEER = peers.peers("no-racks")[5]


def test_a_published_balance_becomes_windows():
    """The spread becomes a window. Topics get a window of 1 if none is above its ceiling."""
    assert ("topicctl", 8, 0) == (PEER.name, PEER.replica_spread, PEER.topic_replicas_over_ceiling)

    assert Balance(replicas=Tolerance("spread", 8), topic_replicas=SPREAD_1) == balance_of(PEER, 1086)


def test_what_was_not_published_is_not_asked_for():
    """Clumped or unknown topics get no window. A few replicas above ceilings give a window of two."""
    clumped = balance_of(replace(PEER, topic_replicas_over_ceiling=11), 1000)
    few = balance_of(replace(PEER, topic_replicas_over_ceiling=10, replica_spread=0), 1000)
    unknown = balance_of(replace(PEER, topic_replicas_over_ceiling=None), 1000)

    assert NO_TOLERANCE == clumped.topic_replicas
    assert (Tolerance("spread", 2), SPREAD_1) == (few.topic_replicas, few.replicas)
    assert NO_TOLERANCE == unknown.topic_replicas


def test_only_ceilings_known_is_a_window_of_two():
    """A planner that only keeps topics below their ceilings may leave brokers with less, so the window is two."""
    keeps_ceilings = replace(PEER, only_ceilings=True)

    assert Tolerance("spread", 2) == balance_of(keeps_ceilings, 1086).topic_replicas


@pytest.mark.parametrize("case", cases.CASES)
def test_every_published_plan_has_a_balance(case):
    """The window is never narrower than the published spread."""
    for peer in peers.peers(case):
        assert balance_of(peer, 1_000_000).replicas.value >= peer.replica_spread


def test_no_broker_holds_more_than_the_fullest_of_a_peer():
    """The published multiple of the mean, plus half of its last digit, becomes every disk's size."""
    open_, roomy, tight = (measure("no-racks", "public", Balance(), most) for most in (None, 1.5, 1.01))

    assert open_.bytes_moved == roomy.bytes_moved < tight.bytes_moved
    assert 1.0105 < open_.size_over_mean[1]
    assert tight.size_over_mean[1] <= 1.0105


def test_a_case_planned_at_a_balance_says_what_it_reached():
    """The figures have the requested windows, no broken rule, and each broker's bytes over the mean."""
    at = measure("no-racks", "public", EVEN_DISKS)

    assert ("1", "1", "2%") == at.balance
    assert (0, (1, 1, 1)) == (at.violations, at.spreads)
    assert at.least_bytes <= at.bytes_moved
    least, most = at.size_over_mean
    assert 0.97 < least < 1 < most < 1.03


def test_bytes_over_the_mean_are_those_of_the_brokers_that_stay():
    """The figures are the same when counted by hand on a cluster that loses brokers."""
    spec = cases.to_spec(cases.make("decommission"))
    solved = windows.solve(replace(spec, balance=Balance()))
    held = dict.fromkeys(np.flatnonzero(solved.problem.targets).tolist(), 0)
    for size, brokers in zip(solved.problem.size_bytes.tolist(), solved.assignment.tolist(), strict=True):
        for broker in brokers:
            held[broker] += size

    mean = sum(held.values()) / len(held)
    expected = (min(held.values()) / mean, max(held.values()) / mean)
    assert expected == pytest.approx(windows._size_over_mean(solved))


@pytest.mark.slow
def test_both_tables_have_a_row_each(monkeypatch):
    """Each case has one row with even disks, and one for each peer's balance with the peer's bytes over ours."""
    monkeypatch.setattr(peers, "peers", lambda case: (PEER,))
    found = list(windows.entries(("no-racks",), "public"))

    even, at_peer = (entry for entry in found if isinstance(entry, Figures))
    assert ("windows", "no-racks") == (even.table, even.values["case"])
    assert ("at peers' balance", "topicctl", 530 * 10**9) == (
        at_peer.table,
        at_peer.values["peer"],
        at_peer.values["peer_bytes_moved"],
    )
    row = [cell.strip() for cell in found[-1].strip("|").split("|")]
    assert ["no-racks", "topicctl", "8 / 1 / 1.069", "530"] == row[:4]
    assert f"{530e9 / at_peer.values['bytes_moved']:.3f}" == row[5]


@pytest.mark.slow
def test_other_seeds_have_no_published_plans():
    """Another seed has only the first table."""
    found = [entry for entry in windows.entries(("no-racks",), "another") if isinstance(entry, str)]

    assert [] == [line for line in found if "published" in line]
