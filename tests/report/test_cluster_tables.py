"""The tables about the cluster: the values below each heading, and the words about rows that are left out."""

from __future__ import annotations

from typing import Any

from plan_documents import typed
from report_documents import broker, small, with_disks, with_traffic

from planner.report import cluster_tables, markdown, plot_movement
from planner.report.view import Change, Column, Name, Quantity, Strong, Table


def headings(table: Table[Any]) -> list[str]:
    """A table's headings."""
    return [each.heading for each in table.columns]


def cells(table: Table[Any], heading: str) -> list[str]:
    """The cells below a heading, as Markdown."""
    found: Column[Any] = next(each for each in table.columns if each.heading == heading)
    return [markdown.line(found.value(row)) for row in table.rows]


def test_brokers_have_columns_for_what_is_known() -> None:
    """Roles are there if a broker joins or leaves, traffic if rates are known, and peaks if disks are known."""
    loads = ["Replicas", "Leaders", "Size"]
    rates = ["Network in", "Network out"]
    stay = [broker(1, "stays", (1, 1), (1, 1))]

    assert ["Broker", "Rack", *loads, "Copies in", "Copies out"] == headings(
        cluster_tables.brokers(typed(small(brokers=stay)))
    )
    assert "" in headings(cluster_tables.brokers(typed(small())))
    assert "Peak disk" in headings(cluster_tables.brokers(typed(with_disks())))
    assert rates == [each for each in headings(cluster_tables.brokers(typed(with_traffic()))) if each in rates]
    assert rates == headings(cluster_tables.brokers(typed(with_traffic())))[-2:]


def test_loads_are_changes_in_their_units() -> None:
    """Loads are shown today and with the plan, with units; a broker that joins is marked."""
    table = cluster_tables.brokers(typed(small()))
    row = next(each for each in table.rows if each.role == "added")
    values = {each.heading: each.value(row) for each in table.columns}

    assert Change(0, 2) == values["Replicas"]
    assert Change(Quantity(0, "bytes"), Quantity(2_000_000_000, "bytes")) == values["Size"]
    assert (Name("a", 60), Strong("added")) == (values["Rack"], values[""])


def test_a_broker_without_a_rack_has_none() -> None:
    """A broker without a rack has a dash, not an empty name."""
    plan = small()
    plan["brokers"][0]["rack"] = None
    assert "–" == cells(cluster_tables.brokers(typed(plan)), "Rack")[0]


def test_batches_left_out_say_what_they_copy() -> None:
    """The words about batches left out say which they are and how much they copy."""
    table = cluster_tables.batches(typed(small()))
    assert "1 batch, 2 to 2, that copy 12.0 GB," == table.left_out(table.rows[:1])


def test_topics_that_copy_most_come_first() -> None:
    """Topics that copy most come first; all topics are there, or only those that change."""
    plan = small()
    plan["topics"].append({**plan["topics"][0], "name": "idle", "partitions_changed": 0, "bytes_moved": 0})

    assert ["`orders`", "`__consumer_offsets`"] == cells(cluster_tables.topics(typed(plan), changed=True), "Topic")
    assert "`idle`" in cells(cluster_tables.topics(typed(plan)), "Topic")


def test_partitions_name_the_first_and_the_last_left_out() -> None:
    """The words about partitions left out name the first and the last; names are plain text."""
    table = cluster_tables.partitions(typed(small()))

    assert ["1, 2 → 4, 2", "2, 3 → 2, 4"] == cells(table, "Replicas, preferred leader first")[1:]
    assert "3 partitions, __consumer_offsets-7 to orders-1," == table.left_out(table.rows[:0])


def test_what_plots_show_is_there_in_numbers() -> None:
    """Tables have the plots' numbers: who copies to whom, how much in each batch, and the most that a broker holds."""
    plan = typed(small())
    moved = plot_movement.movement(plan)

    assert ["12.0 GB", "12.0 GB"] == cells(cluster_tables.copied_pairs(plan, moved), "Copied")
    assert ["1", "1", "2", "2"] == cells(cluster_tables.copies(plan, moved), "Batch")
    assert ["today", "today", "today", "batch 2"] == cells(cluster_tables.stored(plan, moved), "Fullest in")
