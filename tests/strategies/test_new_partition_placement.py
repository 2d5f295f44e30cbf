"""Where new partitions go: as evenly as possible, while everything that exists stays where it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from clusters import balance_of, ids_of, no_racks, problem_of, spec_of, specs
from hypothesis import assume, given
from hypothesis import strategies as st

from planner.execution.partition_changes import changes
from planner.model.balance import Balance
from planner.model.build_problem import build, today
from planner.model.cluster import Broker
from planner.model.problem import BoolArray, IntArray, LongArray, Problem
from planner.model.spec import Changes, NewPartitions, Rebalance, Spec
from planner.scoring import independent_check
from planner.scoring.broker_loads import leaders_after, loads, on_all_brokers
from planner.scoring.score import ScoringBasis, score
from planner.strategies import new_partition_placement
from planner.strategies.new_partition_placement import DiskRoom, Filling
from planner.strategies.optimum import solve
from planner.sweep.candidates import STRATEGIES, Candidate

SIX = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}


def created(partitions: int, factor: int, name: str = "new", **rest: int) -> NewPartitions:
    """A new topic with so many partitions."""
    return NewPartitions(name, 0, partitions, factor, **rest)


def requested(*new: NewPartitions, rebalance: Rebalance = "none", **rest: object) -> Changes:
    """Changes that ask for new partitions."""
    return Changes(new_partitions=new, rebalance=rebalance, **rest)


def solved(problem: Problem) -> IntArray:
    """The optimum at the problem's own balance."""
    return solve(problem, problem.balance).assignment


def held(problem: Problem, assignment: IntArray, rows: Sequence[bool] | None = None) -> list[list[int]]:
    """Replicas and preferred leaders of each broker, for all partitions or for those in `rows`."""
    chosen = np.ones(problem.rows, dtype=bool) if rows is None else np.asarray(rows)
    replicas = np.where(chosen[:, None], assignment, -1)
    return on_all_brokers(problem, replicas, replicas[:, 0])[:2].tolist()


@st.composite
def growing(draw: st.DrawFn, rebalance: Sequence[Rebalance] = ("all", "leaders", "racks", "none")) -> Spec:
    """A spec that creates topics and adds partitions, besides any other change."""
    spec = draw(specs(rebalance=rebalance))
    leaving = {*spec.changes.remove_brokers, *dict(spec.changes.replace_brokers)}
    targets = {broker.id for broker in spec.cluster.brokers + spec.changes.add_brokers} - leaving
    size = st.sampled_from((0, 0, 1, 5))
    new = [
        NewPartitions(f"n{at}", 0, draw(st.integers(1, 4)), draw(st.integers(1, min(3, len(targets)))), (), draw(size))
        for at in range(draw(st.integers(0, 2)))
    ]
    for topic in spec.cluster.topics:
        factor = len(topic.partitions[0].replicas)
        resized = any(each.topics == topic.name for each in spec.changes.set_replication_factor)
        if not resized and factor <= len(targets) and draw(st.booleans()):
            first = len(topic.partitions)
            new.append(NewPartitions(topic.name, first, first + draw(st.integers(1, 3)), factor, (), draw(size)))
    return replace(spec, changes=replace(spec.changes, new_partitions=tuple(new)))


@given(growing())
def test_every_plan_with_new_partitions_is_valid(spec: Spec) -> None:
    """The judge finds every new partition with its factor, on brokers that stay, spread over racks."""
    problem = build(spec)
    assert () == independent_check.check(problem, solved(problem))


@given(growing(rebalance=("none",)))
def test_nothing_that_exists_moves_for_them(spec: Spec) -> None:
    """Without a rebalance, what exists goes exactly where it would go without the new partitions."""
    problem, without = build(spec), build(replace(spec, changes=replace(spec.changes, new_partitions=())))
    unforced = ~without.forced
    after = solved(problem)[~problem.is_new][:, : without.width]
    assert today(without)[unforced].tolist() == after[unforced].tolist()


@given(growing())
def test_they_cost_nothing(spec: Spec) -> None:
    """No byte, move, election or change is theirs, and the bound counts none either."""
    problem = build(spec)
    solution = solve(problem, problem.balance)
    scores = score(ScoringBasis.of(problem), solution.assignment)
    old = problem.replicas.tolist()
    copied = [
        (size, len(set(row) - set(before) - {-1}))
        for row, before, size in zip(solution.assignment.tolist(), old, problem.size_bytes.tolist(), strict=True)
        if before[0] >= 0
    ]
    assert sum(size * count for size, count in copied) == scores.bytes_moved[0]
    assert sum(count for _, count in copied) == scores.replicas_moved[0]
    assert solution.least_bytes <= scores.bytes_moved[0]
    made = {(problem.topic_names[problem.topic_of[row]], int(problem.partition_ids[row])) for row in _new(problem)}
    assert not made & {(each.topic, each.partition) for each in changes(problem, solution.assignment)}


def _new(problem: Problem) -> list[int]:
    return np.flatnonzero(problem.is_new).tolist()


@given(growing())
def test_no_other_strategy_is_more_even_for_as_little(spec: Spec) -> None:
    """Kafka's placements of the same rows are never better by the ranking's first terms, where they move as little."""
    problem = build(spec)
    basis = ScoringBasis.of(problem)
    ours = score(basis, solved(problem))
    for name in ("kafka_classic", "kafka_striped", "round_robin"):
        theirs = score(basis, STRATEGIES[name](problem, Candidate(name, 3)).assignment)
        if problem.rebalance == "none" and not problem.forced[~problem.is_new].any() and not theirs.violations[0]:
            assert ours.excess[0] <= theirs.excess[0]


def test_empty_brokers_are_filled_alike() -> None:
    """Three brokers far below their share get a third each, although windows alone would rank them the same."""
    full = {"old": [[1], [2], [3]] * 20}
    problem = problem_of(no_racks(*range(1, 7)), full, changes=requested(created(6, 1)))
    assert [0, 0, 0, 2, 2, 2] == held(problem, solved(problem), problem.is_new)[0]


def test_replicas_go_where_the_fewest_are() -> None:
    """Brokers with 5, 2 and 0 replicas end with 5, 4 and 4: new replicas go where the fewest are."""
    rows = {"old": [[1]] * 5 + [[2]] * 2}
    problem = problem_of(no_racks(1, 2, 3), rows, changes=requested(created(6, 1)))
    assert [5, 4, 4] == held(problem, solved(problem))[0]


def test_leaders_go_where_the_fewest_lead() -> None:
    """New partitions' leaders go to the brokers that lead the fewest, so that all lead equally many."""
    rows = {"old": [[1, 2], [1, 2], [1, 3], [2, 3]]}
    problem = problem_of(no_racks(1, 2, 3), rows, changes=requested(created(5, 3)))
    assert [[8, 8, 7], [3, 3, 3]] == held(problem, solved(problem))


def test_leaders_go_where_the_fewest_really_lead() -> None:
    """Broker 1 leads what 2 and 3 should, and nothing is elected: brokers 2 and 3 lead the new partitions."""
    rows = {"old": [[1, 2, 3], [2, 3, 1], [3, 1, 2]]}
    problem = problem_of(no_racks(1, 2, 3), rows, changes=requested(created(6, 3)), leaders={"old": [1, 1, 1]})
    after = solved(problem)
    assert [3, 3, 3] == on_all_brokers(problem, after, leaders_after(problem, after))[1].tolist()


def test_more_partitions_are_even_within_their_topic() -> None:
    """A topic's existing partitions count: they are on brokers 1 and 2, but its new ones go to all four evenly."""
    rows = {"t": [[1], [2], [1], [2]], "u": [[3], [4], [3], [4]]}
    problem = problem_of(no_racks(1, 2, 3, 4), rows, changes=requested(NewPartitions("t", 4, 8, 1)), balance=Balance())
    after = solved(problem)
    assert [3, 3, 3, 3] == held(problem, after)[0]
    assert [1, 1, 1, 1] == held(problem, after, problem.is_new)[0]


def test_racks_hold_one_replica_each() -> None:
    """With three racks, no new partition has two replicas in one rack, however uneven the cluster is."""
    rows = {"old": [[1, 2, 3]] * 4}
    problem = problem_of(SIX, rows, changes=requested(created(8, 3)))
    after = solved(problem)
    racks = [{SIX[broker] for broker in row} for row in ids_of(problem, after)[:8]]
    assert [{"a", "b", "c"}] * 8 == racks
    assert [6] * 6 == held(problem, after)[0]


def test_new_partitions_fill_new_brokers() -> None:
    """If everything may move, new partitions even out the brokers, so that no byte is copied."""
    rows = {"old": [[1], [2]] * 4}
    change = requested(created(4, 1), rebalance="all", add_brokers=(Broker(3),))
    problem = problem_of(no_racks(1, 2), rows, changes=change, balance=balance_of(1, 1, "none", "none"))
    after = solved(problem)
    assert (0, [4, 4, 4]) == (score(ScoringBasis.of(problem), after).bytes_moved[0], held(problem, after)[0])


def test_expected_sizes_count_for_disks_and_not_as_bytes_moved() -> None:
    """Two large new partitions go to the brokers with the fewest bytes, and none of their bytes counts as copied."""
    rows = {"old": [[1], [2], [3], [4]]}
    sizes = {"old": [50, 50, 1, 1]}
    balance = Balance(disk=balance_of("10%").replicas)
    change = requested(created(2, 1, size_bytes=50))
    problem = problem_of(no_racks(1, 2, 3, 4), rows, sizes=sizes, changes=change, balance=balance)
    after = solved(problem)
    assert [50, 50, 51, 51] == loads(problem, after)[0].tolist()
    assert 0 == score(ScoringBasis.of(problem), after).bytes_moved[0]


def test_excluded_topics_get_more_partitions() -> None:
    """The topic filter doesn't apply to new partitions: an excluded topic gets them too."""
    spec = replace(
        _spec({"t": [[1], [1]]}, requested(NewPartitions("t", 2, 4, 1))),
        topics=replace(_spec({"t": [[1]]}, Changes()).topics, exclude=("t",)),
    )
    problem = build(spec)
    assert [[1], [1], [2], [2]] == ids_of(problem, solved(problem))


def _spec(rows: dict[str, list[list[int]]], change: Changes) -> Spec:
    from clusters import spec_of

    return spec_of(no_racks(1, 2), rows, changes=change)


@st.composite
def fillings(draw: st.DrawFn) -> Filling:
    """Up to three rows of one topic without racks, on up to four brokers that may have replicas already."""
    rows, brokers = draw(st.integers(1, 3)), draw(st.integers(2, 4))
    factor, low = draw(st.integers(1, min(2, brokers))), draw(st.integers(0, 4))
    counts = np.array(draw(st.lists(st.integers(0, 6), min_size=brokers, max_size=brokers)), dtype=np.int64)
    one = np.full((rows, 1), factor, dtype=np.int32)
    window = np.stack([np.full(brokers, low), np.full(brokers, low + 1)])
    return Filling(
        topics=np.zeros(rows, dtype=np.int32),
        factors=one[:, 0],
        allowed=np.ones((rows, brokers), dtype=bool),
        racks=np.zeros(brokers, dtype=np.int32),
        least=one,
        most=one,
        cells=np.zeros((1, brokers), dtype=np.int64),
        counts=counts,
        topic_windows=np.stack([np.zeros((1, brokers)), np.full((1, brokers), 9)]).astype(np.int64),
        windows=window,
        weights=np.ones(brokers, dtype=np.int64),
        caps=None,
    )


def _far(filling: Filling, added: LongArray) -> tuple[int, int]:
    """How far brokers are outside their windows, and how uneven they are, as sums of squares."""
    low, high = filling.windows
    counts = filling.counts + added
    outside = np.maximum(low - counts, 0) + np.maximum(counts - high, 0)
    return int((outside**2).sum()), int((counts**2).sum())


@given(fillings())
def test_as_even_as_any_placement(filling: Filling) -> None:
    """Tried one by one, no placement is less outside the windows, or as little and more even within."""
    brokers = filling.allowed.shape[1]
    every = combinations(range(brokers), int(filling.factors[0]))
    rows = [np.isin(np.arange(brokers), each) for each in every]
    best = min(_far(filling, np.sum(chosen, axis=0)) for chosen in product(rows, repeat=len(filling.topics)))
    assert best == _far(filling, new_partition_placement.filled(filling).sum(axis=0))


@st.composite
def cramped(draw: st.DrawFn) -> Filling:
    """A filling of up to five rows in one or two topics, whose replicas may not fit on each disk."""
    filling = draw(fillings())
    more, brokers = draw(st.integers(0, 2)), filling.allowed.shape[1]
    sizes = np.array(draw(st.lists(st.integers(0, 4), min_size=2, max_size=2)), dtype=np.int64)
    topics = np.concatenate([filling.topics, np.ones(more, dtype=np.int32)])
    of_rows, known = sizes[topics], np.array(sorted({*sizes.tolist()} - {0}, reverse=True), dtype=np.int64)
    assume(len(known))
    size_of = np.array([known.tolist().index(size) if size else -1 for size in of_rows.tolist()])
    full = st.lists(st.integers(0, 9), min_size=brokers, max_size=brokers)
    disks = DiskRoom(known, size_of, np.array(draw(full), dtype=np.int64), np.array(draw(full), dtype=np.int64))
    one = np.full((len(topics), 1), filling.factors[0], dtype=np.int32)
    return replace(
        filling,
        topics=topics,
        factors=one[:, 0],
        allowed=np.ones((len(topics), brokers), dtype=bool),
        least=one,
        most=one,
        cells=np.zeros((1 + min(more, 1), brokers), dtype=np.int64),
        topic_windows=np.stack([np.zeros((1 + min(more, 1), brokers)), np.full((1 + min(more, 1), brokers), 9)]).astype(
            np.int64
        ),
        disks=disks,
    )


def _every(filling: Filling) -> list[BoolArray]:
    """Every placement (N, B) of the rows."""
    brokers = np.arange(filling.allowed.shape[1])
    rows = [np.isin(brokers, each) for each in combinations(brokers.tolist(), int(filling.factors[0]))]
    return [np.array(each) for each in product(rows, repeat=len(filling.topics))]


@given(cramped())
def test_no_disk_above_its_limit_if_any_placement_fits(filling: Filling) -> None:
    """Tried one by one: if some placements fill no disk above its limit, it is one of them, and the most even one."""
    assert filling.disks is not None
    found, every = new_partition_placement.filled(filling), _every(filling)
    fitting = [each for each in every if not len(filling.disks.too_full(each))]
    best = min(_far(filling, each.sum(axis=0)) for each in fitting or every)
    assert best == _far(filling, found.sum(axis=0))
    assert not fitting or not len(filling.disks.too_full(found))


def _with_disks(problem: Problem, **limits: int) -> Problem:
    """The problem with limits of disks, by `b` and the broker's id."""
    stated = [limits.get(f"b{broker}", -1) for broker in problem.broker_ids.tolist()]
    return replace(problem, disk_limit_bytes=np.array(stated, dtype=np.int64))


@given(
    st.lists(st.integers(0, 9), min_size=3, max_size=3),
    st.lists(st.integers(-1, 14), min_size=3, max_size=3),
    st.lists(st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(0, 5)), min_size=1, max_size=2),
)
def test_plans_keep_the_limits_of_disks_if_possible(
    today: list[int], limits: list[int], new: list[tuple[int, int, int]]
) -> None:
    """Every placement of two topics' new partitions, tried one by one: if one fits on the disks, so does the plan's."""
    asked = [NewPartitions(f"n{at}", 0, *counts, (), size) for at, (*counts, size) in enumerate(new)]
    problem = problem_of(no_racks(1, 2, 3), {"old": [[1], [2], [3]]}, sizes={"old": today}, changes=requested(*asked))
    problem = _with_disks(problem, b1=limits[0], b2=limits[1], b3=limits[2])
    room = [20 if limit < 0 else max(limit - used, 0) for limit, used in zip(limits, today, strict=True)]
    factors, sizes = (each[problem.is_new].tolist() for each in (problem.replication_factors, problem.size_bytes))

    def fits(rows: Sequence[Sequence[int]]) -> bool:
        added = [0, 0, 0]
        for brokers, size in zip(rows, sizes, strict=True):
            for broker in brokers:
                added[broker] += size
        return all(more <= left for more, left in zip(added, room, strict=True))

    possible = any(fits(rows) for rows in product(*(list(combinations(range(3), factor)) for factor in factors)))
    placed = [[broker for broker in row if broker >= 0] for row in solved(problem)[problem.is_new].tolist()]
    assert fits(placed) >= possible


def test_a_full_disk_gets_no_new_partition() -> None:
    """Broker 1 is nearly full: all new replicas go to the other two, which was refused as too much for broker 1."""
    rows, sizes = {"old": [[1], [2], [3]]}, {"old": [95, 10, 10]}
    for factor, expected in ((1, [1, 2, 3]), (2, [1, 4, 4])):
        change = requested(created(3, factor, size_bytes=10))
        problem = problem_of(no_racks(1, 2, 3), rows, sizes=sizes, changes=change)
        problem = _with_disks(problem, b1=100, b2=100, b3=100)
        assert expected == sorted(held(problem, solved(problem))[0])
        assert [95] == [loads(problem, solved(problem))[0, 0]]


def test_a_capped_broker_gets_no_more_bytes_than_its_cap() -> None:
    """Only broker 1 has a limit, and it has no room for more partitions of a topic that is there."""
    rows, sizes = {"t": [[1], [2], [3], [2]]}, {"t": [45] * 4}
    change = requested(NewPartitions("t", 4, 6, 1, (), 10))
    problem = _with_disks(problem_of(no_racks(1, 2, 3), rows, sizes=sizes, changes=change), b1=50)
    assert [45, 90, 65] == loads(problem, solved(problem))[0].tolist()


def test_of_equally_even_placements_the_emptiest_disks() -> None:
    """One partition may go to any broker by counts: it goes to the emptiest disk, the larger of two to the emptier."""
    rows, sizes = {"old": [[1], [2], [3]]}, {"old": [75, 30, 10]}
    for new, expected in (
        ((created(1, 1, size_bytes=10),), [75, 30, 20]),
        ((created(1, 1, "a", size_bytes=1), created(1, 1, "b", size_bytes=10)), [75, 31, 20]),
    ):
        problem = problem_of(no_racks(1, 2, 3), rows, sizes=sizes, changes=requested(*new))
        assert expected == loads(problem, solved(problem))[0].tolist()


def test_largest_first_after_too_many_flows(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the cases take too many flows, larger partitions are placed first, and no disk is above its limit either."""
    monkeypatch.setattr(new_partition_placement, "DISK_FLOWS", 1)
    change = requested(created(2, 1, "a", size_bytes=30), created(6, 1, "b", size_bytes=10))
    problem = problem_of(no_racks(1, 2, 3), {"old": [[1], [2], [3]]}, sizes={"old": [70, 40, 50]}, changes=change)
    problem = _with_disks(problem, b1=100, b2=100, b3=100)
    assert loads(problem, solved(problem))[0].max() <= 100


@pytest.mark.parametrize("partitions", [1, 7, 40])
def test_deterministic(partitions: int) -> None:
    """The same problem gives the same placement."""
    problem = problem_of(SIX, {"old": [[1, 2, 3]] * 4}, changes=requested(created(partitions, 2)))
    assert solved(problem).tolist() == solved(problem).tolist()


def test_a_broker_out_of_sync_leads_nothing_anew() -> None:
    """No changed or new partition prefers a leader that can't be elected, if another of its brokers can."""
    lists = [(1, 2), (2, 3), (3, 1), (1, 3), (2, 1), (3, 2)]
    changes = requested(created(4, 2), rebalance="all", add_brokers=(Broker(4),))
    problem = build(spec_of(no_racks(1, 2, 3), {"x": lists}, changes=changes))
    for broker in range(3):
        found = solved(replace(problem, out_of_sync=np.arange(4) == broker))
        changed = (found != today(problem)).any(axis=1)
        assert broker not in found[changed, 0]
