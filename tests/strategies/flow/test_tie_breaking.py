"""Ties between plans with the fewest bytes: fewest leaders changed, fewest partitions touched, most even arrivals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import numpy as np
import pytest
from brute_force import held, options
from clusters import RACK_NAMES, Racks, balance_of, no_racks, problem_of
from numpy.random import Generator

from planner.model.balance import Balance, Tolerance
from planner.model.cluster import Broker
from planner.model.document_fields import ReplicationFactorRow
from planner.model.problem import IntArray, LongArray, Problem
from planner.model.spec import Changes
from planner.scoring import score
from planner.scoring.score import ScoringBasis
from planner.scoring.window_excess import BROKER_PRICE, TOPIC_PRICE, excess
from planner.scoring.windows import windows
from planner.strategies.flow import tie_breaking
from planner.strategies.flow.tie_breaking import leaders_today
from planner.strategies.optimum import solve

MOST_PLANS = 4_000


class Plans(NamedTuple):
    """Figures (N,) of all plans of a problem: excess over the windows of replicas, bytes moved, leaders dropped,
    partitions touched, and the sum of squared arrivals.
    """

    excess: LongArray
    moved: LongArray
    leaders: LongArray
    touched: LongArray
    arrivals: LongArray

    def best(self, rebalance: str) -> tuple[int, ...]:
        """The figures of the best plan, in their order, which depends on what may move."""
        first = {
            "all": (self.excess, self.moved, self.leaders),
            "leaders": (self.moved, self.excess, self.leaders),
            "racks": (self.moved, self.leaders, self.excess),
            "none": (self.moved, self.leaders, self.excess),
        }[rebalance]
        keys = (*first, self.touched, self.arrivals)
        at = np.lexsort(keys[::-1])[0]
        return tuple(int(key[at]) for key in keys)


def plans(problem: Problem, sets: list[list[tuple[int, ...]]]) -> Plans:
    """The figures of every combination of sets of brokers; `sets` has the choices for each partition."""
    targets = np.flatnonzero(problem.targets).tolist()
    topics, count = len(problem.topic_names), len(targets)
    led = leaders_today(problem)
    columns = topics * count + count + 3
    rows = []
    for row, choices in enumerate(sets):
        table = np.zeros((len(choices), columns), dtype=np.int64)
        for at, brokers in enumerate(choices):
            new = set(brokers) - set(held(problem, row))
            for broker in set(brokers) & set(targets):
                table[at, problem.topic_of[row] * count + targets.index(broker)] += 1
            for broker in new:
                table[at, topics * count + targets.index(broker)] += 1
            table[at, -3] = len(new) * problem.size_bytes[row]
            table[at, -2] = led[row] not in brokers
            table[at, -1] = set(brokers) != set(held(problem, row))
        rows.append(table)
    all_of = reduce(lambda sums, table: (sums[:, None] + table[None]).reshape(-1, columns), rows)
    cells = all_of[:, : topics * count].reshape(-1, topics, count)
    wanted = windows(problem, problem.balance)
    beyond = excess(wanted.topic_replicas, cells, TOPIC_PRICE).sum(axis=1)
    beyond = beyond + excess(wanted.replicas, cells.sum(axis=1), BROKER_PRICE)
    arrivals = (all_of[:, topics * count : -3] ** 2).sum(axis=1)
    return Plans(beyond, all_of[:, -3], all_of[:, -2], all_of[:, -1], arrivals)


def figures(problem: Problem, assignment: IntArray) -> tuple[int, ...]:
    """The figures of one plan, in the order of `Plans.best`."""
    sets = [[tuple(broker for broker in row if broker >= 0)] for row in assignment.tolist()]
    return plans(problem, sets).best(problem.rebalance)


def drawn(rng: Generator) -> Problem:
    """A tiny cluster with any change, and with few different sizes, so that many plans are equally cheap."""
    count = int(rng.integers(3, 6))
    names = RACK_NAMES[: int(rng.integers(2, 4))]
    racked = bool(rng.integers(2))
    racks: Racks = {each: str(rng.choice(names)) if racked else None for each in range(1, count + 1)}
    rows, sizes = {}, {}
    for topic in range(int(rng.integers(1, 3))):
        factor, partitions = int(rng.integers(1, 4)), int(rng.integers(1, 5))
        lists = [rng.permutation(count)[:factor] + 1 for _ in range(partitions)]
        rows[f"t{topic}"] = [tuple(int(broker) for broker in each) for each in lists]
        sizes[f"t{topic}"] = [int(size) for size in rng.choice([1, 1, 2, 3], partitions)]
    added = tuple(Broker(9 - at, str(rng.choice(names)) if racked else None) for at in range(int(rng.integers(3))))
    removed = (1,) if count + len(added) > 4 and rng.integers(3) == 0 else ()
    factors = tuple(ReplicationFactorRow(name, int(rng.integers(1, 4))) for name in rows if rng.integers(3) == 0)
    windows_of = [str(rng.choice(["0", "1", "25%", "none"])) for _ in range(2)]
    return problem_of(
        racks,
        rows,
        sizes=sizes,
        changes=Changes(
            add_brokers=added,
            remove_brokers=removed,
            set_replication_factor=factors,
            rebalance=str(rng.choice(["all", "all", "none", "racks", "leaders"])),  # type: ignore[arg-type]
        ),
        balance=balance_of(windows_of[0], "none", windows_of[1]),
        rack_aware=bool(rng.integers(4)),
    )


def crowded(rng: Generator) -> Problem:
    """Partitions of one size with several replicas that could leave, and topics with tight windows."""
    count, racked = int(rng.integers(3, 5)), bool(rng.integers(2))
    racks: Racks = {each: str(rng.choice(RACK_NAMES[:2])) if racked else None for each in range(1, count + 1)}
    rows = {}
    for topic in range(int(rng.integers(2, 4))):
        factor, partitions = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        lists = [rng.permutation(count)[:factor] + 1 for _ in range(partitions)]
        rows[f"t{topic}"] = [tuple(int(broker) for broker in each) for each in lists]
    added = tuple(
        Broker(9 - at, str(rng.choice(RACK_NAMES[:2])) if racked else None) for at in range(rng.integers(1, 3))
    )
    factors = tuple(ReplicationFactorRow(name, int(rng.integers(1, 4))) for name in rows if rng.integers(3) == 0)
    rebalance = str(rng.choice(["all", "all", "racks"]))
    changes = Changes(add_brokers=added, set_replication_factor=factors, rebalance=rebalance)  # type: ignore[arg-type]
    windows_of = [str(rng.choice(["0", "1"])) for _ in range(2)]
    balance = balance_of(windows_of[0], "none", windows_of[1])
    return problem_of(racks, rows, sizes=1, changes=changes, balance=balance, rack_aware=bool(rng.integers(2)))


def compared(draw: Callable[[Generator], Problem], count: int, seed: int, most: int) -> int:
    """Draws `count` clusters and asserts that no plan is better than the optimum; returns how often that is proven.

    Only clusters with at most `most` plans are compared.
    """
    rng, found, proven = np.random.default_rng(seed), 0, 0
    while found < count:
        problem = draw(rng)
        sets = options(problem)
        if all(sets) and np.prod([float(len(each)) for each in sets]) <= most:
            solution = solve(problem, problem.balance)
            assert plans(problem, sets).best(problem.rebalance) == figures(problem, solution.assignment)
            found, proven = found + 1, proven + solution.ties_proven
    return proven


@pytest.mark.slow
@pytest.mark.parametrize("draw", [drawn, crowded])
def test_brute_force_agrees(draw: Callable[[Generator], Problem]) -> None:
    """No plan with as few bytes changes fewer leaders, then touches fewer partitions, then has more even arrivals."""
    assert 300 == compared(draw, 300, 14, MOST_PLANS)


@pytest.mark.long
@pytest.mark.parametrize("draw", [drawn, crowded])
def test_brute_force_agrees_on_thousands(draw: Callable[[Generator], Problem]) -> None:
    """The same for 4,000 clusters, with more plans each."""
    proven = compared(draw, 4_000, 15, 20_000)
    print(f"\n{draw.__name__}: 4,000 compared, none better; {proven:,} proven")  # noqa: T201


def elections(problem: Problem, balance: Balance) -> tuple[int, list[int], IntArray]:
    """The optimum's changes of leaders, the replicas that arrive at each broker, and the plan."""
    assignment = solve(problem, balance).assignment
    arriving = np.bincount(assignment[score.added_replicas(problem, assignment)], minlength=len(problem.broker_ids))
    return int(score.score(ScoringBasis.of(problem), assignment).leaders_changed[0]), arriving.tolist(), assignment


NO_WINDOWS = balance_of("none", "none", "none")


def doubled(disk: int | None = None) -> Problem:
    """Eight brokers in two racks, so that one rack has two replicas of every partition; a third rack of four joins."""
    racks = {broker: "ab"[broker % 2] for broker in range(8)}
    rows = {
        f"t{topic}": [tuple((topic + at + step) % 8 for step in (0, 1 + at % 3, 5)) for at in range(30)]
        for topic in range(4)
    }
    rows = {name: [row for row in lists if len(set(row)) == 3] for name, lists in rows.items()}
    sizes = {name: [10**9 + 7 * at for at in range(len(lists))] for name, lists in rows.items()}
    added = tuple(Broker(8 + at, "c", disk_bytes=disk) for at in range(4))
    problem = problem_of(racks, rows, sizes=sizes, changes=Changes(add_brokers=added), balance=NO_WINDOWS)
    return problem if disk is None else replace(problem, disk_limit_bytes=np.full(12, disk))


@pytest.mark.parametrize("disk", [None, 10**14])
def test_a_rack_repair_elects_nobody(disk: int | None) -> None:
    """Of two replicas in one rack, the follower leaves, and the four new brokers receive equally many replicas.

    The same holds if disks are stated and none is nearly full.
    """
    changed, arriving, _ = elections(doubled(disk), NO_WINDOWS)
    assert changed == 0
    assert [0] * 8 == arriving[:8]
    assert max(arriving[8:]) - min(arriving[8:]) <= 1 < min(arriving[8:])


def test_only_the_rack_rule() -> None:
    """`rebalance: racks` moves one follower of each doubled partition to the new brokers, evenly, and nothing else."""
    free = doubled()
    racks = dict(zip(free.broker_ids.tolist(), (free.rack_names[rack] for rack in free.broker_racks), strict=True))
    today = {broker: rack for broker, rack in racks.items() if broker < 8}
    rows = {"t": [tuple(row) for row in free.replicas.tolist()], "even": [(0, 1), (2, 3)]}
    added = tuple(Broker(broker, racks[broker]) for broker in range(8, 12))
    problem = problem_of(today, rows, sizes=10, changes=Changes(add_brokers=added, rebalance="racks"))
    changed, arriving, assignment = elections(problem, problem.balance)
    doubled_rows = problem.replication_factors == 3
    assert doubled_rows.tolist() == problem.forced.tolist()
    assert (0, [0] * 8) == (changed, arriving[:8])
    assert doubled_rows.sum() == sum(arriving)
    assert max(arriving[8:]) - min(arriving[8:]) <= 1
    assert (assignment[~doubled_rows][:, :2] == problem.replicas[~doubled_rows][:, :2]).all()


@pytest.mark.parametrize("rebalance", ["all", "none"])
@pytest.mark.parametrize("led_by", [0, 1, 2])
def test_a_lower_factor_drops_followers(rebalance: str, led_by: int) -> None:
    """If the factor becomes lower, the leader keeps its replica, at any place in the list."""
    rows = [(6, 4, 5), (5, 6, 4), (4, 5, 6), (6, 5, 4)]
    lower = Changes(set_replication_factor=(ReplicationFactorRow("*", 2),), rebalance=rebalance)  # type: ignore[arg-type]
    leaders = {"t": [row[led_by] for row in rows]}
    problem = problem_of(no_racks(4, 5, 6), {"t": rows}, leaders=leaders, changes=lower, balance=NO_WINDOWS)
    assignment = elections(problem, NO_WINDOWS)[2]
    assert all(leader in row for leader, row in zip(problem.leaders.tolist(), assignment.tolist(), strict=True))


def test_only_what_must_move_keeps_its_leaders() -> None:
    """With `rebalance: none` a lower factor drops followers, although that leaves the leaders' spread larger."""
    rows = [(1, 2, 3)] * 9 + [(2, 3, 1)] * 2
    lower = Changes(set_replication_factor=(ReplicationFactorRow("*", 2),), rebalance="none")
    problem = problem_of(no_racks(1, 2, 3), {"t": rows}, changes=lower)
    assert elections(problem, problem.balance)[0] == 0


def test_racks_come_first_where_they_are_named_first() -> None:
    """If bytes between racks are named first, a leader's replica may leave so that its copy stays within its rack."""
    racks = {1: "a", 2: "b", 3: "a", 4: "b"}
    rows = [(1, 2), (1, 2), (2, 1), (2, 1)]
    problem = problem_of(
        {1: "a", 2: "b"},
        {"t": rows},
        sizes=10,
        changes=Changes(add_brokers=(Broker(3, "a"), Broker(4, "b"))),
        balance=balance_of(0, "none", "none"),
    )
    assert len(racks) == len(problem.broker_ids)
    crossing = {}
    for first in ("leaders_changed", "cross_rack_bytes"):
        aimed = replace(problem, aims=(first,))
        found = score.score(ScoringBasis.of(aimed), solve(aimed, aimed.balance).assignment)
        crossing[first] = (int(found.leaders_changed[0]), int(found.cross_rack_bytes[0]))
    assert crossing["leaders_changed"][0] < crossing["cross_rack_bytes"][0]
    assert crossing["leaders_changed"][1] > crossing["cross_rack_bytes"][1]


def test_bytes_come_before_leaders_to_the_byte() -> None:
    """A leader is not kept if that costs one byte more, however large the partitions are."""
    sizes = {"t": [10**13 + at for at in range(6)]}
    problem = problem_of(
        no_racks(1, 2),
        {"t": [(1,)] * 6},
        sizes=sizes,
        leaders={"t": [1] * 6},
        changes=Changes(add_brokers=(Broker(3),)),
        balance=replace(NO_WINDOWS, replicas=Tolerance.parse("0")),
    )
    found = score.score(ScoringBasis.of(problem), solve(problem, problem.balance).assignment)
    assert sum(sizes["t"][:4]) == int(found.bytes_moved[0])


def draining(balance: Balance) -> Problem:
    """Broker 1 leaves with two topics of five partitions; brokers 2 to 4 are empty."""
    rows = {"a": [(1,)] * 5, "b": [(1,)] * 5}
    added = tuple(Broker(broker) for broker in (2, 3, 4))
    return problem_of(no_racks(1), rows, changes=Changes(add_brokers=added, remove_brokers=(1,)), balance=balance)


def arriving(problem: Problem) -> list[int]:
    """Replicas that arrive at each broker."""
    plan = solve(problem, problem.balance).assignment
    return np.bincount(plan[score.added_replicas(problem, plan)], minlength=len(problem.broker_ids)).tolist()


@pytest.mark.parametrize("by_topic", ["none", "1", "200%"])
def test_arrivals_are_as_even_as_whole_numbers_are(by_topic: str) -> None:
    """Ten replicas go to three brokers as 3, 3 and 4, with and without windows of their topics."""
    assert [0, 3, 3, 4] == sorted(arriving(draining(balance_of("none", "none", by_topic))))


def test_windows_come_before_even_arrivals() -> None:
    """Each broker receives what its window requires, and brokers with equal windows receive equally many."""
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    rows = {"a": [(1,)] * 6 + [(3,)] * 6}
    problem = problem_of(
        racks,
        rows,
        changes=Changes(add_brokers=(Broker(5, "a"), Broker(6, "a"))),
        balance=balance_of(0, "none", "none"),
        rack_aware=False,
    )
    assert [0, 2, 0, 2, 2, 2] == arriving(problem)


def test_many_arrivals_at_once_are_nearly_even(monkeypatch: pytest.MonkeyPatch) -> None:
    """If each arc takes several replicas, brokers' arrivals differ by at most one arc's."""
    monkeypatch.setattr(tie_breaking, "ARRIVAL_STEPS", 2)
    problem = draining(balance_of("none", "none", "none"))
    found = arriving(problem)
    assert sum(found) == 10
    assert max(found[1:]) - min(found[1:]) <= 5


@pytest.mark.parametrize("factor", [3, 6, 7, 9])
def test_one_of_two_equal_partitions_moves_as_a_whole(factor: int) -> None:
    """Half of the replicas leave the old brokers; whatever the replication factor, no second partition is touched."""
    old, new = range(1, factor + 1), range(factor + 1, 2 * factor + 1)
    lists = {"x": [tuple(old)] * 2}
    problem = problem_of(no_racks(*old), lists, changes=Changes(add_brokers=tuple(map(Broker, new))))
    found = solve(problem, balance_of(0, 0, 2)).assignment
    assert 1 == np.count_nonzero((np.sort(found) != np.sort(problem.replicas)).any(axis=1))
