"""Windows: fair shares with the rack rule, tolerances around them, and the price of amounts outside."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from clusters import balance_of, loaded_problems, no_racks, problem_of, problems
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from planner.model.balance import BYTE_WINDOWS, Balance, Tolerance
from planner.model.cluster import Broker
from planner.model.problem import Problem
from planner.model.spec import Changes
from planner.scoring.fair_shares import rack_rule
from planner.scoring.window_excess import BROKER_PRICE, excess
from planner.scoring.windows import OPEN_BYTES, Windows, byte_excess, excess_anywhere, windows

OPEN = np.iinfo(np.int32).max


def one_topic(brokers: int, partitions: int, tolerance: str) -> list[list[int]]:
    """The window of replicas on brokers without racks: the lows and the highs."""
    problem = problem_of(no_racks(*range(brokers)), {"a": [(0,)] * partitions})
    return windows(problem, balance_of(tolerance)).replicas.tolist()


@pytest.mark.parametrize(
    ("brokers", "partitions", "tolerance", "low", "high"),
    [
        (2, 4, "1", 2, 3),
        (2, 5, "1", 2, 3),
        (3, 5, "1", 1, 2),
        (2, 4, "0", 2, 2),
        (2, 5, "0", 3, 3),
        (5, 18, "2", 3, 5),
        (5, 17, "2", 3, 5),
        (4, 1, "2", 0, 2),
        (2, 200, "10%", 90, 110),
        (2, 200, "15%", 85, 115),
        (2, 20, "70%", 3, 17),
        (2, 200, "7%", 93, 107),
        (3, 200, "0%", 66, 67),
        (3, 200, "1%", 66, 67),
        (2, 4, "300%", 0, 8),
        (2, 4, "none", 0, OPEN),
    ],
)
def test_window_by_hand(brokers: int, partitions: int, tolerance: str, low: int, high: int) -> None:
    """Equal shares with every kind of tolerance, and percentages that floats would get wrong by one."""
    assert [[low] * brokers, [high] * brokers] == one_topic(brokers, partitions, tolerance)


@pytest.mark.parametrize(("spread", "begins"), [(2, 9), (3, 8), (6, 6), (12, 2), (24, 0), (40, 0)])
def test_a_wide_spread_begins_where_the_fewest_replicas_move(spread: int, begins: int) -> None:
    """Two brokers with 15 and a new one: replicas that leave the first two are the minimum of the third."""
    problem = problem_of(no_racks(1, 2), {"a": [(1,)] * 15 + [(2,)] * 15}, changes=Changes(add_brokers=(Broker(3),)))

    assert [[begins] * 3, [begins + spread] * 3] == windows(problem, balance_of(spread)).replicas.tolist()


@examples(150)
@given(st.lists(st.integers(0, 30), min_size=2, max_size=6).filter(any), st.integers(2, 6))
def test_a_wide_spread_begins_at_the_best_of_all_starts(held: list[int], spread: int) -> None:
    """At the lowest of the starts at which the fewest replicas move."""
    rows = {f"t{at}": [(at,)] * count for at, count in enumerate(held) if count}
    found = windows(problem_of(no_racks(*range(len(held))), rows), balance_of(spread)).replicas
    every, share = sum(held), sum(held) // len(held)
    starts = range(max(-(-every // len(held)) - spread, 0), share + 1)
    moves = [max(sum(max(of - low - spread, 0) for of in held), sum(max(low - of, 0) for of in held)) for low in starts]
    low = starts[moves.index(min(moves))]
    assert [[low] * len(held), [low + spread] * len(held)] == found.tolist()


def test_a_wide_spread_of_leaders_begins_by_those_that_lead() -> None:
    """Each is preferred for ten, but brokers lead 15, 15 and none, and nothing is elected: those numbers count."""
    rows = {"a": [(1, 2)] * 10 + [(2, 1)] * 10 + [(3, 1), (3, 2)] * 5}
    led = {"a": [1] * 10 + [2] * 10 + [1, 2] * 5}
    problem = problem_of(no_racks(1, 2, 3), rows, leaders=led, changes=Changes(rebalance="none"))

    assert [[6] * 3, [12] * 3] == windows(problem, balance_of(1, 6)).leaders.tolist()


def test_unequal_racks_share_what_the_rack_rule_lets_them() -> None:
    """Two replicas in racks of 1 and 3 brokers: the broker alone has one of every partition, others a third each."""
    problem = problem_of({1: "a", 2: "b", 3: "b", 4: "b"}, {"t": [(1, 2)] * 6})
    found = windows(problem, balance_of(0, 0, 0))
    assert [[6, 2, 2, 2]] * 2 == found.replicas.tolist()
    assert [[[6, 2, 2, 2]]] * 2 == found.topic_replicas.tolist()


def test_racks_that_have_room_share_equally() -> None:
    """One replica in racks of 1 and 3 brokers: the rack rule doesn't limit anything, so four brokers share equally."""
    problem = problem_of({1: "a", 2: "b", 3: "b", 4: "b"}, {"t": [(1,)] * 8})
    assert [[2] * 4, [2] * 4] == windows(problem, balance_of(0, 0, 0)).replicas.tolist()


def test_leaders_share_equally_whatever_the_racks() -> None:
    """Leaders don't depend on racks: 8 partitions, 4 brokers, 2 leaders each; by topic only if asked for."""
    problem = problem_of({1: "a", 2: "b", 3: "b", 4: "b"}, {"t": [(1, 2)] * 8})
    found = windows(problem, balance_of(1, 0, 1))
    assert [[2] * 4, [2] * 4] == found.leaders.tolist()
    assert found.topic_leaders is None
    asked = windows(problem, balance_of(1, 0, 1, 0)).topic_leaders
    assert asked is not None
    assert [[[2] * 4]] * 2 == asked.tolist()


@pytest.mark.parametrize(
    ("racks", "factor", "least", "most"),
    [
        ("aab", 2, [1, 1], [1, 1]),
        ("aaab", 3, [2, 1], [2, 1]),
        ("aabb", 3, [1, 1], [2, 2]),
        ("aabbc", 2, [0, 0, 0], [1, 1, 1]),
        ("aabbc", 4, [1, 1, 1], [2, 2, 1]),
        ("aabbc", 5, [2, 2, 1], [2, 2, 1]),
    ],
)
def test_rack_rule_by_hand(racks: str, factor: int, least: list[int], most: list[int]) -> None:
    """The number of a partition's replicas in each rack at the best spread."""
    problem = problem_of(dict(enumerate(racks)), {"t": [tuple(range(factor))]})
    rule = rack_rule(problem)
    assert (least, most) == (rule.least[factor].tolist(), rule.most[factor].tolist())


@examples(60)
@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=7), st.data())
def test_rack_rule_against_all_sets(racks: list[str], data: st.DataObject) -> None:
    """The bounds are the least and the most that any of the most even sets has in a rack."""
    factor = data.draw(st.integers(1, len(racks)))
    problem = problem_of(dict(enumerate(racks)), {"t": [tuple(range(factor))]})
    names = sorted(set(racks))
    sets = combinations(racks, factor)
    by_rack = np.array([[each.count(name) for name in names] for each in sets])
    crowding = (by_rack**2).sum(axis=1)
    even = by_rack[crowding == crowding.min()]
    rule = rack_rule(problem)
    assert (np.min(even, axis=0).tolist(), np.max(even, axis=0).tolist()) == (
        rule.least[factor].tolist(),
        rule.most[factor].tolist(),
    )


@examples(80)
@given(problems())
def test_shares_add_up(problem: Problem) -> None:
    """With a spread of 1 the lows together are at most what there is, and the highs at least; also by topic."""
    found = windows(problem, Balance(topic_leaders=Tolerance("spread", 1)))
    replicas = int(problem.replication_factors.sum())
    assert found.replicas[0].sum() <= replicas <= found.replicas[1].sum()
    led = (problem.may_lead_anew | (problem.leaders >= 0)).sum()
    assert found.leaders[0].sum() <= led <= found.leaders[1].sum()
    by_topic = np.bincount(problem.topic_of, weights=problem.replication_factors)
    assert (found.topic_replicas[0].sum(axis=1) <= by_topic).all()
    assert (found.topic_replicas[1].sum(axis=1) >= by_topic).all()


def test_unlike_shares_have_windows_of_their_own() -> None:
    """Disks of 4, 1 and 1 share 9 replicas as 6, 1.5 and 1.5; a spread of 1 begins at each share rounded down."""
    problem = problem_of(no_racks(1, 2, 3), {"t": [(1,)] * 9})
    problem = replace(problem, disk_bytes=np.array([4, 1, 1]), network_bytes_per_sec=np.array([1, 1, 7]))
    found = windows(problem, balance_of(1, "10%", 2))
    assert [[6, 1, 1], [7, 2, 2]] == found.replicas.tolist()
    assert [[1, 1, 7], [1, 1, 7]] == found.leaders.tolist()
    assert [[[5, 1, 1]], [[7, 3, 3]]] == found.topic_replicas.tolist()


def loaded(disk: str = "none", network_in: str = "none", network_out: str = "none") -> Windows:
    """Windows of two brokers with 1 and 3 parts of the disks, which share 101 bytes, 90 and 50 bytes/s."""
    balance = balance_of(1, 1, 1, "none", disk, network_in, network_out)
    problem = problem_of(no_racks(1, 2), {"t": [(1,), (2,)]}, sizes={"t": [100, 1]}, balance=balance)
    rates, read = np.array([90, 0], dtype=np.int64), np.array([0, 50], dtype=np.int64)
    disks = np.array([1, 3], dtype=np.int64)
    return windows(replace(problem, bytes_in_per_sec=rates, bytes_out_per_sec=read, disk_bytes=disks), balance)


@pytest.mark.parametrize(
    ("percent", "low", "high"),
    [
        ("10%", [23, 69], [27, 83]),
        ("0%", [25, 75], [26, 76]),
        ("2.5%", [25, 74], [26, 77]),
        ("200%", [0, 0], [75, 227]),
    ],
)
def test_a_window_of_bytes_by_hand(percent: str, low: list[int], high: list[int]) -> None:
    """Whole bytes within the percentage of 25.25 and 75.75; both whole neighbors of a share are in the window."""
    found = loaded(percent).disk
    assert found is not None
    assert [low, high] == found.tolist()


def test_windows_of_traffic_by_hand() -> None:
    """Traffic is shared by networks, equally here; traffic that isn't asked for has no window."""
    found = loaded(network_in="10%", network_out="20%")
    assert found.disk is None
    assert found.byte_shares is not None
    assert [[25, 75], [45, 45], [25, 25]] == found.byte_shares.tolist()
    assert [[[41, 41], [49, 49]], [[20, 20], [30, 30]]] == [
        each.tolist() for each in found.of_bytes if each is not None
    ]


@pytest.mark.parametrize(
    ("percent", "limits", "low", "high"),
    [
        ("10%", [-1, 5], [45, 5], [55, 5]),
        ("10%", [50, 200], [45, 45], [50, 55]),
        ("none", [70, -1], [0, 0], [70, OPEN_BYTES]),
    ],
)
def test_disks_cap_their_window(percent: str, limits: list[int], low: list[int], high: list[int]) -> None:
    """A disk's limit is the most of its window, and makes a window if none is asked for."""
    balance = balance_of(1, 1, 1, "none", percent)
    problem = problem_of(no_racks(1, 2), {"t": [(1,), (2,)]}, sizes=50, balance=balance)
    found = windows(replace(problem, disk_limit_bytes=np.array(limits, dtype=np.int64)), balance).disk
    assert found is not None
    assert [low, high] == found.tolist()


@examples(80)
@given(loaded_problems())
def test_windows_of_bytes_hold_the_shares(problem: Problem) -> None:
    """Every window has room, and where no disk caps it the broker's share, rounded either way, is in it."""
    found = windows(problem, problem.balance)
    assert found.byte_shares is not None
    for at, bounds in enumerate(found.of_bytes):
        assert (bounds is None) == (
            getattr(problem.balance, BYTE_WINDOWS[at]).kind == "none" and not _capped(problem, at)
        )
        if bounds is not None:
            assert (bounds[0] <= bounds[1]).all()
            capped = problem.disk_limit_bytes[problem.targets] if at == 0 else np.full(bounds.shape[1], -1)
            inside = (bounds[0] <= found.byte_shares[at]) & (found.byte_shares[at] <= bounds[1])
            assert (inside | (capped >= 0)).all()


def _capped(problem: Problem, at: int) -> bool:
    return at == 0 and bool((problem.disk_limit_bytes[problem.targets] >= 0).any())


@pytest.mark.parametrize(
    ("held", "expected"),
    [([50_000, 50_000], 0), ([54_999, 45_001], 0), ([55_001, 45_000], 1), ([55_050, 44_950], 2), ([44_949, 55_051], 4)],
)
def test_excess_of_bytes_by_hand(held: list[int], expected: int) -> None:
    """A unit is a thousandth of the share, 50 bytes here, and costs as much as a replica outside a broker's window."""
    balance = balance_of(1, 1, 1, "none", "10%")
    problem = problem_of(no_racks(1, 2), {"t": [(1,), (2,)]}, sizes=50_000, balance=balance)
    loads = np.array([held, [0, 0], [0, 0]])
    assert expected * BROKER_PRICE == int(byte_excess(windows(problem, balance), loads))


@pytest.mark.parametrize(("counts", "price", "expected"), [
    ([2, 3], 1, 0),
    ([4, 2], 1, 1),
    ([1, 2], 1, 1),
    ([6, 2], 1, 1 + 2 * 3),
    ([8, 2], 1, 1 + 3 * 3 + 10),
    ([5, 0], 100, 100 * (1 + 3 + 1 + 3)),
])  # fmt: skip
def test_excess_by_hand(counts: list[int], price: int, expected: int) -> None:
    """The first unit outside costs the price, the next three cost three times, each further one ten times."""
    assert expected == int(excess(np.array([[2, 2], [3, 3]]), np.array(counts), price))


@pytest.mark.parametrize(("counts", "kept"), [([5, 3, 3], True), ([2, 2, 4], True), ([1, 3, 4], False)])
def test_a_spread_is_kept_wherever_its_window_begins(counts: list[int], kept: bool) -> None:
    """Brokers that differ by two keep a spread of two; for wider spreads and percentages, the window counts."""
    bounds, held = np.array([[3, 3, 3], [5, 5, 5]]), np.array(counts)
    assert kept == (excess_anywhere(bounds, held, 1, Tolerance("spread", 2)) == 0)
    assert excess(bounds, held, 1) == excess_anywhere(bounds, held, 1, Tolerance("percent", 25))


@examples(30)
@given(loaded_problems(), st.sampled_from((0, 12.5, 63, 100)))
def test_a_part_of_the_way_holds_its_goal_and_no_more_than_disks_do(problem: Problem, part: float) -> None:
    """All of the way is the goal; with less, its window lies within the part's, which ends where disks do."""
    asked = replace(problem.balance, disk=Tolerance("percent", 10))
    goal = windows(problem, asked)
    ways = {name: Tolerance("part", part, getattr(asked, name)) for name in ("replicas", "disk")}
    way = windows(problem, replace(asked, **ways))
    limits = problem.disk_limit_bytes[problem.targets]
    for wider, within in ((way.replicas, goal.replicas), (np.asarray(way.disk), np.asarray(goal.disk))):
        assert ((wider[0] <= within[0]) & (within[1] <= wider[1])).all()
        assert part < 100 or wider.tolist() == within.tolist()
    assert (np.asarray(way.disk)[1] <= np.where(limits < 0, OPEN_BYTES, limits)).all()
