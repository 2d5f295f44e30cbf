"""The benchmark of slow corners: clusters are as its text says, and rows have what was measured."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import corners
from benchmarks.corners import HEAVY, OVERFULL, SEEDS, SKEWED, SMALL, SPREAD, WIDE, make, measure
from benchmarks.table import Figures, gap
from planner.model import build_problem
from planner.model.problem import Problem
from planner.scoring import independent_check
from planner.scoring.fair_shares import disk_weights
from planner.strategies import optimum
from planner.strategies.work_limits import FRACTION_COLUMNS, FULL_WORK, TOPIC_COLUMNS, TOPIC_PLANS, WorkLimit


def of(kind: str, seed: int) -> Problem:
    """A cluster as flat arrays."""
    return build_problem.build(make(kind, seed))


@pytest.mark.parametrize("seed", SEEDS[SMALL])
def test_small_clusters_are_small(seed: int) -> None:
    """Small clusters have fewer than a hundred partitions. The largest is larger than a mean broker's window."""
    problem = of(SMALL, seed)
    assert problem.rows < 100
    mean = int(problem.size_bytes @ problem.replication_factors) / int(problem.targets.sum())
    assert problem.balance.disk is not None
    assert problem.size_bytes.max() > 2 * problem.balance.disk.value / 100 * mean


@pytest.mark.slow
@pytest.mark.parametrize("kind", [WIDE, OVERFULL, HEAVY])
def test_wide_clusters_are_wide(kind: str) -> None:
    """Wide clusters have 200 brokers with eight sizes of disks. Only the over-full ones lack room for all bytes."""
    problem = of(kind, 0)
    rows = 4_000 if kind == HEAVY else 12_000
    assert (200, rows, 8) == (problem.targets.sum(), problem.rows, len(np.unique(disk_weights(problem))))
    disks = sum(broker.disk_bytes or 0 for broker in make(kind, 0).cluster.brokers)
    assert (kind == OVERFULL) == (int(problem.size_bytes @ problem.replication_factors) > disks)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS[SKEWED])
def test_skewed_clusters_are_planned_by_topics(seed: int) -> None:
    """Skewed clusters are too large for the program of shares, but not for plans of whole topics."""
    problem = of(SKEWED, seed)
    columns = int(problem.targets.sum()) * problem.rows
    assert FRACTION_COLUMNS < columns <= TOPIC_COLUMNS
    assert len(problem.topic_names) * FULL_WORK.topic_flows <= TOPIC_PLANS
    assert problem.size_bytes.max() > 100 * np.median(problem.size_bytes)


@pytest.mark.slow
def test_topics_that_may_be_uneven_are_proven() -> None:
    """The windows of topics may begin anywhere, and the plan is within 0.01 % of its bound."""
    corner = measure(SPREAD, 0, try_all=False)
    assert (corner.brokers, corner.partitions, corner.not_kept) == (33, 5_000, 0)
    assert corner.bytes_moved - corner.least_bytes <= 1e-4 * corner.bytes_moved


@pytest.mark.slow
def test_a_seed_is_a_cluster() -> None:
    """A seed always gives the same cluster. Another seed or kind gives another one."""
    assert make(SMALL, 3) == make(SMALL, 3)
    assert make(SMALL, 3) != make(SMALL, 4)
    assert make(WIDE, 0) != make(OVERFULL, 0)


@pytest.mark.slow
def test_a_corner_is_planned_and_said() -> None:
    """The corner has a plan with bytes and a bound. The sweep is only timed if asked for."""
    corner = measure(SMALL, 6, try_all=False)
    assert 0 < corner.least_bytes <= corner.bytes_moved
    assert (None, True) == (corner.whatif_seconds, corner.plan_seconds > 0)
    problem = of(SMALL, 6)
    plan = optimum.solve(problem, problem.balance)
    assert corner.least_bytes == plan.least_bytes
    assert () == independent_check.check(problem, plan.assignment)


@pytest.mark.slow
def test_a_row_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each corner has numbers and a row of cells."""
    monkeypatch.setattr(corners, "apart", lambda made, kind, seed, try_all: measure(kind, seed, try_all=not try_all))
    found = list(corners.entries({SMALL: range(6, 7)}))
    (figures,) = (each for each in found if isinstance(each, Figures))
    cells = [cell.strip() for cell in str(found[-1]).strip("|").split("|")]
    moved, least = figures.values["bytes_moved"], figures.values["least_bytes"]
    assert ("corners", ["small 6", "9", "56"], gap(moved, least), "–") == (figures.table, cells[:3], cells[5], cells[8])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [4, 8])
def test_little_work_keeps_every_rule(seed: int) -> None:
    """If windows can't all be met and work is limited, a plan breaks no rule, and its bound is at most its bytes."""
    problem = of(SMALL, seed)
    plan = optimum.solve(problem, problem.balance, certify=True, work=WorkLimit(1, 0))
    held = plan.assignment[:, :, None] == problem.replicas[:, None, :]
    copied = ((plan.assignment >= 0) & ~held.any(axis=2)).sum(axis=1)
    assert () == independent_check.check(problem, plan.assignment)
    assert plan.least_bytes <= int(copied @ problem.size_bytes)
