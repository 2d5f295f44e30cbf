"""What `kafka-broker-api-versions` prints: every live broker with its id and rack, above the versions of its requests.

`kafka-1:9092 (id: 1 rack: r0 isFenced: false) -> (` …; no other tool of Kafka's prints racks under KRaft.
Source: `org.apache.kafka.tools.BrokerApiVersionsCommand`, which prints `org.apache.kafka.common.Node`.
"""

from __future__ import annotations

import re

from planner.inputs.importers.state_parts import BrokerSeen, Rank, StatePart
from planner.model.errors import Finding, ImportStateError, Place

_BROKER = re.compile(
    r"^\S+:-?[0-9]{1,5} \(id: (\d{1,10}) rack: (.*?)(?: isFenced: (true|false))?\) -> ", re.ASCII | re.MULTILINE
)


def recognises(text: str) -> bool:
    """True where a line names a broker as this tool does."""
    return _BROKER.search(text) is not None


def read_part(text: str, file: str) -> StatePart:
    """The live brokers, and a note of those that are fenced.

    A rack that is really called `null` can't be told from none: Kafka prints both alike.
    """
    lines = list(_BROKER.finditer(text))
    seen = tuple(
        BrokerSeen(
            Place(file, text.count("\n", 0, line.start()) + 1, 1),
            int(line[1]),
            None if line[2] in ("null", "") else line[2],
        )
        for line in lines
    )
    ids = [broker.id for broker in seen]
    for at, broker in enumerate(seen):
        if broker.id in ids[:at]:
            raise ImportStateError([Finding(broker.place, "", f"broker {broker.id} is here twice; allowed: once")])
    fenced = [line[1] for line in lines if line[3] == "true"]
    notes = tuple(f"broker {broker} is fenced by {file}: it is down, or not yet up" for broker in fenced)
    return StatePart("kafka-broker-api-versions", file, Rank.CLUSTER, brokers=seen, notes=notes)
