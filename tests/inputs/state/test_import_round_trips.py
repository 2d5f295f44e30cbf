"""A random cluster, written in each format, is read back unchanged, and an imported cluster has the same plan."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from folders import DATA
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from state_texts import read_topics

from planner.cli.importing import ImportOptions, import_state
from planner.inputs.importers.state_parts import StatePart
from planner.inputs.spec.reading import load
from planner.inputs.state.merge import merge
from planner.inputs.state.spec_writer import Imported, describe, log_dirs, text, topic_configs
from planner.inputs.state.state_files import read_part
from planner.model.cluster import Broker, Partition, Topic
from planner.plan import build
from planner.plan.document.codec import as_json
from planner.sweep.choice import alternatives, swept
from planner.sweep.evaluate import run

WORDS = "abcdefghijklmnopqrstuvwxyzABC0123456789._-"

names = st.text(WORDS, min_size=1, max_size=12).filter(lambda name: name not in (".", "..")) | st.sampled_from(
    [
        "a-1",
        "a-1-1",
        "null",
        "no",
        "1_000",
        "1.5",
        "0x1",
        "~".replace("~", "-"),
        "y" * 249,
        "-",
        "_",
        "=".replace("=", "e"),
    ]
)
brokers = st.integers(0, 2**31 - 1)
# `values` are any text; `printed_values` have nothing that kafka-topics' output would show as a label or another key.
values = st.text(st.characters(blacklist_categories=["Cs"]), max_size=10)
printed_values = st.text("abc019:;/ *", max_size=10).map(str.strip).filter(bool)
racks = st.text(st.characters(blacklist_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=8)


@st.composite
def partitions(draw: st.DrawFn, number: int) -> Partition:
    """A partition with one to four replicas, any leader or none, and any ISR."""
    replicas = draw(st.lists(brokers, min_size=1, max_size=4, unique=True))
    isr = tuple(broker for broker in replicas if draw(st.booleans()))
    return Partition(number, tuple(replicas), draw(st.sampled_from([*replicas, None])), isr)


@st.composite
def clusters(draw: st.DrawFn, config_values: st.SearchStrategy[str] = printed_values) -> tuple[Topic, ...]:
    """One to four topics with one to five partitions each, sorted by name."""
    configs = st.dictionaries(st.sampled_from(["a.b", "c.d-e.f", "preallocate"]), config_values, max_size=2)
    return tuple(
        Topic(
            name,
            tuple(draw(partitions(number)) for number in range(draw(st.integers(1, 5)))),
            tuple(sorted(draw(configs).items())),
            draw(st.booleans()),
        )
        for name in sorted(draw(st.lists(names, min_size=1, max_size=4, unique=True)))
    )


def replica_lists(topics: tuple[Topic, ...]) -> list[tuple[str, list[tuple[int, ...]]]]:
    """Each topic's replica lists, which is all that a format without leaders has."""
    return [(topic.name, [row.replicas for row in topic.partitions]) for topic in topics]


@given(clusters())
def test_describe(topics: tuple[Topic, ...]) -> None:
    """Leaders, ISRs, configuration and marks for deletion included; whose a configuration is, isn't printed."""
    assert topics == tuple(
        replace(topic, config=tuple(sorted(topic.config + topic.effective_config)), effective_config=())
        for topic in read_topics(describe(topics), "d.txt")
    )


@given(clusters())
def test_topic_configs(topics: tuple[Topic, ...]) -> None:
    """Beside it, what is printed of topics' own configurations tells whose they are."""
    parts = [read_part(describe(topics), "d.txt"), read_part(topic_configs(topics), "c.txt")]
    assert topics == merge(parts).assignment.topics


@given(clusters(), st.randoms())
def test_reassignment_json(topics: tuple[Topic, ...], random: st.DataObject) -> None:
    """In any order."""
    rows = [
        {"topic": topic.name, "partition": row.id, "replicas": row.replicas, "log_dirs": ["any"] * len(row.replicas)}
        for topic in topics
        for row in topic.partitions
    ]
    random.shuffle(rows)  # type: ignore[attr-defined]
    written = json.dumps({"version": 1, "partitions": rows}, indent=random.choice([None, 1]))  # type: ignore[attr-defined]
    assert replica_lists(topics) == replica_lists(read_topics(written, "r.json"))


@given(clusters(), st.sampled_from(["brokers/topics/{}", "x/znode-brokers-topics-{}.json"]))
def test_znodes(topics: tuple[Topic, ...], layout: str) -> None:
    """A topic's znode and those of its partitions' states."""
    parts: list[StatePart] = []
    for topic in topics:
        file, ending = layout.format(topic.name).removesuffix(".json"), ".json" if layout.endswith(".json") else ""
        lists = {str(row.id): row.replicas for row in topic.partitions}
        parts.append(read_part(json.dumps({"version": 2, "partitions": lists}), file + (ending or "/data")))
        for row in topic.partitions:
            state = {"leader": -1 if row.leader is None else row.leader, "leader_epoch": 3, "isr": row.isr}
            dash = "-" if ending else "/"
            parts.append(read_part(json.dumps(state), f"{file}{dash}partitions{dash}{row.id}{dash}state{ending}"))
    assert [topic.partitions for topic in topics] == [topic.partitions for topic in merge(parts).assignment.topics]


@given(clusters())
def test_cluster_state_of_cruise_control(topics: tuple[Topic, ...]) -> None:
    """Leaders and ISRs included."""
    rows = [
        {
            "topic": topic.name,
            "partition": row.id,
            "leader": -1 if row.leader is None else row.leader,
            "replicas": row.replicas,
            "in-sync": row.isr,
        }
        for topic in topics
        for row in topic.partitions
    ]
    written = json.dumps({"KafkaPartitionState": {"urp": rows[:1], "other": rows[1:]}, "version": 1})
    assert [topic.partitions for topic in topics] == [topic.partitions for topic in read_topics(written, "c.json")]


@given(st.lists(st.lists(brokers, min_size=1, max_size=4, unique=True), min_size=1, max_size=5))
def test_replica_assignment(lists: list[list[int]]) -> None:
    """The string that kafka-topics --create takes."""
    written = ",".join(":".join(map(str, replicas)) for replicas in lists)
    part = read_part(written, "m.txt", "t")
    assert [tuple(replicas) for replicas in lists] == [entry.partition.replicas for entry in part.entries]


@given(clusters(), st.randoms())
def test_running_reassignments(topics: tuple[Topic, ...], random: st.DataObject) -> None:
    """Names that end like a partition are split at the last hyphen."""
    lines = [
        f"{topic.name}-{row.id}: replicas: {','.join(map(str, row.replicas))}. removing: {row.replicas[0]}."
        for topic in topics
        for row in topic.partitions
    ]
    part = read_part("\n".join(["Current partition reassignments:", *lines]), "l.txt")
    assert [(topic.name, row.id, row.replicas) for topic in topics for row in topic.partitions] == [
        (moving.topic, moving.partition, moving.replicas) for moving in part.moving
    ]


@given(clusters(), st.integers(0, 2**50))
def test_sizes(topics: tuple[Topic, ...], size_bytes: int) -> None:
    """Of partitions whose topics may end like one."""
    sizes = {(topic.name, row.id): size_bytes + row.id for topic in topics for row in topic.partitions}
    assert sizes == read_part(log_dirs(topics, sizes), "l.json").sizes


@examples(30)
@given(clusters(values), st.dictionaries(brokers, racks, max_size=2), st.booleans())
def test_yaml(topics: tuple[Topic, ...], rack_of: dict[int, str], sized: bool) -> None:
    """Any configuration value and rack, and names that YAML would take for something else."""
    held = sorted({broker for topic in topics for row in topic.partitions for broker in row.replicas})
    known = tuple(Broker(broker, rack_of.get(broker)) for broker in sorted({*held, *rack_of}))
    sizes = {(topic.name, row.id): row.id for topic in topics for row in topic.partitions} if sized else {}
    written = text(Imported("x", known, topics, sizes)) + "rack_aware: disabled\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "s.yaml")
        path.write_text(written, encoding="utf-8")
        read = load(path).cluster
    assert known == read.brokers
    assert [(topic.name, topic.config, topic.deleting) for topic in topics] == [
        (topic.name, topic.config, topic.deleting) for topic in read.topics
    ]
    assert [[(row.replicas, row.leader, row.isr) for row in topic.partitions] for topic in topics] == [
        [(row.replicas, row.leader, row.isr) for row in topic.partitions] for topic in read.topics
    ]
    assert sized == read.sizes_known


CHANGE = "changes: {remove_brokers: [6]}\nsweep: {candidates: 20}\n"


def planned(path: Path) -> dict[str, object]:
    """The plan of a spec, without its id and its inputs."""
    requested = alternatives(load(path))
    results = [run(each.problem, each.candidates) for each in requested]
    document = as_json(build.planned(swept(requested, results)).plan)
    return {key: value for key, value in document.items() if key not in ("plan_id", "inputs")}


@pytest.mark.slow
@pytest.mark.parametrize("most_inline", [2_000, 10], ids=["inline", "state files beside it"])
def test_an_import_gives_the_same_plan(most_inline: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An imported spec has the same plan as the state files from which it was imported."""
    monkeypatch.setattr("planner.inputs.state.spec_writer.MOST_INLINE", most_inline)
    files = {name: DATA / "kraft-4.1" / name for name in ("kafka-topics-describe.txt", "kafka-log-dirs-describe.txt")}
    for name, path in files.items():
        (tmp_path / name).write_bytes(path.read_bytes())
    brokers_listed = "\n".join(f"    - {{id: {number}}}" for number in range(1, 7))
    (tmp_path / "files.yaml").write_text(
        f"version: 1\ncluster:\n  name: x\n  brokers:\n{brokers_listed}\n"
        f"  state:\n    files: [{', '.join(files)}]\n{CHANGE}"
    )
    out = tmp_path / "cluster.yaml"
    import_state(list(files.values()), ImportOptions(name="x", out=out))
    out.write_text(out.read_text(encoding="utf-8") + CHANGE, encoding="utf-8")
    assert planned(tmp_path / "files.yaml") == planned(out)
