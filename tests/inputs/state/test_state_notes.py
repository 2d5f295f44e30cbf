"""The notes of an import on the cluster that it found."""

from __future__ import annotations

import json
from pathlib import Path

from planner.inputs.spec.reading import load
from planner.inputs.state.merge import merge
from planner.inputs.state.state_files import read_part
from planner.inputs.state.state_notes import conditions, left_out_brokers, unknown_origin
from planner.model.cluster import CONFIGS_UNKNOWN, Broker


def told(*texts: str) -> list[str]:
    """The notes on the state of these texts, and those of its sources."""
    state = merge([read_part(text, f"f{number}") for number, text in enumerate(texts)])
    return [*state.notes, *conditions(state)]


def described(*rows: tuple[str, str, str]) -> str:
    """A description of topic t; each row is a partition's leader, replicas and ISR."""
    lines = [f"Topic: t\tPartitionCount: {len(rows)}\tReplicationFactor: 2\tConfigs: "]
    for at, (leader, replicas, isr) in enumerate(rows):
        lines.append(f"\tTopic: t\tPartition: {at}\tLeader: {leader}\tReplicas: {replicas}\tIsr: {isr}")
    return "\n".join(lines)


def test_a_broker_in_no_isr_is_down() -> None:
    """A broker that is in no ISR of its replicas seems to be down; the note counts its replicas."""
    assert "broker 2 is in no ISR of its 2 replicas: it seems to be down" in told(
        described(("1", "1,2", "1"), ("3", "2,3", "3"))
    )


def test_a_broker_that_is_alone_in_the_isr_of_an_offline_partition_is_down() -> None:
    """A broker that is the only one in an ISR, but doesn't lead, seems to be down: Kafka keeps the last ISR."""
    found = told(described(("none", "1,2", "1"), ("3", "2,3", "2,3")))
    assert "broker 1 is in no ISR of its 1 replica, leaderless partitions aside: it seems to be down" in found
    assert not [sentence for sentence in found if sentence.startswith("broker 2")]


def test_replicas_that_may_be_on_their_way_are_told() -> None:
    """More replicas than in other partitions, not all in sync, may be a reassignment; if all are in sync, it isn't."""
    moving = "partition t-1 with more replicas than others of the topic, and not all in sync: perhaps being reassigned"
    moved = [("1", "1,2", "1,2"), ("1", "1,2,3", "1,2")]
    assert [moving] == [each.split(";")[0] for each in told(described(*moved)) if "being reassigned" in each]
    assert not [each for each in told(described(moved[0], ("1", "1,2,3", "1,2,3"))) if "being reassigned" in each]


def test_brokers_that_only_log_dirs_name_are_told() -> None:
    """A broker that kafka-log-dirs lists without replicas is named once, unless another source has it."""
    replica = {"partition": "t-0", "size": 5, "offsetLag": 0, "isFuture": False}
    brokers = [
        {"broker": number, "logDirs": [{"logDir": "/d", "error": None, "partitions": [replica] * (number == 1)}]}
        for number in (1, 5, 4, 3)
    ]
    parts = [read_part(json.dumps({"version": 1, "brokers": brokers}), name) for name in ("f0", "f1")]
    assert [
        "f0 has brokers 4–5 without a replica: left out of cluster.brokers; write them there, or add the output of "
        "kafka-broker-api-versions"
    ] == [*left_out_brokers(parts, (Broker(1), Broker(3)))]
    assert [] == [*left_out_brokers(parts, map(Broker, (1, 3, 4, 5)))]


def test_fenced_brokers_are_told() -> None:
    """A fenced broker gets a note."""
    versions = "h:1 (id: 1 rack: a isFenced: false) -> (\n)\nh:2 (id: 2 rack: b isFenced: true) -> (\n)\n"
    found = told(described(("1", "1,2", "1,2")), versions)
    assert ["broker 2 is fenced by f1: it is down, or not yet up"] == [each for each in found if "fenced" in each]


def test_a_broker_without_a_rack_among_those_with_one_is_told() -> None:
    """If only some brokers have a rack, a note says so, because such a spec is refused."""
    versions = "h:1 (id: 1 rack: a isFenced: false) -> (\n)\nh:2 (id: 2 rack: null isFenced: false) -> (\n)\n"
    found = told(described(("1", "1,2", "1,2")), versions)
    said = "broker 2 has no rack by f1, but others have one: state it, or leave out all"
    assert [said] == [each for each in found if "rack" in each]


def test_sources_without_configurations_leave_the_least_unknown(tmp_path: Path) -> None:
    """If no source has configurations, a note says so, unless the YAML states them or kafka-topics shows none."""
    moves = json.dumps({"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": [1, 2]}]})
    (tmp_path / "r.json").write_text(moves)
    top = "version: 1\ncluster: {name: c, brokers: [{id: 1}, {id: 2}], state: {assignment: r.json}"
    notes = []
    for rest in ("}", ", config_defaults: {min.insync.replicas: 2}}"):
        (tmp_path / "s.yaml").write_text(f"{top}{rest}\n")
        notes.append(load(tmp_path / "s.yaml").cluster.notes)

    assert [(CONFIGS_UNKNOWN,), ()] == notes
    assert CONFIGS_UNKNOWN in told(moves)
    assert CONFIGS_UNKNOWN not in told(described(("1", "1,2", "1,2")))


def test_what_nobody_tells_is_said_once() -> None:
    """One note for all topics names the keys whose origin is unknown."""
    config = (("min.insync.replicas", "2"),)
    (note,) = unknown_origin({"a": config, "b": config})
    assert note.startswith("unknown whether topics have their own min.insync.replicas (2 topics) or inherit it")
    assert [] == list(unknown_origin({"a": ()}))
