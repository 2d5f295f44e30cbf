"""Gates' numbers, as they read."""

from __future__ import annotations

from report_documents import GB

from planner.execution.gates import gate_cells, gate_noun


def test_gates_are_in_their_own_units() -> None:
    """Bytes, a duration, a count, a percentage; the disk's is that of a broker, which is named."""
    rows = {
        "limits.bytes_moved": GB,
        "limits.cross_rack_bytes": 500,
        "limits.eta": 5_400,
        "limits.replicas_moved": 1_200,
        "limits.gap": 5_000,
        "limits.rack_offline": 0,
    }
    shown = [gate_cells(key, value, value, None) for key, value in rows.items()]

    assert [
        ("1.00 GB", "1 GB"),
        *((text, text) for text in ("500 B", "1 h 30 min", "1,200", "0.50 %", "0")),
    ] == shown
    assert ("40.0 GB on broker 3", "45 GB") == gate_cells("limits.disk_used", 40 * GB, 45 * GB, 3)
    assert ["byte", "byte", "s", "replica", "%", "partition"] == [gate_noun(key) for key in rows]
