"""Compares what two plans say and `plan_diff` has no line of its own for: addresses, caps, rules of batches, steps.

Nothing is listed by name here but what is left out: what has its own line, and what is worked out from the rest. So a
key that is new in plan.json is compared too.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import structs, to_builtins

from planner.model.cluster import PartitionKey, partition_name
from planner.plan.document.comparison_types import VariantRow
from planner.plan.document.partition_types import PartitionRow, StepRow
from planner.plan.document.plan_types import Plan

# By path and row: the value. A value outside of a list of rows has the row "".
_Values = dict[str, dict[str, Any]]


def _paths(top: str, names: str) -> Iterator[str]:
    return (f"{top}.{name}" for name in names.split())


# Lists whose entries are compared with the entry of the same name in the other plan, and the key that names them.
_ROWS = {
    "batches": "number",
    "brokers": "id",
    "topics": "name",
    "state.topics": "topic",
    "new_partitions.topics": "topic",
    "variants": "name",
    "scenarios": "name",
}
# Mappings whose values are compared one by one, and mappings that are compared as a whole.
_BY_KEY = ("cluster.config_defaults", "spec.growth_ppm", "spec.racks_before")
_WHOLE = ("topics.config", "topics.effective_config", "variants.changes")
_NAMES = {f"{top}.{name}" for top, name in _ROWS.items()}
_OWN_LINES = {
    *("plan_id", "cluster.name", "inputs", "changes", "rack_aware", "warnings", "limits"),
    *_paths("balance", "asked wanted"),
    *("validity.valid_until", "resumes.plan_id", "adopted.sha256", "execution.throttle_bytes_per_sec"),
    *_paths("spec", "topics survive aims racks_as_today placement leader_racks apart together traffic"),
    *_paths("choice", "rule value"),
    *_paths("brokers", "id rack role disk_bytes"),
    *_paths("new_partitions.topics", "topic partitions_before partitions replication_factor config replicas"),
    "batches.number",
}
WORKED_OUT = {
    *("format_version", "headline", "complete", "unfinished", "state.sha256", "racks", "cross_rack", "terms", "bound"),
    *("choice.why", "compared", "pareto", "candidates", "risks", "unsafe", "failures", "consumers"),
    *("limits.broker", "spec.apart.proven"),
    *("execution.derived", "execution.seconds_at_throttle", "new_partitions.compared", "resumes.partitions_there"),
    *_paths("brokers", "before after bytes_in bytes_out peak_size_bytes"),
    *_paths("topics", "partitions_changed replicas_moved bytes_moved"),
    *_paths("balance", "relaxed missed shares"),
    *_paths("log_dirs", "bytes_moved least_bytes_moved gap_percent replicas_moved brokers left_out moves"),
    *_paths("hours", "today plan of_mean highest brokers months"),
    *_paths("growth", "assignments brokers classes notes topics"),
    *_paths("budget", "spent undone"),
    *_paths("scenarios", "feasible outside"),
    *_paths("adopted", "partitions partitions_there enough_bytes_moved enough_replicas_moved"),
    *_paths("batches", "bytes_moved replicas_moved seconds_at_throttle fullest_broker"),
    *(f"variants.{name}" for name in VariantRow.__struct_fields__ if name not in ("name", "changes")),
}
_OF_PARTITIONS = [
    name
    for name in PartitionRow.__struct_fields__
    if name not in ("topic", "partition", "replicas_before", "replicas", "log_dirs")
]
# Texts above this length are cut to where they differ.
_LONG = 200


def compare(old: Plan, new: Plan, most: int) -> list[dict[str, Any]]:
    """For each path that differs: in how many rows, and the first `most` of these with both values."""
    values = [_values(plan) for plan in (old, new)]
    by_path = {path: _compared(path, *values) for path in chain(*values) if path not in _OWN_LINES}
    for path, row, before, after in _partitions(old, new):
        by_path.setdefault(path, []).append({"row": row, "before": to_builtins(before), "after": to_builtins(after)})
    # The windows asked for are mostly those that the plan was made for, which have lines of their own.
    windows = [(structs.asdict(plan.balance.asked), structs.asdict(plan.balance.wanted)) for plan in (old, new)]
    own_lines = {
        f"balance.asked.{name}"
        for name in windows[0][0]
        if [requested[name] for requested, _ in windows] == [planned[name] for _, planned in windows]
    }
    return [
        {"path": path, "count": len(rows), "first": rows[:most]}
        for path, rows in sorted(by_path.items())
        if rows and path not in own_lines
    ]


def lines(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each path of `compare`."""
    return [
        f"{each['path']}: {'; '.join(map(_line, each['first']))}"
        + (f"; and {each['count'] - len(each['first']):,} more" if each["count"] > len(each["first"]) else "")
        for each in entries
    ]


def value_shown(value: Any) -> str:
    """A value as JSON; `none` for one that isn't there."""
    return "none" if value is None else json.dumps(value, sort_keys=True, ensure_ascii=False)


def differing(old: Any, new: Any) -> tuple[Any, Any]:
    """Both values; of two mappings only the entries that differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [key for key in dict.fromkeys(chain(old, new)) if old.get(key) != new.get(key)]
        old, new = ({key: side[key] for key in keys if key in side} for side in (old, new))
    return old, new


def _line(row: Mapping[str, Any]) -> str:
    texts = [value_shown(side) for side in differing(row["before"], row["after"])]
    if max(map(len, texts)) > _LONG:
        first_unlike = next((index for index, (was, now) in enumerate(zip(*texts, strict=False)) if was != now), 0)
        start = max(0, first_unlike - _LONG // 10)
        end = start + _LONG // 2
        texts = [("…" if start else "") + text[start:end] + ("…" if len(text) > end else "") for text in texts]
    return f"{row['row']}: {' → '.join(texts)}" if row["row"] else " → ".join(texts)


def _compared(path: str, old: _Values, new: _Values) -> list[dict[str, Any]]:
    """The rows in which a path differs. A row that only one plan has differs in its name alone."""
    before, after = old.get(path, {}), new.get(path, {})
    row_names, top = dict.fromkeys(chain(before, after)), path.rpartition(".")[0]
    if top in _ROWS and path != (name_path := f"{top}.{_ROWS[top]}"):
        row_names = {row: None for row in row_names if row in old.get(name_path, ()) and row in new.get(name_path, ())}
    return [
        {"row": row, "before": to_builtins(before.get(row)), "after": to_builtins(after.get(row))}
        for row in row_names
        if before.get(row) != after.get(row)
    ]


def _values(plan: Plan) -> _Values:
    """All that the plan says but of the partitions that change, by path and row, without what is worked out."""
    values: _Values = {}
    document = to_builtins(structs.replace(plan, partitions=(), batches=()))
    del document["partitions"], document["batches"]
    batches = [{"number": each.number, "leaderless": each.leaderless} for each in plan.batches]
    for path, row, value in _leaves({**document, "batches": batches}, "", ""):
        values.setdefault(path, {})[row] = value
    return values


def _leaves(value: Any, path: str, row: str) -> Iterator[tuple[str, str, Any]]:
    if path in WORKED_OUT or (path in _OWN_LINES and path not in _NAMES):
        return
    if path in _ROWS:
        for each in value:
            yield from _of_mapping(each, path, str(each[_ROWS[path]]))
    elif path in _BY_KEY and value:
        yield from ((path, key, each) for key, each in value.items())
    elif isinstance(value, dict) and path not in _WHOLE:
        yield from _of_mapping(value, path, row)
    else:
        yield path, row, value


def _of_mapping(value: Mapping[str, Any], path: str, row: str) -> Iterator[tuple[str, str, Any]]:
    for key, each in value.items():
        yield from _leaves(each, f"{path}.{key}" if path else key, row)


def _partitions(old: Plan, new: Plan) -> Iterator[tuple[str, str, Any, Any]]:
    """What differs in the partitions that both plans change: path, partition, and both values.

    Of its batches: the steps, and after how many of these its leader is elected. The batches' numbers have own lines.
    """
    before, after = ({row.key: row for row in plan.partitions} for plan in (old, new))
    was_cut, now_cut = _cut(old), _cut(new)
    for key, old_row in before.items():
        if new_row := after.get(key):
            of_row = ((f"partitions.{name}", getattr(old_row, name), getattr(new_row, name)) for name in _OF_PARTITIONS)
            (steps, elected), (now_steps, now_elected) = was_cut.get(key, _UNCUT), now_cut.get(key, _UNCUT)
            ways = _detours(old_row, steps), _detours(new_row, now_steps)
            for path, old_value, new_value in (
                *of_row,
                ("batches.partitions", *ways),
                ("batches.elect", elected, now_elected),
            ):
                if old_value != new_value:
                    yield path, old_row.name, old_value, new_value
    # Steps of partitions that a plan doesn't have among those that it changes.
    for key in (was_cut.keys() | now_cut.keys()) - before.keys() - after.keys():
        yield "batches.partitions.topic", partition_name(*key), key in was_cut or None, key in now_cut or None


_Cut = tuple[list[StepRow], list[int]]
_UNCUT: _Cut = ([], [])


def _cut(plan: Plan) -> dict[PartitionKey, _Cut]:
    """By partition: its steps, and after how many of these its leader is elected."""
    cuts: dict[PartitionKey, _Cut] = {}
    for batch in plan.batches:
        for step in batch.partitions:
            cuts.setdefault(step.key, ([], []))[0].append(step)
        for row in batch.elect:
            steps, elected = cuts.setdefault(row.key, ([], []))
            elected.append(len(steps))
    return cuts


def _detours(row: PartitionRow, steps: Sequence[StepRow]) -> list[dict[str, Any]]:
    """What each step of a partition has otherwise than the straight way from its replicas today to those planned."""
    before, detours = row.replicas_before, list[dict[str, Any]]()
    for step in steps:
        straight = {"replicas_before": before, "log_dirs_before": row.log_dirs_before, "log_dirs": row.log_dirs}
        if step is steps[-1]:
            straight["replicas"] = row.replicas
        pairs = ((name, getattr(step, name)) for name in ("replicas_before", "replicas", "log_dirs_before", "log_dirs"))
        detours.append({name: value for name, value in pairs if name not in straight or value != straight[name]})
        before = step.replicas
    return detours
