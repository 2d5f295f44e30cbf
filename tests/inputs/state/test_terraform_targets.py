"""What Terraform declares beside what is there."""

from __future__ import annotations

from planner.inputs.importers.any_format import read_part
from planner.inputs.importers.state_parts import StatePart, TopicTarget
from planner.inputs.state.merge import merge
from planner.inputs.state.terraform_targets import Targets, target_notes, targets
from planner.model.errors import Place

DESCRIBE = """\
Topic: a\tPartitionCount: 1\tReplicationFactor: 2\tConfigs:
\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1
Topic: b\tPartitionCount: 2\tReplicationFactor: 1\tConfigs:
\tTopic: b\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1
\tTopic: b\tPartition: 1\tLeader: 1\tReplicas: 1\tIsr: 1
"""
AT = Place("p.json", 1, 1)


def declared(*rows: TopicTarget) -> StatePart:
    """What terraform show says of these topics."""
    return StatePart("terraform show -json", "p.json", targets=rows)


def test_targets_are_what_has_to_change() -> None:
    """Factors, more partitions, new topics; fewer partitions nobody can have."""
    rows = (TopicTarget(AT, "a", 4, 3), TopicTarget(AT, "b", 1, 1), TopicTarget(AT, "c", 2, 2))
    merged = merge([read_part(DESCRIBE, "d.txt"), declared(*rows)])
    assert Targets((("a", 3),), (("a", 4),), (rows[2],), ("b",)) == targets(merged)
    assert [
        "p.json declares topic a with another replication factor: see changes.set_replication_factor",
        "p.json declares topic a with more partitions: see changes.add_partitions",
        "p.json declares topic c which the cluster doesn't have: see changes.create_topics",
        "p.json declares topic b with fewer partitions than they have: Kafka takes none away",
    ] == list(target_notes(merged))


def test_what_is_declared_as_it_is_or_not_known_yet_changes_nothing() -> None:
    """A plan leaves out what is only known after it was applied."""
    merged = merge(
        [read_part(DESCRIBE, "d.txt"), declared(TopicTarget(AT, "a", 1, 2), TopicTarget(AT, "b", None, None))]
    )
    assert Targets() == targets(merged)
    assert [] == list(target_notes(merged))
