"""The tables about what was asked and chosen: the values below each heading, the same for every renderer."""

from __future__ import annotations

from typing import Any

from plan_documents import typed
from report_documents import small, with_alternatives

from planner.report import choice_tables, markdown
from planner.report.view import Quantity, Strong, Table


def column(table: Table[Any], heading: str) -> list[Any]:
    """The values under a heading."""
    found = next(each for each in table.columns if each.heading == heading)
    return [found.value(row) for row in table.rows]


def test_a_crossed_gate_stands_out() -> None:
    """A limit that is exceeded is marked, and each row states what was allowed, in the limit's unit."""
    rows = [{"key": "limits.bytes_moved", "limit": 10, "value": value} for value in (9, 24)]
    table = choice_tables.limits(typed(small(limits=rows)))

    assert ["kept", Strong("exceeded")] == column(table, "")
    assert ["10 B", "10 B"] == column(table, "Allowed")


def test_a_missed_target_is_around_the_share_where_brokers_have_unlike_disks() -> None:
    """If brokers have different disks, a missed target is stated against the share, else as most minus fewest."""
    plan = small()
    plan["balance"]["relaxed"] = [
        {"window": window, "topic": None, "wanted": "1", "reached": 5, "why": "x"}
        for window in ("replicas", "topic_replicas", "leaders")
    ]
    alike = "differ by at most 1"
    assert [alike] * 3 == column(choice_tables.relaxed(typed(plan)), "Asked")
    plan["brokers"] = [row | {"disk_bytes": (at + 1) * 10**12} for at, row in enumerate(plan["brokers"])]
    share = "within 1 of its share"
    assert [share, share, alike] == column(choice_tables.relaxed(typed(plan)), "Asked")


def test_a_term_that_changes_stands_out() -> None:
    """A term that changes is marked; a terminal shows `if nothing moves` only if it differs from today."""
    table = choice_tables.terms(typed(small()))

    assert Strong(Quantity(38, "replicas")) == column(table, "Plan")[0]
    assert Quantity(0, "partitions") in column(table, "Plan")
    assert [True] == [each.wide for each in table.columns if each.heading == "If nothing moves"]


def test_the_front_names_this_plan() -> None:
    """A point of the front is named by the windows that differ from the plan's; a single point makes no table."""
    front = choice_tables.front(typed(small()))

    assert ["unchanged", "the same targets (this plan)", "replicas 5%, leaders 5%"] == column(
        front, front.columns[0].heading
    )
    assert [False, True, False] == [bool(front.strong and front.strong(row)) for row in front.rows]
    assert () == choice_tables.front(typed(small(pareto=small()["pareto"][:1]))).rows


def test_variants_say_why_not() -> None:
    """Each variant has a row: the one that is this plan is marked, and one without a plan has its reason."""
    table = choice_tables.variants(typed(with_alternatives()))

    assert [Strong("this plan"), "", "no candidate keeps every rule"] == column(table, "")
    assert ["1 of 2", "1 of 2", "2 of 2"] == column(table, "Scenarios that hold")
    # Not "at least", which the headline says about all batches.
    assert 3 == len(column(table, "In one batch"))


def test_this_plan_stands_out_among_the_alternatives() -> None:
    """Only this plan is marked among doing nothing and Kafka's own placements."""
    table = choice_tables.compared(typed(small()))
    assert ["this plan"] == [row.label for row in table.rows if table.strong and table.strong(row)]


def test_no_bytes_where_sizes_are_unknown() -> None:
    """Without sizes, bytes and gaps are dashes."""
    plan = with_alternatives()
    plan["cluster"]["sizes_known"] = False
    for table in (choice_tables.front(typed(plan)), choice_tables.compared(typed(plan))):
        for heading in ("Copied", "Proven minimum", "Above minimum"):
            if any(each.heading == heading for each in table.columns):
                assert {"–"} == set(map(markdown.line, column(table, heading)))


def test_kafkas_tool_is_not_this_plan() -> None:
    """If a placement of Kafka's own was chosen, it is still compared with the best of Kafka's placements."""
    plan = small()
    own = next(row for row in plan["compared"] if row["label"] == "this plan")
    own["strategy"] = "kafka_classic"
    assert "70.0 GB, and 1 partition would not be as asked (best of 900 simulated runs)" in (
        choice_tables.kafkas_tool(typed(plan))
    )
