"""What a plan was asked for and why partitions change, as sentences."""

from __future__ import annotations

from plan_documents import changes_asked, row, typed
from report_documents import small

from planner.plan.document.request_types import ChangesSection
from planner.report import requested


def test_changes_read_as_one_sentence() -> None:
    """Every kind of change; new brokers of one rack together; what is too much is counted."""
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


def test_reasons_are_counted() -> None:
    """Most first."""
    said = "2 partitions to balance replicas or bytes, 1 only to balance leaders"
    assert said == requested.reasons(typed(small()))
