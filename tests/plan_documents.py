"""Small valid plan.json documents for tests. A test gives the partitions that change; the rest is derived."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from planner.model.generated_text import canonical_json
from planner.model.problem import Problem
from planner.model.spec import Spec
from planner.plan import build
from planner.plan.document import codec
from planner.plan.document.plan_types import Plan
from planner.sweep.choice import BASE, Swept
from planner.sweep.sweep_result import SweepResult

Document = dict[str, Any]
T = TypeVar("T", bound=msgspec.Struct)


def typed(given: Document | Plan) -> Plan:
    """The document as a plan that keeps the document's id. Missing keys are filled in as in a plan without changes."""
    return given if isinstance(given, Plan) else row(Plan, {**document([]), **given})


def planned(spec: Spec, problem: Problem, result: SweepResult) -> Document:
    """The plan of a spec without variants, as plan.json has it."""
    return codec.as_json(build.planned([Swept(BASE, spec, problem, result)]).plan)


def row(kind: type[T], values: Mapping[str, Any], **some: Any) -> T:
    """A section or row of plan.json with these values. A missing value becomes the least value of its type."""
    return msgspec.convert(_completed(_type_info(kind), {**values, **some}), kind)


@cache
def _type_info(kind: type) -> inspect.Type:
    """The type's description, cached because reading it takes 40 ms for a plan."""
    return inspect.type_info(kind)


def _completed(kind: inspect.Type, value: Any) -> Any:
    match kind:
        case inspect.Metadata():
            return _completed(kind.type, value)
        case inspect.UnionType() if value is not None:
            return _completed(next(each for each in kind.types if not isinstance(each, inspect.NoneType)), value)
        case inspect.VarTupleType() if isinstance(value, list | tuple):
            return [_completed(kind.item_type, each) for each in value]
        case inspect.StructType() if isinstance(value, Mapping):
            return {
                field.encode_name: _completed(field.type, value[field.encode_name])
                if field.encode_name in value
                else _least(field.type)
                for field in kind.fields
                if field.required or field.encode_name in value
            }
        case _:
            return value


def _least(kind: inspect.Type) -> Any:
    """The least value of a type: 0, the first of a choice, or an empty list."""
    match kind:
        case inspect.Metadata():
            return _least(kind.type)
        case inspect.UnionType():
            return None if kind.includes_none else _least(kind.types[0])
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.EnumType():
            return next(iter(kind.cls)).value
        case inspect.VarTupleType():
            return []
        case inspect.StructType():
            return _least_section(kind.cls)
        case inspect.DictType():
            return {}
        case _:
            return {inspect.StrType: "none", inspect.BoolType: False}.get(type(kind), 0)


@cache
def _least_section(kind: type) -> Any:
    """The section with the least values, cached because a plan has hundreds of sections."""
    return _completed(_type_info(kind), {})


def change(
    topic: str, partition: int, before: Sequence[int], after: Sequence[int], leader: int | None = -1, size: int = 100
) -> Document:
    """One entry of `partitions`. `leader` is today's leader; -1 means the preferred one."""
    return {
        "topic": topic,
        "partition": partition,
        "replicas_before": list(before),
        "replicas": list(after),
        "leader_before": before[0] if leader == -1 else leader,
        "size_bytes": size,
        "reason": "balance_replicas",
    }


def new_partitions(*topics: Document) -> Document:
    """The section `new_partitions` with these topics' rows."""
    spreads = dict.fromkeys(("replica_spread", "leader_spread", "topic_replica_spread", "topic_leader_spread"), 1)
    return {"topics": list(topics), "compared": [{"label": "this plan", "placements": 1, **spreads}]}


def document(changes: Sequence[Document], batches: Sequence[Sequence[Document]] | None = None, **top: Any) -> Document:
    """A whole plan.json. `batches` lists each batch's steps (entries of `change`); by default one batch has all.

    Partitions are elected in the last batch that holds them. `top` replaces whole top-level values, or keys of
    `cluster` and `execution`.
    """
    changes = sorted(changes, key=_name)
    batches = batches if batches is not None else [changes] if changes else []
    made = {
        "format_version": "2.0",
        "plan_id": "0123456789abcdef" * 4,
        "planner_version": "0.1.0",
        "state": {"sha256": "ab" * 32, "topics": []},
        "headline": "Copies 100 B.",
        "cluster": {"name": "orders-eu", "bootstrap_servers": ["kafka-1:9092", "kafka-2:9092"], "sizes_known": True},
        "inputs": [{"path": "expand.yaml", "sha256": "ab" * 32}],
        "changes": changes_asked(add_brokers=[{"id": 4, "rack": "a"}], remove_brokers=[9]),
        "spec": {
            "topics": {"include": ["*"], "exclude": []},
            "survive": "none",
            "aims": ["leaders_changed", "makespan"],
            "limits": {"bytes_moved": 1000},
        },
        "rack_aware": True,
        "complete": True,
        "unfinished": None,
        "brokers": [*(_broker(b, "stays") for b in (1, 2, 3)), _broker(4, "added"), _broker(9, "removed")],
        "racks": [{"rack": "a", "brokers_before": 4, "brokers_after": 4, "before": _load(), "after": _load()}],
        "topics": [_topic(name, changes) for name in sorted({c["topic"] for c in changes})],
        "partitions": changes,
        "new_partitions": None,
        **_judged(),
        **_swept(),
        "limits": [{"key": "limits.bytes_moved", "limit": 1000, "value": 100}],
        "risks": _risks(len(batches)),
        "warnings": [],
        "execution": _execution(len(batches)),
        "batches": [_batch(index, batches, changes) for index in range(len(batches))],
    }
    parts = {key: made[key] | top[key] for key in ("cluster", "execution") if key in top}
    return made | top | parts


def _risks(batches: int) -> Document:
    none = [0] * batches
    return {"isr_known": True, "under_min_isr": none, "refused_by_failure_today": 0, "refused_by_failure": none}


def _execution(seconds: int) -> Document:
    limits = ("bytes", "moves_per_broker", "replicas_per_partition", "seconds", "bytes_per_sec", "elections")
    return {
        "throttle_bytes_per_sec": 50_000_000,
        "seconds_at_throttle": seconds,
        "kafka_bin_dir": "/opt/kafka/bin",
        "batches": dict.fromkeys(limits),
        "derived": [],
    }


def _judged() -> Document:
    """The sections that judge the plan: its balance, and one term."""
    relaxed = {"window": "topic_replicas", "topic": None, "wanted": "1", "reached": 2, "why": "racks"}
    balance = {"wanted": _windows(), "asked": _windows(), "missed": ["topic_replicas"], "relaxed": [relaxed]}
    values = {"today": 3, "if_nothing_moves": 3, "plan": 1, "limit": None}
    term = {"group": "fairness", "name": "replica_spread", "unit": "replicas", **values}
    return {"balance": balance, "terms": [{**term, "meaning": "Most minus fewest replicas on a broker."}]}


def changes_asked(**some: Any) -> Document:
    """The section `changes`, with some of its keys given."""
    lists = ("add_brokers", "remove_brokers", "set_replication_factor", "create_topics", "add_partitions")
    mappings: Document = {"replace_brokers": {}, "set_racks": {}}
    return {**{key: [] for key in lists}, **mappings, "rebalance": "all", **some}


def _swept() -> Document:
    """The sections that the search fills: the bound, alternatives, the Pareto front, the candidates."""
    return {
        "bound": {
            "least_bytes_moved": 100, "bytes_moved": 100, "least_replicas_moved": None, "gap_percent": 0.0,
            "proof": "Each move is forced.", "method": "flow", "sha256": "ab" * 32,
        },
        "choice": {"rule": "asked", "value": None, "variant": "changes", "why": "the fewest bytes: 100 B"},
        "compared": [_compared("do nothing"), _compared("this plan")],
        "variants": [],
        "pareto": [point("this plan", chosen=True)],
        "budget": None,
        "scenarios": [],
        "candidates": {
            "evaluated": 2,
            "by_strategy": {"optimum": 1, "unchanged": 1},
            "winner": _winner(),
            "digest": "0123456789abcdef",
            "rows_sha256": None,
            "rule": "Least bytes first.",
        },
    }  # fmt: skip


def plan_id(document: Mapping[str, Any]) -> str:
    """The id of a document's content, computed without the codec."""
    body = {key: value for key, value in document.items() if key != "plan_id"}
    return hashlib.sha256(canonical_json(body).encode()).hexdigest()


def with_id(document: Mapping[str, Any]) -> Document:
    """The document with a new id for its content, as somebody would make it after a change."""
    return {**document, "plan_id": plan_id(document)}


def _name(entry: Document) -> tuple[str, int]:
    return entry["topic"], entry["partition"]


def _windows() -> Document:
    none = dict.fromkeys(("topic_leaders", "disk", "network_in", "network_out"), "none")
    return {"replicas": "1", "leaders": "1", "topic_replicas": "1", **none}


def _load() -> Document:
    return {"replicas": 3, "leaders": 1, "size_bytes": 300, "network_in": None, "network_out": None}


def _broker(broker: int, role: str) -> Document:
    return {
        "id": broker, "rack": "a", "role": role, "before": _load(), "after": _load(), "bytes_in": 0, "bytes_out": 0,
        "disk_bytes": None, "peak_size_bytes": 300,
    }  # fmt: skip


def _topic(name: str, changes: Sequence[Document]) -> Document:
    own = [c for c in changes if c["topic"] == name]
    return {
        "name": name,
        "partitions": max(c["partition"] for c in own) + 1,
        "replication_factor_before": sorted({len(c["replicas_before"]) for c in own}),
        "replication_factor": len(own[0]["replicas"]),
        "config": {"retention.ms": "3600000"},
        "partitions_changed": len(own),
        "replicas_moved": len(own),
        "bytes_moved": sum(c["size_bytes"] for c in own),
    }


def _compared(label: str) -> Document:
    counts = dict.fromkeys(
        ("candidate", "violations", "bytes_moved", "replicas_moved", "leaders_changed", "replica_spread",
         "leader_spread", "topic_replica_spread"), 0
    )  # fmt: skip
    goal = {"imbalance_measure": "leaders", "left_to_change": 0, "balance_kept": True, "moves_unforced": False}
    return {"label": label, "strategy": "optimum", "imbalance_percent": 1.5, **goal, **counts}


def point(label: str, *, chosen: bool = False, **rest: Any) -> Document:
    """One entry of `pareto`."""
    figures = {
        "least_bytes_moved": 0,
        "gap_percent": 0.0,
        "seconds_at_throttle": 1,
        "scenarios_missed": 0,
        "targets_missed": False,
    }
    candidate = {"variant": "changes", "balance": _windows(), "scenarios": "none"}
    return _compared(label) | figures | candidate | {"chosen": chosen} | rest


def _winner() -> Document:
    return {
        "candidate": 0, "strategy": "optimum", "seed": 0, "start_index": -1, "next_replica_shift": -1,
        **_windows(), "scenarios": "none",
    }  # fmt: skip


def _batch(index: int, batches: Sequence[Sequence[Document]], changes: Sequence[Document]) -> Document:
    later = {_name(step) for batch in batches[index + 1 :] for step in batch}
    here = {_name(step) for step in batches[index]} - later
    keys = ("topic", "partition", "replicas_before", "replicas", "log_dirs_before", "log_dirs")
    return {
        "number": index + 1,
        "partitions": [
            {key: step[key] for key in keys if key in step}
            for step in sorted(batches[index], key=_name)
            if step["replicas"] != step["replicas_before"] or "log_dirs" in step
        ],
        "elect": [
            {"topic": c["topic"], "partition": c["partition"]}
            for c in changes
            if _name(c) in here and c["leader_before"] != c["replicas"][0]
        ],
        "bytes_moved": 100,
        "replicas_moved": 1,
        "seconds_at_throttle": 1,
        "fullest_broker": {"id": 1, "peak_size_bytes": 300, "disk_bytes": None},
        "leaderless": False,
    }
