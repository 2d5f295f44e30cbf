"""What one source knows of a cluster: its rank, its running reassignments, and its entries as topics or findings."""

from __future__ import annotations

import pytest

from planner.inputs.importers.state_parts import (
    AssignmentEntry,
    Rank,
    RunningReassignment,
    assignment,
    entry_findings,
    moving_finding,
)
from planner.model.cluster import Partition, Topic
from planner.model.errors import ImportStateError, Place

LAST = 2**31 - 1


def entry(topic: str, partition: Partition, line: int = 1) -> AssignmentEntry:
    """An entry for a partition that was read from this line."""
    return AssignmentEntry(Place("f", line, 1), f"{topic}-{partition.id}", topic, partition)


def test_entries_in_any_order_are_topics_by_name() -> None:
    """Entries become topics sorted by name, each with its configuration and its mark for deletion."""
    rows = [entry("b", Partition(1, (2,), 2)), entry("a", Partition(0, (3,), 3)), entry("b", Partition(0, (1,), 1))]
    found = assignment(rows, {"b": (("x", "1"),)}, deleting={"a"}, effective={"a": (("y", "2"),)})
    assert (
        Topic("a", (Partition(0, (3,), 3),), (), True, (("y", "2"),)),
        Topic("b", (Partition(0, (1,), 1), Partition(1, (2,), 2)), (("x", "1"),)),
    ) == found.topics
    assert (rows[1], rows[2], rows[0]) == found.entries


@pytest.mark.parametrize(
    ("partition", "said"),
    [
        (Partition(0, (), None), ["has no replicas; allowed: at least one broker"]),
        (Partition(0, (1, 2, 1), 1), ["broker 1 is 2 times in replicas; allowed: once"]),
        (Partition(0, (LAST + 1,), None), [f"broker {LAST + 1} can't exist; allowed: ids from 0 to {LAST}"]),
        (Partition(0, (1, 2), 3), ["leader 3 isn't a replica; allowed: none, 1, 2"]),
        (Partition(0, (1, 2), 1, (1, 4)), ["broker 4 of the ISR isn't a replica; allowed: 1, 2"]),
        (Partition(1, (1,), 1), ["partition 0 of a is missing before 1; allowed: 0, 1, 2 … without gap"]),
        (Partition(0, (0, LAST), None, ()), []),
    ],
)
def test_what_no_partition_can_be_is_found(partition: Partition, said: list[str]) -> None:
    """Each impossible partition gives one finding; a valid one gives none."""
    assert said == [finding.message for finding in entry_findings([entry("a", partition)])]


def test_a_partition_that_is_there_twice_is_told_at_its_second_place() -> None:
    """A partition that is listed twice is refused at its second place, and the message names the first."""
    rows = [entry("a", Partition(0, (2,), 2), line=3), entry("a", Partition(0, (1,), 1), line=7)]
    with pytest.raises(ImportStateError, match=r"^f:7:1: a-0: partition 0 of a is here twice, first at f:3:1"):
        assignment(rows, {}, (), {})


def test_brokers_outrank_znodes_and_those_documents() -> None:
    """Brokers' answers rank before znodes, and znodes before documents."""
    assert [Rank.CLUSTER, Rank.ZNODES, Rank.DOCUMENT] == sorted([Rank.DOCUMENT, Rank.ZNODES, Rank.CLUSTER])


@pytest.mark.parametrize(
    ("adding", "removing", "seen"),
    [((4, 5), (1,), " (Adding Replicas: 4, 5)"), ((), (1, 2), " (Removing Replicas: 1, 2)"), ((), (), "")],
)
def test_a_reassignment_is_refused_with_what_it_adds_or_else_removes(
    adding: tuple[int, ...], removing: tuple[int, ...], seen: str
) -> None:
    """The message names the replicas to add, or else those to remove, at the place and the key where they were read."""
    place = Place("f", 3, 1)
    found = moving_finding(RunningReassignment(place, "a", 7, adding, removing, key="a-7"))
    assert (place, "a-7") == (found.place, found.key)
    assert found.message.startswith(f"partition 7 of a is being reassigned{seen}; allowed: a state without")
