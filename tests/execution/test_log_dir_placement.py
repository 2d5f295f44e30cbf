"""Log dirs from the state to the plan: each replica is in one, within its window, and in Kafka's format."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import plan_documents
import pytest
from clusters import specs
from folders import DATA
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from plan_documents import typed
from properties import examples
from rich.console import Console

from planner.export import templated_files
from planner.inputs.importers.log_dirs_describe import places
from planner.inputs.spec.reading import load
from planner.model.balance import Tolerance
from planner.model.build_problem import build
from planner.model.cluster import ANY, LogDir, LogDirs, ReplicaDir
from planner.model.errors import ImportStateError, SpecError, UnsafePlanError
from planner.model.file_reading import resource
from planner.model.spec import Spec
from planner.report import markdown, terminal
from planner.sweep.candidates import candidates
from planner.sweep.evaluate import run

VALIDATOR = Draft202012Validator(json.loads(resource("schemas", "plan.schema.json").read_text(encoding="utf-8")))
STORAGE = "org.apache.kafka.common.errors.KafkaStorageException"
Plan = dict[str, Any]
Where = dict[tuple[str, int, int], str]

# Broker 1 has nearly all bytes in /d1, broker 2 is even; a-1 isn't led by its preferred leader.
TWO = """\
version: 1
cluster:
  name: demo
  brokers: [{id: 1, log_dirs: [/d1, /d2]}, {id: 2, log_dirs: [/d1, /d2]}]
  topics:
    - name: a
      partitions:
        - {replicas: [1, 2], size: 40GB, log_dirs: [/d1, /d1]}
        - {replicas: [2, 1], size: 39GB, log_dirs: [/d2, /d1], leader: 1}
        - {replicas: [1, 2], size: 1GB, log_dirs: [/d1, /d2]}
"""
INSIDE = "changes: {rebalance: none}\nbalance: {log_dirs: 10%}\n"


def spec_of(folder: Path, text: str) -> Spec:
    """The spec of this YAML text."""
    path = folder / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path)


def plan_of(spec: Spec, count: int = 6) -> Plan:
    """The plan of a spec; the sweep runs in this process."""
    problem = build(spec)
    return plan_documents.planned(
        spec, problem, run(problem, candidates(problem, replace(spec.sweep, candidates=count)))
    )


def test_a_cordoned_log_dir_gets_nothing_and_keeps_its_replicas(tmp_path: Path) -> None:
    """Broker 1 would be even with replicas in /d2; as that is cordoned, all stay, and the plan gives it no target."""
    cordoned = TWO.replace("[{id: 1, log_dirs: [/d1, /d2]}", "[{id: 1, log_dirs: [/d1, /d2], cordoned_log_dirs: [/d2]}")
    plan = plan_of(spec_of(tmp_path, cordoned + INSIDE))
    assert {2} >= {move["broker"] for move in plan["log_dirs"]["moves"]}
    (of_broker,) = (each for each in plan["log_dirs"]["brokers"] if each["id"] == 1)
    rows = {row["path"]: row for row in of_broker["log_dirs"]}
    assert (None, None) == (rows["/d2"]["least_bytes"], rows["/d2"]["most_bytes"])
    assert rows["/d2"]["before"] == rows["/d2"]["after"]
    assert "| cordoned |" in markdown.report(typed(plan))


@pytest.mark.parametrize("cordoned", ['["*"]', "[/d1, /d2]"])
def test_a_cordoned_broker_keeps_its_replicas_in_their_log_dirs(tmp_path: Path, cordoned: str) -> None:
    """No target applies to broker 1, nothing moves in it, and the plan isn't refused for moves that it chose itself."""
    text = TWO.replace("/d2]}, {id: 2", f"/d2], cordoned_log_dirs: {cordoned}}}, {{id: 2")
    (of_broker,) = (
        each for each in plan_of(spec_of(tmp_path, text + INSIDE))["log_dirs"]["brokers"] if each["id"] == 1
    )
    for row in of_broker["log_dirs"]:
        assert (row["least_bytes"], row["most_bytes"], row["before"]) == (None, None, row["after"])


@st.composite
def jbods(draw: st.DrawFn) -> Spec:
    """Random specs with up to three log dirs per broker, some broken; some replicas have none, and brokers may join."""
    spec = draw(specs(rebalance=("all", "leaders", "none")))
    brokers, replicas = {}, []
    for broker in spec.cluster.brokers:
        sizes = draw(st.sampled_from((None, (10**9, 2 * 10**9, 3 * 10**9))))
        errors = draw(st.sampled_from(((None,) * 3, (None, STORAGE, None), (STORAGE,) * 3)))
        dirs = [LogDir(f"/d{at}", sizes and sizes[at], None, errors[at]) for at in range(draw(st.integers(1, 3)))]
        brokers[broker.id] = tuple(dirs)
    for topic in spec.cluster.topics:
        for row in topic.partitions:
            for broker in row.replicas:
                usable = [each.path for each in brokers[broker] if each.error is None]
                if usable and draw(st.integers(0, 9)):
                    path, size = draw(st.sampled_from(usable)), max(row.size_bytes - draw(st.integers(0, 1)), 0)
                    replicas.append(ReplicaDir(topic.name, row.id, broker, path, size, not draw(st.integers(0, 9))))
    ordered = tuple(sorted(replicas, key=lambda each: (each.topic, each.partition, each.broker)))
    added = tuple(replace(each, log_dirs=(LogDir("/n1"), LogDir("/n2"))) for each in spec.changes.add_brokers)
    return replace(
        spec,
        cluster=replace(spec.cluster, log_dirs=LogDirs(tuple(sorted(brokers.items())), ordered)),
        changes=replace(spec.changes, add_brokers=added),
        log_dirs=Tolerance.parse(draw(st.sampled_from(("0%", "10%", "60%")))),
    )


def lies(spec: Spec) -> Where:
    """The log dir of each replica today; a replica that is being moved counts in its new log dir."""
    return {(each.topic, each.partition, each.broker): each.path for each in spec.cluster.log_dirs.replicas}


def replayed(where: Mapping[tuple[str, int, int], str], steps: Iterable[Plan], back: bool = False) -> Where:
    """The log dir of each replica after these steps; a replica without a named log dir stays, or is left out if new."""
    found = dict(where)
    old, new = ("replicas", "replicas_before") if back else ("replicas_before", "replicas")
    paths = "log_dirs_before" if back else "log_dirs"
    for step in steps:
        name = (step["topic"], step["partition"])
        for broker in set(step[old]) - set(step[new]):
            found.pop((*name, broker), None)
        for broker, path in zip(step[new], step[paths], strict=True):
            if path != ANY:
                found[*name, broker] = path
    return found


@examples(40)
@given(jbods())
def test_every_replica_lies_in_one_log_dir_of_its_broker(spec: Spec) -> None:
    """Batch by batch: each replica is where the plan's tables say, in a log dir that its broker has and that works.

    Backwards every replica that was in a log dir is back in it. Windows hold, or the plan says which doesn't.
    """
    plan = plan_of(spec)
    assert [] == [error.message for error in VALIDATOR.iter_errors(plan)]
    steps = [step for batch in plan["batches"] for step in batch["partitions"]]
    before, after = lies(spec), replayed(lies(spec), steps)
    assert before == replayed(after, reversed(steps), back=True)

    planned = {broker["id"]: broker for broker in plan["log_dirs"]["brokers"]}
    usable = {(b, each["path"]) for b, row in planned.items() for each in row["log_dirs"] if each["error"] is None}
    held = {key: path for key, path in after.items() if key[2] in planned}
    assert set() == {(broker, path) for (_, _, broker), path in held.items()} - usable
    told = {(b, each["path"]): each["after"]["replicas"] for b, row in planned.items() for each in row["log_dirs"]}
    counts = Counter((broker, path) for (_, _, broker), path in held.items())
    assert told == {key: counts[key] for key in told}

    for row in planned.values():
        inside = [
            d["least_bytes"] <= d["after"]["size_bytes"] <= d["most_bytes"] for d in row["log_dirs"] if not d["error"]
        ]
        assert all(inside) == row["within"]
    named = [row["why"] for row in plan["balance"]["relaxed"] if row["window"] == "log_dirs"]
    assert len(named) == sum(not row["within"] for row in planned.values())


@examples(15)
@given(jbods())
def test_only_what_must_comes_or_moves(spec: Spec) -> None:
    """Log dirs don't change which brokers hold what; moves inside brokers are added up apart, and none is less."""
    plan, without = plan_of(spec), plan_of(replace(spec, log_dirs=Tolerance("none")))
    assert without["bound"] == plan["bound"]
    lists = {
        (p["topic"], p["partition"]): p["replicas"] for p in plan["partitions"] if p["reason"] != "balance_log_dirs"
    }
    assert {(p["topic"], p["partition"]): p["replicas"] for p in without["partitions"]} == lists
    dirs = plan["log_dirs"]
    moved = sum(move["size_bytes"] for move in dirs["moves"])
    assert moved == dirs["bytes_moved"] == sum(broker["bytes_moved"] for broker in dirs["brokers"])
    assert dirs["least_bytes_moved"] <= moved
    assert [each["elect"] for each in without["batches"] if each["elect"]] == [
        each["elect"] for each in plan["batches"] if each["elect"]
    ]


def test_moves_inside_brokers_alone(tmp_path: Path) -> None:
    """With `rebalance: none`, only log dirs change; the rollback restores them, and nothing is elected."""
    plan = plan_of(spec_of(tmp_path, TWO + INSIDE))
    files = templated_files.files(typed(plan))

    expected = {"topic": "a", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "any"]}
    moved = [{**expected, "log_dirs": ["/d2", "any"]}]
    other = [{**expected, "partition": 1, "replicas": [2, 1], "log_dirs": ["any", "/d2"]}]
    rows = json.loads(files["reassignment.json"])["partitions"]
    assert rows in (moved, other)
    back = json.loads(files["rollback.json"])["partitions"]
    assert [[path if path == "any" else "/d1" for path in row["log_dirs"]] for row in rows] == [
        row["log_dirs"] for row in back
    ]
    assert [[]] == [batch["elect"] for batch in plan["batches"]]
    assert {"partitions": []} == json.loads(files["preferred-replica.json"])
    assert (0, 39_000_000_000) == (plan["bound"]["bytes_moved"], plan["log_dirs"]["bytes_moved"])
    assert [] == json.loads(files["ansible/roles/kafka_reassign/files/leaders.json"])["unpreferred"]
    assert not [path for path in files if "unpreferred-first" in path]


def test_without_being_asked_log_dirs_are_not_told(tmp_path: Path) -> None:
    """Without a target for log dirs, the plan and its files don't mention them."""
    plan = plan_of(spec_of(tmp_path, TWO))
    files = templated_files.files(typed(plan))
    assert "log_dirs" not in plan
    assert b"log_dirs" not in files["reassignment.json"] + files["rollback.json"]
    assert {"log_dirs"} & {key for row in plan["partitions"] for key in row} == set()


def test_batches_and_their_time_count_what_moves_inside(tmp_path: Path) -> None:
    """Moves between log dirs keep the limit of 40 GB a batch, and their time follows the throttle."""
    even = "{replicas: [3], size: 30GB, log_dirs: [/d1]}"
    text = (
        "version: 1\ncluster:\n  name: x\n  brokers: [{id: 3, log_dirs: [/d1, /d2]}]\n"
        f"  topics: [{{name: a, partitions: [{even}, {even}, {even}, {even}]}}]\n{INSIDE}"
        "execution: {throttle: 10MB/s, batches: {bytes: 40GB}}\n"
    )
    plan = plan_of(spec_of(tmp_path, text))
    assert [(1, 3000), (1, 3000)] == [(len(b["partitions"]), b["seconds_at_throttle"]) for b in plan["batches"]]
    assert [150_000_000_000] * 2 == [batch["fullest_broker"]["peak_size_bytes"] for batch in plan["batches"]]


def test_a_throttle_that_producers_use_up_inside_a_broker_is_refused(tmp_path: Path) -> None:
    """A throttle is refused if producers write as fast to a replica that moves between log dirs."""
    text = TWO + INSIDE + "execution: {throttle: 10MB/s}\n"
    rates = text.replace("leader: 1}", "leader: 1, bytes_in: 10MB/s}")
    with pytest.raises(UnsafePlanError, match=r"10\.0 MB/s to the partitions that broker 1 moves between its log dirs"):
        plan_of(spec_of(tmp_path, rates))


def test_report_and_screen_tell_of_log_dirs(tmp_path: Path) -> None:
    """The report and the terminal show the log dirs and the bytes moved between them, and no change of leaders."""
    plan = plan_of(spec_of(tmp_path, TWO + INSIDE))
    told, shown = markdown.report(typed(plan)), io.StringIO()
    terminal.show_plan(typed(plan), Console(file=shown, width=200), detail="everything")
    for text in (told, shown.getvalue()):
        assert "Copies 39.0 GB (1 replica) from one log dir to another on 1 broker, the proven minimum." in " ".join(
            text.split()
        )
    assert "| `/d1` | 1 | 3 → 2 | 80.0 GB → 41.0 GB | 36.0 GB to 44.0 GB | 0 B | 39.0 GB |" in told
    assert "**Moves between log dirs of one broker**" in told
    assert "| `a-1` | 2, 1 | 1 | 39.0 GB | balance log dirs |" in told


def test_full_and_unknown_log_dirs_are_named() -> None:
    """A plan that fills a log dir above its room is refused; a broker that didn't answer is left out with a warning."""
    text = TWO + INSIDE
    cluster = LogDirs(
        ((1, (LogDir("/d1"), LogDir("/d2", None, 10), LogDir("/d3", None, None, STORAGE))),),
        tuple(ReplicaDir("a", number, 1, "/d1", size) for number, size in enumerate((40, 39, 1))),
    )
    spec = _parsed(text)
    with pytest.raises(UnsafePlanError, match="/d2 of broker 1 gets 39 B in batch 1, and has room for 10 B then"):
        plan_of(replace(spec, cluster=replace(spec.cluster, log_dirs=cluster)))
    (_, dirs), replicas = cluster.brokers[0], cluster.replicas
    roomy = LogDirs(((1, (dirs[0], LogDir("/d2", None, 39), dirs[2])),), replicas)
    plan = plan_of(replace(spec, cluster=replace(spec.cluster, log_dirs=roomy)))
    assert ["log dirs of broker 2 aren't planned: the log dirs there aren't known; Kafka chooses there"] == [
        warning for warning in plan["warnings"] if "log dir" in warning
    ]
    assert [{"id": 2, "why": "the log dirs there aren't known"}] == plan["log_dirs"]["left_out"]
    rows = plan["log_dirs"]["brokers"][0]["log_dirs"]
    keys = "error", "least_bytes", "most_bytes", "bytes_in", "bytes_out"
    assert [(None, 36, 44, 0, 39), (None, 36, 44, 39, 0), (STORAGE, None, None, 0, 0)] == [
        tuple(map(row.get, keys)) for row in rows
    ]


@pytest.mark.parametrize(("limits", "most"), [("", 70_000_000_000), ("limits: {disk_used: 90%}\n", 63_000_000_000)])
def test_a_log_dir_gets_no_more_than_it_may_hold(limits: str, most: int) -> None:
    """A window's upper end is at most the log dir's size, or the share of it that limits.disk_used allows."""
    dirs = "log_dirs: [{path: /d1, size: 70GB}, {path: /d2, size: 70GB}], capacity: {disk: 140GB}}"
    sized = TWO.replace("log_dirs: [/d1, /d2]}", dirs, 1)
    sized = sized.replace("{id: 2, log_dirs: [/d1, /d2]}", "{id: 2, " + dirs)
    wide = INSIDE.replace("10%", "90%")
    windows = [
        {each["most_bytes"] for row in plan_of(_parsed(text))["log_dirs"]["brokers"] for each in row["log_dirs"]}
        for text in (TWO + wide, sized + wide + limits)
    ]
    assert [{76_000_000_000}, {most}] == windows


def test_new_replicas_have_the_leaders_size() -> None:
    """A new replica is as large as the leader's, if replicas of a partition differ in size."""
    spec = _parsed(TWO.replace("{id: 2, log_dirs: [/d1, /d2]}]", "{id: 2}, {id: 3, log_dirs: [/d1]}]")
        + "changes: {replace_brokers: {2: 3}}\nbalance: {log_dirs: 10%}\n")  # fmt: skip
    known = LogDirs(
        ((1, (LogDir("/d1"),)), (2, (LogDir("/d1"),))),
        tuple(ReplicaDir("a", number, broker, "/d1", 100 * broker) for number in range(3) for broker in (1, 2)),
    )
    plan = plan_of(replace(spec, cluster=replace(spec.cluster, log_dirs=known)))
    (third,) = [row for row in plan["log_dirs"]["brokers"] if row["id"] == 3]
    assert [{"replicas": 3, "size_bytes": 300}] == [each["after"] for each in third["log_dirs"]]


def test_names_too_long_to_move_stay() -> None:
    """A replica with a very long name isn't moved: Kafka would rename its folder, and the disk refuses such a name."""
    name = "x" * 215
    spec = _parsed(TWO.replace("name: a", f"name: {name}") + INSIDE)
    assert [] == plan_of(spec)["log_dirs"]["moves"]


def test_places_of_a_real_cluster() -> None:
    """The log dirs and replicas of a real cluster's six brokers are read; a broker that is down is missing."""
    found = places((DATA / "kraft-4.1/kafka-log-dirs-describe.txt").read_text(), "l.txt")
    assert [1, 2, 3, 4, 5, 6] == [broker for broker, _ in found.brokers]
    assert len(found.replicas) == len({(each.topic, each.partition, each.broker) for each in found.replicas})
    down = places((DATA / "kraft-4.1/kafka-log-dirs-describe-broker-4-down.txt").read_text(), "l.txt")
    assert [1, 2, 3, 5, 6] == [broker for broker, _ in down.brokers]


def described(*brokers: tuple[int, Mapping[str, Any]]) -> str:
    """The output of kafka-log-dirs for brokers with these log dirs."""
    rows = [
        {
            "broker": broker,
            "logDirs": [{"logDir": path, "error": None, "partitions": [], **rest} for path, rest in dirs.items()],
        }
        for broker, dirs in brokers
    ]
    heading = "Querying brokers for log directories information\nReceived log directory information from brokers 1\n"
    return heading + json.dumps({"version": 1, "brokers": rows}) + "\n"


def replica(name: str, size: int, future: bool = False) -> Plan:
    """One replica in that output."""
    return {"partition": name, "size": size, "offsetLag": 0, "isFuture": future}


def test_futures_errors_and_room() -> None:
    """A future replica counts in its new log dir with its present size; errors and room are read, -1 is unknown."""
    text = described(
        (1, {"/b": {"partitions": [replica("a-b-1", 5), replica("c-0", 1)], "totalBytes": 9, "usableBytes": 4},
             "/a": {"partitions": [replica("a-b-1", 2, True)], "totalBytes": -1}, "/c": {"error": STORAGE}}),
    )  # fmt: skip
    dirs = (LogDir("/a"), LogDir("/b", 9, 4), LogDir("/c", None, None, STORAGE))
    replicas = (ReplicaDir("a-b", 1, 1, "/a", 5, True), ReplicaDir("c", 0, 1, "/b", 1))
    assert LogDirs(((1, dirs),), replicas) == places(text, "l.txt")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (described((1, {"any": {}})), "'any' isn't the path of a log dir"),
        (described((-1, {"/a": {}})), "-1 isn't a broker's id"),
        (described((1, {}), (1, {})), "1 is here twice"),
        (described((1, {"/a": {"error": 7}})), "7 isn't the name of an error"),
        (
            described((1, {"/a": {"partitions": [replica("a-1", 5)]}, "/b": {"partitions": [replica("a-1", 5)]}})),
            "broker 1 has a-1 in '/a' too; allowed: one log dir",
        ),
        (described((1, {"/a": {"partitions": [replica("a", 5)]}})), "'a' isn't topic-partition"),
    ],
)
def test_what_cannot_be_is_refused(text: str, message: str) -> None:
    """Impossible log dirs, brokers, errors and partitions are refused with their place in the JSON."""
    with pytest.raises(ImportStateError, match=r"^l\.txt:3:1: brokers") as caught:
        places(text, "l.txt")
    assert message in str(caught.value)


def test_a_list_that_differs_from_the_brokers_own_is_refused(tmp_path: Path) -> None:
    """Log dirs in the YAML that differ from the broker's own are refused, because a reassignment to them would fail."""
    (tmp_path / "l.txt").write_text(described((1, {"/a": {"partitions": [replica("t-0", 5)]}})))
    (tmp_path / "a.txt").write_text(
        "Topic: t\tPartitionCount: 1\n\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
    )
    text = (
        "version: 1\ncluster:\n  name: x\n  brokers: [{id: 1, log_dirs: [/a, /b]}]\n"
        "  state: {assignment: a.txt, sizes: l.txt}\nbalance: {log_dirs: 5%}\n"
    )
    with pytest.raises(SpecError, match=r"spec\.yaml:4:21: cluster\.brokers\[0\]\.log_dirs: broker 1 says .*are /a;"):
        spec_of(tmp_path, text)
    assert LogDirs(((1, (LogDir("/a"),)),), (ReplicaDir("t", 0, 1, "/a", 5),)) == (
        spec_of(tmp_path, text.replace(", /b]", "]")).cluster.log_dirs
    )


def _parsed(text: str) -> Spec:
    """The spec of this YAML text, read from a temporary file."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        return spec_of(Path(folder), text)
