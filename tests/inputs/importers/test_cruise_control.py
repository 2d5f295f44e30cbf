"""Reads Cruise Control's cluster state and its proposals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planner.inputs.importers.cruise_control import read_proposals
from planner.inputs.importers.state_parts import Rank
from planner.inputs.state.state_files import read_part
from planner.model.cluster import Partition
from planner.model.errors import ImportStateError

ROW = {
    "topic": "a",
    "partition": 0,
    "leader": 1,
    "replicas": [1, 2],
    "in-sync": [1],
    "out-of-sync": [2],
    "offline": [2],
}


OTHER = {
    "topic": "a",
    "partition": 1,
    "leader": -1,
    "replicas": [2, 1],
    "in-sync": [],
    "out-of-sync": [],
    "offline": [],
}


def answer(**lists: Any) -> str:
    """The JSON of kafka_cluster_state with these lists."""
    return json.dumps(
        {"KafkaPartitionState": lists, "KafkaBrokerState": {"ReplicaCountByBrokerId": {"1": 2}}, "version": 1}
    )


def test_the_verbose_cluster_state_is_an_assignment() -> None:
    """The verbose state is an assignment; a partition may be in several of its lists."""
    lists = {"offline": [OTHER], "urp": [ROW, OTHER], "with-offline-replicas": [ROW], "under-min-isr": [], "other": []}
    part = read_part(answer(**lists), "c.json")
    assert Rank.DOCUMENT == part.rank
    assert {("a", Partition(0, (1, 2), 1, (1,))), ("a", Partition(1, (2, 1), None, ()))} == {
        (entry.topic, entry.partition) for entry in part.entries
    }


def test_the_short_cluster_state_is_refused() -> None:
    """The state without verbose=true is refused, because it has only partitions with problems."""
    with pytest.raises(ImportStateError, match="allowed: the answer with verbose=true"):
        read_part(answer(urp=[ROW]), "c.json")


@pytest.mark.parametrize("about", [{"topic": "a-1", "partition": 0, "hash": 5}, "a-1-0"])
def test_proposals_give_the_old_replicas(about: Any) -> None:
    """Old replicas of proposals are a part of the assignment, because only partitions that change are listed."""
    proposal = {"topicPartition": about, "oldLeader": 2, "oldReplicas": [1, 2], "newReplicas": [3, 2]}
    part = read_part(json.dumps({"proposals": [proposal], "version": 1}), "p.json")
    assert [("a-1", Partition(0, (1, 2), 2))] == [(entry.topic, entry.partition) for entry in part.entries]
    assert not part.complete


@pytest.mark.parametrize(
    "change", [{"replicas": []}, {"replicas": "x"}, {"in-sync": None}, {"leader": "1"}, {"partition": -1}, {"topic": 5}]
)
def test_bad_answers_are_named(change: dict[str, Any]) -> None:
    """An invalid value is refused with its place in the JSON."""
    with pytest.raises(ImportStateError, match=r"KafkaPartitionState\.other\[0\].*allowed:"):
        read_part(answer(other=[ROW | change]), "c.json")


def test_proposals_say_what_is_wanted_and_what_was_found() -> None:
    """The new replicas are the target, the old ones the assignment, and each has the line of its proposal."""
    row = {"topicPartition": "a-0", "oldLeader": 2, "oldReplicas": [2, 1], "newReplicas": [3, 1]}
    wanted, found = read_proposals('{"proposals": [\n' + json.dumps(row) + "]}", "p.json")

    assert [Partition(0, (3, 1), 3)] == [entry.partition for entry in wanted.entries]
    assert [Partition(0, (2, 1), 2)] == [entry.partition for entry in found.entries]
    assert ["p.json:2:1"] == [str(entry.place) for entry in wanted.entries]


def test_a_proposal_without_new_replicas_is_refused() -> None:
    """A proposal without new replicas is refused."""
    row = {"topicPartition": "a-0", "oldLeader": 2, "oldReplicas": [2, 1]}

    with pytest.raises(ImportStateError, match=r"p\.json:1:16: proposals\[0\]\.newReplicas: None aren't replicas"):
        read_proposals('{"proposals": [' + json.dumps(row) + "]}", "p.json")


def test_proposals_beside_partitions_are_refused() -> None:
    """A file with Cruise Control's proposals and Kafka's partitions has two targets."""
    row = {"topicPartition": "a-0", "oldLeader": 2, "oldReplicas": [2, 1], "newReplicas": [3, 1]}

    with pytest.raises(ImportStateError, match="partitions: is beside proposals; allowed: one of the two lists"):
        read_proposals(json.dumps({"proposals": [row], "partitions": []}), "p.json")
