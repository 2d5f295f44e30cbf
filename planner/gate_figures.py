"""What a gate's numbers read like, in plan.json's `limits` and in refusals: with the unit that the key implies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.figures import duration, gap_shown, number, size
from planner.stated_sizes import beside, stated

GATES_ON_BYTES = ("limits.bytes_moved", "limits.cross_rack_bytes", "limits.disk_used")
_NOUNS = {
    **dict.fromkeys(GATES_ON_BYTES, "byte"),
    "limits.replicas_moved": "replica",
    "limits.leaders_changed": "leader",
    "limits.eta": "s",
    "limits.gap": "%",
}


def gate(row: Mapping[str, Any]) -> tuple[str, str]:
    """What the plan needs of a gate, and what is allowed; `limits.disk_used` is that of the fullest broker, named."""
    of = f" on broker {row['broker']}" if "broker" in row else ""
    value, limit = row["value"], row["limit"]
    if row["key"] not in GATES_ON_BYTES:
        return f"{gate_amount(row['key'], value)}{of}", gate_amount(row["key"], limit)
    # A limit reads as it was written, and what the plan needs in units of the same kind.
    return f"{beside(value, limit)}{of}", stated(limit)


def gate_amount(key: str, value: int) -> str:
    """A gate's number as it reads: `121 MB`, `3 h 16 min`, `0.01 %`, `73`; `value` as plan.json has it."""
    if key == "limits.gap":
        return gap_shown(-(-value // 10) / 1000)
    return (size if key in GATES_ON_BYTES else duration if key == "limits.eta" else number)(value)


def gate_noun(key: str) -> str:
    """What a gate's number counts, in the singular: `byte`, `replica`, `leader`, `partition`; or `s`, or `%`."""
    return _NOUNS.get(key, "partition")
