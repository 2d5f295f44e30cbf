"""The gates that refuse a plan (limits, a throttle that can't work, cordons), and how their numbers are written."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from planner.execution.batch_costs_and_risks import CopyFlow, Costs, Peak, endless
from planner.model.build_problem import brokers_after
from planner.model.cluster import ANY
from planner.model.document_fields import PPM, BrokerId, Count, Section, SpecLimits, doc
from planner.model.errors import UnsafePlanError
from planner.model.formats import (
    as_stated,
    counted,
    duration,
    gap_shown,
    number,
    percent,
    size,
    size_and_bytes,
    size_like,
)
from planner.model.spec import LIMIT_FIELDS, OF_RACKS, OF_SIZES, Spec

# Why nothing is written: a limit of the YAML is exceeded, a throttle can't work, or a broker is cordoned.
EXCEEDS = "nothing was written, because the plan exceeds these limits:"
UNSAFE = "nothing was written, because the plan can't be applied safely:"
ALSO_UNSAFE = "and it can't be applied safely:"
# The winner's scores that are gates under the same name, in the order of the report's terms.
_OF_SCORES = (
    "bytes_moved",
    "cross_rack_bytes",
    "replicas_moved",
    "leaders_changed",
    "broker_offline",
    "broker_refused",
    "rack_offline",
    "rack_refused",
    "hours_above_capacity",
    "worst_hour",
    "months_until_full",
)
_WHAT = {
    "copies in": "copies in",
    "leads": "leads, once for each follower",
    "moves inside": "moves between its log dirs",
}


GATES_ON_BYTES = ("limits.bytes_moved", "limits.cross_rack_bytes", "limits.disk_used", "capacity.max_disk")
GATES_ON_RATES = ("limits.worst_hour", "limits.p99_hour")
# Gates whose value must reach the limit instead of staying within it.
AT_LEAST = ("limits.months_until_full",)
_NOUNS = {
    **dict.fromkeys(GATES_ON_BYTES, "byte"),
    **dict.fromkeys(GATES_ON_RATES, "byte/s"),
    "limits.replicas_moved": "replica",
    "limits.leaders_changed": "leader",
    "limits.hours_above_capacity": "hour",
    "limits.months_until_full": "month",
    "limits.eta": "s",
    "limits.gap": "%",
}


class LimitRow(Section, frozen=True):
    """One limit of the YAML, or of a disk, and what the plan comes to."""

    key: Annotated[str, doc("Key in the YAML.")]
    limit: Annotated[
        Count,
        doc(
            "What is allowed: seconds for limits.eta, bytes on the broker for limits.disk_used and "
            "capacity.max_disk, millionths of what the plan copies for limits.gap, bytes per second for "
            "limits.worst_hour and limits.p99_hour, the fewest months for limits.months_until_full."
        ),
    ]
    value: Annotated[Count, doc("What the plan comes to.")]
    broker: Annotated[BrokerId | None, doc("Of a limit on one broker: the broker that comes nearest to it.")] = None

    @property
    def crossed(self) -> bool:
        """True if the plan's value is above the limit, or below it for a gate of AT_LEAST."""
        return self.value < self.limit if self.key in AT_LEAST else self.value > self.limit


def gates(
    spec: Spec, winner: Mapping[str, int], costs: Costs, least_bytes: int, least_replicas: int | None
) -> list[LimitRow]:
    """The gates that are set, with the plan's values: the `limits` of plan.json.

    `winner`: the plan's scores; no plan moves less than `least_bytes` and `least_replicas` (None: unknown). If a broker
    states a disk, `limits.disk_used` is a gate, for the broker nearest to its limit. A broker that is above it today
    and that no batch makes fuller is left to `overfull_today`. UnsafePlanError if a gate can't be judged.
    """
    if unjudged := list(_unjudged(spec)):
        raise UnsafePlanError(*(f"nothing was written: {line}" for line in unjudged))
    values: dict[str, int | None] = {name: winner[name] for name in _OF_SCORES if _limit(spec, name) is not None}
    if spec.limits.p99_hour_bytes_per_sec is not None:
        values["p99_hour"] = max(winner["p99_hour_in"], winner["p99_hour_out"])
    # In millionths of the bytes that the plan copies (of its replicas if it copies no bytes), rounded up.
    moved, least = winner["bytes_moved"], least_bytes
    if not moved and least_replicas is not None:
        moved, least = winner["replicas_moved"], least_replicas
    gap_ppm = -(-PPM * max(moved - least, 0) // moved) if moved else 0
    values |= {"eta": costs.total_seconds, "gap": gap_ppm}
    rows = [
        LimitRow(f"limits.{name}", limit, value)
        for name, value in values.items()
        if (limit := _limit(spec, name)) is not None and value is not None
    ]
    disks = [
        peak
        for peak in costs.peaks
        if peak.disk_bytes is not None and (peak.batch or peak.size_bytes <= _allowed(spec, peak))
    ]
    if disks and spec.cluster.sizes_known:
        nearest = max(disks, key=lambda peak: peak.size_bytes / (peak.disk_bytes or 1))
        rows.append(LimitRow("limits.disk_used", _allowed(spec, nearest), nearest.size_bytes, nearest.broker))
    return rows


def crossed(rows: Sequence[LimitRow], spec: Spec, costs: Costs) -> list[str]:
    """A line for every gate that is crossed, with the key to change."""
    filled = {peak.broker: _overfull(spec, peak) for peak in filled_above(spec, costs)}
    lines = [gate for gate in rows if gate.crossed and (gate.key != "limits.disk_used" or gate.broker not in filled)]
    return [*map(_crossed, lines), *filled.values()]


def filled_above(spec: Spec, costs: Costs) -> list[Peak]:
    """The brokers that a batch fills above the limit of `limits.disk_used`."""
    return [peak for peak in costs.peaks if peak.batch and _allowed(spec, peak) < peak.size_bytes]


def most_on_disks(spec: Spec, peaks: Sequence[Peak], held_bytes: Mapping[int, int]) -> dict[int, int]:
    """The bytes that each broker with a disk may hold while batches run: its limit, or today's bytes if more."""
    return {
        peak.broker: max(_allowed(spec, peak), held_bytes[peak.broker]) for peak in peaks if peak.disk_bytes is not None
    }


def most_while_running(limits: SpecLimits, disk_bytes: int | None, held_bytes: int) -> int | None:
    """The bytes that a broker may hold while a playbook runs: `limits.disk_used` of its disk, or all of it; None: any.

    A broker above that today mustn't stop the plan that relieves it, nor its rollback, and topics grow: it may fill
    half of what is left of its disk. One that holds more than its disk has no limit, because the disk is larger.
    """
    if disk_bytes is None or held_bytes > disk_bytes:
        return None
    limit = limits.on_disk(disk_bytes)
    return limit if held_bytes <= limit else (held_bytes + disk_bytes) // 2


def unsafe(spec: Spec, costs: Costs) -> Iterator[str]:
    """A line for each cordoned broker and log dir that the plan copies to, and for a throttle that can't work.

    Kafka keeps only new partitions off cordoned log dirs (KIP-1066): it carries out a reassignment that names them.
    """
    joining = spec.changes.add_brokers
    places = dict.fromkeys((broker.id for broker in spec.cluster.brokers), "cluster.brokers")
    places |= dict.fromkeys((broker.id for broker in joining), "changes.add_brokers")
    places |= dict.fromkeys(dict(spec.changes.replace_brokers).values(), "changes.replace_brokers")
    brokers = {broker.id: broker for broker in (*spec.cluster.brokers, *joining) if broker.cordoned_log_dirs}
    arriving = Counter[tuple[int, str]]()
    for step in (step for batch in costs.batches for step in batch.steps):
        dirs = dict(zip(step.after, step.log_dirs, strict=False))
        for target in brokers.keys() & {*step.adding, *step.dir_moves}:
            path = dirs.get(target, ANY)
            if brokers[target].cordoned:
                arriving[target, ""] += 1
            elif path in brokers[target].cordoned_log_dirs:
                arriving[target, path] += 1
    for (target, path), count in sorted(arriving.items()):
        setting = f"cordoned.log.dirs={','.join(brokers[target].cordoned_log_dirs)}"
        place = f"its log dir {path}" if path else "it"
        yield (
            f"{places[target]}: broker {target} is cordoned ({setting}), and the plan copies "
            f"{counted(count, 'replica')} to {place}; allowed: changes.rebalance: leaders or none, placement on other "
            f"brokers, or lift the cordon (kafka-configs.sh --entity-type brokers --entity-name {target} --alter "
            "--delete-config cordoned.log.dirs) and capture the state again"
        )
    if endless_flows := endless(costs.batches, spec.execution.throttle_bytes_per_sec):
        yield _never_complete(endless_flows, spec.execution.throttle_bytes_per_sec)


def overfull_today(spec: Spec, costs: Costs) -> list[str]:
    """Warnings for the brokers that are above `limits.disk_used` today and that no batch makes fuller.

    They don't refuse the plan, because that would refuse every plan that relieves these brokers.
    """
    return [
        f"broker {peak.broker} holds {size(peak.size_bytes)} today, above limits.disk_used "
        f"({as_stated(_allowed(spec, peak))}); "
        "no batch makes it fuller"
        for peak in costs.peaks
        if spec.cluster.sizes_known and not peak.batch and _allowed(spec, peak) < peak.size_bytes
    ]


def _limit(spec: Spec, name: str) -> int | None:
    limit: int | None = getattr(spec.limits, LIMIT_FIELDS.get(name, name))
    return limit


def _unjudged(spec: Spec) -> Iterator[str]:
    """Limits for which the inputs are missing. Reading a YAML refuses them already; this is for specs made in code."""
    cluster = spec.cluster
    if cluster.unsized or not cluster.sizes_known:
        count = cluster.unsized
        subject = "1 partition has no size" if count == 1 else f"{count or 'all'} partitions have no size"
        yield from _not_judged(spec, OF_SIZES, f", {subject}; allowed: sizes for every partition, or no such limit")
    if all(broker.rack is None for broker in brokers_after(spec)):
        yield from _not_judged(spec, OF_RACKS, ", no broker has a rack; allowed: racks, or no such limit")
    if spec.week is None:
        reason = ", the hours of the week are unknown; allowed: with cluster.load, or no such limit"
        yield from _not_judged(spec, ("worst_hour", "p99_hour"), reason)
    network = [each.network_bytes_per_sec for each in brokers_after(spec) if each.id not in spec.changes.leaving]
    if spec.week is None or None in network:
        reason = ", the hours of the week or a broker's capacity.network are unknown"
        yield from _not_judged(spec, ("hours_above_capacity",), f"{reason}; allowed: with both, or no such limit")
    disks = [row for row in brokers_after(spec) if row.id not in spec.changes.leaving and row.disk_bytes is None]
    if disks or not spec.growth.rates:
        reason = ", how topics grow or a broker's capacity.disk is unknown; allowed: with both, or no such limit"
        yield from _not_judged(spec, ("months_until_full",), reason)
    if spec.execution.throttle_bytes_per_sec is None:
        yield from _not_judged(spec, ("eta",), " with execution.throttle: none; allowed: a throttle, or no such limit")


def _not_judged(spec: Spec, names: Sequence[str], reason: str) -> Iterator[str]:
    if keys := [f"limits.{name}" for name in names if _limit(spec, name) is not None]:
        yield f"{' and '.join(keys)} can't be judged{reason}"


def _crossed(gate: LimitRow) -> str:
    """One line: the key to change, the plan's value (rounded, and exactly as the YAML takes it), and the limit."""
    noun = gate_noun(gate.key)
    needed, allowed = gate_cells(gate.key, gate.value, gate.limit, gate.broker)
    match noun:
        case "%":
            pass  # needed and allowed stay as they are
        case "byte" | "byte/s":
            needed += "" if gate.value < 1000 else f" ({gate.value} {noun.replace('byte', 'bytes')})"
        case "s":
            needed += "" if gate.value < 60 else f" ({gate.value} s)"
        case _:
            needed, allowed = counted(gate.value, noun), counted(gate.limit, noun)
    verb = "lasts" if gate.key in AT_LEAST else "comes to"
    return f"{gate.key}: the plan {verb} {needed}, allowed: {bound_of(gate.key)} {allowed}"


def _allowed(spec: Spec, peak: Peak) -> int:
    """Bytes that the broker may hold; its peak if it states no disk."""
    return peak.size_bytes if peak.disk_bytes is None else spec.limits.on_disk(peak.disk_bytes)


def _overfull(spec: Spec, peak: Peak) -> str:
    limit_ppm = spec.limits.disk_used_ppm
    share = (
        ", its capacity.disk"
        if limit_ppm is None
        else f" ({percent(limit_ppm / 10_000)} of capacity.disk, {as_stated(peak.disk_bytes or 0)})"
    )
    return (
        f"limits.disk_used: broker {peak.broker} holds {size_and_bytes(peak.size_bytes)} in batch "
        f"{peak.batch}, allowed: at most {as_stated(_allowed(spec, peak))}{share}; "
        "no other order of the batches was found that keeps within it"
    )


def _never_complete(stuck: Sequence[CopyFlow], throttle_bytes_per_sec: int | None) -> str:
    """A line about the flow with the highest rate: a throttle that lets it complete lets all of them complete."""
    worst = max(stuck, key=lambda flow: flow.produced_bytes_per_sec)
    others = f", nor {len(stuck) - 1} other pairs of a broker and a batch" if len(stuck) > 1 else ""
    produced, remark = worst.produced_bytes_per_sec, ", which is enough for all of them" if len(stuck) > 1 else ""
    return (
        f"execution.throttle: {as_stated(throttle_bytes_per_sec or 0)}/s never lets batch {worst.batch} complete"
        f"{others}: in it, producers alone write {size(produced)}/s to the partitions that broker {worst.broker} "
        f"{_WHAT[worst.side]}; allowed: above {size(produced)}/s ({produced} bytes/s){remark}"
    )


def bound_of(key: str) -> str:
    """Whether a gate's limit is a minimum (`at least`) or a maximum (`at most`)."""
    return "at least" if key in AT_LEAST else "at most"


def gate_amount(key: str, value: int) -> str:
    """A gate's number as it is shown: `121 MB`, `3 h 16 min`, `0.01 %`, `73`; `value` as in plan.json."""
    if key == "limits.gap":
        return gap_shown(-(-value // 10) / 1000)
    if key in GATES_ON_RATES:
        return f"{size(value)}/s"
    return (size if key in GATES_ON_BYTES else duration if key == "limits.eta" else number)(value)


def gate_noun(key: str) -> str:
    """The unit of a gate's number, in the singular: `byte`, `byte/s`, `replica`, `leader`, `partition`; `s`, or `%`."""
    return _NOUNS.get(key, "partition")


def gate_cells(key: str, value: int, limit: int, broker: int | None) -> tuple[str, str]:
    """The plan's value at a gate and the limit, as text; `limits.disk_used` names the broker."""
    on_broker = "" if broker is None else f" on broker {broker}"
    if key == "limits.gap":
        # The limit as written; below 0.01 %, the plan's value gets as many digits as needed.
        needed = gate_amount(key, value) if limit >= 100 else f"{value / 10_000:.4g} %"
        return needed, f"{limit / 10_000:g} %"
    if key in GATES_ON_RATES:
        return f"{size_like(value, limit)}/s", f"{as_stated(limit)}/s"
    if key not in GATES_ON_BYTES:
        return f"{gate_amount(key, value)}{on_broker}", gate_amount(key, limit)
    # The limit as written, and the plan's value in the same unit.
    return f"{size_like(value, limit)}{on_broker}", as_stated(limit)
