"""The benchmark of slow corners: the clusters are what its text says, and its rows are what was measured."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import corners
from benchmarks.corners import HEAVY, OVERFULL, SEEDS, SMALL, WIDE, make, measure
from benchmarks.table import Figures, gap
from planner.model import build_problem
from planner.model.problem import Problem
from planner.scoring import independent_check
from planner.scoring.fair_shares import disk_weights
from planner.strategies import optimum
from planner.strategies.work_limits import Worth


def of(kind: str, seed: int) -> Problem:
    """A cluster as flat arrays."""
    return build_problem.build(make(kind, seed))


@pytest.mark.parametrize("seed", SEEDS[SMALL])
def test_small_clusters_are_small(seed: int) -> None:
    """Fewer than a hundred partitions, some of which are as large as the mean broker's window is wide."""
    problem = of(SMALL, seed)
    assert problem.rows < 100
    mean = int(problem.size_bytes @ problem.replication_factors) / int(problem.targets.sum())
    assert problem.balance.disk is not None
    assert problem.size_bytes.max() > 2 * problem.balance.disk.value / 100 * mean


@pytest.mark.slow
@pytest.mark.parametrize("kind", [WIDE, OVERFULL, HEAVY])
def test_wide_clusters_are_wide(kind: str) -> None:
    """Two hundred brokers, of disks of eight sizes; over-full ones' don't hold all bytes."""
    problem = of(kind, 0)
    rows = 4_000 if kind == HEAVY else 12_000
    assert (200, rows, 8) == (problem.targets.sum(), problem.rows, len(np.unique(disk_weights(problem))))
    disks = sum(broker.disk_bytes or 0 for broker in make(kind, 0).cluster.brokers)
    assert (kind == OVERFULL) == (int(problem.size_bytes @ problem.replication_factors) > disks)


@pytest.mark.slow
def test_a_seed_is_a_cluster() -> None:
    """The same one each time, and another for another seed or kind."""
    assert make(SMALL, 3) == make(SMALL, 3)
    assert make(SMALL, 3) != make(SMALL, 4)
    assert make(WIDE, 0) != make(OVERFULL, 0)


@pytest.mark.slow
def test_a_corner_is_planned_and_said() -> None:
    """Bytes counted from the assignment; the sweep is only timed where it is asked for."""
    corner = measure(SMALL, 6, whole=False)
    assert 0 < corner.least_bytes <= corner.bytes_moved
    assert (None, True) == (corner.whatif_seconds, corner.plan_seconds > 0)
    problem = of(SMALL, 6)
    plan = optimum.solve(problem, problem.balance)
    assert corner.least_bytes == plan.least_bytes
    assert () == independent_check.check(problem, plan.assignment)


@pytest.mark.slow
def test_a_row_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """As numbers and as cells."""
    monkeypatch.setattr(corners, "apart", lambda made, kind, seed, whole: measure(kind, seed, whole=not whole))
    found = list(corners.entries({SMALL: range(6, 7)}))
    (figures,) = (each for each in found if isinstance(each, Figures))
    cells = [cell.strip() for cell in str(found[-1]).strip("|").split("|")]
    moved, least = figures.values["bytes_moved"], figures.values["least_bytes"]
    assert ("corners", ["small 6", "9", "56"], gap(moved, least), "–") == (figures.table, cells[:3], cells[5], cells[8])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [4, 8])
def test_little_work_keeps_every_rule(seed: int) -> None:
    """Windows that can't all hold, and next to no work: a plan still, with a bound no higher than its bytes."""
    problem = of(SMALL, seed)
    plan = optimum.solve(problem, problem.balance, certify=True, worth=Worth(1, 0))
    held = plan.assignment[:, :, None] == problem.replicas[:, None, :]
    copied = ((plan.assignment >= 0) & ~held.any(axis=2)).sum(axis=1)
    assert () == independent_check.check(problem, plan.assignment)
    assert plan.least_bytes <= int(copied @ problem.size_bytes)
