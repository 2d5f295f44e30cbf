"""Consistent plans of any size. Replicas move from old brokers to new ones, batch by batch."""

from __future__ import annotations

from typing import Any

from plan_documents import Document, change, document
from report_documents import GB, broker, small


def large(brokers: int, added: int, topics: int, partitions: int, batches: int, **top: Any) -> Document:
    """Each of `topics` × `partitions` moves one of its three replicas from an old broker to one of `added` new ones."""
    changes = [_change(brokers, added, topic, number) for topic in range(topics) for number in range(partitions)]
    plan = document([], **{key: small()[key] for key in ("terms", "bound", "compared", "pareto", "limits")})
    stays = [broker(each, "stays", (90, 30), (60, 20), bytes_out=each * GB) for each in range(1, brokers + 1)]
    comes = [broker(brokers + each, "added", (0, 0), (60, 20), bytes_in=GB) for each in range(1, added + 1)]
    return plan | {
        "brokers": stays + comes,
        "topics": [_topic(number, partitions) for number in range(topics)],
        "partitions": changes,
        "batches": [_batch(number, changes[number::batches]) for number in range(batches)],
        **top,
    }


def _change(brokers: int, added: int, topic: int, number: int) -> Document:
    first = topic * 7 + number
    before = [(first + at * (1 + brokers // 3)) % brokers + 1 for at in range(3)]
    after = [brokers + first % added + 1, *before[1:]]
    return change(f"topic-{topic:05}", number, before, after, size=GB + first)


def _topic(number: int, partitions: int) -> Document:
    return {
        "name": f"topic-{number:05}",
        "partitions": partitions,
        "replication_factor_before": [3],
        "replication_factor": 3,
        "config": {},
        "partitions_changed": partitions,
        "replicas_moved": partitions,
        "bytes_moved": partitions * (GB + number),
    }


def _batch(number: int, changes: list[Document]) -> Document:
    return {
        "number": number + 1,
        "partitions": [
            {key: each[key] for key in ("topic", "partition", "replicas_before", "replicas")} for each in changes
        ],
        "elect": [{key: each[key] for key in ("topic", "partition")} for each in changes],
        "bytes_moved": sum(each["size_bytes"] for each in changes),
        "replicas_moved": len(changes),
        "seconds_at_throttle": 60 + number,
        "fullest_broker": {"id": 1, "peak_size_bytes": 100 * GB, "disk_bytes": None},
    }


HOSTILE = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>]]>&amp;$x^2$\x1b[31m\u202e"


def hostile() -> Document:
    """A small plan in which every name and sentence from the cluster tries to run as code or markup."""
    plan = large(3, 1, 2, 2, 2)
    steps = [step for batch in plan["batches"] for step in batch["partitions"] + batch["elect"]]
    for row in plan["partitions"] + steps:
        row["topic"] = HOSTILE + row["topic"]
    for topic in plan["topics"]:
        topic["name"] = HOSTILE + topic["name"]
    for each in plan["brokers"]:
        each["rack"] = HOSTILE
    plan["racks"][0]["rack"] = HOSTILE
    plan["cluster"]["name"] = HOSTILE
    # A plan whose comparison lacks the row "this plan" is refused by the reader.
    plan["compared"] = [{**row, "label": HOSTILE} if row["label"] != "this plan" else row for row in plan["compared"]]
    relaxed = {"window": "disk", "topic": HOSTILE, "wanted": "1", "reached": 2, "why": HOSTILE}
    return plan | {
        "warnings": [HOSTILE],
        "inputs": [{"path": HOSTILE, "sha256": "ab" * 32}],
        "balance": {**plan["balance"], "relaxed": [relaxed]},
        "changes": {"add_brokers": [{"id": 4, "rack": HOSTILE}], "rebalance": "all"},
    }
