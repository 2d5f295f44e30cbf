"""What is copied, in numbers and plots: from whom to whom, batch by batch, and what brokers hold meanwhile."""

from __future__ import annotations

import re

from drawn_plots import by_name, marks, texts
from large_plans import large
from plan_documents import change, document, typed
from report_documents import GB, small, with_disks

from planner.report import plot_movement


def test_what_brokers_hold_while_batches_run():
    """A replica that leaves counts until its batch is complete; changes in steps count in each of their batches."""
    steps = [change("t", 0, [1, 2], [3, 2], size=10), change("t", 0, [3, 2], [3, 4], size=10)]
    whole = change("t", 0, [1, 2], [3, 4], size=10)
    plan = document([whole], [[steps[0]], [steps[1]]])
    moved = plot_movement.movement(typed(plan))

    assert (1, 2, 3, 4, 9) == moved.brokers
    assert [[300, 300, 300, 300, 300], [300, 300, 310, 300, 300], [290, 300, 310, 310, 300]] == moved.stored.tolist()
    # Today's leader sends the first step's copy; a remaining replica sends the second step's.
    assert [(1, 3, 10), (3, 4, 10)] == sorted(plot_movement.copied_pairs(moved))


def test_runs_of_batches_cover_all_of_them():
    """Every batch is in exactly one run, and time has no gap."""
    plan = large(6, 3, 5, 20, 100)
    parts = plot_movement.runs(typed(plan), 24)

    assert [0, *[part.end for part in parts]] == [*[part.first for part in parts], 100]
    assert sum(60 + number for number in range(100)) == parts[-1].start + parts[-1].seconds
    assert "batches 1 to 4" == parts[0].name


def test_lines_of_disks_are_named_and_have_their_limits():
    """Brokers that end at about the same size share a label; disk and limit have lines if they are near the values."""
    found = texts(by_name(with_disks())["held"])

    assert {"1–3", "4", "disk 50.0 GB", "limits.disk_used 45.0 GB"} <= set(found)
    assert not [each for each in texts(by_name(small())["held"]) if "disk" in each]
    assert not [each for each in texts(by_name(with_disks(900 * GB))["held"]) if "disk 900" in each]


def test_the_map_has_a_cell_for_each_two_brokers_that_copy():
    """The map has a cell for each pair of brokers that copies; today's leaders send."""
    assert {"from-1-to-4": "1 to 4: 12.0 GB", "from-2-to-4": "2 to 4: 12.0 GB"} == marks(by_name(small())["movement"])


def test_batches_along_time_with_what_each_broker_copies():
    """Each batch has a box, and for each of its brokers one half for copies in and one for copies out."""
    assert {
        "batch-1": "batch 1: 1 replica, 12.0 GB, 1 election, 4 min",
        "batch-2": "batch 2: 1 replica, 12.0 GB, 1 election, 4 min",
        "in-1-4": "batch 1, broker 4: copies in 12.0 GB",
        "in-2-4": "batch 2, broker 4: copies in 12.0 GB",
        "out-1-1": "batch 1, broker 1: copies out 12.0 GB",
        "out-2-2": "batch 2, broker 2: copies out 12.0 GB",
    } == marks(by_name(small())["batches"])


def test_a_line_for_what_each_broker_holds():
    """Each broker has a line; old and new replicas both count until the batch is complete."""
    found = marks(by_name(small())["held"])

    assert 4 == len(found)
    assert "broker 4: 0 B today, at most 24.0 GB, 2.00 GB afterwards" == found["broker-4"]


def test_unknown_sizes_are_counted_in_replicas():
    """Without sizes, plots count replicas and name no bytes."""
    plan = small()
    plan["cluster"]["sizes_known"] = False
    found = by_name(plan)

    assert {"from-1-to-4": "1 to 4: 1", "from-2-to-4": "2 to 4: 1"} == marks(found["movement"])
    assert not re.search(r"\d [kMG]?B\b", "".join(plot.svg for plot in found.values()))
