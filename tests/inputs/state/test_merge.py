"""Several sources of one state: which wins, notes on the rest, running reassignments, and topics' configurations."""

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


def sizes(**of: int) -> str:
    """The output of kafka-log-dirs, of one broker."""
    rows = [{"partition": name.replace("_", "-"), "size": size} for name, size in of.items()]
    return json.dumps({"brokers": [{"broker": 1, "logDirs": [{"logDir": "/d", "partitions": rows}]}]})


def merged(*texts: str, to_targets: bool = False) -> Merged:
    """The texts as files called 0, 1, 2 …, merged."""
    return merge(parts(*texts), to_targets=to_targets)


def parts(*texts: str) -> list[StatePart]:
    """What each text says; znodes are those of topic a."""
    return [read_part(text, f"f{number}", "a") for number, text in enumerate(texts)]


def replicas(state: Merged) -> dict[str, list[tuple[int, ...]]]:
    """Topic to replicas by partition."""
    return {topic.name: [row.replicas for row in topic.partitions] for topic in state.assignment.topics}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_brokers_answers_outrank_znodes_and_those_documents(order: tuple[int, ...]) -> None:
    """In whichever order they are named."""
    texts = [DESCRIBE, ZNODE, reassignment(("a", 0, [3, 2]), ("b", 0, [1]))]
    state = merged(*(texts[at] for at in order))
    assert {"a": [(1, 2), (2, 3)]} == replicas(state)
    assert 3 == len(state.notes)


def test_what_sources_disagree_about_is_told() -> None:
    """Elsewhere, missing here, missing there: each with the first few partitions, and who counts."""
    state = merged(DESCRIBE, ZNODE.replace(',"1":[2,3]', ""), reassignment(("b", 0, [1]), ("a", 5, [1])))
    assert (
        "f1 (a znode) disagrees with f0 about the replicas of partition a-0: f0 counts",
        "f1 (a znode) lacks partition a-1, known to f0",
        "f2 (a reassignment JSON) has partitions b-0, a-5, unknown to f0: left out",
    ) == state.notes


def test_captures_of_different_moments_are_told() -> None:
    """Two describes with the same replicas, and a broker that is down in one. The order in an ISR is no matter."""
    down = DESCRIBE.replace("Isr: 2,3", "Isr: 3")
    said = "f1 (kafka-topics --describe) disagrees with f0 about leaders or ISRs of partition a-1: f0 counts"
    assert (said,) == merged(DESCRIBE, down).notes
    assert () == merged(DESCRIBE, DESCRIBE.replace("Isr: 2,3", "Isr: 3,2")).notes


def test_within_a_rank_the_first_one_named_wins() -> None:
    """Documents that list some partitions add up."""
    first, second = reassignment(("a", 0, [1, 2])), reassignment(("a", 0, [9, 8]), ("a", 1, [2, 1]), ("c", 0, [3]))
    state = merged(first, second)
    assert {"a": [(1, 2), (2, 1)], "c": [(3,)]} == replicas(state)
    assert ("f1 (a reassignment JSON) disagrees with f0 about the replicas of partition a-0: f0 counts",) == state.notes


def test_one_description_a_topic_adds_up() -> None:
    """`kafka-topics --describe --topic` was run for each; one that knows all of a topic is alone in saying which."""
    more = DESCRIBE.replace("PartitionCount: 2", "PartitionCount: 3") + (
        "\tTopic: a\tPartition: 2\tLeader: 1\tReplicas: 1,2\tIsr: 1\n"
    )
    state = merged(DESCRIBE, DESCRIBE.replace("Topic: a", "Topic: b"), more)
    assert {"a": [(1, 2), (2, 3)], "b": [(1, 2), (2, 3)]} == replicas(state)
    assert ("f2 (kafka-topics --describe) has partition a-2, unknown to f0: left out",) == state.notes


def test_leaders_come_from_who_knows_them() -> None:
    """A reassignment JSON has none: a lower rank's are taken where they fit the replicas."""
    answer = {
        "KafkaPartitionState": {
            "urp": [{"topic": "a", "partition": 0, "leader": 2, "replicas": [1, 2], "in-sync": [2]}],
            "other": [{"topic": "a", "partition": 1, "leader": 9, "replicas": [9, 8], "in-sync": [9]}],
        }
    }
    state = merged(reassignment(("a", 0, [1, 2]), ("a", 1, [2, 1])), json.dumps(answer))
    assert (Partition(0, (1, 2), 2, (2,)), Partition(1, (2, 1), 2)) == state.assignment.topics[0].partitions


def test_a_partition_that_a_source_has_twice_is_refused() -> None:
    """Contradicting oneself isn't a matter of rank."""
    with pytest.raises(ImportStateError, match="partition 0 of a is here twice"):
        merged(reassignment(("a", 0, [1, 2]), ("a", 0, [2, 1])), LIST.splitlines()[0])


def test_sizes_of_several_files_are_the_largest() -> None:
    """One output a broker; partitions that nobody has are told."""
    state = merged(DESCRIBE, sizes(a_0=5, x_1=1), sizes(a_0=7, a_1=2))
    assert {("a", 0): 7, ("a", 1): 2, ("x", 1): 1} == state.sizes
    assert ("sizes are given for partition x-1, which f0 doesn't have",) == state.notes


def test_brokers_are_those_of_the_tool_that_tells_racks() -> None:
    """kafka-broker-api-versions prints `null` for a broker without a rack."""
    state = merged(DESCRIBE, VERSIONS)
    assert [(1, "r1"), (2, None)] == [(broker.id, broker.rack) for broker in state.brokers]


def test_racks_that_differ_are_told() -> None:
    """The higher rank's counts."""
    znode = '{"host":"h","port":1,"version":5,"rack":"other"}'
    state = merge([read_part(znode, "brokers/ids/1"), *parts(DESCRIBE, VERSIONS)])
    assert ("broker 1 is in rack 'other' by brokers/ids/1, in rack 'r1' by f1, which counts",) == state.notes


def test_racks_that_cannot_be_written_are_refused() -> None:
    """Kafka takes any text, a spec none with control characters."""
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
    """Whoever tells it: describe, the tool's list, znodes."""
    with pytest.raises(ImportStateError, match=r"partition 0 of a is being reassigned \(Adding Replicas: 4\)"):
        merged(*texts)


@pytest.mark.parametrize("texts", MOVING.values(), ids=MOVING)
def test_a_reassignment_in_progress_is_planned_from_its_target(texts: tuple[str, ...]) -> None:
    """What is added arrives, what is removed goes, and with it the lead."""
    state = merged(*texts, to_targets=True)
    assert {"a": [(4, 2), (2, 3)]} == replicas(state)
    assert 4 == state.assignment.topics[0].partitions[0].leader
    assert (
        "1 partition is being reassigned: the plan starts from the target, apply.yml once that is reached",
    ) == state.notes


def test_no_reassignment_in_the_list_is_no_obstacle() -> None:
    """The tool says so in words."""
    assert {"a": [(1, 2), (2, 3)]} == replicas(merged(DESCRIBE, "No partition reassignments found.\n"))


def test_topics_to_move_restrict() -> None:
    """Names that the cluster doesn't have are told; none that it has is a fault."""
    state = merged(DESCRIBE, '{"version":1,"topics":[{"topic":"a"},{"topic":"gone"}]}')
    assert ("a",) == state.only_topics
    assert ("f1 names topic gone, which the cluster doesn't have",) == state.notes
    with pytest.raises(
        ImportStateError, match="f1: names topic gone, which the cluster doesn't have; allowed: at least"
    ):
        merged(DESCRIBE, '{"version":1,"topics":[{"topic":"gone"}]}')


def test_nothing_about_replicas_is_refused() -> None:
    """Sizes alone are no state."""
    with pytest.raises(ImportStateError, match=r"f0: no source says where replicas are, only f0 \(kafka-log-dirs"):
        merged(sizes(a_0=1))


AT = Place("f", 1, 1)


def moving(adding: tuple[int, ...], removing: tuple[int, ...], now: tuple[int, ...] | None) -> RunningReassignment:
    """A reassignment of a-0; `now` is what its source says that the partition has meanwhile."""
    return RunningReassignment(AT, "a", 0, adding, removing, now)


@pytest.mark.parametrize(
    ("now", "replicas", "stay"),
    [((4, 1, 2), (1, 2), (4, 2)), (None, (4, 1, 2), (4, 2)), (None, (1, 2), (2, 4))],
    ids=["told by the list", "told by the partition", "not among its replicas yet"],
)
def test_what_stays_keeps_kafkas_order(
    now: tuple[int, ...] | None, replicas: tuple[int, ...], stay: tuple[int, ...]
) -> None:
    """What is added comes where Kafka lists it, at the end where it doesn't; what is removed goes."""
    assert stay == target(Partition(0, replicas, 1), moving((4,), (1,), now))


def test_a_partition_has_arrived() -> None:
    """What is added is in sync, a replica that was behind stays behind, and who goes no longer leads."""
    rows = [
        AssignmentEntry(AT, "a-0", "a", Partition(0, (4, 1, 2), 1, (1,))),
        AssignmentEntry(AT, "a-1", "a", Partition(1, (1, 2), 1, (1, 2))),
    ]
    found, notes = reassigned(rows, {("a", 0): moving((4,), (1,), (4, 1, 2)), ("gone", 5): moving((4,), (1,), None)})
    assert [Partition(0, (4, 2), 4, (4,)), rows[1].partition] == [each.partition for each in found]
    assert (
        "1 partition is being reassigned: the plan starts from the target, apply.yml once that is reached",
        "gone-5 is being reassigned (1 such), but isn't in the assignment",
    ) == notes


A = "\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n"
MIN_2 = "min.insync.replicas=2"


def describe(a: str = MIN_2, b: str = f"{MIN_2},retention.ms=5") -> str:
    """Two topics with what kafka-topics shows as their configs."""
    heading = "Topic: a\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: "
    return f"{heading}{a}\n{A}{(heading + b).replace('Topic: a', 'Topic: b')}\n{A.replace('Topic: a', 'Topic: b')}"


def own(**configs: str) -> str:
    """What kafka-configs shows of topics: `topic="key=value"`, or an empty text."""
    blocks = []
    for topic, entry in configs.items():
        line = f"  {entry} sensitive=false synonyms={{DYNAMIC_TOPIC_CONFIG:{entry}}}\n" if entry else ""
        blocks.append(f"Dynamic configs for topic {topic} are:\n{line}")
    return "".join(blocks)


def of_configs(*texts: str, znode: str = "config/topics/a") -> Merged:
    """The texts as one state; `znode` is the path of one that is a znode."""
    return merge([read_part(text, znode if '"config"' in text[:40] else f"f{at}") for at, text in enumerate(texts)])


def configs(state: Merged) -> dict[str, tuple[dict[str, str], dict[str, str]]]:
    """Topic to its own configuration, and to what is in force for it otherwise, of unknown origin."""
    return {topic.name: (dict(topic.config), dict(topic.effective_config)) for topic in state.assignment.topics}


def test_what_every_topic_shows_may_be_inherited() -> None:
    """What one of them doesn't show is inherited by none: it is the topic's own that shows it."""
    state = of_configs(describe())
    in_force = {"min.insync.replicas": "2"}
    assert {"a": ({}, in_force), "b": ({"retention.ms": "5"}, in_force)} == configs(state)
    assert () == state.config_defaults


def test_throttles_are_topics_own_even_where_all_have_them() -> None:
    """Kafka has no such configuration of brokers."""
    throttled = "leader.replication.throttled.replicas=0:1"
    assert {"a": ({"leader.replication.throttled.replicas": "0:1"}, {})} == {
        "a": configs(of_configs(describe(throttled, throttled)))["a"]
    }


def test_a_topic_that_is_being_deleted_says_nothing_of_others() -> None:
    """Its configuration may be gone already."""
    text = describe("").replace("Configs: \n", "Configs: \tMarkedForDeletion: true\n")
    assert {} == configs(of_configs(text))["b"][0]


def test_who_knows_topics_own_configurations_tells_the_rest_apart() -> None:
    """What is in force and isn't a topic's own is inherited by all."""
    state = of_configs(describe(), own(a="", b="retention.ms=5"))
    assert {"a": ({}, {}), "b": ({"retention.ms": "5"}, {})} == configs(state)
    assert (("min.insync.replicas", "2"),) == state.config_defaults
    assert () == state.notes


def test_one_topic_that_is_known_leaves_the_other_unknown() -> None:
    """It may set what it would inherit anyway."""
    state = of_configs(describe(), own(a=""))
    assert {"a": ({}, {}), "b": ({"retention.ms": "5"}, {"min.insync.replicas": "2"})} == configs(state)
    assert (("min.insync.replicas", "2"),) == state.config_defaults


def test_znodes_and_terraform_know_what_is_a_topics_own() -> None:
    """Brokers' answers count for the value, and for what isn't set any more."""
    znode = json.dumps({"version": 1, "config": {"min.insync.replicas": "1", "flush.ms": "5"}})
    state = of_configs(describe(), znode)
    assert ({"min.insync.replicas": "2"}, {}) == configs(state)["a"]
    assert ("sources disagree about the configuration of 1 topic (a)",) == state.notes
    topic = {"name": "a", "partitions": 1, "replication_factor": 2, "config": {"min.insync.replicas": "2"}}
    resource = {"address": "kafka_topic.a", "type": "kafka_topic", "mode": "managed", "values": topic}
    top = {"format_version": "1.0", "terraform_version": "1.9"}
    state = of_configs(describe(), json.dumps({**top, "values": {"root_module": {"resources": [resource]}}}))
    assert ({"min.insync.replicas": "2"}, {}) == configs(state)["a"]
    change = {"before": {**topic, "config": {}}, "after": topic}
    planned = {"address": "kafka_topic.a", "type": "kafka_topic", "change": change}
    assert ({}, {}) == configs(of_configs(describe(), json.dumps({**top, "resource_changes": [planned]})))["a"]


def test_the_clusters_znode_is_what_topics_inherit() -> None:
    """Under topics' names."""
    znode = json.dumps({"version": 1, "config": {"log.retention.ms": "7", "min.insync.replicas": "2"}})
    state = of_configs(describe(), znode, znode="config/brokers/<default>")
    assert (("min.insync.replicas", "2"), ("retention.ms", "7")) == state.config_defaults
