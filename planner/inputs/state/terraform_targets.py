"""What topics are declared to be, by Terraform, beside what they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.inputs.importers.state_parts import TopicTarget
from planner.inputs.state.merge import Merged
from planner.model.cluster import Topic
from planner.model.state_warnings import some


@dataclass(frozen=True)
class Targets:
    """What has to change for the topics to be as declared.

    `factors` are (topic, replication factor), `partitions` (topic, partitions afterwards), `new` topics to be created;
    `fewer` are topics declared with fewer partitions than they have, which no change can give them.
    """

    factors: tuple[tuple[str, int], ...] = ()
    partitions: tuple[tuple[str, int], ...] = ()
    new: tuple[TopicTarget, ...] = ()
    fewer: tuple[str, ...] = ()


def targets(merged: Merged) -> Targets:
    """How what is declared differs from today's topics, in the order in which it is declared."""
    today = {topic.name: topic for topic in merged.assignment.topics}
    known = [(today[each.topic], each) for each in merged.targets if each.topic in today]
    return Targets(
        tuple((topic.name, each.replication_factor) for topic, each in known if _other_factor(topic, each)),  # type: ignore[misc]
        tuple((topic.name, each.partitions) for topic, each in known if (each.partitions or 0) > len(topic.partitions)),  # type: ignore[misc]
        tuple(each for each in merged.targets if each.topic not in today),
        tuple(topic.name for topic, each in known if 0 < (each.partitions or 0) < len(topic.partitions)),
    )


def _other_factor(topic: Topic, declared: TopicTarget) -> bool:
    factor = declared.replication_factor
    return factor is not None and any(len(partition.replicas) != factor for partition in topic.partitions)


def target_notes(merged: Merged) -> Iterator[str]:
    """What is declared otherwise than it is, and what to write for it: the state of a cluster isn't the wish."""
    found = targets(merged)
    for names, what in (
        ([name for name, _ in found.factors], "with another replication factor: see changes.set_replication_factor"),
        ([name for name, _ in found.partitions], "with more partitions: see changes.add_partitions"),
        ([each.topic for each in found.new], "which the cluster doesn't have: see changes.create_topics"),
        (list(found.fewer), "with fewer partitions than they have: Kafka takes none away"),
    ):
        if names:
            yield f"{merged.declared_by} declares {some(names)} {what}"
