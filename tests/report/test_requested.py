"""What a plan was asked for, in sentences."""

from __future__ import annotations

import pytest
from plan_documents import changes_asked, row, typed
from report_documents import small

from planner.plan.document.request_types import ChangesSection
from planner.report import requested


def test_changes_read_as_one_sentence() -> None:
    """The sentence has every kind of change, with new brokers of one rack together; what doesn't fit is counted."""
    asked = changes_asked(
        add_brokers=[{"id": 7, "rack": "a"}, {"id": 8, "rack": "a"}, {"id": 9}],
        remove_brokers=[3, 4],
        replace_brokers={"10": 11, "9": 12},
        set_racks={"5": "c"},
        set_replication_factor=[{"topics": "orders-*", "replication_factor": 3}],
        rebalance="leaders",
    )
    section = row(ChangesSection, asked)

    assert (
        "add brokers 7–8 in rack a; add broker 9; remove brokers 3–4; replace broker 9 with 12; "
        "replace broker 10 with 11; "
        "set the rack of broker 5 to c; replication factor 3 for topics orders-*; rebalance: leaders"
        == requested.changes(section)
    )
    assert "add brokers 7–8 in rack a; and 7 more" == requested.changes(section, 1)


@pytest.mark.parametrize(
    ("by", "moved", "said"),
    [
        ("broker", 24, "x on brokers 1–2; y on brokers 3–4 (other splits of the brokers may copy less)"),
        ("rack", 24, "x in rack r0; y in racks r0, r1 (other splits of the racks may copy less)"),
        ("rack_leaders", 25, "x led in rack r0; y led in racks r0, r1 (other splits of the racks may copy less)"),
        ("rack_leaders", 24, "x led in rack r0; y led in racks r0, r1"),
    ],
)
def test_other_splits_may_copy_less_unless_the_plan_copies_the_least_of_all(by: str, moved: int, said: str) -> None:
    """The sentence says that other splits may copy less, unless the plan is at the bound for all splits."""
    plan = small()
    plan["brokers"] = [{**each, "rack": f"r{each['id'] // 4}"} for each in plan["brokers"]]
    plan["spec"] |= {"apart": [{"topics": ["x", "y"], "by": by, "sides": [[1, 2], [3, 4]], "proven": False}]}
    plan["bound"] |= {"least_bytes_moved": 24, "bytes_moved": moved, "method": "flow"}
    assert said == requested.apart(typed(plan))


@pytest.mark.parametrize(("least", "gap"), [(1, 50.0), (2, 0.0)])
def test_without_sizes_a_plan_is_at_its_bound_if_it_copies_as_few_replicas(least: int, gap: float) -> None:
    """Without sizes, no plan copies bytes, so the sentence on other splits depends on the replicas."""
    plan = small()
    plan["spec"] |= {"apart": [{"topics": ["x"], "by": "rack_leaders", "sides": [[1, 2]], "proven": False}]}
    plan["cluster"] |= {"sizes_known": False}
    plan["bound"] |= {"least_bytes_moved": 0, "bytes_moved": 0, "least_replicas_moved": least, "gap_percent": gap}
    plan["bound"] |= {"method": "flow"}
    assert bool(gap) == ("may copy less" in requested.apart(typed(plan)))
