"""The benchmark: figures are the same on any machine and from raw replica lists, and tables can be read."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pytest

from benchmarks import benchmark, cases, in_batches, peers
from benchmarks.apart import apart, on_cores, peak_bytes
from benchmarks.benchmark import Scope
from benchmarks.measure import makespans_over_bound, measure, outcome, seeds_tried
from benchmarks.table import gap, ratio, row
from planner.model import build_problem
from planner.model.errors import SetupError
from planner.model.problem import IntArray, Problem
from planner.strategies import optimum

# Case: gigabytes moved, replicas moved, (replica, leader, topic) spread.
OPTIMA = {
    "expand-small": (189, 189, (1, 1, 1)),
    "expand-mid": (6498, 5428, (0, 0, 1)),
    "raise-rf": (642, 566, (1, 1, 1)),
    "add-rack": (872, 693, (0, 0, 1)),
    "decommission": (749, 622, (0, 0, 1)),
    "skewed-sizes": (4047, 895, (1, 1, 1)),
    "no-racks": (384, 310, (1, 1, 1)),
}


def problem_of(case: str, seed: str = "public") -> Problem:
    """A benchmark case as flat arrays."""
    return build_problem.build(cases.to_spec(cases.make(case, seed)))


def cells(lines: list[str], heading: str) -> list[list[str]]:
    """The rows of the table below a heading, without its head, as stripped cells."""
    start = lines.index(next(line for line in lines if line.startswith(heading))) + 4
    end = next(at for at in range(start, len(lines) + 1) if at == len(lines) or not lines[at].startswith("|"))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[start:end]]


def rescored(case: str, flat: Problem, assignment: IntArray) -> dict[str, float]:
    """The cost of an assignment, counted replica by replica from Kafka's ids, without the planner's score."""
    made = cases.make(case)
    racks = {broker.id: broker.rack for broker in made.brokers_after}
    held = dict.fromkeys(racks, 0)
    led, size = dict(held), dict(held)
    topics = {topic: Counter(held) for topic in range(len(made.topic_names))}
    moved, moved_bytes, broken = 0, 0, 0
    for topic, before, size_bytes, chosen in zip(
        made.topic_of, made.replicas.tolist(), made.size_bytes.tolist(), assignment, strict=True
    ):
        after = [int(flat.broker_ids[broker]) for broker in chosen if broker >= 0]
        factor = made.target_rf or len(before)
        distinct = min(factor, len(set(racks.values()))) if None not in racks.values() else 1
        wrong = len(set(after)) != factor or len(after) != factor or not set(after) <= set(racks)
        broken += wrong or len({racks[broker] for broker in after}) < distinct
        adding = len(set(after) - set(before))
        moved, moved_bytes = moved + adding, moved_bytes + adding * size_bytes
        led[after[0]] += 1
        for broker in after:
            held[broker], size[broker] = held[broker] + 1, size[broker] + size_bytes
            topics[int(topic)][broker] += 1
    return {
        "violations": broken,
        "bytes_moved": moved_bytes,
        "replicas_moved": moved,
        "replica_spread": max(held.values()) - min(held.values()),
        "leader_spread": max(led.values()) - min(led.values()),
        "topic_spread": max(max(counts.values()) - min(counts.values()) for counts in topics.values()),
        "topic_replicas_over_ceiling": sum(
            max(0, count + sum(counts.values()) // -len(held))
            for counts in topics.values()
            for count in counts.values()
        ),
        "size_max_over_mean": max(size.values()) * len(size) / sum(size.values()),
    }


@pytest.mark.parametrize("case", OPTIMA)
def test_the_optimum_moves_what_is_published_of_it(case):
    """For the small and middle cases, gigabytes, replicas and all three spreads are as published."""
    flat = problem_of(case)
    solution = optimum.solve(flat, flat.balance)

    plan = outcome("the plan", flat, solution.assignment)

    spreads = (plan.replica_spread, plan.leader_spread, plan.topic_spread)
    assert OPTIMA[case] == (round(plan.bytes_moved / 1e9), plan.replicas_moved, spreads)
    assert (0, peers.optimum_bytes(case)) == (plan.violations, round(plan.bytes_moved, -9))
    assert solution.least_bytes <= plan.bytes_moved <= solution.least_bytes * 1.00001


@pytest.mark.slow
@pytest.mark.parametrize("case", ["raise-rf", "decommission", "no-racks", "skewed-sizes"])
def test_scores_are_what_counting_raw_replicas_gives(case):
    """Each figure of a plan is the same when it is counted from broker ids."""
    flat = problem_of(case)
    assignment = optimum.solve(flat, flat.balance).assignment

    scored = outcome("the plan", flat, assignment)

    expected = rescored(case, flat, assignment)
    assert expected == pytest.approx({name: getattr(scored, name) for name in expected})


def test_an_uneven_assignment_is_counted_alike():
    """Today's uneven replicas are counted alike, with a spread of 96, and 165 replicas above topics' ceilings."""
    flat = problem_of("expand-small")
    today = build_problem.today(flat)

    scored = outcome("do nothing", flat, today)

    expected = rescored("expand-small", flat, today)
    assert expected == pytest.approx({name: getattr(scored, name) for name in expected})
    assert (96, 165) == (scored.replica_spread, scored.topic_replicas_over_ceiling)


@pytest.mark.slow
def test_a_measured_case_holds_its_baselines():
    """Doing nothing copies nothing. Kafka's best seed and round robin copy more than the plan and break no rule."""
    measured = measure("no-racks", "public")

    nothing, seeds, round_robin = measured.baselines
    assert (0, 220) == (nothing.bytes_moved, nothing.replica_spread)
    assert measured.plan.bytes_moved < seeds.bytes_moved <= round_robin.bytes_moved
    assert [0, 0] == [seeds.violations, round_robin.violations]
    assert (5, 7, 543, 1086, (2,)) == (
        measured.brokers_before,
        measured.brokers_after,
        measured.partitions,
        measured.replicas,
        measured.replication_factors,
    )
    assert 0 < measured.solve_seconds < 60
    assert measured.peak_bytes > 20_000_000


@pytest.mark.slow
@pytest.mark.parametrize("case", OPTIMA)
def test_batches_take_hardly_longer_than_the_busiest_broker_must(case):
    """With a tenth of the moves or bytes a batch, time is at most 10 % above the busiest broker's, except for one case.

    The same holds for default batches, of an hour, one replica of a partition, and at most 500 elections.
    """
    flat = problem_of(case)
    chosen = optimum.solve(flat, flat.balance).assignment
    by_bytes, by_moves = makespans_over_bound(flat, chosen)

    assert 1 <= by_moves <= 1.1
    # Its largest partition alone is larger than such a batch, and all other brokers wait for it.
    assert 1 <= by_bytes <= (2 if case == "skewed-sizes" else 1.1)

    found = in_batches.measure(cases.to_spec(cases.make(case)), flat, chosen)
    assert found.seconds_in_one <= found.seconds <= 1.1 * found.seconds_in_one
    assert found.longest_seconds <= max(3_600, found.largest_replica_seconds)
    assert 0 < found.most_elections <= 500


def test_nothing_to_copy_takes_no_longer_than_nothing():
    """Today's assignment has no batches, so the ratios are 1."""
    flat = problem_of("expand-small")

    assert (1.0, 1.0) == makespans_over_bound(flat, build_problem.today(flat))


def test_fewer_seeds_are_tried_the_larger_the_cluster():
    """The number of tried seeds depends only on the number of replicas."""
    assert [10_000, 1_234] == [seeds_tried(problem_of(case)) for case in ("expand-small", "expand-mid")]


def test_as_many_seeds_are_tried_as_asked_for():
    """The number comes from the option, and the best of more seeds is never worse."""
    few, more = (measure("no-racks", "public", seeds).baselines[1] for seeds in (3, 40))

    assert ["Kafka's seeds, best of 3", "Kafka's seeds, best of 40"] == [few.label, more.label]
    assert more.bytes_moved <= few.bytes_moved


@pytest.mark.slow
def test_the_lines_are_tables_with_ratios_that_agree():
    """Every ratio is the row's bytes over the plan's. Published rows say that they weren't run here."""
    lines = list(benchmark.lines(Scope(("expand-small",), ("plans",), seeds=50)))

    (plan,) = cells(lines, "## Plans")
    beside = cells(lines, "## Beside")
    assert ["expand-small", "6 → 9", "188 × 3", "yes", "0", "1 / 1 / 1", "189.000", "189.000", "0.0000 %"] == plan[:9]
    assert all(1 <= float(ratio) <= 1.1 for ratio in plan[-3].split(" / "))
    ours = float(plan[6])
    assert [round(float(line[2].replace(",", "")) / ours, 3) for line in beside] == [float(line[3]) for line in beside]
    assert beside[2][3] == plan[-2]
    assert f"{beside[4][3]} (Yelp kafka-utils, count balancer)" == plan[-1]
    published = [line[1] for line in beside if "published, not run here" in line[1]]
    assert ["Yelp kafka-utils, count balancer (published, not run here; 0.09 s)"] == published[:1]
    assert ["the optimum (published, not run here)"] == published[1:]


def test_every_published_plan_is_shown_beside_ours():
    """Each published plan has one row with its version. The ratio is its bytes over ours."""
    lines = [entry for entry in peers.entries({"no-racks": 400 * 10**9}) if isinstance(entry, str)]

    rows = cells(lines, "## Published")
    assert [peer.name for peer in peers.peers("no-racks")] == [line[1] for line in rows]
    assert ["no-racks", "topicctl", "1.23.1", "530", "1.325", "306", "8 / 22", "0", "1.069", "0.02"] == rows[5]


@pytest.mark.slow
def test_another_seed_has_no_published_rows():
    """The published figures are for the public clusters, so other clusters have no such rows."""
    lines = list(benchmark.lines(Scope(("expand-small",), ("plans",), "another", 50)))

    assert ["the plan", "do nothing"] == [line[1] for line in cells(lines, "## Beside")][:2]
    assert 4 == len(cells(lines, "## Beside"))
    assert "–" == cells(lines, "## Plans")[0][-1]


def test_an_unknown_case_is_refused_before_anything_runs():
    """The error names the unknown case and every allowed one."""
    with pytest.raises(SetupError) as refused:
        benchmark.lines(Scope(("expand-small", "expand-tiny")))

    assert f"unknown benchmark case expand-tiny; allowed: {', '.join(cases.CASES)}" == str(refused.value)


def test_sections_are_chosen_in_one_order():
    """Named sections run; without any, those of named cases; without both, all. The order is always the same."""
    assert ("windows", "scale") == benchmark.sections_of(Scope(sections=("scale", "windows")))
    assert ("plans", "windows") == benchmark.sections_of(Scope(("no-racks",)))
    every = ("plans", "windows", "candidates", "sweep", "load", "sizes", "scale", "corners", "exact", "ablate", "adopt")
    every = (*every, "hours", "rules")
    assert every == benchmark.sections_of(Scope())


@pytest.mark.parametrize("case", cases.CASES)
def test_a_published_peer_stands_beside_every_case(case):
    """The published peer beside a case is the one that copies least among the even ones."""
    peer = peers.best(case, replicas=10_000_000)

    assert peer is not None
    even = [other for other in peers.peers(case) if other.replica_spread <= 1]
    assert min(other.bytes_moved for other in even) == peer.bytes_moved


def test_clumped_peers_do_not_count():
    """A plan with 162 of 16,200 replicas above topics' ceilings may stand beside a case. With 6,400, it may not."""
    allowed = peers.best("expand-mid", replicas=16_200)
    stricter = peers.best("expand-mid", replicas=6_400)

    assert "Yelp kafka-utils, count balancer" == getattr(allowed, "name", None)
    assert "Cruise Control, topic-exact settings" == getattr(stricter, "name", None)


@pytest.mark.slow
def test_a_process_of_its_own_passes_errors_on():
    """An error of the process keeps its type, and a killed process is reported as killed."""
    with pytest.raises(KeyError):
        apart(cases.make, "nothing")
    with pytest.raises(SetupError, match="was killed before it was done"):
        apart(os._exit, 9)


@pytest.mark.slow
def test_the_peak_of_a_process_is_its_own():
    """The peak of a started process doesn't include its parent's memory."""
    held = np.ones(60_000_000)

    apart_bytes = apart(peak_bytes)

    assert 0 < apart_bytes < held.nbytes < peak_bytes()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system can't keep a process on some cores")
def test_a_worker_is_a_core():
    """With one worker, the started process stays on one core. This process keeps its cores."""
    before = os.sched_getaffinity(0)

    assert {min(before)} == apart(_on_one_core)
    assert before == os.sched_getaffinity(0)


def _on_one_core():
    on_cores(1)
    return os.sched_getaffinity(0)


@pytest.mark.parametrize("case", cases.CASES)
def test_published_bytes_say_how_they_were_rounded(case):
    """Published bytes are multiples of the unit to which they were rounded."""
    assert [0] * len(peers.peers(case)) == [peer.bytes_moved % peer.rounding_bytes for peer in peers.peers(case)]


def test_a_bar_in_a_cell_does_not_end_it():
    """Markdown's cell separator is escaped."""
    assert r"| a \| b | c |" == row(["a | b", "c"])


def test_gaps_and_ratios_without_anything_to_divide_by():
    """If nothing moves and nothing must, the gap is 0. A ratio to zero is unknown."""
    assert ["0.0000 %", "–", "1.0000 %"] == [gap(0, 0), gap(1, 0), gap(101, 100)]
    assert ["–", "0.500"] == [ratio(1, 0), ratio(1, 2)]
