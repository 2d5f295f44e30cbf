"""The string of `kafka-topics --create --replica-assignment`."""

from __future__ import annotations

import pytest

from planner.inputs.importers.any_format import read_part
from planner.model.errors import ImportStateError


def test_a_replica_assignment_needs_its_topic() -> None:
    """`0:1,1:0,0:1` is three partitions of whichever topic is named beside it."""
    (part,) = [read_part(' "0:1,1:0,0:1"\n', "m.txt", "tp_demo_03")]
    assert [(0, 1), (1, 0), (0, 1)] == [entry.partition.replicas for entry in part.entries]
    assert {"tp_demo_03"} == {entry.topic for entry in part.entries}
    with pytest.raises(ImportStateError, match="doesn't say of which topic; allowed: with the topic's name"):
        read_part("0:1,1:0", "m.txt")
