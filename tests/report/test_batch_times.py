"""How a plan runs, in words: batches, their time, what is derived, and who waits for a leader."""

from __future__ import annotations

from typing import Any

from plan_documents import typed
from report_documents import small

from planner.report.sentences import derived, pace


def test_the_pace_names_the_throttle() -> None:
    """The least time over all batches, where a throttle and sizes are known."""
    plan = small()
    free = {"throttle_bytes_per_sec": None}

    assert "2 batches, at least 8 min at 50 MB/s per broker" == pace(typed(plan))
    assert "2 batches, not throttled" == pace(typed(plan | {"execution": free}))
    assert "2 batches, throttled to 50 MB/s per broker" == pace(typed(plan | {"cluster": {"sizes_known": False}}))


def test_a_throttle_reads_as_it_was_written() -> None:
    """In the unit that it was most likely written in, as limits and budgets do."""
    plan = small()
    written = {50 * 2**20: "50 MiB/s", 125_000_000: "125 MB/s", 12_345_678: "12.3 MB/s"}
    for throttle, shown in written.items():
        assert pace(typed(plan | {"execution": plan["execution"] | {"throttle_bytes_per_sec": throttle}})).endswith(
            f" at {shown} per broker"
        )


def test_batches_that_wait_for_a_leader_are_counted() -> None:
    """They may never end, so the time is that of the others and of copying them at best."""
    plan = small()
    batches: list[dict[str, Any]] = [*plan["batches"][:1], plan["batches"][1] | {"leaderless": True}]

    assert "2 batches (1 at the end without a leader), at least 8 min at 50 MB/s per broker" == pace(
        typed(plan | {"batches": batches})
    )


def test_what_is_derived_is_shown_with_its_key() -> None:
    """As the YAML takes it, so that it can be written there; nothing for a plan whose YAML has it all."""
    rows = [
        {"key": "execution.throttle", "value": "50MB/s", "why": "a constant"},
        {"key": "execution.batches.duration", "value": "1h", "why": "a batch"},
    ]
    plan = {"execution": {"derived": rows}}

    assert "execution.throttle: 50MB/s (a constant); execution.batches.duration: 1h (a batch)" == derived(typed(plan))
    assert derived(typed(small())) == ""
