"""What is unusual about the state of a cluster: brokers that seem down, partitions that may be on their way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from planner.model.cluster import Partition, Topic
from planner.model.formats import counted


def down(partitions: Iterable[Partition]) -> Iterator[str]:
    """A sentence for each broker whose replicas are all out of sync, where ISRs are known: none is in a leader's ISR.

    Of a partition without a leader Kafka shows the last ISR, whose brokers are down, or one of them would lead.
    """
    known = [row for row in partitions if row.isr is not None]
    held = Counter(broker for row in known for broker in row.replicas)
    listed = {broker for row in known for broker in row.isr or ()}
    in_sync = {broker for row in known if row.leader is not None for broker in row.isr or ()}
    for broker in sorted(held.keys() - in_sync):
        what = "only in ISRs without a leader, of" if broker in listed else "in no ISR of"
        yield f"broker {broker} is {what} its {counted(held[broker], 'replica')}: it seems to be down"


def unions(topics: Iterable[Topic]) -> Iterator[str]:
    """Partitions that may be on their way: Kafka before 2.4 shows the old and the new replicas together, and no more.

    Those are more than the topic's other partitions have, and the new ones of them aren't in sync yet.
    """
    found = []
    for topic in topics:
        usual = min(len(row.replicas) for row in topic.partitions)
        found += [
            partition_name(topic.name, row)
            for row in topic.partitions
            if row.leader is not None and row.isr is not None and usual < len(row.replicas) > len(row.isr)
        ]
    if found:
        yield (
            f"{some(found, 'partition')} with more replicas than others of the topic, and not all in sync: being "
            "reassigned, perhaps; the output of kafka-reassign-partitions --list tells"
        )


def partition_name(topic: str, partition: Partition) -> str:
    """Topic and id, as Kafka's tools name a partition in their messages."""
    return f"{topic}-{partition.id}"


def some(names: Sequence[str], what: str = "topic") -> str:
    """Up to three names, and how many more there are."""
    rest = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return f"{what if len(names) == 1 else f'{what}s'} {', '.join(names[:3])}{rest}"
