"""The benchmark of adopt: plans made by other planners' rules, and what is said of them."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import adopt, cases
from benchmarks.adopt import PLANS, assigner, generate, rebuild, verdict
from benchmarks.benchmark import Scope, lines, sections_of
from planner.model.build_problem import build, today
from planner.model.problem import Problem
from planner.scoring import independent_check


def _problem(case: str) -> Problem:
    return build(cases.to_spec(cases.make(case)))


@pytest.mark.parametrize("make", [generate, rebuild, assigner])
def test_the_plans_of_the_small_case_keep_every_rule(make):
    """Racks, factors, brokers."""
    problem = _problem("expand-small")

    assert not any(rows.any() for rows in independent_check.broken_rules(problem, make(problem)).values())


def test_a_rebuild_by_count_evens_replicas():
    """Within one, whatever that moves."""
    problem = _problem("expand-small")
    counts = np.bincount(rebuild(problem).ravel(), minlength=len(problem.broker_ids))

    assert counts.max() - counts.min() <= 1


def test_topic_ceilings_hold_and_what_fits_stays():
    """No topic has more on a broker than its replicas / brokers, rounded up."""
    problem = _problem("expand-small")
    placed = assigner(problem)
    for topic in range(len(problem.topic_names)):
        rows = placed[problem.topic_of == topic]
        assert np.bincount(rows.ravel()).max() <= -(-rows.size // len(problem.broker_ids))

    assert (placed == today(problem)).any()


def test_generate_keeps_replication_factors_and_is_refused_for_that():
    """The case raises them."""
    found = verdict("raise-rf", "public", "Kafka --generate")

    assert (560, None, None) == (found.violations, found.balance, found.needed_bytes)


@pytest.mark.slow
@pytest.mark.parametrize("plan", PLANS)
def test_a_verdict_is_within_its_bounds(plan):
    """Least, what our plan needs, what the plan moves."""
    found = verdict("expand-small", "public", plan)

    assert 0 == found.violations
    assert 0 < found.least_bytes <= found.needed_bytes <= found.bytes_moved


@pytest.mark.slow
def test_the_section_prints_a_row_for_each_plan_of_each_case(monkeypatch):
    """As Markdown."""
    monkeypatch.setattr(adopt, "apart", lambda function, *arguments: function(*arguments))
    printed = list(lines(Scope(("expand-small",), ("adopt",))))

    assert ("adopt",) == sections_of(Scope(sections=("adopt",)))
    assert len(PLANS) == sum(line.startswith("| expand-small |") for line in printed)
