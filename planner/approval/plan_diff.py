"""Compares two plans, for example of two pushes to one pull request: as plain data, and as lines for people.

The document has the shape of `schemas/plan-diff.schema.json`. Lists are bounded, and entries left out are counted.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import to_builtins
from msgspec.structs import asdict

from planner.approval import plan_settings
from planner.approval.plan_settings import value_shown
from planner.execution.limits_and_safety import GATES_ON_BYTES, GATES_ON_RATES, gate_cells
from planner.model.formats import (
    above_bound,
    amount,
    arrow,
    brokers,
    duration,
    gap_shown,
    printable,
    size,
    term_name,
    words,
)
from planner.plan import headline
from planner.plan.document.partition_types import PartitionRow
from planner.plan.document.plan_types import Plan

PlanJson = dict[str, Any]

FORMAT_VERSION = "1.2"
SHOWN = 10


def diff(old: Plan, new: Plan) -> PlanJson:
    """The difference of two plans as JSON values; `equal` is True if they are the same plan."""
    before, after = _comparable(old), _comparable(new)
    return {
        "format_version": FORMAT_VERSION,
        "equal": old.plan_id == new.plan_id,
        "plans": [_head(old), _head(new)],
        "figures": list(_figures(old, new)),
        # Entries that differ, or that only one plan has: the other plan's value is None.
        **{
            name: [
                {key: each, "before": before[name].get(each), "after": after[name].get(each)}
                for each in dict.fromkeys(chain(before[name], after[name]))
                if before[name].get(each) != after[name].get(each)
            ]
            for name, key in _KEYS.items()
        },
        "partitions": _partitions(old, new),
        # All else that differs and isn't worked out from the rest.
        "settings": plan_settings.compare(old, new, SHOWN),
        "warnings": {
            "added": [text for text in new.warnings if text not in old.warnings],
            "removed": [text for text in old.warnings if text not in new.warnings],
        },
    }


def _head(plan: Plan) -> PlanJson:
    return {
        "plan_id": plan.plan_id,
        "cluster": plan.cluster.name,
        "valid_until": plan.valid_until,
        "resumes": plan.resumes.plan_id if plan.resumes else None,
        "adopted": plan.adopted.sha256 if plan.adopted else None,
        "first_step": headline.first_step(plan) or None,
    }


def _figures(old: Plan, new: Plan) -> Iterator[PlanJson]:
    """The figures and terms of both plans, each with both values; None if a plan doesn't have one."""
    for name, unit, value in _FIGURES:
        yield _figure(name, unit, [(plan, value(plan)) for plan in (old, new)])
    before, after = old.terms_by_name, new.terms_by_name
    for name in [name for name in dict.fromkeys(chain(before, after)) if name not in _NAMED]:
        # A term with another unit in each plan can't be compared, so there is a row for each unit.
        for unit in dict.fromkeys(terms[name].unit for terms in (before, after) if name in terms):
            values = [
                (plan, terms[name].plan if name in terms and terms[name].unit == unit else None)
                for plan, terms in ((old, before), (new, after))
            ]
            yield _figure(name, unit, values)


def _figure(name: str, unit: str, values: Sequence[tuple[Plan, float | None]]) -> PlanJson:
    """A figure of both plans; a plan without sizes has None for figures in bytes, and those computed from bytes."""
    of_sizes = unit == "bytes" or name in ("time_at_throttle", "peak_disk", "gap")
    before, after = (value if plan.cluster.sizes_known or not of_sizes else None for plan, value in values)
    return {"name": name, "unit": unit, "before": before, "after": after}


def _least(plan: Plan) -> int | None:
    """The bytes that no plan can save; None without a proof."""
    return None if plan.bound.method == "none" else plan.bound.least_bytes_moved


_FIGURES: tuple[tuple[str, str, Callable[[Plan], float | None]], ...] = (
    ("bytes_moved", "bytes", lambda plan: plan.bound.bytes_moved),
    ("least_bytes_moved", "bytes", _least),
    ("gap", "%", lambda plan: above_bound(plan.bound.bytes_moved, _least(plan))),
    ("replicas_moved", "replicas", lambda plan: plan.replicas_copied),
    ("partitions_changed", "partitions", lambda plan: len(plan.partitions)),
    ("leaders_elected", "leaders", lambda plan: sum(len(batch.elect) for batch in plan.batches)),
    ("new_partitions", "partitions", lambda plan: sum(len(topic.replicas) for topic in plan.new_topics)),
    ("batches", "batches", lambda plan: len(plan.batches)),
    ("time_at_throttle", "s", lambda plan: plan.execution.seconds_at_throttle),
    ("throttle", "bytes/s", lambda plan: plan.execution.throttle_bytes_per_sec),
    ("windows_relaxed", "targets", lambda plan: len(plan.balance.relaxed)),
    ("candidates", "candidates", lambda plan: plan.candidates.evaluated),
)
_NAMED = {name for name, _, _ in _FIGURES}


_KEYS = {"gates": "key", "inputs": "path", "changes": "key", "brokers": "broker", "new_partitions": "topic"}


def _comparable(plan: Plan) -> dict[str, dict[Any, Any]]:
    """The parts of the plan that are compared entry by entry, as JSON values; each part maps keys to entries."""
    planned_with = plan.balance.wanted.unlike(plan.balance.asked)
    balance = {
        f"balance.{key}": f"{value}, planned with {planned_with[key]}" if key in planned_with else value
        for key, value in asdict(plan.balance.asked).items()
    }
    changes = {key: value for key, value in to_builtins(plan.changes).items() if value}
    spec_json = to_builtins(plan.spec)
    rules = {key: spec_json[key] for key in _OF_SPEC if spec_json.get(key)}
    for rule in rules.get("apart", ()):
        # `proven` is a result, not part of what is asked for.
        del rule["proven"]
    rules["balance.at"] = "busiest hours" if plan.hours and plan.hours.planned else "mean"
    rules["resilience.survive"], rules["sweep.aims"] = plan.spec.survive, list(plan.spec.aims)
    rules["sweep.choose"] = {"rule": plan.choice.rule, "value": plan.choice.value}
    topic_keys = ("partitions_before", "partitions", "replication_factor", "config", "replicas")
    return {
        "gates": {row.key: {"limit": row.limit, "value": row.value} for row in plan.limits},
        "inputs": {file.path: file.sha256 for file in plan.inputs},
        "changes": {**changes, **balance, "rack_aware": plan.rack_aware, **rules},
        "brokers": {row.id: {"rack": row.rack, "role": row.role, "disk_bytes": row.disk_bytes} for row in plan.brokers},
        "new_partitions": {
            new.topic: to_builtins({key: getattr(new, key) for key in topic_keys}) for new in plan.new_topics
        },
    }


_OF_SPEC = ("topics", "racks_as_today", "placement", "leader_racks", "apart", "together", "traffic")


def _partitions(old: Plan, new: Plan) -> PlanJson:
    """The partitions that only one plan changes, and those that both change in different ways."""
    before, after = ({row.key: row for row in plan.partitions} for plan in (old, new))
    batches = [_batches(plan) for plan in (old, new)]
    both = [(key, before[key], after[key]) for key in before.keys() & after.keys()]
    kinds = {
        "only_before": before.keys() - after.keys(),
        "only_after": after.keys() - before.keys(),
        "other_target": {key for key, was, now in both if (was.replicas, was.log_dirs) != (now.replicas, now.log_dirs)},
        "other_origin": {key for key, was, now in both if was.replicas_before != now.replicas_before},
        "other_batches": {key for key, _, _ in both if batches[0].get(key) != batches[1].get(key)},
    }
    return {
        kind: {
            "count": len(keys),
            "first": [
                {
                    "topic": topic,
                    "partition": partition,
                    "before": _partition_json(before.get((topic, partition)), batches[0]),
                    "after": _partition_json(after.get((topic, partition)), batches[1]),
                }
                for topic, partition in sorted(keys)[:SHOWN]
            ],
        }
        for kind, keys in kinds.items()
    }


def _batches(plan: Plan) -> dict[tuple[str, int], list[int]]:
    """The numbers of the batches that each partition is in."""
    numbers: dict[tuple[str, int], list[int]] = {}
    for batch in plan.batches:
        for key in dict.fromkeys(row.key for row in (*batch.partitions, *batch.elect)):
            numbers.setdefault(key, []).append(batch.number)
    return numbers


def _partition_json(row: PartitionRow | None, batches: Mapping[tuple[str, int], list[int]]) -> PlanJson | None:
    if row is None:
        return None
    lists = {"replicas_before": list(row.replicas_before), "replicas": list(row.replicas)}
    log_dirs = {} if row.log_dirs is None else {"log_dirs": list(row.log_dirs)}
    return {**lists, **log_dirs, "batches": batches.get(row.key, [])}


def verdict(difference: PlanJson) -> str:
    """One sentence: whether the plans differ, and the figures that people look for first."""
    old, new = (plan["plan_id"][:12] for plan in difference["plans"])
    if difference["equal"]:
        return f"Plan {old} in both: nothing differs."
    figures = [
        f"{term_name(row['name'])} {arrow(_amount(row['before'], row), _amount(row['after'], row))}"
        for row in difference["figures"]
        if row["name"] in ("bytes_moved", "replicas_moved", "batches")
    ]
    return f"Plan {old} → {new}: {', '.join(figures)}."


def first_steps(difference: PlanJson) -> list[str]:
    """A sentence for each plan that is only a first step, with what is left; one if both are the same plan."""
    plans = list(zip(("before", "after"), difference["plans"], strict=True))[1 if difference["equal"] else 0 :]
    steps = [(which, plan) for which, plan in plans if plan["first_step"]]
    return [f"{plan['first_step']} That is plan {plan['plan_id'][:12]}, {which}." for which, plan in steps]


def figure_rows(difference: PlanJson) -> list[tuple[str, str, str, str]]:
    """A row of name, before, after and unit for each figure that differs; exact values if rounding would hide it."""
    rows = []
    throttle = next(row for row in difference["figures"] if row["name"] == "throttle")
    for row in difference["figures"]:
        old, new, unit = row["before"], row["after"], row["unit"]
        if old != new:
            exact = _EXACT_UNITS.get("%" if unit.startswith("%") else unit, "")
            was, now = (_amount(row[side], row, throttled=throttle[side] is not None) for side in ("before", "after"))
            shown = _unlike(was, now, old, new, exact)
            # Units of `_EXACT_UNITS` are already in the amount.
            column = "" if unit in _EXACT_UNITS else unit.removeprefix("%").strip()
            rows.append((term_name(row["name"]), *shown, column))
    return rows


def sections(difference: PlanJson) -> list[tuple[str, int, list[str]]]:
    """All other differences: a heading, how many entries differ, and the first lines; empty sections are left out."""
    partitions = difference["partitions"]
    old, new = difference["plans"]
    heads = ((key, old[key], new[key]) for key in ("cluster", "valid_until", "resumes", "adopted"))
    inputs = [
        (row["path"], *(f"SHA-256 {side[:12]}" if side else "not read" for side in (row["before"], row["after"])))
        for row in difference["inputs"]
    ]
    change_lines = [
        f"{row['key']}: {' → '.join(map(value_shown, plan_settings.differing(row['before'], row['after'])))}"
        for row in difference["changes"]
    ]
    ids_by_change: dict[str, list[int]] = {}
    for row in difference["brokers"]:
        ids_by_change.setdefault(_broker(row), []).append(row["broker"])
    lists = [
        ("Plan", [f"{words(key)}: {value_shown(was)} → {value_shown(now)}" for key, was, now in heads if was != now]),
        ("Limits", [_gate(row) for row in difference["gates"]]),
        ("Inputs", [f"{path}: {before} → {after}" for path, before, after in inputs]),
        ("Asked for", change_lines),
        ("Brokers", [f"{brokers(ids)}: {differences}" for differences, ids in ids_by_change.items()]),
        ("New partitions", [_new_topic(row) for row in difference["new_partitions"]]),
        ("Warnings", [*(f"+ {text}" for text in difference["warnings"]["added"]),
                      *(f"- {text}" for text in difference["warnings"]["removed"])]),
    ]  # fmt: skip
    counted_lists = [(title, len(lines), lines) for title, lines in lists]
    counted_lists += [
        (title, partitions[kind]["count"], [_partition(row, kind) for row in partitions[kind]["first"]])
        for kind, title in _KINDS.items()
    ]
    shown_lists = [
        (title, count, [*lines[:SHOWN], *([f"and {count - SHOWN:,} more"] if count > SHOWN else [])])
        for title, count, lines in counted_lists
    ]
    settings = plan_settings.lines(difference["settings"])
    # The plan's format limits how many settings there are, so none is left out.
    shown_lists.append(("Other settings", len(settings), settings))
    return [(title, count, [*map(printable, lines)]) for title, count, lines in shown_lists if count]


_KINDS = {
    "only_before": "Partitions no longer changed",
    "only_after": "Newly changed partitions",
    "other_target": "Partitions with another target",
    "other_origin": "Partitions found elsewhere",
    "other_batches": "Partitions in other batches",
}


def _gate(row: PlanJson) -> str:
    old, new = row["before"], row["after"]
    if old is None or new is None:
        return f"{row['key']}: {_of_gate(row['key'], old)} → {_of_gate(row['key'], new)}"
    shown = zip(_cells(row["key"], old), _cells(row["key"], new), strict=True)
    changes = (
        (word, *_unlike(*texts, old[key], new[key], _EXACT_GATES.get(row["key"], "")))
        for (word, key), texts in zip((("plan", "value"), ("allowed", "limit")), shown, strict=True)
        if old[key] != new[key]
    )
    return f"{row['key']}: " + ", ".join(f"{word} {before} → {after}" for word, before, after in changes)


def _of_gate(key: str, gate: PlanJson | None) -> str:
    return "not set" if gate is None else " of ".join(_cells(key, gate))


def _cells(key: str, gate: PlanJson) -> tuple[str, str]:
    return gate_cells(key, gate["value"], gate["limit"], None)


_EXACT_GATES = {
    **dict.fromkeys(GATES_ON_BYTES, " B"),
    **dict.fromkeys(GATES_ON_RATES, " B/s"),
    "limits.eta": " s",
    "limits.gap": " ppm",
}


def _broker(row: PlanJson) -> str:
    """The fields that differ, with both values; brokers with the same differences share a line."""
    old, new = row["before"], row["after"]
    if old is None or new is None:
        entry = old or new
        fields = f"{entry['role']}, rack {_field('rack', entry)}, disk {_field('disk_bytes', entry)}"
        return f"only {'after' if old is None else 'before'} ({fields})"
    differ = [key for key in old if old[key] != new.get(key)]
    changes = ((key, _unlike(_field(key, old), _field(key, new), old[key], new[key], " B")) for key in differ)
    return ", ".join(f"{key.removesuffix('_bytes')} {before} → {after}" for key, (before, after) in changes)


def _field(key: str, entry: PlanJson) -> str:
    value = entry[key]
    return "unknown" if value is None else size(value) if key == "disk_bytes" else str(value)


def _partition(row: PlanJson, kind: str) -> str:
    name = f"{row['topic']}-{row['partition']}"
    old, new = row["before"], row["after"]
    if old is None or new is None:
        entry = old or new
        return f"{name}: {_list(entry['replicas_before'])} → {_target(entry, entry['replicas_before'])}"
    if kind == "other_target":
        return f"{name}: {_target(old, new['replicas'])} → {_target(new, old['replicas'])}"
    key = {"other_origin": "replicas_before", "other_batches": "batches"}[kind]
    batch = "batch " if key == "batches" else ""
    return f"{name}: {batch}{_list(old[key])} → {_list(new[key])}"


def _target(entry: PlanJson, other_replicas: Sequence[int]) -> str:
    """The replicas of an entry; with their log dirs if the replicas alone are the same as the others."""
    replicas = entry["replicas"]
    log_dirs = entry.get("log_dirs") if replicas == other_replicas else None
    return f"{_list(replicas)} (log dirs {','.join(log_dirs)})" if log_dirs else _list(replicas)


def _new_topic(row: PlanJson) -> str:
    old, new = row["before"], row["after"]
    if old is None or new is None:
        return f"{row['topic']}: only {'after' if old is None else 'before'}"
    differ = [key for key in old if old[key] != new[key]]
    texts = (
        "placed on other brokers"
        if key == "replicas"
        else f"{words(key)} {value_shown(old[key])} → {value_shown(new[key])}"
        for key in differ
    )
    return f"{row['topic']}: {', '.join(texts)}"


def _list(values: Sequence[int]) -> str:
    return ",".join(map(str, values)) or "none"


_EXACT_UNITS = {"bytes": " B", "bytes/s": " B/s", "%": " %", "s": " s"}


def _unlike(before: str, after: str, old: float | None, new: float | None, unit: str) -> tuple[str, str]:
    """Two amounts as texts; exact values with their unit if rounding makes different amounts look the same."""
    if before != after or old is None or new is None:
        return before, after
    exact = [f"{each:,.6g}" if isinstance(each, float) else f"{each:,}" for each in (old, new)]
    return f"{exact[0]}{unit}", f"{exact[1]}{unit}"


def _amount(value: float | None, row: PlanJson, *, throttled: bool = True) -> str:
    if value is None:
        return "unknown" if throttled or row["name"] not in ("throttle", "time_at_throttle") else "none"
    if row["name"] == "gap":
        return gap_shown(value)
    return duration(int(value)) if row["unit"] == "s" else amount(value, row["unit"])
