"""The gates of `limits`, and the throttle that can't work: what a plan is refused for before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.batch_costs import Costs, Flow, Peak, endless
from planner.errors import UnsafePlanError
from planner.model import Spec

_ALL_OF_IT = 1_000_000
_UNITS = {"limits.eta": " s"}
_WHAT = {
    "copies in": "copies in",
    "leads": "leads, once for each follower,",
    "moves inside": "moves between its log dirs",
}


def gates(spec: Spec, winner: Mapping[str, Any], costs: Costs) -> list[dict[str, Any]]:
    """The gates that were set, each with its limit and what the plan needs: the `limits` of plan.json.

    `limits.disk_used` is there wherever a broker states a disk, with the broker that comes nearest to what it may hold;
    what was above it before, and isn't made fuller, is for `overfull_today`.
    UnsafePlanError where a gate can't be judged.
    """
    _refuse_unjudged(spec)
    limits = spec.limits
    values = (
        ("bytes_moved", limits.bytes_moved, winner["bytes_moved"]),
        ("replicas_moved", limits.replicas_moved, winner["replicas_moved"]),
        ("leaders_changed", limits.leaders_changed, winner["leaders_changed"]),
        ("eta", limits.eta_seconds, costs.total_seconds),
    )
    found = [
        {"key": f"limits.{name}", "limit": limit, "value": value}
        for name, limit, value in values
        if limit is not None and value is not None
    ]
    return [*found, *_disk_gate(spec, costs)]


def refuse(spec: Spec, found: Sequence[Mapping[str, Any]], costs: Costs) -> None:
    """UnsafePlanError that lists every gate crossed, with the key to change, and a throttle that can't work."""
    lines = [
        f"{gate['key']}: the plan needs {gate['value']}{_UNITS.get(gate['key'], '')}, "
        f"allowed: at most {gate['limit']}{_UNITS.get(gate['key'], '')}"
        for gate in found
        if gate["value"] > gate["limit"] and "broker" not in gate
    ]
    lines += [_overfull(spec, peak) for peak in costs.peaks if peak.batch and _allowed(spec, peak) < peak.size_bytes]
    stuck = endless(costs.batches, spec.execution.throttle_bytes_per_sec)
    if stuck:
        lines.append(_never_complete(stuck, spec.execution.throttle_bytes_per_sec))
    if lines:
        raise UnsafePlanError("\n".join(["nothing was written, the plan crosses its limits:", *lines]))


def overfull_today(spec: Spec, costs: Costs) -> list[str]:
    """Warnings of the brokers that are above `limits.disk_used` today and that no batch makes fuller.

    Refusing those would refuse every plan that relieves them.
    """
    return [
        f"broker {peak.broker} holds {peak.size_bytes} bytes today, above limits.disk_used ({_allowed(spec, peak)}); "
        "no batch makes it fuller"
        for peak in costs.peaks
        if spec.cluster.sizes_known and not peak.batch and _allowed(spec, peak) < peak.size_bytes
    ]


def _refuse_unjudged(spec: Spec) -> None:
    """A gate without the numbers to judge it by would let everything pass."""
    limits, cluster = spec.limits, spec.cluster
    of_sizes = {"bytes_moved": limits.bytes_moved, "eta": limits.eta_seconds, "disk_used": limits.disk_used_ppm}
    asked = [f"limits.{name}" for name, limit in of_sizes.items() if limit is not None]
    if asked and (cluster.unsized or not cluster.sizes_known):
        raise UnsafePlanError(
            f"nothing was written: {' and '.join(asked)} can't be judged, {cluster.unsized or 'all'} partitions have "
            "no size; allowed: sizes for every partition, or no such limit"
        )
    if limits.eta_seconds is not None and spec.execution.throttle_bytes_per_sec is None:
        raise UnsafePlanError(
            "nothing was written: limits.eta can't be judged without execution.throttle; "
            "allowed: a throttle, or no such limit"
        )


def _disk_gate(spec: Spec, costs: Costs) -> list[dict[str, Any]]:
    stated = [
        peak
        for peak in costs.peaks
        if peak.disk_bytes is not None and (peak.batch or peak.size_bytes <= _allowed(spec, peak))
    ]
    if not stated or not spec.cluster.sizes_known:
        return []
    nearest = max(stated, key=lambda peak: peak.size_bytes / (peak.disk_bytes or 1))
    row = {"limit": _allowed(spec, nearest), "value": nearest.size_bytes, "broker": nearest.broker}
    return [{"key": "limits.disk_used", **row}]


def _allowed(spec: Spec, peak: Peak) -> int:
    """Bytes that the broker may hold; as many as it does where it states no disk."""
    if peak.disk_bytes is None:
        return peak.size_bytes
    share = _ALL_OF_IT if spec.limits.disk_used_ppm is None else spec.limits.disk_used_ppm
    return peak.disk_bytes * share // _ALL_OF_IT


def _overfull(spec: Spec, peak: Peak) -> str:
    asked = spec.limits.disk_used_ppm
    share = ", its capacity.disk" if asked is None else f" ({asked / 10_000:.7g}% of capacity.disk, {peak.disk_bytes})"
    return (
        f"limits.disk_used: broker {peak.broker} holds {peak.size_bytes} bytes in batch {peak.batch}, "
        f"allowed: at most {_allowed(spec, peak)}{share}"
    )


def _never_complete(stuck: Sequence[Flow], throttle_bytes_per_sec: int | None) -> str:
    """The worst of them: what lets that one complete lets all of them."""
    worst = max(stuck, key=lambda flow: flow.produced_bytes_per_sec)
    others = f" (and {len(stuck) - 1} more such brokers or batches)" if len(stuck) > 1 else ""
    return (
        f"execution.throttle: {throttle_bytes_per_sec} bytes/s never let batch {worst.batch} complete{others}: "
        f"what producers write to the partitions that broker {worst.broker} {_WHAT[worst.side]} is "
        f"{worst.produced_bytes_per_sec} bytes/s; allowed: more than {worst.produced_bytes_per_sec} bytes/s"
    )
