"""The spec that a resumed plan is made from: what the approved plan says of its wish, on the cluster as it is now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.approval.cluster_now import Now
from planner.approval.remaining_changes import Rest
from planner.export.digests import digest
from planner.model.balance import Balance, Tolerance
from planner.model.cluster import Broker, Cluster, Topic
from planner.model.errors import StalePlanError
from planner.model.quoting import canonical_json
from planner.model.spec import (
    BatchRules,
    Changes,
    Derived,
    Execution,
    InputFile,
    Limits,
    NewPartitions,
    ReplicationFactorChange,
    Spec,
    Sweep,
    TopicFilter,
)

Plan = Mapping[str, Any]


def spec_of(plan: Plan, now: Now, rest: Rest, captured_at: str | None) -> Spec:
    """The spec of what is left; StalePlanError where the plan expires and nobody says when the state was captured."""
    planned, stated = {each["name"]: each for each in plan["topics"]}, plan["spec"]
    topics = tuple(_topic(planned.get(name, {}), now, now.topics[name]) for name in sorted(now.topics))
    holding = {broker for topic in topics for each in topic.partitions for broker in each.replicas}
    sizes = now.sizes or {}
    unsized = sum((topic.name, each.id) not in sizes for topic in topics for each in topic.partitions)
    return Spec(
        cluster=Cluster(
            name=plan["cluster"]["name"],
            brokers=_brokers(plan, now, holding),
            topics=topics,
            bootstrap_servers=tuple(plan["cluster"]["bootstrap_servers"]),
            sizes_known=now.sizes is not None,
            unsized=unsized if sizes else 0,
            config_defaults=tuple(
                sorted((plan["cluster"].get("config_defaults", {}) | dict(now.config_defaults)).items())
            ),
        ),
        changes=_changes(plan, rest, holding),
        rack_aware=plan["rack_aware"],
        balance=_balance(plan),
        topics=TopicFilter(tuple(stated["topics"]["include"]), tuple(stated["topics"]["exclude"])),
        resilience=stated["survive"],
        sweep=Sweep(aims=tuple(stated["aims"])),
        # What is left has no bound of its own, so no gap to it.
        limits=Limits(**stated["limits"] | {"gap_ppm": None}),
        execution=_execution(plan),
        inputs=(InputFile("plan.json", digest(canonical_json(plan).encode())), *now.inputs),
        captured_at=captured_at,
        valid_for_seconds=_valid_for(plan, captured_at),
    )


def _valid_for(plan: Plan, captured_at: str | None) -> int | None:
    seconds: int | None = plan.get("validity", {}).get("valid_for_seconds")
    if seconds is not None and captured_at is None:
        raise StalePlanError(
            "the plan has an end (valid_for), so what is left of it needs to say when its state was captured; "
            "allowed: --captured-at with a date and time"
        )
    return seconds


def _topic(planned: Plan, now: Now, topic: Topic) -> Topic:
    """A topic with its sizes, and the configuration that the plan has for it where the state has none."""
    if not topic.config and not topic.effective_config:
        own, effective = (tuple(sorted(planned.get(key, {}).items())) for key in ("config", "effective_config"))
        topic = replace(topic, config=own, effective_config=effective)
    sizes = now.sizes or {}
    return replace(
        topic,
        partitions=tuple(replace(each, size_bytes=sizes.get((topic.name, each.id), 0)) for each in topic.partitions),
    )


def _brokers(plan: Plan, now: Now, holding: set[int]) -> tuple[Broker, ...]:
    """Today's brokers: those that stay, and whoever else holds replicas by now."""
    rows = [row for row in plan["brokers"] if row["role"] == "stays" or row["id"] in holding]
    known = {row["id"] for row in plan["brokers"]}
    racks = now.racks or {}
    others = (Broker(number, racks.get(number)) for number in sorted(holding - known))
    return (*map(_broker, rows), *others)


def _broker(row: Plan) -> Broker:
    return Broker(row["id"], row["rack"], row["disk_bytes"], row.get("network_bytes_per_sec"))


def _changes(plan: Plan, rest: Rest, holding: set[int]) -> Changes:
    """The wish without what is done: brokers that hold something by now, or nothing any more."""
    wish, known = plan["changes"], {row["id"] for row in plan["brokers"]}
    resizes = any(len(change.before) != len(change.after) for change in rest.changes)
    new_factors = wish.get("set_replication_factor", ()) if resizes else ()
    return Changes(
        add_brokers=tuple(
            _broker(row) for row in plan["brokers"] if row["role"] == "added" and row["id"] not in holding
        ),
        remove_brokers=tuple(broker for broker in wish.get("remove_brokers", ()) if broker in holding),
        replace_brokers=tuple(
            (int(old), new) for old, new in wish.get("replace_brokers", {}).items() if int(old) in holding
        ),
        set_racks=tuple(
            (int(broker), rack) for broker, rack in wish.get("set_racks", {}).items() if int(broker) in known
        ),
        set_replication_factor=tuple(
            ReplicationFactorChange(each["topics"], each["replication_factor"]) for each in new_factors
        ),
        new_partitions=_new_partitions(plan, rest),
        rebalance=wish["rebalance"],
    )


def _new_partitions(plan: Plan, rest: Rest) -> tuple[NewPartitions, ...]:
    """The topics of which partitions are still to be made, with what is expected of them."""
    wish, left = plan["changes"], {topic for topic, _ in rest.made}
    stated = {each["name"]: each for each in wish.get("create_topics", ())}
    stated |= {each["topic"]: each for each in wish.get("add_partitions", ())}
    return tuple(
        NewPartitions(
            topic["topic"],
            topic["partitions_before"],
            topic["partitions"],
            topic["replication_factor"],
            tuple(sorted(topic["config"].items())),
            *(stated.get(topic["topic"], {}).get(key, 0) for key in ("size", "bytes_in", "bytes_out")),
        )
        for topic in (plan.get("new_partitions") or {"topics": ()})["topics"]
        if topic["topic"] in left
    )


def _balance(plan: Plan) -> Balance:
    return Balance(**{knob: Tolerance.parse(text) for knob, text in plan["balance"]["wanted"].items()})


def _execution(plan: Plan) -> Execution:
    stated = plan["execution"]
    return Execution(
        throttle_bytes_per_sec=stated["throttle_bytes_per_sec"],
        batches=BatchRules(**stated.get("batches", {})),
        kafka_bin_dir=stated["kafka_bin_dir"],
        derived=tuple(Derived(**each) for each in stated.get("derived", ())),
    )
