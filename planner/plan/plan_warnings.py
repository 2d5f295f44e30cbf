"""Warnings of a plan, in sentences: what is unusual about the cluster, and topics that fall to their min ISR.

Nothing here is a fault of the plan; most of it decides what can be carried out at all, so it is said before approval.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from planner.model.cluster import Topic
from planner.model.effective_config import in_force
from planner.model.formats import counted
from planner.model.partition_changes import PartitionChange
from planner.model.problem import BoolArray, Problem
from planner.model.spec import Spec
from planner.model.state_warnings import down, unions

_REFUSED = "writes with acks=all are refused"
_ONE_DOWN = f"while one of their brokers is down, {_REFUSED}"


def warnings(spec: Spec, problem: Problem) -> Iterator[str]:
    """A sentence for each way in which a plan leaves topics so, with the first few of them.

    Topics with one replica whose `min.insync.replicas` is 1 count where the plan takes the others away.
    """
    before = (problem.replicas >= 0).sum(axis=1)
    after, least, new = problem.replication_factors, problem.min_insync, problem.is_new
    equal, several = after == least, least > 1
    lowered, raised, kept = (rows & ~new for rows in (after < before, after > before, after == before))
    staying = kept & ~_deleted(spec, problem)
    for rows, what in (
        (equal & several & lowered, "lowered to as many replicas as min.insync.replicas"),
        (equal & several & raised, "raised only to min.insync.replicas"),
        (equal & several & new, "with new partitions of as many replicas as min.insync.replicas"),
        (equal & several & staying, "kept with as many replicas as min.insync.replicas"),
    ):
        yield from _told(problem, rows, what, _ONE_DOWN)
    yield from _told(problem, equal & ~several & lowered, "lowered to one replica", "offline while its broker is down")
    fewer = "kept with fewer replicas than min.insync.replicas"
    yield from _told(problem, (after < least) & staying, fewer, f"{_REFUSED}, today and after the plan")


def _deleted(spec: Spec, problem: Problem) -> BoolArray:
    """(P,): True for the partitions of topics that are marked for deletion."""
    names = {topic.name for topic in spec.cluster.topics if topic.deleting}
    return np.array([name in names for name in problem.topic_names], dtype=bool)[problem.topic_of]


def _told(problem: Problem, rows: BoolArray, what: str, harm: str) -> Iterator[str]:
    names = [problem.topic_names[topic] for topic in np.unique(problem.topic_of[rows]).tolist()]
    if names:
        some = ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
        yield f"{counted(len(names), 'topic')} {what} ({some}): {harm}"


# Kafka's switch of a topic whose older segments lie in remote storage (KIP-405).
_TIERED = ("remote.storage.enable", "true")


def conditions(spec: Spec, problem: Problem, changed: Sequence[PartitionChange]) -> Iterator[str]:
    """A sentence for each condition of today's cluster, with the first few of whom it concerns."""
    topics = spec.cluster.topics
    yield from warnings(spec, problem)
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
            "some racks hold several replicas of a partition"
        )


def _kinds(spec: Spec) -> Iterator[str]:
    configs = (in_force(topic, spec.cluster.config_defaults) for topic in spec.cluster.topics)
    tiered = sum(_TIERED in config.items() for config in configs)
    if tiered:
        yield f"{counted(tiered, 'topic')} with tiered storage: only the data on brokers' disks is counted and moved"


def _named(partitions: Sequence[tuple[str, int]]) -> str:
    """Up to three partitions by name, and how many more there are; empty without any."""
    if not partitions:
        return ""
    names = ", ".join(f"{topic}-{number}" for topic, number in partitions[:3])
    more = f" and {len(partitions) - 3:,} more" if len(partitions) > 3 else ""
    return f"{counted(len(partitions), 'partition')} ({names}{more})"
