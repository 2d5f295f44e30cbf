"""Reads what `kafka-topics --describe` prints: real captures, old formats, and damaged outputs."""

from __future__ import annotations

import re

import pytest
from folders import capture
from state_texts import read_topics

from planner.inputs.importers import topics_describe
from planner.model.cluster import Partition, Topic
from planner.model.errors import ImportStateError


def by_name(topics: tuple[Topic, ...]) -> dict[str, Topic]:
    """The topics by their names."""
    return {topic.name: topic for topic in topics}


def test_describe_of_a_kraft_cluster() -> None:
    """Kafka 4.1 prints TopicId, Elr and configuration; all topics and partitions are read."""
    topics = read_topics(capture("kraft-4.1/kafka-topics-describe.txt"), "d.txt")
    expected = {
        "audit.log": 6, "clickstream": 30, "dead-letter": 1, "orders": 24, "payments": 12, "user_profile-changelog": 18,
    }  # fmt: skip
    assert list(expected.items()) == [(topic.name, len(topic.partitions)) for topic in topics]
    clickstream = by_name(topics)["clickstream"]
    assert Partition(0, (4, 5), 4, (4, 5)) == clickstream.partitions[0]
    assert ((), (("min.insync.replicas", "1"),)) == (clickstream.config, clickstream.effective_config)


def test_describe_with_a_broker_down() -> None:
    """With broker 4 down, its replicas stay, other replicas lead, and broker 4 is in no ISR."""
    topics = by_name(read_topics(capture("kraft-4.1/kafka-topics-describe-broker-4-down.txt"), "d.txt"))
    assert Partition(0, (4, 5), 5, (5,)) == topics["clickstream"].partitions[0]
    assert all(4 not in (row.isr or ()) for topic in topics.values() for row in topic.partitions)
    assert 91 == sum(len(topic.partitions) for topic in topics.values())


def test_describe_of_a_zookeeper_cluster() -> None:
    """Kafka 3.9 with ZooKeeper prints N/A as Elr and empty Configs."""
    topics = by_name(read_topics(capture("zookeeper-3.9/kafka-topics-describe.txt"), "d.txt"))
    assert ["logs", "orders", "topic-test1", "topic-test4"] == list(topics)
    assert Partition(3, (3, 0), 3, (3, 0)) == topics["orders"].partitions[3]
    assert () == topics["orders"].config


@pytest.mark.parametrize("gap", ["\t", " ", "   "])
@pytest.mark.parametrize("after_label", ["", " "])
def test_describe_in_the_old_layout(gap: str, after_label: str) -> None:
    """Older versions print `Topic:x` without a space, and a terminal may turn tabs into spaces."""
    heading = ["Topic:a", "PartitionCount:2", "ReplicationFactor:2", "Configs:retention.ms=5"]
    first = ["Topic: a", "Partition: 0", "Leader: 0", "Replicas: 0,1", "Isr: 0,1"]
    second = ["Topic: a", "Partition: 1", "Leader: -1", "Replicas: 1,0", "Isr: "]
    lines = [gap.join(field.replace(": ", ":").replace(":", f":{after_label}") for field in row) for row in
             (heading, first, second)]  # fmt: skip
    partitions = (Partition(0, (0, 1), 0, (0, 1)), Partition(1, (1, 0), None, ()))
    expected = Topic("a", partitions, effective_config=(("retention.ms", "5"),))
    assert (expected,) == read_topics("\n".join(lines), "d.txt")


@pytest.mark.parametrize(
    ("heading", "known", "shows_inherited"),
    [
        ("Topic:a\tPartitionCount:1\tConfigs:", False, False),
        ("Topic:a\tPartitionCount:1\tConfigs:retention.ms=5", True, False),
        ("Topic: a\tPartitionCount: 1\tConfigs: ", True, False),
        ("Topic: a\tTopicId: x\tPartitionCount: 1\tConfigs: ", True, True),
    ],
)
def test_inherited_configurations_are_shown_only_by_brokers(heading: str, known: bool, shows_inherited: bool) -> None:
    """ZooKeeper shows only topics' own: a TopicId is from brokers, and the old layout without any tells nothing."""
    part = topics_describe.read_part(f"{heading}\n\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n", "d")
    assert (known, shows_inherited) == (bool(part.configs), part.shows_inherited)


def test_describe_with_leader_none_and_windows_line_ends() -> None:
    """`Leader: none` is no leader, and Windows line ends are accepted."""
    text = "Topic: a\tPartitionCount: 1\r\n\tTopic: a\tPartition: 0\tLeader: none\tReplicas: 2,1\tIsr: \r\n\r\n"
    assert (Topic("a", (Partition(0, (2, 1), None, ()),)),) == read_topics(text, "d.txt")


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ("", ()),
        ("cleanup.policy=compact,delete,retention.ms=1", (("cleanup.policy", "compact,delete"), ("retention.ms", "1"))),
        (
            "leader.replication.throttled.replicas=0:1,1:2,min.insync.replicas=2",
            (("leader.replication.throttled.replicas", "0:1,1:2"), ("min.insync.replicas", "2")),
        ),
        ("segment.bytes=1,preallocate=true", (("preallocate", "true"), ("segment.bytes", "1"))),
        ("a.b=x=y", (("a.b", "x=y"),)),
    ],
)
def test_commas_inside_configuration_values(configs: str, expected: tuple[tuple[str, str], ...]) -> None:
    """A comma separates two settings only if a key follows it."""
    text = f"Topic: a\tPartitionCount: 1\tConfigs: {configs}\n\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1"
    (topic,) = read_topics(text, "d.txt")
    assert expected == tuple(sorted(topic.config + topic.effective_config))


def test_a_finished_reassignment_is_no_obstacle() -> None:
    """Empty lists of adding and removing replicas mean that no reassignment is running."""
    text = (
        "Topic: a PartitionCount: 1\n"
        "Topic: a Partition: 0 Leader: 1 Replicas: 1 Isr: 1 Adding Replicas:  Removing Replicas: "
    )
    assert 1 == read_topics(text, "d.txt")[0].partitions[0].leader


def test_every_bad_line_is_named() -> None:
    """Every invalid line is named, not only the first."""
    text = "Topic: a\tPartitionCount: x\nhello\n\tTopic: a\tPartition: 0\tLeader: 1\n\tTopic: a\tPart"
    with pytest.raises(ImportStateError) as caught:
        read_topics(text, "d.txt")
    places = ["d.txt:1:1", "d.txt:2:1", "d.txt:3:2", "d.txt:4:2"]
    assert places == [str(finding.place) for finding in caught.value.findings]
    assert r"'Topic: a\tPart' isn't a topic or a partition" in str(caught.value), "the output was cut there"


def test_describe_of_the_first_version() -> None:
    """Kafka 0.8.0 prints no headings, and labels in lower case."""
    text = (
        "topic: a-1\tpartition: 0\tleader: 2\treplicas: 2,1\tisr: 2,1\n"
        "topic: a-1\tpartition: 1\tleader: none\treplicas: 1,2\tisr: \n"
    )
    expected = Topic("a-1", (Partition(0, (2, 1), 2, (2, 1)), Partition(1, (1, 2), None, ())))
    assert (expected,) == read_topics(text, "d.txt")


@pytest.mark.parametrize("gap", ["\t", "   "])
def test_topics_marked_for_deletion_are_told(gap: str) -> None:
    """A topic marked for deletion is read as such; older versions mark the heading and each partition."""
    lines = [
        ["Topic:a", "PartitionCount:1", "ReplicationFactor:1", "Configs:", "MarkedForDeletion:true"],
        ["Topic: a", "Partition: 0", "Leader: none", "Replicas: 1", "Isr: 1", "MarkedForDeletion: true"],
        ["Topic:b", "PartitionCount:1", "ReplicationFactor:1", "Configs:retention.ms=5"],
        ["Topic: b", "Partition: 0", "Leader: 1", "Replicas: 1", "Isr: 1"],
    ]
    topics = read_topics("\n".join(gap.join(line) for line in lines), "d.txt")
    assert [("a", True), ("b", False)] == [(topic.name, topic.deleting) for topic in topics]
    assert (("retention.ms", "5"),) == topics[1].effective_config


def test_describe_takes_extreme_ids_and_names() -> None:
    """Broker ids up to 2147483647, names of 249 characters, and names that end in -1 are read."""
    long = "x" * 247 + "-1"
    text = (
        f"Topic: {long}\tPartitionCount: 1\tConfigs: \n"
        f"\tTopic: {long}\tPartition: 0\tLeader: 2147483647\tReplicas: 2147483647,0\tIsr: 2147483647"
        "\tElr: \tLastKnownElr: \n"
    )
    assert (Topic(long, (Partition(0, (2147483647, 0), 2147483647, (2147483647,)),)),) == read_topics(text, "d")


def test_usual_and_unusual_lines_read_alike() -> None:
    """A line with unusual spaces is read as the same line in the usual format, which has a faster reader."""
    usual = "\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: N/A\tLastKnownElr: N/A"
    unusual = usual.replace("\tLeader", "  \tLeader")
    parts = [topics_describe.read_part(f"Topic: a\tPartitionCount: 1\n{line}", "d.txt") for line in (usual, unusual)]
    assert parts[0] == parts[1]
    assert "d.txt:2:2" == str(parts[0].entries[0].place)


def test_a_long_output_stops_after_a_hundred_faults() -> None:
    """After 100 findings the reader stops, and counts the lines that it didn't read."""
    for line in ("Topic: a", "Topic: a\tPartitionCount: 1"):
        with pytest.raises(ImportStateError) as caught:
            topics_describe.read_part("\n".join([line] * 100_000), "d.txt")
        assert 100 == len(caught.value.findings)
        assert re.search(r"the other 99,90[01] lines weren't read", caught.value.findings[-1].message)


def test_many_topics_without_their_partitions_are_counted() -> None:
    """Topics without partitions are named, up to 100 findings; the last one counts the rest."""
    with pytest.raises(ImportStateError) as caught:
        topics_describe.read_part("\n".join(f"Topic: a{number}\tPartitionCount: 1" for number in range(5_000)), "d.txt")
    assert 100 == len(caught.value.findings)
    assert "d.txt:100:1: the same in 4,901 topics from here on" in str(caught.value)


def test_no_cluster_has_so_many_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit on topics the output is refused, so that memory suffices."""
    monkeypatch.setattr(topics_describe, "_MOST_TOPICS", 10)
    with pytest.raises(ImportStateError, match=r"d\.txt:11:1: more than 10 topics; allowed: at most that many"):
        topics_describe.read_part("\n".join(f"Topic: a{number}\tPartitionCount: 1" for number in range(20)), "d.txt")


@pytest.mark.parametrize(
    ("topic", "end"),
    [("a", "\tIsr: 2,13\tElr: "), ("a", "\tIs"), ("a", ""), ("a", ",1"), ("b", ""), ("b", ",1"), ("b", "\tIsr: 2,1")],
)
def test_an_output_that_is_cut_within_its_last_line_is_refused(topic: str, end: str) -> None:
    """A last line that was cut off is refused: it could read as a partition on broker 1 instead of 13."""
    alone = topic == "b"
    text = (
        f"Topic: a\tPartitionCount: {1 if alone else 2}\tReplicationFactor: 2\tConfigs: \n"
        "\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: \tLastKnownElr: \n"
        + "Topic: b\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: \n" * alone
        + f"\tTopic: {topic}\tPartition: {0 if alone else 1}\tLeader: 2\tReplicas: 2{end}"
    )
    with pytest.raises(ImportStateError, match=r"the line ends before|isn't a replica|Replicas has '2.*Is'"):
        read_topics(text, "d")


def test_observers_of_confluent_platform_are_noted() -> None:
    """Observers are never in sync, and a reassignment would have to name them; an empty list of them says nothing."""
    line = "\tTopic: {0}\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1\tOffline: \tObservers: {1}\n"
    heading = "Topic: {0}\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: \n"
    text = "".join(f"{heading}{line}".format(topic, observers) for topic, observers in (("a", "2"), ("b", "")))
    (note,) = topics_describe.read_part(text, "d").notes
    assert note.startswith("1 topic with Confluent Platform's observers (a): they count as replicas out of sync, and a")
    assert () == topics_describe.read_part(text.replace("Observers: 2", "Observers: "), "d").notes
