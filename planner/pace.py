"""How a plan runs, for people: its batches and their time, the settings that the YAML leaves out, and who waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.figures import counted, duration
from planner.stated_sizes import stated

Plan = Mapping[str, Any]


def pace(plan: Plan) -> str:
    """How many batches, and the least time they take at the throttle."""
    batches, throttle = plan["batches"], plan["execution"]["throttle_bytes_per_sec"]
    times = [batch["seconds_at_throttle"] for batch in batches]
    waiting = sum(batch.get("leaderless", False) for batch in batches)
    shown = counted(len(batches), "batch") + (f" ({waiting:,} at the end without a leader)" if waiting else "")
    if throttle is None:
        return f"{shown}, no throttle"
    least = None if None in times or not plan["cluster"]["sizes_known"] else sum(times)
    return f"{shown}{'' if least is None else f', at least {duration(least)}'} at {stated(throttle)}/s a broker"


def derived(plan: Plan) -> str:
    """The settings that the YAML leaves out, as it takes them: `execution.throttle: 50MB/s, …`; empty where none is."""
    return ", ".join(map(_setting, _derived(plan)))


def derived_why(plan: Plan) -> str:
    """The same, each with where its value comes from."""
    return "; ".join(f"{_setting(row)} ({row['why']})" for row in _derived(plan))


def _derived(plan: Plan) -> Sequence[Plan]:
    rows: Sequence[Plan] = plan["execution"].get("derived", ())
    return rows


def _setting(row: Plan) -> str:
    return f"{row['key']}: {row['value']}"
