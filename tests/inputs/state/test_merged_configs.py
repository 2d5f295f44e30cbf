"""Own, inherited, or nobody tells: topics' configurations from several sources."""

from __future__ import annotations

import json
from pathlib import Path

from planner.inputs.importers.any_format import read_part
from planner.inputs.spec.reading import load
from planner.inputs.state.cluster_conditions import conditions
from planner.inputs.state.merge import Merged, merge
from planner.inputs.state.merged_configs import UNKNOWN, unknown_origin

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


def merged(*texts: str, znode: str = "config/topics/a") -> Merged:
    """The texts as one state; `znode` is the path of one that is a znode."""
    return merge([read_part(text, znode if '"config"' in text[:40] else f"f{at}") for at, text in enumerate(texts)])


def configs(state: Merged) -> dict[str, tuple[dict[str, str], dict[str, str]]]:
    """Topic to its own configuration, and to what is in force for it otherwise, nobody says why."""
    return {topic.name: (dict(topic.config), dict(topic.effective_config)) for topic in state.assignment.topics}


def test_what_every_topic_shows_may_be_inherited() -> None:
    """What one of them doesn't show is inherited by none: it is the topic's own that shows it."""
    state = merged(describe())
    in_force = {"min.insync.replicas": "2"}
    assert {"a": ({}, in_force), "b": ({"retention.ms": "5"}, in_force)} == configs(state)
    assert () == state.config_defaults


def test_throttles_are_topics_own_even_where_all_have_them() -> None:
    """Kafka has no such configuration of brokers."""
    throttled = "leader.replication.throttled.replicas=0:1"
    assert {"a": ({"leader.replication.throttled.replicas": "0:1"}, {})} == {
        "a": configs(merged(describe(throttled, throttled)))["a"]
    }


def test_a_topic_that_is_being_deleted_says_nothing_of_others() -> None:
    """Its configuration may be gone already."""
    text = describe("").replace("Configs: \n", "Configs: \tMarkedForDeletion: true\n")
    assert {} == configs(merged(text))["b"][0]


def test_who_knows_topics_own_configurations_tells_the_rest_apart() -> None:
    """What is in force and isn't a topic's own is inherited by all."""
    state = merged(describe(), own(a="", b="retention.ms=5"))
    assert {"a": ({}, {}), "b": ({"retention.ms": "5"}, {})} == configs(state)
    assert (("min.insync.replicas", "2"),) == state.config_defaults
    assert () == state.notes


def test_one_topic_that_is_known_leaves_the_other_unknown() -> None:
    """It may set what it would inherit anyway."""
    state = merged(describe(), own(a=""))
    assert {"a": ({}, {}), "b": ({"retention.ms": "5"}, {"min.insync.replicas": "2"})} == configs(state)
    assert (("min.insync.replicas", "2"),) == state.config_defaults


def test_znodes_and_terraform_know_what_is_a_topics_own() -> None:
    """Brokers' answers count for the value, and for what isn't set any more."""
    znode = json.dumps({"version": 1, "config": {"min.insync.replicas": "1", "flush.ms": "5"}})
    state = merged(describe(), znode)
    assert ({"min.insync.replicas": "2"}, {}) == configs(state)["a"]
    assert ("sources disagree about the configuration of 1 topic (a)",) == state.notes
    topic = {"name": "a", "partitions": 1, "replication_factor": 2, "config": {"min.insync.replicas": "2"}}
    resource = {"address": "kafka_topic.a", "type": "kafka_topic", "mode": "managed", "values": topic}
    top = {"format_version": "1.0", "terraform_version": "1.9"}
    state = merged(describe(), json.dumps({**top, "values": {"root_module": {"resources": [resource]}}}))
    assert ({"min.insync.replicas": "2"}, {}) == configs(state)["a"]
    change = {"before": {**topic, "config": {}}, "after": topic}
    planned = {"address": "kafka_topic.a", "type": "kafka_topic", "change": change}
    assert ({}, {}) == configs(merged(describe(), json.dumps({**top, "resource_changes": [planned]})))["a"]


def test_the_clusters_znode_is_what_topics_inherit() -> None:
    """Under topics' names."""
    znode = json.dumps({"version": 1, "config": {"log.retention.ms": "7", "min.insync.replicas": "2"}})
    state = merged(describe(), znode, znode="config/brokers/<default>")
    assert (("min.insync.replicas", "2"), ("retention.ms", "7")) == state.config_defaults


def test_sources_without_configurations_leave_the_least_unknown(tmp_path: Path) -> None:
    """That is said, unless the YAML has what topics inherit; kafka-topics that shows nothing says there is nothing."""
    moves = json.dumps({"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": [1, 2]}]})
    (tmp_path / "r.json").write_text(moves)
    top = "version: 1\ncluster: {name: c, brokers: [{id: 1}, {id: 2}], state: {assignment: r.json}"
    notes = []
    for rest in ("}", ", config_defaults: {min.insync.replicas: 2}}"):
        (tmp_path / "s.yaml").write_text(f"{top}{rest}\n")
        notes.append(load(tmp_path / "s.yaml").cluster.notes)

    assert [(UNKNOWN,), ()] == notes
    assert UNKNOWN in conditions(merged(moves))
    assert UNKNOWN not in conditions(merged(describe("", "")))


def test_what_nobody_tells_is_said_once() -> None:
    """With the keys, and what would tell."""
    effective = {topic.name: topic.effective_config for topic in merged(describe()).assignment.topics}
    (note,) = unknown_origin(effective)
    assert note.startswith("own or inherited isn't known of min.insync.replicas (2 topics): kafka-topics --describe")
    assert [] == list(unknown_origin({"a": ()}))
