"""Checks of rules on leaders: each fault is refused with its key, its value, and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_cluster_specs import after, findings

from planner.inputs.spec.reading import load
from planner.model.document_fields import LeaderRacksRow

# Brokers 1 and 4 are in rack a, 2 in b, 3 in c; orders has 3 replicas of 2 partitions.
JOINING = "add_brokers: [{id: 4, rack: a}]"
CASES = [
    (
        "racks_that_do_not_count",
        "changes: {rebalance: racks}\nrack_aware: disabled\n",
        ("changes.rebalance", "which rack_aware (12:1) disables; allowed: all, leaders, none"),
    ),
    (
        "racks_that_are_left",
        "changes: {rebalance: racks}\nrack_aware: as_today\n",
        ("changes.rebalance", "'racks' repairs what rack_aware (12:1) as_today leaves as it is; allowed: all"),
    ),
    (
        "unknown_broker",
        f"changes: {{{JOINING}, demote_brokers: [1, 9]}}\n",
        ("changes.demote_brokers[1]", "9 doesn't stay in the cluster; allowed: 1, 2, 3, 4"),
    ),
    (
        "leaving_broker",
        f"changes: {{{JOINING}, remove_brokers: [1], demote_brokers: [1]}}\n",
        ("changes.demote_brokers[0]", "1 doesn't stay in the cluster; allowed: 2, 3, 4"),
    ),
    (
        "all_brokers",
        "changes: {demote_brokers: [1, 2, 3]}\n",
        ("changes.demote_brokers", "no broker is left to lead"),
    ),
    (
        "excluded_topic",
        "changes: {demote_brokers: [1]}\ntopics: {exclude: [orders]}\n",
        (
            "changes.demote_brokers",
            "one of these leads partition orders-0, which may not change by topics.include or topics",
        ),
    ),
    (
        "unknown_rack",
        "leader_racks: [{topics: orders, prefer: [a, bb]}]\n",
        ("leader_racks[0].prefer[1]", "no broker that stays or joins has the rack 'bb'; ", "allowed: a, b, c"),
    ),
    (
        "rack_twice",
        "leader_racks: [{topics: orders, prefer: [a, a]}]\n",
        ("leader_racks[0].prefer[1]", "allowed: "),
    ),
    (
        "matches_nothing",
        'leader_racks: [{topics: "click*", prefer: [a]}]\n',
        ("leader_racks[0].topics", "'click*' matches no topic", "some of orders"),
    ),
    (
        "never_first",
        'leader_racks: [{topics: "*", prefer: [a]}, {topics: orders, prefer: [b]}]\n',
        ("leader_racks[1].topics", "'orders'"),
    ),
]


@pytest.mark.parametrize(("rest", "parts"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_each_fault_is_found_before_planning(rest: str, parts: tuple[str, ...], tmp_path: Path) -> None:
    """One fault gives one finding."""
    (found,) = findings(tmp_path, after(rest))
    assert parts[0] == found.key
    for part in parts[1:]:
        assert part in found.message


def test_rules_are_read(tmp_path: Path) -> None:
    """leader_racks keep their order; a spec that only demotes brokers has `rebalance: none`."""
    text = after("changes: {demote_brokers: [1]}\nleader_racks: [{topics: orders, prefer: [b, c]}]\n")
    (tmp_path / "spec.yaml").write_text(text, encoding="utf-8")
    spec = load(tmp_path / "spec.yaml")
    assert (LeaderRacksRow("orders", ("b", "c")),) == spec.leader_racks
    assert ((1,), "none") == (spec.changes.demote_brokers, spec.changes.rebalance)
