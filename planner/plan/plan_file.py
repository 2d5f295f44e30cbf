"""Reads a plan.json, or the one in a plan's folder, and refuses it if its parts contradict each other."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.execution.partition_changes import step_between
from planner.model import file_reading
from planner.model.cluster import PartitionChange, PartitionKey
from planner.model.errors import SetupError, StalePlanError
from planner.model.formats import replica_list
from planner.model.spec import Spec
from planner.plan.document import codec
from planner.plan.document.cluster_types import BrokerRow, RackRow
from planner.plan.document.comparison_types import THIS_PLAN
from planner.plan.document.partition_types import PartitionRow, StepRow
from planner.plan.document.plan_types import RESTART_FILE, Plan

_DIRS = ("log_dirs_before", "log_dirs")


def read(path: Path) -> Plan:
    """The plan; PlannerError if the file isn't a plan of this format, was changed, or contradicts itself."""
    if (path / RESTART_FILE).is_file() and not (path / "plan.json").exists():
        raise SetupError(f"{path}: is a restart's folder, which planner check takes; allowed: a plan or its folder")
    file, data = file_reading.read_plan_file(path, "plan.json", "a plan")
    if file.suffix in (".yaml", ".yml"):
        raise SetupError(f"{path}: is YAML; allowed: a plan or its folder; planner whatif makes {file.stem}.plan")
    plan = codec.decode(data, str(file))
    if (contradiction := next(_contradictions(plan), None)) is not None:
        raise StalePlanError(f"{file}: {contradiction}: the plan was changed after it was made")
    return plan


def folder_of(path: Path) -> Path:
    """The folder of a plan that is named by its plan.json, or by the folder."""
    return path if path.is_dir() else path.parent


def of_same_files(plan: Plan, spec: Spec) -> bool:
    """True if the plan was made from the same files as the spec, and the files haven't changed."""
    of_plan, of_spec = ([(file.path, file.sha256) for file in inputs] for inputs in (plan.inputs, spec.inputs))
    return of_plan == of_spec


def _contradictions(plan: Plan) -> Iterator[str]:
    """A sentence for each contradiction, with its JSON path and what is allowed; types are already checked."""
    count = sum(row.label == THIS_PLAN for row in plan.compared)
    if count != 1:
        yield f"$.compared has {count} rows of label 'this plan'; allowed: one"
    if not plan.inputs:
        yield "$.inputs is empty; allowed: at least the spec"
    yield from _brokers(plan)
    yield from _once("$.topics", "name", [row.name for row in plan.topics])
    for index, row in enumerate(plan.topics):
        yield from _distinct(f"$.topics[{index}].replication_factor_before", row.replication_factor_before)
    yield from _partitions(plan)
    yield from _batches(plan)
    for index, new in enumerate(plan.new_topics):
        path, created = f"$.new_partitions.topics[{index}].replicas", new.partitions - new.partitions_before
        for number, replicas in enumerate(new.replicas):
            yield from _distinct(f"{path}[{number}]", replicas)
        if len(new.replicas) != created:
            yield f"{path} has {len(new.replicas)} items; allowed: {created}, one a new partition"


def _brokers(plan: Plan) -> Iterator[str]:
    yield from _once("$.brokers", "id", [row.id for row in plan.brokers])
    yield from _once("$.racks", "rack", [row.rack for row in plan.racks])
    racks = {row.rack for row in plan.racks}
    for index, row in enumerate(plan.brokers):
        if row.rack not in racks and plan.racks:
            yield f"$.brokers[{index}].rack is {row.rack!r}, which isn't in $.racks; allowed: {_values_text(racks)}"
    # Either the traffic of all brokers (or racks) is known, before and after, or of none.
    tables: tuple[tuple[str, Sequence[BrokerRow | RackRow]], ...] = (("brokers", plan.brokers), ("racks", plan.racks))
    for name, table in tables:
        sides = ("before", "after")
        rows = [(f"$.{name}[{index}].{side}", getattr(row, side)) for side in sides for index, row in enumerate(table)]
        for key in ("network_in", "network_out"):
            unknown = [path for path, each in rows if getattr(each, key) is None]
            if unknown and len(unknown) < len(rows):
                yield f"{unknown[0]}.{key} is null; allowed: a number, as the others have one, or null for all"


def _partitions(plan: Plan) -> Iterator[str]:
    """Each partition is there once, its topic, brokers and leader are the plan's, and each replica has one log dir."""
    yield from _once("$.partitions", "partition", [row.key for row in plan.partitions])
    brokers = {row.id for row in plan.brokers}
    counts = {row.name: row.partitions for row in plan.topics}
    for index, row in enumerate(plan.partitions):
        path = f"$.partitions[{index}]"
        if row.topic not in counts:
            yield f"{path}.topic is {row.topic!r}, which isn't in $.topics; allowed: {_values_text(counts)}"
        elif row.partition >= counts[row.topic]:
            yield f"{path}.partition is {row.partition}; allowed: below {counts[row.topic]}, as $.topics says"
        sides = (("_before", row.replicas_before, row.log_dirs_before), ("", row.replicas, row.log_dirs))
        for suffix, replicas, dirs in sides:
            list_path = f"{path}.replicas{suffix}"
            if unknown := [broker for broker in replicas if broker not in brokers]:
                yield f"{list_path} has broker {unknown[0]}, which isn't in $.brokers; allowed: {_values_text(brokers)}"
            yield from _distinct(list_path, replicas)
            if dirs is not None and len(dirs) != len(replicas):
                yield f"{path}.log_dirs{suffix} has {len(dirs)} items; allowed: {len(replicas)}, one a replica"
        if (row.log_dirs is None) != (row.log_dirs_before is None):
            yield f"{path} has one of log_dirs_before and log_dirs; allowed: both or neither"
        if row.leader_before is not None and row.leader_before not in row.replicas_before:
            yield f"{path}.leader_before is {row.leader_before}; allowed: null, {_values_text(row.replicas_before)}"


def _batches(plan: Plan) -> Iterator[str]:
    """Batches are numbered from 1 and, in order, do what the partitions say: reviewers read those, Kafka gets these."""
    rows = {row.key: row for row in plan.partitions}
    reached, last = {key: row.replicas_before for key, row in rows.items()}, dict[PartitionKey, tuple[int, int]]()
    for index, batch in enumerate(plan.batches):
        path, keys = f"$.batches[{index}]", [step.key for step in batch.partitions]
        if batch.number != index + 1:
            yield f"{path}.number is {batch.number}; allowed: {index + 1}"
        yield from _once(f"{path}.partitions", "partition", keys)
        for number, (key, step) in enumerate(zip(keys, batch.partitions, strict=True)):
            if (row := rows.get(key)) is None:
                yield f"{path}.partitions[{number}] is {step.name}, which isn't in $.partitions; allowed: one of those"
                continue
            yield from _step((index, number), step, row, reached[key])
            reached[key], last[key] = step.replicas, (index, number)
    for index, (key, row) in enumerate(rows.items()):
        if key not in last and row.reassigned:
            yield f"$.partitions[{index}] ({row.name}) moves in no batch; allowed: in one or more of $.batches"
        elif reached[key] != row.replicas:
            yield _unlike(last[key], "replicas", row, reached[key], row.replicas, "as it is in no later batch")
    yield from _elections(plan, rows, last)


def _step(place: tuple[int, int], step: StepRow, row: PartitionRow, reached: Sequence[int]) -> Iterator[str]:
    """A step begins where the partition is, brings it nearer to the plan's replicas, and keeps as many of them."""
    if step.replicas_before != reached:
        yield _unlike(place, "replicas_before", row, step.replicas_before, reached, "which it has by then")
    if step.replicas != row.replicas:
        # In between, it is only on old and new brokers; none of the new ones is left again.
        yield from _distinct("$.batches[{}].partitions[{}].replicas".format(*place), step.replicas)
        fewest, most = sorted((len(row.replicas_before), len(row.replicas)))
        strays = step.added.difference(row.replicas) or step.dropped.intersection(row.replicas)
        if strays or not fewest <= len(step.replicas) <= most:
            yield _unlike(place, "replicas", row, step.replicas, row.replicas, "or what is between the two")
    if not step.reassigned:
        yield _unlike(
            place, "replicas", row, step.replicas, row.replicas, "or no such step, because it changes nothing"
        )
    if step.log_dirs_before is not None or step.log_dirs is not None or row.log_dirs is not None:
        stated_dirs = step.log_dirs_before or (), step.log_dirs or ()
        change = PartitionChange(
            *row.key,
            row.replicas_before,
            row.replicas,
            row.leader_before,
            row.size_bytes,
            row.reason,
            log_dirs_before=row.log_dirs_before or (),
            log_dirs=row.log_dirs or (),
        )
        expected = step_between(change, step.replicas_before, step.replicas)
        for key, actual, right in zip(_DIRS, stated_dirs, (expected.log_dirs_before, expected.log_dirs), strict=True):
            if actual != right:
                yield _unlike(place, key, row, actual, right, "as the log dirs of its partition say")


def _elections(
    plan: Plan, rows: Mapping[PartitionKey, PartitionRow], last: Mapping[PartitionKey, tuple[int, int]]
) -> Iterator[str]:
    """Each partition with another preferred leader is elected once, after its last step; no other is elected."""
    unelected = {key: index for index, (key, row) in enumerate(rows.items()) if row.elects}
    for index, batch in enumerate(plan.batches):
        for number, each in enumerate(batch.elect):
            key = each.key
            if unelected.pop(key, None) is None or last.get(key, (0,))[0] > index:
                note = "" if key in rows else ", which isn't in $.partitions"
                rule = "each partition with another leader in $.partitions, once, after its last step"
                yield f"$.batches[{index}].elect[{number}] is {each.name}{note}; allowed: {rule}"
    for key, index in unelected.items():
        yield f"$.partitions[{index}] ({rows[key].name}) is elected in no batch; allowed: in one of $.batches"


def _unlike(
    place: tuple[int, int], key: str, row: PartitionRow, value: Sequence[object], allowed: Sequence[object], why: str
) -> str:
    way = f"{row.name}, which goes {replica_list(row.replicas_before)} → {replica_list(row.replicas)} in $.partitions"
    batch, number = place
    return f"$.batches[{batch}].partitions[{number}].{key} is {list(value)} for {way}; allowed: {list(allowed)}, {why}"


def _distinct(path: str, numbers: Sequence[int]) -> Iterator[str]:
    if len(set(numbers)) < len(numbers):
        yield f"{path} is {list(numbers)}; allowed: each once"


def _once(path: str, key: str, names: Sequence[Any]) -> Iterator[str]:
    seen: set[Any] = set()
    for index, name in enumerate(names):
        if name in seen:
            text = "-".join(map(str, name)) if isinstance(name, tuple) else name
            yield f"{path}[{index}] has the {key} {text!r}, which is there twice; allowed: once"
        seen.add(name)


def _values_text(values: Iterable[Any]) -> str:
    listed = sorted(map(str, values))
    return ", ".join(listed[:8]) + (" …" if len(listed) > 8 else "")
