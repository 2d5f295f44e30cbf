"""Reads reassignment JSON, lists of running reassignments, topics to move, and replica assignments."""

from __future__ import annotations

import pytest
from folders import capture
from state_texts import read_topics

from planner.inputs.importers.reassign_partitions import read_proposed
from planner.inputs.state.state_files import read_part
from planner.model.cluster import Partition, Topic
from planner.model.errors import ImportStateError


def test_reassignment_of_the_generate_output() -> None:
    """Of the output of `--generate`, the current assignment is read; it equals that of kafka-topics --describe."""
    text = capture("kraft-4.1/kafka-reassign-partitions-generate.txt")
    described = read_topics(capture("kraft-4.1/kafka-topics-describe.txt"), "d.txt")
    assert [(topic.name, [row.replicas for row in topic.partitions]) for topic in described] == [
        (topic.name, [row.replicas for row in topic.partitions]) for topic in read_topics(text, "r.json")
    ]


def test_reassignment_alone_is_led_by_the_first_replica() -> None:
    """A reassignment JSON has no leaders, so the first replica leads; partitions may come in any order."""
    text = (
        '{"version":1,"partitions":[{"topic":"b","partition":1,"replicas":[3,1]},'
        '{"topic":"b","partition":0,"replicas":[1,2],"log_dirs":["any","any"]}]}'
    )
    assert (Topic("b", (Partition(0, (1, 2), 1), Partition(1, (3, 1), 3))),) == read_topics(text, "r.json")


def test_reassignment_of_the_execute_output() -> None:
    """The output of `--execute` is read, with a warning above and advice below the JSON."""
    text = (
        "WARN something\nCurrent partition replica assignment\n\n"
        '{"version":1,"partitions":[{"topic":"b","partition":0,"replicas":[3,1],"log_dirs":["/d/a","/d/b"]}]}\n\n'
        "Save this to use as the --reassignment-json-file option during rollback\n"
    )
    assert (Topic("b", (Partition(0, (3, 1), 3),)),) == read_topics(text, "e.txt")


def test_reassignment_followed_by_something_else() -> None:
    """A second assignment without the tool's headings is refused, because it is ambiguous."""
    one = '{"version":1,"partitions":[{"topic":"b","partition":0,"replicas":[3,1]}]}'
    with pytest.raises(ImportStateError, match=r"r\.json:2:1: something follows the JSON"):
        read_topics(f"{one}\n{one}", "r.json")


HEADING = "Current partition reassignments:\n"


def test_a_line_is_a_reassignment() -> None:
    """Each line of the list is read; a topic's name may end in -1, and adding or removing may be missing."""
    text = HEADING + "a-1-0: replicas: 4,1,2. adding: 4. removing: 1.\nb-3: replicas: 1,2. removing: 1.\n"
    assert [("a-1", 0, (4,), (1,), (4, 1, 2)), ("b", 3, (), (1,), (1, 2))] == [
        (row.topic, row.partition, row.adding, row.removing, row.replicas) for row in read_part(text, "f0").moving
    ]


def test_no_reassignment_in_the_list_is_none() -> None:
    """The tool's sentence for no reassignments is read as an empty list."""
    assert () == read_part("No partition reassignments found.\n", "f0").moving


def test_a_line_of_the_list_that_is_cut_is_refused() -> None:
    """A truncated line is refused, because otherwise a reassignment would be missed."""
    with pytest.raises(
        ImportStateError, match=r"f0:2:1: 'a-0: replicas: 4,1' isn't a reassignment; allowed: what kafka"
    ):
        read_part(HEADING + "a-0: replicas: 4,1", "f0")


def test_topics_to_move_of_a_real_cluster() -> None:
    """Reads the topics-to-move file of a real `--generate`."""
    part = read_part(capture("kraft-4.1/topics-to-move.json"), "t.json")
    expected = ("orders", "payments", "clickstream", "audit.log", "user_profile-changelog", "dead-letter")
    assert expected == part.only_topics


@pytest.mark.parametrize("entry", ['{"topic":"a b"}', '{"topic":5}', '"orders"'])
def test_an_entry_that_is_no_topic_is_named(entry: str) -> None:
    """An invalid entry is refused with its place in the list; the valid one beside it isn't."""
    with pytest.raises(ImportStateError, match=r"^t\.json:1:1: topics\[1\]\.topic: .* isn't a topic; allowed:"):
        read_part(f'{{"version":1,"topics":[{{"topic":"orders"}},{entry}]}}', "t.json")


def test_a_topic_that_is_named_twice_may_move_once() -> None:
    """A topic that is listed twice counts once, and the order of the file is kept."""
    text = '{"version":1,"topics":[{"topic":"b"},{"topic":"a"},{"topic":"b"}]}'
    assert ("b", "a") == read_part(text, "t.json").only_topics


def test_a_replica_assignment_needs_its_topic() -> None:
    """A string like `0:1,1:0,0:1` is read as three partitions of the named topic; without a name it is refused."""
    (part,) = [read_part(' "0:1,1:0,0:1"\n', "m.txt", "tp_demo_03")]
    assert [(0, 1), (1, 0), (0, 1)] == [entry.partition.replicas for entry in part.entries]
    assert {"tp_demo_03"} == {entry.topic for entry in part.entries}
    with pytest.raises(ImportStateError, match="doesn't say of which topic; allowed: with the topic's name"):
        read_part("0:1,1:0", "m.txt")


def test_of_the_generate_output_the_proposed_assignment_is_what_is_wanted() -> None:
    """Of the output of `--generate`, the proposed assignment is the target and the current one what was found."""
    wanted, found = read_proposed(capture("kraft-4.1/kafka-reassign-partitions-generate.txt"), "g.txt")

    assert found is not None
    keys = [[(entry.topic, entry.partition.id) for entry in part.entries] for part in (wanted, found)]
    assert keys[0] == keys[1]
    assert [entry.partition for entry in wanted.entries] != [entry.partition for entry in found.entries]


def test_what_follows_the_proposed_assignment_is_refused() -> None:
    """Text after the proposed assignment is refused."""
    text = capture("kraft-4.1/kafka-reassign-partitions-generate.txt") + "\nmore"

    with pytest.raises(ImportStateError, match="something follows the JSON; allowed: all that --generate prints"):
        read_proposed(text, "g.txt")


@pytest.mark.parametrize(
    "listed", ['"partitions":[{"topic":"b","partition":0,"replicas":[3,1]}]', '"topics":[{"topic":"b"}]']
)
def test_true_is_no_version(listed: str) -> None:
    """In Python true equals 1, but Kafka's tools refuse it as a version."""
    read_part(f'{{"version":1,{listed}}}', "t.json")
    with pytest.raises(ImportStateError, match="allowed: "):
        read_part(f'{{"version":true,{listed}}}', "t.json")
