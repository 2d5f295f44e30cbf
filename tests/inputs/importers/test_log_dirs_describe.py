"""Reads what `kafka-log-dirs --describe` prints: the bytes of each partition's largest replica."""

from __future__ import annotations

import json
import re

import pytest
from folders import capture

from planner.inputs.importers import log_dirs_describe
from planner.inputs.state.state_files import read_part
from planner.model.errors import ImportStateError


def test_log_dirs_take_the_largest_replica() -> None:
    """A partition's size is that of its largest replica; the two heading lines are skipped."""
    text = capture("kraft-4.1/kafka-log-dirs-describe.txt")
    sizes = log_dirs_describe.read_part(text, "l.txt").sizes
    assert 91 == len(sizes)
    assert max(int(size) for size in re.findall(r'"clickstream-5","size":(\d+)', text)) == sizes["clickstream", 5]
    assert {"audit.log", "clickstream", "dead-letter", "orders", "payments", "user_profile-changelog"} == {
        topic for topic, _ in sizes
    }


def test_log_dirs_with_a_broker_down() -> None:
    """If a broker didn't answer, only sizes that no other broker has are missing."""
    sizes = log_dirs_describe.read_part(capture("kraft-4.1/kafka-log-dirs-describe.txt"), "l.txt").sizes
    down = capture("kraft-4.1/kafka-log-dirs-describe-broker-4-down.txt")
    without_4 = log_dirs_describe.read_part(down, "l.txt").sizes
    assert without_4.keys() <= sizes.keys()
    assert all(sizes[key] >= size for key, size in without_4.items())


def test_log_dirs_with_futures_errors_and_hyphens() -> None:
    """A future replica doesn't count, a failed log dir gives a note, and a name is split at its last hyphen."""
    text = (
        '{"version":1,"brokers":[{"broker":1,"logDirs":['
        '{"error":"KafkaStorageException","logDir":"/a","partitions":[]},'
        '{"error":null,"logDir":"/b","partitions":[{"partition":"a-b-1","size":5,"offsetLag":0,"isFuture":false},'
        '{"partition":"a-b-1","size":99,"offsetLag":3,"isFuture":true}]}]},'
        '{"broker":2,"logDirs":[{"error":null,"logDir":"/b","partitions":[{"partition":"a-b-1","size":7}]}]},'
        '{"broker":3,"logDirs":null}]}'
    )
    found = read_part(text, "l.txt", expected="sizes")
    failed = "log dir '/a' of broker 1 has an error (KafkaStorageException): its replicas stay out of sync until it is "
    assert ({("a-b", 1): 7}, (f"{failed}repaired",)) == (found.sizes, found.notes)


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e999", "-1", "1.0", '"1"', "true", "9223372036854775808"]
)
def test_sizes_are_whole_numbers_of_bytes(number: str) -> None:
    """A size that isn't a whole number of bytes from 0 to 2**63 − 1 is refused."""
    replica = f'{{"partition":"a-0","size":{number}}}'
    text = f'{{"brokers":[{{"broker":1,"logDirs":[{{"logDir":"/a","partitions":[{replica}]}}]}}]}}'
    with pytest.raises(ImportStateError, match="isn't a number"):
        read_part(text, "l.txt")


def test_log_dirs_below_a_line_with_braces() -> None:
    """A line with braces, from a logger, may precede the JSON."""
    text = '[main] {x} WARN\n{"brokers":[{"broker":1,"logDirs":[{"partitions":[{"partition":"a-0","size":7}]}]}]}\n'
    assert {("a", 0): 7} == log_dirs_describe.read_part(text, "l").sizes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"brokers":{"1":{"logDirs":[]}}}', "brokers: {'1': {'logDirs': []}} isn't a list"),
        ('{"brokers":[{"broker":1,"logDirs":{"/a":[]}}]}', "brokers[0].logDirs: {'/a': []} isn't a list"),
        ('{"brokers":[{"broker":1,"logDirs":["/a"]}]}', "brokers[0].logDirs[0]: '/a' isn't an object"),
        (
            '{"brokers":[{"broker":1,"logDirs":[{"logDir":"/a","partitions":{"a-0":7}}]}]}',
            "brokers[0].logDirs[0].partitions: {'a-0': 7} isn't a list",
        ),
    ],
)
def test_entries_are_in_lists(text: str, message: str) -> None:
    """Without this, a file of another structure would count as one without sizes."""
    with pytest.raises(ImportStateError, match=re.escape(f"{message}; allowed: what kafka-log-dirs --describe prints")):
        log_dirs_describe.read_part(text, "l.txt")


def test_sizes_without_log_dirs_are_told_once_with_the_file_to_name_instead() -> None:
    """`planner import` writes sizes only: the error says so once, not for each broker that the file is Kafka's."""
    parts = [{"partition": "a-1", "size": 5, "offsetLag": 0, "isFuture": False}]
    brokers = [{"broker": each, "logDirs": [{"partitions": parts, "error": None}]} for each in (1, 2)]
    with pytest.raises(ImportStateError) as caught:
        log_dirs_describe.places(json.dumps({"version": 1, "brokers": brokers}), "l.json")
    said = "no log dir has a path: planner import writes sizes only; allowed: in cluster.state, the file itself that"
    assert f"l.json:1:1: brokers: {said} kafka-log-dirs --describe printed" == str(caught.value)
