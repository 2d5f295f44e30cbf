"""A fingerprint of the state that a plan was made from, small enough for plan.json.

It tells which partitions have changed since, without a copy of the state. Each partition has two characters for its
replica list and one for its leader. The two are 12 bits of a checksum, so one changed list in 4,096 looks unchanged;
the digest of the whole state misses no change.
"""

import hashlib
from collections.abc import Iterable, Sequence
from zlib import crc32

from planner.model.cluster import Partition, Topic
from planner.plan.document.cluster_types import StateRow, StateSection

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_NOBODY = "-"


def section(topics: Iterable[Topic], *, sizes_known: bool) -> StateSection:
    """The `state` of plan.json."""
    ordered = sorted(topics, key=lambda topic: topic.name)
    return StateSection(
        sha256=digest(ordered),
        topics=tuple(
            StateRow(
                topic=topic.name,
                replicas="".join(map(of_replicas, topic.partitions)),
                leaders="".join(map(of_leader, topic.partitions)),
                size_bytes=sum(each.size_bytes for each in topic.partitions) if sizes_known else None,
            )
            for topic in ordered
        ),
    )


def digest(topics: Sequence[Topic]) -> str:
    """SHA-256 over the replicas and leaders of all partitions; `topics` by name."""
    found = hashlib.sha256()
    for topic in topics:
        lists = ";".join(_text(each) for each in topic.partitions)
        found.update(f"{topic.name}\n{lists}\n{''.join(map(of_leader, topic.partitions))}\n".encode())
    return found.hexdigest()


def of_replicas(partition: Partition) -> str:
    """Two characters: a checksum of a replica list, in its order."""
    number = crc32(_text(partition).encode()) % len(_ALPHABET) ** 2
    return _ALPHABET[number // len(_ALPHABET)] + _ALPHABET[number % len(_ALPHABET)]


def of_leader(partition: Partition) -> str:
    """One character: the position of the leader in the replica list."""
    if partition.leader not in partition.replicas:
        return _NOBODY
    return _ALPHABET[partition.replicas.index(partition.leader) % len(_ALPHABET)]


def _text(partition: Partition) -> str:
    return ",".join(map(str, partition.replicas))


def unlike(before: StateRow, topic: Topic) -> tuple[list[int], list[int]]:
    """The numbers of a topic's earlier partitions whose replicas changed, and of those with another leader only."""
    replicas, leaders = before.replicas, before.leaders
    rows = topic.partitions[: len(leaders)]
    changed = [at for at, each in enumerate(rows) if of_replicas(each) != replicas[2 * at : 2 * at + 2]]
    moved = set(changed)
    return changed, [at for at, each in enumerate(rows) if at not in moved and of_leader(each) != leaders[at]]
