"""The benchmark of the rules: every rule has an effect, and plans keep it."""

from __future__ import annotations

import pytest

from benchmarks import cases, rules
from planner.model.build_problem import build

SPEC = cases.to_spec(cases.make("expand-small"))


@pytest.mark.parametrize("name", [name for name in rules.RULES if name != "none"])
def test_each_rule_is_in_the_problem(name: str) -> None:
    """Each rule is in its problem, and the plain problem has none."""
    without, problem = build(SPEC), build(rules.RULES[name](SPEC))
    assert (without.caps, without.allowed, without.leader_ranks, without.apart_by) == (None, None, None, ())
    assert (without.together, without.rebalance) == (None, "all")
    rules_of_brokers = (problem.caps, problem.allowed, problem.leader_ranks, problem.together)
    switched = [each is not None for each in rules_of_brokers]
    assert 1 == sum(switched) + len(problem.apart_by) + (problem.rebalance == "racks")


@pytest.mark.slow
def test_a_row_for_each_rule() -> None:
    """Each rule has a row. No plan breaks it, and none copies less than the bound."""
    rows = [row for row in rules.entries(["expand-small"], "public") if row.startswith("| expand-small")]
    assert len(rules.RULES) + 1 == len(rows)
    assert rows.pop().startswith("| expand-small | 105 | 100 | 11,535 | 11,535 |")
    assert all(row.endswith("| 0 rules |") for row in rows)
    found = rules.measured(rules.RULES["max_replicas, max_leaders"](SPEC))
    assert 0 == found.violations
    assert found.least <= found.moved
