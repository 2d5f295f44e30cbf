"""Parts of plans that a budget pays for: what they pay for first, what stays whole, and what waits for a later step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from budget_plans import carried_out, planned
from clusters import Racks, no_racks, spec_of
from msgspec import structs

from planner.model.build_problem import build
from planner.model.document_fields import PlacementRuleRow
from planner.model.spec import Budget, Changes, Sweep
from planner.sweep import budget_steps
from planner.sweep.candidates import PART


def test_steps_copy_no_more_than_the_whole_change_at_once() -> None:
    """Each step is a part of the plan for what is left, so nothing is copied twice, and topics become even too."""
    rows = {name: [(1, 2), (2, 3), (3, 1), (1, 3)] * 2 for name in ("a", "b", "c")}
    sizes = {"a": [30] * 8, "b": [10] * 8, "c": [50] * 8}
    asked = spec_of(no_racks(1, 2, 3, 4), rows, sizes=sizes, sweep=Sweep(12), budget=Budget(bytes_moved=110))
    whole, spent = planned(replace(asked, budget=Budget(bytes_moved=10_000)))["budget"]["spent"]["bytes_moved"], [0]
    assert PART == planned(asked)["candidates"]["winner"]["strategy"]
    while (document := planned(asked))["partitions"]:
        spent.append(document["budget"]["spent"]["bytes_moved"])
        asked = carried_out(asked, document)
    assert whole > 3 * 110
    assert 110 >= max(spent)
    assert whole >= sum(spent)
    assert document["complete"] is True


@pytest.mark.parametrize(
    "rule", [{"changes": Changes(demote_brokers=(1,), rebalance="none")}, {"together": (("t", "u"),)}]
)
def test_a_leader_that_a_rule_changes_waits_for_the_budget(rule: dict[str, Any]) -> None:
    """Two leaders must change and one is paid for: the plan isn't complete before the next step."""
    rows = {"t": [(1, 2), (1, 2)], "u": [(2, 1), (2, 1)]}
    asked = spec_of(no_racks(1, 2), rows, budget=Budget(leaders_changed=1), sweep=Sweep(30), **rule)
    document = planned(asked)

    assert (False, 1) == (document["complete"], document["budget"]["spent"]["leaders_changed"])
    assert document["unfinished"]["partitions"]
    assert planned(carried_out(asked, document))["complete"]


def test_a_part_pays_first_for_rules_and_for_leaders_that_are_not_preferred() -> None:
    """The only election goes to the partition that a demoted broker leads, or is needed where nothing is copied."""
    rows, only = {"t": [(2, 3), (1, 2)]}, Budget(leaders_changed=1)
    demoted = build(spec_of(no_racks(1, 2, 3), rows, budget=only, changes=Changes(demote_brokers=(1,))))
    behind = build(spec_of(no_racks(1, 2, 3), rows, budget=structs.replace(only, bytes_moved=0), leaders={"t": [2, 2]}))

    assert [[1, 2], [1, 0]] == budget_steps.part_of(demoted, np.array([[2, 1], [1, 0]])).tolist()
    assert [[1, 2], [0, 1]] == budget_steps.part_of(behind, np.array([[2, 1], [2, 0]])).tolist()


def test_a_part_leads_together_what_is_led_together() -> None:
    """The budget pays for one partition of a slot, or for a smaller one that is in none: only that moves."""
    rows, sizes = {"a": [(1,)], "b": [(1,)], "c": [(1,), (1,)]}, {"a": [20], "b": [20], "c": [10, 10]}
    together = {"together": (("a", "b"),), "budget": Budget(replicas_moved=1)}
    problem = build(spec_of(no_racks(1, 2), rows, sizes=sizes, **together))

    assert [[0], [0], [1], [0]] == budget_steps.part_of(problem, np.ones((4, 1), dtype=np.int32)).tolist()


@pytest.mark.parametrize(
    ("racks", "rule"),
    [
        ({1: "a", 2: "a", 3: "b"}, {}),
        (no_racks(1, 2, 3), {"placement": (PlacementRuleRow("big", "s", (2, 3), exclusive=False),)}),
    ],
)
def test_a_partition_above_the_budget_does_not_stop_a_step(racks: Racks, rule: dict[str, Any]) -> None:
    """What breaks the rack rule or placement is too large for any step; smaller partitions even out the brokers."""
    rows, sizes = {"big": [(1, 2)], "small": [(1, 3), (1, 3), (1, 3)]}, {"big": [90], "small": [20, 20, 20]}
    document = planned(spec_of(racks, rows, sizes=sizes, budget=Budget(bytes_moved=40), sweep=Sweep(30), **rule))

    assert (1, 1) == (document["unfinished"]["partitions"], document["unfinished"]["too_large"])
    assert 40 >= document["budget"]["spent"]["bytes_moved"] > 0
