"""What `kafka-broker-api-versions` prints: every live broker with its id and rack, above the versions of its requests.

`kafka-1:9092 (id: 1 rack: r0 isFenced: false) -> (` …; it is the one tool of Kafka's own that tells racks with KRaft.
Source: `org.apache.kafka.tools.BrokerApiVersionsCommand`, which prints `org.apache.kafka.common.Node`.
"""

from __future__ import annotations

import re

from planner.inputs.importers.state_parts import BrokerSeen, Rank, StatePart
from planner.model.errors import Finding, ImportStateError, Place

TITLE = "kafka-broker-api-versions"
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
    seen = tuple(
        BrokerSeen(Place(file, text.count("\n", 0, match.start()) + 1, 1), int(match[1]), _rack(match[2]))
        for match in _BROKER.finditer(text)
    )
    ids = [broker.id for broker in seen]
    for at, broker in enumerate(seen):
        if broker.id in ids[:at]:
            raise ImportStateError([Finding(broker.place, "", f"broker {broker.id} is here twice; allowed: once")])
    fenced = [match[1] for match in _BROKER.finditer(text) if match[3] == "true"]
    notes = tuple(f"broker {broker} is fenced by {file}: it is down, or not yet up" for broker in fenced)
    return StatePart(TITLE, file, Rank.CLUSTER, brokers=seen, notes=notes)


def _rack(text: str) -> str | None:
    return None if text in ("null", "") else text
