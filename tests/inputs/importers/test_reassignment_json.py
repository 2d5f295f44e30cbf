"""Kafka's reassignment JSON, alone and in what `kafka-reassign-partitions` prints."""

from __future__ import annotations

import pytest
from folders import capture

from planner.inputs.importers import reassignment_json, topics_describe
from planner.inputs.importers.any_format import read_assignment
from planner.model.cluster import Partition, Topic
from planner.model.errors import ImportStateError


def test_reassignment_of_the_generate_output() -> None:
    """Of `--generate`'s two assignments the current one is taken; it equals what describe shows."""
    text = capture("kraft-4.1/kafka-reassign-partitions-generate.txt")
    described = topics_describe.parse(capture("kraft-4.1/kafka-topics-describe.txt"), "d.txt")
    assert [(topic.name, [row.replicas for row in topic.partitions]) for topic in described] == [
        (topic.name, [row.replicas for row in topic.partitions]) for topic in reassignment_json.parse(text, "r.json")
    ]


def test_reassignment_alone_is_led_by_the_first_replica() -> None:
    """The JSON has no leaders; entries may come in any order."""
    text = (
        '{"version":1,"partitions":[{"topic":"b","partition":1,"replicas":[3,1]},'
        '{"topic":"b","partition":0,"replicas":[1,2],"log_dirs":["any","any"]}]}'
    )
    assert (Topic("b", (Partition(0, (1, 2), 1), Partition(1, (3, 1), 3))),) == read_assignment(text, "r.json")


def test_reassignment_of_the_execute_output() -> None:
    """What `--execute` prints before it starts, with a warning above and advice below."""
    text = (
        "WARN something\nCurrent partition replica assignment\n\n"
        '{"version":1,"partitions":[{"topic":"b","partition":0,"replicas":[3,1],"log_dirs":["/d/a","/d/b"]}]}\n\n'
        "Save this to use as the --reassignment-json-file option during rollback\n"
    )
    assert (Topic("b", (Partition(0, (3, 1), 3),)),) == read_assignment(text, "e.txt")


def test_reassignment_followed_by_something_else() -> None:
    """Two assignments without the tool's headings are ambiguous."""
    one = '{"version":1,"partitions":[{"topic":"b","partition":0,"replicas":[3,1]}]}'
    with pytest.raises(ImportStateError, match=r"r\.json:2:1: something follows the JSON"):
        reassignment_json.parse(f"{one}\n{one}", "r.json")
