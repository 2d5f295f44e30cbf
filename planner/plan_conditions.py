"""What is unusual about the cluster that a plan starts from, in sentences: among the plan's warnings.

Nothing here is a fault of the plan; most of it decides what can be carried out at all, so it is told before approval.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from planner import min_isr_warnings
from planner.effective_config import in_force
from planner.figures import counted
from planner.model import PartitionChange, Problem, Spec, Topic
from planner.state.conditions import down, unions

# Kafka's switch of a topic whose older segments lie in remote storage (KIP-405).
_TIERED = ("remote.storage.enable", "true")


def conditions(spec: Spec, problem: Problem, changed: Sequence[PartitionChange]) -> Iterator[str]:
    """A sentence for each condition of today's cluster, with the first few of whom it concerns."""
    topics = spec.cluster.topics
    yield from min_isr_warnings.warnings(spec, problem)
    yield from _down(topics)
    yield from unions(topics)
    yield from _leaderless(topics, {(each.topic, each.partition) for each in changed})
    yield from _racks(problem)
    yield from _kinds(spec)


def _down(topics: Iterable[Topic]) -> Iterator[str]:
    for sentence in down(part for topic in topics for part in topic.partitions):
        yield f"{sentence}. Nothing runs that needs it: start it first, or plan with it in changes.remove_brokers"


def _leaderless(topics: Iterable[Topic], changed: Collection[tuple[str, int]]) -> Iterator[str]:
    """Partitions that nobody can copy: those that stay as they are, and those that a change moves all the same."""
    names = [(topic.name, part.id) for topic in topics for part in topic.partitions if part.leader is None]
    stay, move = (_named([name for name in names if (name in changed) is moves]) for moves in (False, True))
    if stay:
        yield f"{stay} without a leader today: there is nothing to copy from, so nothing moves"
    if move:
        yield (
            f"{move} without a leader today, and yet to be changed: there is nothing to copy from until a replica "
            "in sync is back, so they have batches of their own at the end, which apply.yml leaves out until then"
        )


def _racks(problem: Problem) -> Iterator[str]:
    """Fewer racks than replicas of a partition, as far as racks count."""
    racks = set(problem.broker_racks[problem.targets].tolist())
    if not problem.racks_matter:
        return
    if len(racks) == 1:
        yield "all brokers are in one rack: replicas can't be spread over racks, and its failure takes all of them"
        return
    above = int((problem.replication_factors > len(racks)).sum())
    if above:
        yield (
            f"{counted(above, 'partition')} with more replicas than there are racks ({len(racks)}): "
            "as many on each rack as can be, not one"
        )


def _kinds(spec: Spec) -> Iterator[str]:
    configs = (in_force(topic, spec.cluster.config_defaults) for topic in spec.cluster.topics)
    tiered = sum(_TIERED in config.items() for config in configs)
    if tiered:
        yield f"{counted(tiered, 'topic')} with tiered storage: what is on brokers' disks counts and moves, no more"


def _named(partitions: Sequence[tuple[str, int]]) -> str:
    """Up to three partitions by name, and how many more there are; empty without any."""
    if not partitions:
        return ""
    names = ", ".join(f"{topic}-{number}" for topic, number in partitions[:3])
    more = f" and {len(partitions) - 3:,} more" if len(partitions) > 3 else ""
    return f"{counted(len(partitions), 'partition')} ({names}{more})"
