"""The sections of the plan document that describe brokers, racks, topics, terms and warnings; plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from itertools import pairwise
from typing import Any

import numpy as np

from planner import model, plan_conditions, plan_new_partitions, score
from planner.balance import Tolerance
from planner.batches.costs import Peak
from planner.changes import bytes_in_and_out
from planner.loads import MEASURES, leaders_after, measured, on_all_brokers
from planner.model import BoolArray, Broker, IntArray, LongArray, PartitionChange, Problem, Spec
from planner.problem import may_move, today, topics_after
from planner.score import Yardstick


def changes(wish: model.Changes) -> dict[str, Any]:
    """The wish in the YAML's own shape, every key there."""
    return {
        "add_brokers": [{"id": broker.id, "rack": broker.rack} for broker in wish.add_brokers],
        "remove_brokers": list(wish.remove_brokers),
        "replace_brokers": {str(old): new for old, new in wish.replace_brokers},
        "set_racks": {str(broker): rack for broker, rack in wish.set_racks},
        "set_replication_factor": [asdict(change) for change in wish.set_replication_factor],
        **plan_new_partitions.changes(wish.new_partitions),
        "rebalance": wish.rebalance,
    }


def brokers(spec: Spec, problem: Problem, assignment: IntArray, peaks: Iterable[Peak]) -> list[dict[str, Any]]:
    """Every broker of today and of the target: what it holds before, after and at most, and what it copies.

    `peaks` has one for each broker, by id.
    """
    before, after = (
        on_all_brokers(problem, today(problem), problem.leaders),
        on_all_brokers(problem, assignment, leaders_after(problem, assignment)),
    )
    arriving, leaving = bytes_in_and_out(problem, assignment)
    known = {broker.id for broker in spec.cluster.brokers}
    capacities = {broker.id: broker.network_bytes_per_sec for broker in known_brokers(spec)}
    return [
        {
            "id": broker,
            "rack": problem.rack_names[problem.broker_racks[at]] if problem.broker_racks[at] >= 0 else None,
            "role": ("stays" if broker in known else "added") if problem.targets[at] else "removed",
            "before": _load(problem, before[:, at]),
            "after": _load(problem, after[:, at]),
            "bytes_in": int(arriving[at]),
            "bytes_out": int(leaving[at]),
            "disk_bytes": peak.disk_bytes,
            "peak_size_bytes": peak.size_bytes,
            **_network(capacities[broker]),
        }
        for at, (broker, peak) in enumerate(zip(problem.broker_ids.tolist(), peaks, strict=True))
    ]


def _network(bytes_per_sec: int | None) -> dict[str, int]:
    return {} if bytes_per_sec is None else {"network_bytes_per_sec": bytes_per_sec}


def held_bytes(problem: Problem) -> dict[int, int]:
    """Broker id to the bytes that it holds today."""
    held = on_all_brokers(problem, today(problem), problem.leaders)[2]
    return dict(zip(problem.broker_ids.tolist(), held.tolist(), strict=True))


def known_brokers(spec: Spec) -> tuple[Broker, ...]:
    """Today's brokers and the added ones."""
    return spec.cluster.brokers + spec.changes.add_brokers


def racks(spec: Spec, problem: Problem, assignment: IntArray) -> list[dict[str, Any]]:
    """Every rack of today and of the target; brokers that `set_racks` moves count in their old rack before."""
    now = {broker.id: broker.rack for broker in spec.cluster.brokers}
    ids = problem.broker_ids.tolist()
    names = [problem.rack_names[rack] if rack >= 0 else None for rack in problem.broker_racks]
    before, after = (
        on_all_brokers(problem, today(problem), problem.leaders),
        on_all_brokers(problem, assignment, leaders_after(problem, assignment)),
    )
    rows = []
    for rack in sorted({name for name in [*names, *now.values()] if name is not None}):
        old = np.array([now.get(broker) == rack for broker in ids], dtype=bool)
        new = np.array([name == rack for name in names], dtype=bool) & problem.targets
        rows.append(
            {
                "rack": rack,
                "brokers_before": int(old.sum()),
                "brokers_after": int(new.sum()),
                "before": _load(problem, before[:, old].sum(axis=1)),
                "after": _load(problem, after[:, new].sum(axis=1)),
            }
        )
    return rows


def topics(spec: Spec, problem: Problem, assignment: IntArray) -> list[dict[str, Any]]:
    """Every topic by name, with its factor before and after and what moves of it."""
    count = len(problem.topic_names)
    before = today(problem)
    added = score.adding(problem, assignment).sum(axis=1)
    new = problem.is_new
    changed = (before != assignment).any(axis=1) & ~new
    sums = [
        np.bincount(problem.topic_of, weights=column, minlength=count).astype(np.int64).tolist()
        for column in (np.ones(problem.rows), changed, added)
    ]
    moved = np.zeros(count, dtype=np.int64)
    np.add.at(moved, problem.topic_of, added * problem.size_bytes)
    factors = _factors(problem, (before >= 0).sum(axis=1), ~new)
    wanted = _factors(problem, problem.replication_factors, np.ones_like(new))
    configs = {topic.name: dict(topic.config) for topic in topics_after(spec)}
    return [
        {
            "name": name,
            "partitions": partitions,
            "replication_factor_before": factors[at],
            # A budget may raise some of a topic's partitions alone, and a topic may be of several factors today.
            "replication_factor": wanted[at][0] if len(wanted[at]) == 1 else None,
            "config": configs[name],
            "partitions_changed": partitions_changed,
            "replicas_moved": replicas_moved,
            "bytes_moved": int(moved[at]),
        }
        for at, (name, partitions, partitions_changed, replicas_moved) in enumerate(
            zip(problem.topic_names, *sums, strict=True)
        )
    ]


def terms(spec: Spec, problem: Problem, plan: Mapping[str, Any], assignment: IntArray) -> list[dict[str, Any]]:
    """Raw terms by group, today's value beside the plan's (its scores); `limit` is what the YAML asks for."""
    now = as_it_is(problem)
    wanted, limits = problem.balance, spec.limits
    before = today(problem)
    lone = [_on_one_rack(problem, replicas) for replicas in (before, assignment)]
    single = [int(((replicas >= 0).sum(axis=1) == 1).sum()) for replicas in (before, assignment)]
    refused = [_under_min_insync(problem, replicas) for replicas in (before, assignment)]
    leaderless = int(((problem.leaders < 0) & ~problem.is_new).sum())
    spreads = (
        ("replica_spread", "replicas", problem.disk_bytes, wanted.replicas),
        ("leader_spread", "leaders", problem.network_bytes_per_sec, wanted.leaders),
        ("topic_replica_spread", "replicas", problem.disk_bytes, wanted.topic_replicas),
    )
    return [
        *(
            _term("fairness", name, unit, now[name], plan[name], _most(capacities, problem, tolerance))
            for name, unit, capacities, tolerance in spreads
        ),
        _percentage("fairness", "fullest_broker", "% above share", now, plan),
        _term("safety", "broken_rules", "partitions", now["violations"], plan["violations"], 0),
        _term("safety", "without_leader", "partitions", leaderless, leaderless),
        _term("safety", "under_min_insync", "partitions", *refused),
        _term("safety", "single_replica", "partitions", *single),
        _term("resilience", "rack_spread_broken", "partitions", now["rack_violations"], plan["rack_violations"], 0),
        _term("resilience", "on_one_rack", "partitions", *lone),
        *(
            _term("resilience", name, unit, now[name], plan[name], getattr(limits, name, None))
            for name, unit in _FAILURES
        ),
        _term("movement", "bytes_moved", "bytes", 0, plan["bytes_moved"], limits.bytes_moved),
        _term("movement", "cross_rack_bytes", "bytes", 0, plan["cross_rack_bytes"], limits.cross_rack_bytes),
        _term("movement", "busiest_broker", "bytes", 0, plan["busiest_bytes"]),
        _percentage("movement", "peak_disk", f"% of {_room(problem)}", now, plan),
        _term("movement", "replicas_moved", "replicas", 0, plan["replicas_moved"], limits.replicas_moved),
        _term("movement", "leaders_changed", "leaders", 0, plan["leaders_changed"], limits.leaders_changed),
    ]


def as_it_is(problem: Problem) -> dict[str, int]:
    """The scores of today's cluster, with the leaders that it really has, not those that an election would give it."""
    scores = score.score(Yardstick.of(problem), today(problem), problem.leaders)
    return {field.name: int(getattr(scores, field.name)[0]) for field in fields(scores)}


def warnings(spec: Spec, problem: Problem, changed: Sequence[PartitionChange]) -> list[str]:
    """What an operator should know before approving; nothing that the plan can help."""
    partitions = [part for topic in spec.cluster.topics for part in topic.partitions]
    lagging = sum(1 for part in partitions if part.isr is not None and len(part.isr) < len(part.replicas))
    grown = sum(1 for new in spec.changes.new_partitions if new.first)
    mixed = sum(1 for topic in spec.cluster.topics if len({len(part.replicas) for part in topic.partitions}) > 1)
    deleting = sum(topic.deleting for topic in spec.cluster.topics)
    kept = sum(not topic.deleting and not may_move(spec.topics, topic.name) for topic in spec.cluster.topics)
    targets = set(problem.broker_ids[problem.targets].tolist())
    stay = [broker for broker in known_brokers(spec) if broker.id in targets]
    disks, networks = {each.disk_bytes for each in stay}, {each.network_bytes_per_sec for each in stay}
    found = [
        (not spec.cluster.sizes_known, "sizes are unknown (no cluster.state.sizes): replicas are counted, not bytes"),
        (
            spec.cluster.unsized,
            f"{_number(spec.cluster.unsized, 'partition')} without a size, counted as empty: "
            "more bytes move than this plan says",
        ),
        (lagging, f"{_number(lagging, 'partition')} under-replicated today: a reassignment waits for a full ISR"),
        (grown, f"{_number(grown, 'topic')} with more partitions: from then on keys go to other ones than before"),
        (mixed, f"{_number(mixed, 'topic')} with unlike replication factors within the topic"),
        (kept, f"{_number(kept, 'topic')} kept as they are by the topic filter, and counted"),
        (deleting, f"{_number(deleting, 'topic')} marked for deletion: kept as they are, and counted"),
        (
            not problem.racks_matter and problem.rack_aware,
            "no broker has a rack: replicas are not spread over racks",
        ),
        (
            None in disks and disks != {None},
            "capacity.disk is stated for some brokers alone: replicas and bytes are shared equally, not by capacity",
        ),
        (
            None in networks and networks != {None},
            "capacity.network is stated for some brokers alone: leaders and traffic are shared equally",
        ),
        (
            disks != {None} and not spec.cluster.sizes_known,
            "capacity.disk isn't checked: sizes are unknown",
        ),
    ]
    told = [text for applies, text in found if applies]
    return [*told, *plan_conditions.conditions(spec, problem, changed), *spec.cluster.notes]


_FAILURES = (
    ("broker_offline", "partitions"),
    ("broker_refused", "partitions"),
    ("rack_offline", "partitions"),
    ("rack_refused", "partitions"),
    ("rack_leaders", "leaders"),
)
_MEANINGS = {
    "replica_spread": "most minus fewest replicas on a broker",
    "leader_spread": "most minus fewest preferred leaders on a broker",
    "topic_replica_spread": "the same within one topic, of the worst topic",
    "fullest_broker": "how far the fullest broker is above its share of replicas, leaders, bytes or traffic",
    "broken_rules": "partitions that break a rule of the target",
    "without_leader": "partitions that nobody can read or write",
    "under_min_insync": "partitions with fewer replicas than min.insync.replicas",
    "single_replica": "partitions that are lost with one broker",
    "rack_spread_broken": "partitions that could be spread over the racks more evenly",
    "on_one_rack": "partitions that go offline with one rack",
    "broker_offline": "partitions that the worst single broker takes offline",
    "broker_refused": "partitions that begin to refuse writes (acks=all) without the worst single broker",
    "rack_offline": "partitions that the worst rack takes offline",
    "rack_refused": "partitions that begin to refuse writes (acks=all) without the worst rack",
    "rack_leaders": "leaders that have to move when the rack with the most of them fails",
    "bytes_moved": "bytes that brokers copy",
    "cross_rack_bytes": "of these, bytes copied from another rack",
    "busiest_broker": "the most bytes that one broker copies in, or sends as a leader",
    "peak_disk": "how full the fullest broker is while everything is copied, with what it drops afterwards",
    "replicas_moved": "replicas that brokers copy",
    "leaders_changed": "partitions that get another leader",
}


def _term(group: str, name: str, unit: str, before: float, after: float, limit: float | None = None) -> dict[str, Any]:
    return {
        "group": group,
        "name": name,
        "unit": unit,
        "today": before,
        "plan": after,
        "limit": limit,
        "meaning": _MEANINGS[name],
    }


def _most(capacities: LongArray, problem: Problem, wanted: Tolerance) -> int | None:
    """The spread allowed; brokers of unlike capacity have windows of their own, and differ by more."""
    return int(wanted.value) if wanted.kind == "spread" and _alike(capacities, problem) else None


def _alike(capacities: LongArray, problem: Problem) -> bool:
    return len(np.unique(capacities[problem.targets])) < 2


def _room(problem: Problem) -> str:
    """What a broker's peak is held against."""
    return "its disk" if (problem.disk_limit_bytes[problem.targets] >= 0).all() else "its share"


_PPM = {"fullest_broker": "imbalance_ppm", "peak_disk": "peak_disk_ppm"}


def _percentage(group: str, name: str, unit: str, now: Mapping[str, int], plan: Mapping[str, Any]) -> dict[str, Any]:
    today, then = (float(round(row[_PPM[name]] / 10_000, 2)) for row in (now, plan))
    return _term(group, name, unit, today, then)


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _load(problem: Problem, column: LongArray) -> dict[str, int | None]:
    """A column of MEASURES by name; traffic is None where no rates are known."""
    known = measured(problem)
    return {
        name: value if at < known else None
        for at, (name, value) in enumerate(zip(MEASURES, column.tolist(), strict=True))
    }


def _factors(problem: Problem, counts: IntArray, rows: BoolArray) -> list[list[int]]:
    """The different replication factors of each topic (T) among some rows (P,), ascending."""
    pairs = np.unique(np.stack([problem.topic_of[rows], counts[rows]]), axis=1)
    bounds = np.searchsorted(pairs[0], np.arange(len(problem.topic_names) + 1))
    return [pairs[1, start:end].tolist() for start, end in pairwise(bounds)]


def _on_one_rack(problem: Problem, replicas: IntArray) -> int:
    """Partitions all of whose replicas are in one rack; 0 where brokers have no racks."""
    if not (problem.broker_racks[problem.targets] >= 0).all():
        return 0
    racks = np.where(replicas >= 0, problem.broker_racks[replicas], problem.broker_racks[replicas[:, :1]])
    return int(((racks == racks[:, :1]).all(axis=1) & (replicas[:, 0] >= 0)).sum())


def _under_min_insync(problem: Problem, replicas: IntArray) -> int:
    count = (replicas >= 0).sum(axis=1)
    return int(((count < problem.min_insync) & (count > 0)).sum())
