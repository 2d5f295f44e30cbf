"""Merges several sources into one state: which source counts, notes, running reassignments, configurations."""

from __future__ import annotations

import json

import pytest

from planner.inputs.importers.state_parts import AssignmentEntry, RunningReassignment, StatePart
from planner.inputs.state.merge import Merged, merge, reassigned, target
from planner.inputs.state.state_files import read_part
from planner.model.cluster import Partition
from planner.model.errors import ImportStateError, Place

DESCRIBE = """\
Topic: a\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: min.insync.replicas=2
\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1
\tTopic: a\tPartition: 1\tLeader: none\tReplicas: 2,3\tIsr: 2,3
"""
LIST = "Current partition reassignments:\na-0: replicas: 4,1,2. adding: 4. removing: 1.\n"
ZNODE = '{"version":3,"partitions":{"0":[2,1],"1":[2,3]},"adding_replicas":{},"removing_replicas":{}}'
VERSIONS = (
    "h1:9092 (id: 1 rack: r1 isFenced: false) -> (\n\tProduce(0): 0 to 9\n)\nh2:9092 (id: 2 rack: null) -> (\n)\n"
)


def reassignment(*partitions: tuple[str, int, list[int]]) -> str:
    """A reassignment JSON."""
    rows = [{"topic": topic, "partition": number, "replicas": replicas} for topic, number, replicas in partitions]
    return json.dumps({"version": 1, "partitions": rows})


def sizes(*brokers: int, **of: int) -> str:
    """The output of kafka-log-dirs for some brokers, 1 by default, each with the same replicas."""
    rows = [{"partition": name.replace("_", "-"), "size": size} for name, size in of.items()]
    dirs = [{"logDir": "/d", "partitions": rows}]
    return json.dumps({"brokers": [{"broker": broker, "logDirs": dirs} for broker in brokers or (1,)]})


def merged(*texts: str, to_targets: bool = False) -> Merged:
    """Merges the texts as files f0, f1, …."""
    return merge(parts(*texts), to_targets=to_targets)


def parts(*texts: str) -> list[StatePart]:
    """Reads each text; a znode is that of topic a."""
    return [read_part(text, f"f{number}", "a") for number, text in enumerate(texts)]


def replicas(state: Merged) -> dict[str, list[tuple[int, ...]]]:
    """The replica lists of each topic."""
    return {topic.name: [row.replicas for row in topic.partitions] for topic in state.assignment.topics}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_brokers_answers_outrank_znodes_and_those_documents(order: tuple[int, ...]) -> None:
    """Brokers' answers count before znodes and documents, in any order of the sources."""
    texts = [DESCRIBE, ZNODE, reassignment(("a", 0, [3, 2]), ("b", 0, [1]))]
    state = merged(*(texts[at] for at in order))
    assert {"a": [(1, 2), (2, 3)]} == replicas(state)
    assert 3 == len(state.notes)


def test_what_sources_disagree_about_is_told() -> None:
    """A note describes each difference, with the first partitions and the source that counts."""
    state = merged(DESCRIBE, ZNODE.replace(',"1":[2,3]', ""), reassignment(("b", 0, [1]), ("a", 5, [1])))
    assert (
        "f1 (a znode) disagrees with f0 about the replicas of partition a-0: f0 counts",
        "f1 (a znode) lacks partition a-1, known to f0",
        "f2 (a reassignment JSON) has partitions b-0, a-5, unknown to f0: left out",
    ) == state.notes


def test_the_source_of_the_topic_is_named() -> None:
    """If sources add up, a note names the one that has the topic, not the first of all."""
    one, two = (DESCRIBE.replace("Topic: a", f"Topic: {topic}") for topic in ("one", "two"))
    third = two.replace("Replicas: 1,2\tIsr: 1", "Replicas: 1,3\tIsr: 1")
    said = "f2 (kafka-topics --describe) disagrees with f1 about the replicas of partition two-0: f1 counts"
    assert said in merged(one, two, third).notes


def test_captures_of_different_moments_are_told() -> None:
    """A note says if two descriptions differ in leaders or ISRs; the order within an ISR doesn't count."""
    down = DESCRIBE.replace("Isr: 2,3", "Isr: 3")
    said = "f1 (kafka-topics --describe) disagrees with f0 about leaders or ISRs of partition a-1: f0 counts"
    assert (said,) == merged(DESCRIBE, down).notes
    assert () == merged(DESCRIBE, DESCRIBE.replace("Isr: 2,3", "Isr: 3,2")).notes


def test_within_a_rank_the_first_one_named_wins() -> None:
    """Of sources with the same rank the first one counts; partitions that it lacks come from the others."""
    first, second = reassignment(("a", 0, [1, 2])), reassignment(("a", 0, [9, 8]), ("a", 1, [2, 1]), ("c", 0, [3]))
    state = merged(first, second)
    assert {"a": [(1, 2), (2, 1)], "c": [(3,)]} == replicas(state)
    assert ("f1 (a reassignment JSON) disagrees with f0 about the replicas of partition a-0: f0 counts",) == state.notes


def test_one_description_a_topic_adds_up() -> None:
    """Descriptions of single topics are joined; a partition that a complete description lacks is left out."""
    more = DESCRIBE.replace("PartitionCount: 2", "PartitionCount: 3") + (
        "\tTopic: a\tPartition: 2\tLeader: 1\tReplicas: 1,2\tIsr: 1\n"
    )
    state = merged(DESCRIBE, DESCRIBE.replace("Topic: a", "Topic: b"), more)
    assert {"a": [(1, 2), (2, 3)], "b": [(1, 2), (2, 3)]} == replicas(state)
    assert ("f2 (kafka-topics --describe) has partition a-2, unknown to f0: left out",) == state.notes


def test_leaders_come_from_who_knows_them() -> None:
    """A reassignment JSON has no leaders, so they come from a source of lower rank with the same replicas."""
    answer = {
        "KafkaPartitionState": {
            "urp": [{"topic": "a", "partition": 0, "leader": 2, "replicas": [1, 2], "in-sync": [2]}],
            "other": [{"topic": "a", "partition": 1, "leader": 9, "replicas": [9, 8], "in-sync": [9]}],
        }
    }
    state = merged(reassignment(("a", 0, [1, 2]), ("a", 1, [2, 1])), json.dumps(answer))
    assert (Partition(0, (1, 2), 2, (2,)), Partition(1, (2, 1), 2)) == state.assignment.topics[0].partitions


def test_a_partition_that_a_source_has_twice_is_refused() -> None:
    """A source that lists a partition twice is refused."""
    with pytest.raises(ImportStateError, match="partition 0 of a is here twice"):
        merged(reassignment(("a", 0, [1, 2]), ("a", 0, [2, 1])), LIST.splitlines()[0])


def held_by(broker: int, *names: str) -> str:
    """Log dirs of one broker with replicas of these partitions."""
    rows = [{"partition": name, "size": 5, "offsetLag": 0, "isFuture": False} for name in names]
    return json.dumps({"brokers": [{"broker": broker, "logDirs": [{"logDir": "/d", "partitions": rows}]}]})


def test_sizes_of_several_files_are_the_largest() -> None:
    """If several files have a partition's size, the largest counts; a note lists sizes of unknown partitions."""
    state = merged(DESCRIBE, sizes(a_0=5, x_1=1), sizes(a_0=7, a_1=2))
    assert {("a", 0): 7, ("a", 1): 2, ("x", 1): 1} == state.sizes
    left = "plans neither count nor move them, not even off brokers that leave"
    assert (f"sizes are given for partition x-1, which f0 doesn't have: {left}",) == state.notes


def test_the_brokers_of_partitions_that_the_assignment_lacks_are_named() -> None:
    """If topics are missing in the assignment, the note says on which brokers their replicas stay."""
    noted = "sizes are given for partition x-0 on broker 2, which f0 doesn't have: plans neither count nor move them"
    (note,) = merged(DESCRIBE, held_by(1, "a-0"), held_by(2, "x-0")).notes
    assert note.startswith(noted)


def test_sizes_from_brokers_without_replicas_are_of_another_cluster() -> None:
    """Sizes of no broker that has replicas are refused; those of some brokers without replicas are noted."""
    with pytest.raises(ImportStateError, match="f1: has sizes of replicas on brokers 8–9, which have none in f0;"):
        merged(DESCRIBE, sizes(8, 9, a_0=5))
    noted = "f1 has sizes of replicas on broker 9, which has none in f0: of another time or cluster, or of other topics"
    assert (noted,) == merged(DESCRIBE, sizes(1, 9, a_0=5)).disagreements
    assert () == merged(DESCRIBE, sizes(1, a_0=5), sizes(2, 8)).disagreements
    assert 1 == len(merged(DESCRIBE, sizes(1, a_0=5), sizes(9, a_0=5)).disagreements), "one file for each broker"


def test_sizes_of_replicas_that_the_assignment_has_elsewhere_are_noted() -> None:
    """Another cluster may have the same brokers and topics, but hardly the same replicas on each broker."""
    noted = "sizes of partition a-1 are of brokers without a replica in f0: of another time or cluster"
    assert (noted,) == merged(DESCRIBE, held_by(1, "a-0", "a-1")).notes
    assert () == merged(DESCRIBE, held_by(1, "a-0")).notes


def test_brokers_are_those_of_the_tool_that_tells_racks() -> None:
    """Brokers and racks come from kafka-broker-api-versions, which prints `null` for no rack."""
    state = merged(DESCRIBE, VERSIONS)
    assert [(1, "r1"), (2, None)] == [(broker.id, broker.rack) for broker in state.brokers]


def test_racks_that_differ_are_told() -> None:
    """If racks differ, the source of higher rank counts, and a note says so."""
    znode = '{"host":"h","port":1,"version":5,"rack":"other"}'
    state = merge([read_part(znode, "brokers/ids/1"), *parts(DESCRIBE, VERSIONS)])
    assert ("broker 1 is in rack 'other' by brokers/ids/1, in rack 'r1' by f1, which counts",) == state.notes


def test_racks_that_cannot_be_written_are_refused() -> None:
    """A rack with control characters is refused, because a spec can't hold it."""
    with pytest.raises(ImportStateError, match=r"rack: .* isn't usable; allowed: 1 to 200 characters"):
        merge([read_part('{"host":"h","port":1,"version":5,"rack":"a\\u001b[2J"}', "brokers/ids/1"), *parts(DESCRIBE)])


MOVING_LINE = "Replicas: 4,1,2\tIsr: 1,2\tAdding Replicas: 4\tRemoving Replicas: 1"
MOVING_ZNODE = ZNODE.replace('{"0":[2,1]', '{"0":[4,1,2]').replace('adding_replicas":{', 'adding_replicas":{"0":[4]')
MOVING = {
    "describe": (DESCRIBE.replace("Replicas: 1,2\tIsr: 1", MOVING_LINE),),
    "list": (DESCRIBE, LIST),
    "znode": (MOVING_ZNODE.replace('removing_replicas":{', 'removing_replicas":{"0":[1]'),),
}


@pytest.mark.parametrize("texts", MOVING.values(), ids=MOVING)
def test_a_reassignment_in_progress_is_refused_by_name(texts: tuple[str, ...]) -> None:
    """A running reassignment is refused with its partition, from a description, the tool's list or a znode."""
    with pytest.raises(ImportStateError, match=r"partition 0 of a is being reassigned \(Adding Replicas: 4\)"):
        merged(*texts)


@pytest.mark.parametrize("texts", MOVING.values(), ids=MOVING)
def test_a_reassignment_in_progress_is_planned_from_its_target(texts: tuple[str, ...]) -> None:
    """With `to_targets`, added replicas are there, removed ones aren't, and the first remaining replica leads."""
    state = merged(*texts, to_targets=True)
    assert {"a": [(4, 2), (2, 3)]} == replicas(state)
    assert 4 == state.assignment.topics[0].partitions[0].leader
    assert (
        "1 partition is being reassigned: the plan starts from the target; run apply.yml once that is reached",
    ) == state.notes


def test_no_reassignment_in_the_list_is_no_obstacle() -> None:
    """An output without reassignments changes nothing."""
    assert {"a": [(1, 2), (2, 3)]} == replicas(merged(DESCRIBE, "No partition reassignments found.\n"))


def test_topics_to_move_restrict() -> None:
    """Only the listed topics may move; unknown names give a note, and an error if no name is known."""
    state = merged(DESCRIBE, '{"version":1,"topics":[{"topic":"a"},{"topic":"gone"}]}')
    assert ("a",) == state.only_topics
    assert ("f1 names topic gone, which the cluster doesn't have",) == state.notes
    with pytest.raises(
        ImportStateError, match="f1: names topic gone, which the cluster doesn't have; allowed: at least"
    ):
        merged(DESCRIBE, '{"version":1,"topics":[{"topic":"gone"}]}')


def test_nothing_about_replicas_is_refused() -> None:
    """Sources without any replicas, for example only sizes, are refused."""
    with pytest.raises(ImportStateError, match=r"f0: no source says where replicas are, only f0 \(kafka-log-dirs"):
        merged(sizes(a_0=1))


AT = Place("f", 1, 1)


def moving(adding: tuple[int, ...], removing: tuple[int, ...], now: tuple[int, ...] | None) -> RunningReassignment:
    """A running reassignment of a-0; `now` is its replica list in the source, if known."""
    return RunningReassignment(AT, "a", 0, adding, removing, now)


@pytest.mark.parametrize(
    ("now", "replicas", "stay"),
    [((4, 1, 2), (1, 2), (4, 2)), (None, (4, 1, 2), (4, 2)), (None, (1, 2), (2, 4))],
    ids=["told by the list", "told by the partition", "not among its replicas yet"],
)
def test_what_stays_keeps_kafkas_order(
    now: tuple[int, ...] | None, replicas: tuple[int, ...], stay: tuple[int, ...]
) -> None:
    """Added replicas come in Kafka's order, or last if that is unknown; removed replicas are left out."""
    assert stay == target(Partition(0, replicas, 1), moving((4,), (1,), now))


def test_a_partition_has_arrived() -> None:
    """At the target, added replicas are in sync, others keep their state, and a removed leader no longer leads."""
    rows = [
        AssignmentEntry(AT, "a-0", "a", Partition(0, (4, 1, 2), 1, (1,))),
        AssignmentEntry(AT, "a-1", "a", Partition(1, (1, 2), 1, (1, 2))),
    ]
    found, notes = reassigned(rows, {("a", 0): moving((4,), (1,), (4, 1, 2)), ("gone", 5): moving((4,), (1,), None)})
    assert [Partition(0, (4, 2), 4, (4,)), rows[1].partition] == [each.partition for each in found]
    assert (
        "1 partition is being reassigned: the plan starts from the target; run apply.yml once that is reached",
        "gone-5 is being reassigned (1 such), but isn't in the assignment",
    ) == notes


A = "\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n"
MIN_2 = "min.insync.replicas=2"


def describe(a: str = MIN_2, b: str = f"{MIN_2},retention.ms=5") -> str:
    """Two topics with the configurations that kafka-topics shows."""
    heading = "Topic: a\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: "
    return f"{heading}{a}\n{A}{(heading + b).replace('Topic: a', 'Topic: b')}\n{A.replace('Topic: a', 'Topic: b')}"


def own(**configs: str) -> str:
    """What kafka-configs shows of topics: `topic="key=value"`, or nothing."""
    blocks = []
    for topic, entry in configs.items():
        line = f"  {entry} sensitive=false synonyms={{DYNAMIC_TOPIC_CONFIG:{entry}}}\n" if entry else ""
        blocks.append(f"Dynamic configs for topic {topic} are:\n{line}")
    return "".join(blocks)


def of_configs(*texts: str, znode: str = "config/topics/a") -> Merged:
    """Merges the texts into one state; a text that is a znode has the path `znode`."""
    return merge([read_part(text, znode if '"config"' in text[:40] else f"f{at}") for at, text in enumerate(texts)])


def configs(state: Merged) -> dict[str, tuple[dict[str, str], dict[str, str]]]:
    """Each topic's own configuration, and its values in force whose origin is unknown."""
    return {topic.name: (dict(topic.config), dict(topic.effective_config)) for topic in state.assignment.topics}


def test_what_every_topic_shows_may_be_inherited() -> None:
    """A value that all topics show may be inherited; one that only some show is their own."""
    state = of_configs(describe())
    in_force = {"min.insync.replicas": "2"}
    assert {"a": ({}, in_force), "b": ({"retention.ms": "5"}, in_force)} == configs(state)
    assert () == state.config_defaults


def test_throttles_are_topics_own_even_where_all_have_them() -> None:
    """Throttles are always topics' own, because brokers have no such configuration."""
    throttled = "leader.replication.throttled.replicas=0:1"
    assert {"a": ({"leader.replication.throttled.replicas": "0:1"}, {})} == {
        "a": configs(of_configs(describe(throttled, throttled)))["a"]
    }


def test_a_topic_that_is_being_deleted_says_nothing_of_others() -> None:
    """A topic marked for deletion isn't compared, because its configuration may be gone already."""
    text = describe("").replace("Configs: \n", "Configs: \tMarkedForDeletion: true\n")
    assert {} == configs(of_configs(text))["b"][0]


def test_who_knows_topics_own_configurations_tells_the_rest_apart() -> None:
    """With topics' own configurations known, all other values in force are inherited."""
    state = of_configs(describe(), own(a="", b="retention.ms=5"))
    assert {"a": ({}, {}), "b": ({"retention.ms": "5"}, {})} == configs(state)
    assert (("min.insync.replicas", "2"),) == state.config_defaults
    assert () == state.notes


def test_of_two_sources_of_a_kind_the_one_named_first_counts() -> None:
    """kafka-topics and kafka-configs both tell what brokers say. The note names the one that counts."""
    unlike = own(a="min.insync.replicas=1")
    for order, value, counts in ((0, "2", "f0"), (1, "1", "f0")):
        state = of_configs(*((describe(), unlike) if order == 0 else (unlike, describe())))
        assert ({"min.insync.replicas": value}, {}) == configs(state)["a"]
        assert (f"sources disagree about the configuration of 1 topic (a): {counts} counts",) == state.notes


def alone(a: str) -> str:
    """One topic alone with the configuration that kafka-topics shows, so that its origin is unknown."""
    return describe(a).split("Topic: b")[0]


@pytest.mark.parametrize(
    ("texts", "of_a", "inherited"),
    [
        ((alone(""), own(a=MIN_2)), ({}, {}), ()),
        ((own(a=MIN_2), alone("")), ({"min.insync.replicas": "2"}, {}), ()),
        ((alone(""), alone(MIN_2)), ({}, {}), ()),
        ((alone("min.insync.replicas=1"), alone(MIN_2)), ({}, {"min.insync.replicas": "1"}), ()),
        ((own(a=MIN_2), own(a="flush.ms=1"), alone(MIN_2)), ({"min.insync.replicas": "2"}, {}), ()),
        ((describe("flush.ms=1", ""), own(a="")), ({"flush.ms": "1"}, {}), ()),
        ((own(a=""), describe("flush.ms=1", "")), ({}, {}), ()),
    ],
)
def test_every_disagreement_on_a_configuration_is_noted(texts, of_a, inherited) -> None:
    """The source named first counts, also if it shows nothing; what only one topic shows isn't inherited by others."""
    state = of_configs(*texts)
    assert (of_a, inherited) == (configs(state)["a"], state.config_defaults)
    assert ("sources disagree about the configuration of 1 topic (a): f0 counts",) == state.notes


def test_sources_that_agree_on_a_configuration_need_no_note() -> None:
    """What another output of kafka-topics proves to be a topic's own is its own."""
    state = of_configs(alone("flush.ms=1"), describe("flush.ms=1", ""))
    assert (({"flush.ms": "1"}, {}), ()) == (configs(state)["a"], state.notes)
    state = of_configs(alone(MIN_2), own(a=MIN_2))
    assert (({"min.insync.replicas": "2"}, {}), ()) == (configs(state)["a"], state.notes)


def test_configurations_of_another_cluster_are_refused() -> None:
    """If no topic exists, they are of another cluster. If some exist, a note names the others."""
    with pytest.raises(ImportStateError, match="has configurations of topic z, unknown to f0; allowed: those of the"):
        of_configs(describe(), own(z="flush.ms=1"))
    assert "f1 has configurations of topic z, unknown to f0: left out" in of_configs(describe(), own(a="", z="")).notes


def test_one_topic_that_is_known_leaves_the_other_unknown() -> None:
    """If only one topic's own configuration is known, the other topic's origin stays unknown."""
    state = of_configs(describe(), own(a=""))
    assert {"a": ({}, {}), "b": ({"retention.ms": "5"}, {"min.insync.replicas": "2"})} == configs(state)
    assert (("min.insync.replicas", "2"),) == state.config_defaults


def test_znodes_and_terraform_know_what_is_a_topics_own() -> None:
    """Znodes and Terraform show which keys are a topic's own; the value, or its absence, is that of the brokers."""
    znode = json.dumps({"version": 1, "config": {"min.insync.replicas": "1", "flush.ms": "5"}})
    state = of_configs(describe(), znode)
    assert ({"min.insync.replicas": "2"}, {}) == configs(state)["a"]
    assert ("sources disagree about the configuration of 1 topic (a): f0 counts",) == state.notes
    topic = {"name": "a", "partitions": 1, "replication_factor": 2, "config": {"min.insync.replicas": "2"}}
    resource = {"address": "kafka_topic.a", "type": "kafka_topic", "mode": "managed", "values": topic}
    top = {"format_version": "1.0", "terraform_version": "1.9"}
    state = of_configs(describe(), json.dumps({**top, "values": {"root_module": {"resources": [resource]}}}))
    assert ({"min.insync.replicas": "2"}, {}) == configs(state)["a"]
    change = {"before": {**topic, "config": {}}, "after": topic}
    planned = {"address": "kafka_topic.a", "type": "kafka_topic", "change": change}
    assert ({}, {}) == configs(of_configs(describe(), json.dumps({**top, "resource_changes": [planned]})))["a"]


def test_the_clusters_znode_is_what_topics_inherit() -> None:
    """The cluster-wide znode has what topics inherit, and is read under the topics' key names."""
    znode = json.dumps({"version": 1, "config": {"log.retention.ms": "7", "min.insync.replicas": "2"}})
    state = of_configs(describe(), znode, znode="config/brokers/<default>")
    assert (("min.insync.replicas", "2"), ("retention.ms", "7")) == state.config_defaults
