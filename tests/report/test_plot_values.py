"""The numbers that plots show: what brokers hold while batches run, and batches summed up."""

from __future__ import annotations

from large_plans import large
from plan_documents import change, document, typed

from planner.report import plot_values


def test_what_brokers_hold_while_batches_run():
    """A replica that leaves goes when its batch is complete; stepwise changes count in each of their batches."""
    steps = [change("t", 0, [1, 2], [3, 2], size=10), change("t", 0, [3, 2], [3, 4], size=10)]
    whole = change("t", 0, [1, 2], [3, 4], size=10)
    plan = document([whole], [[steps[0]], [steps[1]]])
    moved = plot_values.movement(typed(plan))

    assert (1, 2, 3, 4, 9) == moved.brokers
    assert [[300, 300, 300, 300, 300], [300, 300, 310, 300, 300], [290, 300, 310, 310, 300]] == moved.held.tolist()
    # The leader of today serves the first step; the second one's copy comes from who is left.
    assert [(1, 3, 10), (3, 4, 10)] == sorted(plot_values.copied_pairs(moved))


def test_runs_of_batches_cover_all_of_them():
    """No batch is in two runs or in none, and time goes on without a gap."""
    plan = large(6, 3, 5, 20, 100)
    parts = plot_values.runs(typed(plan), 24)

    assert [0, *[part.end for part in parts]] == [*[part.first for part in parts], 100]
    assert sum(60 + number for number in range(100)) == parts[-1].start + parts[-1].seconds
    assert "batches 1 to 4" == parts[0].name
