"""Reads what `kafka-broker-api-versions` prints: the live brokers and their racks."""

from __future__ import annotations

import pytest

from planner.inputs.state.state_files import read_part
from planner.model.errors import ImportStateError

VERSIONS = """\
kafka-1:9092 (id: 1 rack: r 1 isFenced: false) -> (
\tProduce(0): 0 to 13 [usable: 13],
)
kafka-2:9092 (id: 2 rack: null isFenced: true) -> (
)
kafka-3:9092 (id: 3 rack: r0) -> (
)
"""


def test_brokers_have_racks_or_none() -> None:
    """Racks are read with their spaces; `null` is none; a fenced broker gives a note, if the Kafka version shows it."""
    part = read_part(VERSIONS, "v.txt")
    assert [(1, "r 1", 1), (2, None, 4), (3, "r0", 6)] == [
        (each.id, each.rack, each.place.line) for each in part.brokers
    ]
    assert ("broker 2 is fenced by v.txt: it is down, or not yet up",) == part.notes


def test_a_broker_that_gave_an_error_has_a_rack_but_is_not_live() -> None:
    """Kafka's tool lists a broker that doesn't answer it, with an error instead of the versions."""
    part = read_part(VERSIONS + "k-4:9092 (id: 4 rack: r0) -> ERROR: org.apache.kafka.x.DisconnectException\n", "v.txt")
    assert [(1, True), (2, True), (3, True), (4, False)] == [(each.id, each.answers) for each in part.brokers]
    assert "broker 4 gave kafka-broker-api-versions an error, by v.txt: it may be down" == part.notes[1]


def test_a_broker_that_is_there_twice_is_refused() -> None:
    """A broker that is listed twice is refused, because the file may hold the outputs of two clusters."""
    with pytest.raises(ImportStateError, match=r"v\.txt:8:1: broker 1 is here twice; allowed: once"):
        read_part(VERSIONS + VERSIONS, "v.txt")
