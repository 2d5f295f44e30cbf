"""The benchmark's table of default batches."""

from __future__ import annotations

from clusters import no_racks, spec_of

from benchmarks.in_batches import InBatches, entries, measure
from planner.model.build_problem import build
from planner.model.spec import Changes


def test_the_table_has_hours_and_their_ratio() -> None:
    """Each case has a row with hours, and the ratio of both times."""
    measured = InBatches(9, 7_200.0, 7_920.0, 3_500.0, 36.0, 500, 0.25)
    lines = [line for line in entries([("a-case", measured)]) if isinstance(line, str)]

    assert "| a-case | 9 | 2.00 | 2.20 | 1.100 | 0.97 | 0.01 | 500 | 0.25 |" in lines
    assert lines[2].count("|") == lines[4].count("|")


def test_a_plan_is_measured_in_default_batches_and_in_one() -> None:
    """Three replicas of 100 GB go to one broker, at 2,000 s each with 50 MB/s, so no two fit into an hour."""
    spec = spec_of(no_racks(1, 2, 3), {"x": [(1,), (1,), (1,)]}, sizes=100 * 10**9, changes=Changes(rebalance="none"))
    problem = build(spec)
    assignment = problem.replicas.copy()
    assignment[:] = 2

    found = measure(spec, problem, assignment)

    assert (3, 6_000, 6_000, 2_000) == (found.batches, found.seconds_in_one, found.seconds, found.longest_seconds)
    assert (2_000, 1) == (found.largest_replica_seconds, found.most_elections)


def test_a_plan_of_nothing_takes_no_time() -> None:
    """A plan that moves nothing has no batch and takes no time."""
    spec = spec_of(no_racks(1, 2), {"x": [(1, 2)]}, changes=Changes(rebalance="none"))
    problem = build(spec)

    found = measure(spec, problem, problem.replicas)

    assert (0, 0.0, 0.0, 0) == (found.batches, found.seconds, found.longest_seconds, found.most_elections)
