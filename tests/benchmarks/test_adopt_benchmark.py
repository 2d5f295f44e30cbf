"""The benchmark of adopt: plans by the rules of other planners, and adopt's verdicts on them."""

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
    """The plans keep racks and replication factors, and use the right brokers."""
    problem = _problem("expand-small")

    assert not any(rows.any() for rows in independent_check.broken_rules(problem, make(problem)).values())


def test_a_rebuild_by_count_evens_replicas():
    """A rebuild by count makes replicas differ by at most 1, whatever that moves."""
    problem = _problem("expand-small")
    counts = np.bincount(rebuild(problem).ravel(), minlength=len(problem.broker_ids))

    assert counts.max() - counts.min() <= 1


def test_topic_ceilings_hold_and_what_fits_stays():
    """No broker has more of a topic than the topic's replicas / brokers, rounded up. Some replicas stay."""
    problem = _problem("expand-small")
    placed = assigner(problem)
    for topic in range(len(problem.topic_names)):
        rows = placed[problem.topic_of == topic]
        assert np.bincount(rows.ravel()).max() <= -(-rows.size // len(problem.broker_ids))

    assert (placed == today(problem)).any()


def test_generate_keeps_replication_factors_and_is_refused_for_that():
    """Kafka's --generate keeps the factors that the case raises: its plan breaks 560 rules and gets no figures."""
    found = verdict("raise-rf", "public", "Kafka --generate")

    assert (560, None, None) == (found.violations, found.balance, found.needed_bytes)


def test_a_valid_plan_without_a_bound_has_a_balance_only(monkeypatch):
    """If no other plan is found, the balance that the given plan reaches is printed; the other figures aren't known."""
    monkeypatch.setattr(adopt.adopted_plan, "prove_optimum", lambda placed: ())
    found = verdict("expand-small", "public", "topic ceilings (kafka-assigner)")

    assert (0, None, None) == (found.violations, found.least_bytes, found.needed_bytes)
    assert all(part.isdigit() for part in found.balance)


@pytest.mark.slow
@pytest.mark.parametrize("plan", PLANS)
def test_a_verdict_is_within_its_bounds(plan):
    """The bound is at most our plan's bytes, and those are at most the adopted plan's bytes."""
    found = verdict("expand-small", "public", plan)

    assert 0 == found.violations
    assert 0 < found.least_bytes <= found.needed_bytes <= found.bytes_moved


@pytest.mark.slow
def test_the_section_prints_a_row_for_each_plan_of_each_case(monkeypatch):
    """The section is a Markdown table with a row for each plan of each case."""
    monkeypatch.setattr(adopt, "apart", lambda function, *arguments: function(*arguments))
    printed = list(lines(Scope(("expand-small",), ("adopt",))))

    assert ("adopt",) == sections_of(Scope(sections=("adopt",)))
    assert len(PLANS) == sum(line.startswith("| expand-small |") for line in printed)
