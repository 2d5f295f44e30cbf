"""The throttles from before a run are read from Kafka's tools, kept in a file, and put back."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from role_files import loaded

output, throttles = loaded("module_utils/kafka_reassign_output"), loaded("module_utils/kafka_reassign_throttles")

LEADER, FOLLOWER = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
NO_THROTTLE = "This run has no throttle: that of an earlier run is taken off."
LEADERS, FOLLOWERS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"


def test_brokers_throttles_are_read_from_what_kafka_prints() -> None:
    """Kafka 4.3's lines give every live broker's own throttles, and no cluster default. Warnings may be in between."""
    text = (
        "Dynamic configs for broker 1 are:\n"
        "Dynamic configs for broker 2 are:\n[2026-11-30 03:00:00,123] WARN Connection to node 4 failed.\n"
        "  listener.name.internal.ssl.keystore.password=null sensitive=true synonyms={}\n"
        f"  {LEADER}=777 sensitive=false synonyms={{DYNAMIC_BROKER_CONFIG:{LEADER}=777}}\n"
        "Default configs for brokers in the cluster are:\n"
        f"  {FOLLOWER}=9 sensitive=false synonyms={{DYNAMIC_DEFAULT_BROKER_CONFIG:{FOLLOWER}=9}}\n"
    )
    assert {"1": {}, "2": {LEADER: "777"}} == output.broker_throttles(text)


def test_topics_throttles_are_read_from_what_kafka_prints() -> None:
    """Kafka 4.3's lines give topic ids, and values that may contain commas. Lines of partitions are ignored."""
    text = (
        "Topic: orders\tTopicId: 1xes\tPartitionCount: 3\tReplicationFactor: 3\tConfigs: "
        f"{LEADERS}=0:1,0:2,1:3,min.insync.replicas=1,{FOLLOWERS}=*\n"
        "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: \tLastKnownElr: \n"
        "Topic: plain\tTopicId: uGmY\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: \n"
        "Topic: old\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: segment.bytes=1073741824\n"
    )
    orders = {LEADERS: "0:1,0:2,1:3", FOLLOWERS: "*"}
    assert {"orders": ("1xes", orders), "plain": ("uGmY", {}), "old": ("", {})} == output.topics(text)


def test_a_describe_says_what_is_reassigned() -> None:
    """A described partition is being reassigned if Kafka adds columns for that."""
    text = (
        "\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1,2,4,3\tIsr: 1,2"
        "\tAdding Replicas: 4\tRemoving Replicas: 3\tElr: \tLastKnownElr: \n"
        "\tTopic: a\tPartition: 1\tLeader: 1\tReplicas: 3,1,2\tIsr: 1,2\tElr: \tLastKnownElr: \n"
    )
    assert {"a-0": [1, 2, 4]} == output.reassigned(text)
    assert {"a-0": (1, [1, 2, 4, 3], [1, 2]), "a-1": (1, [3, 1, 2], [1, 2])} == output.partitions(text)


@pytest.mark.parametrize(
    ("before", "now", "desired"),
    [
        ({}, {LEADER: "50", FOLLOWER: "50"}, {}),
        ({LEADER: "777"}, {LEADER: "50", FOLLOWER: "50"}, {LEADER: "777"}),
        ({LEADER: "777"}, {}, {LEADER: "777"}),
        ({LEADER: "777"}, {LEADER: "9", FOLLOWER: "80"}, {LEADER: "9"}),
        ({}, {}, {}),
    ],
)
def test_a_broker_gets_its_throttles_back(
    tmp_path: Path, before: dict[str, str], now: dict[str, str], desired: dict[str, str]
) -> None:
    """A broker's earlier throttles come back. One that is neither from before nor a run's rate is somebody else's."""
    record = throttles.Record(tmp_path / "throttles-1.json")
    record.see({"1": before}, {}, {})
    record.add_rate(50)
    record.add_rate(80)
    assert desired == record.desired_broker("1", now)


@pytest.mark.parametrize(
    ("now", "desired"),
    [
        ({LEADERS: "0:1,2:3", FOLLOWERS: "0:4"}, {LEADERS: "*"}),
        ({LEADERS: "0:1", FOLLOWERS: ""}, {LEADERS: "*"}),
        ({LEADERS: "*"}, {LEADERS: "*"}),
        ({}, {LEADERS: "*"}),
        ({LEADERS: "0:1,1:3"}, {LEADERS: "0:1,1:3"}),
        ({FOLLOWERS: "none"}, {LEADERS: "*", FOLLOWERS: "none"}),
    ],
)
def test_a_topic_gets_its_throttles_back(tmp_path: Path, now: dict[str, str], desired: dict[str, str]) -> None:
    """A list of only partitions that the plan moves is set by Kafka. Any other list is somebody else's and stays."""
    record = throttles.Record(tmp_path / "throttles-1.json")
    record.see({}, {"a": ("id", {LEADERS: "*"})}, {"a": [0, 2]})
    assert desired == record.desired_topic("a", now)


def test_what_an_earlier_run_saw_counts(tmp_path: Path) -> None:
    """The second run uses the first run's record, because the cluster now has the first run's throttles."""
    described: dict[str, Any] = {"a": ("id-a", {LEADERS: "*"}), "b": ("id-b", {})}
    first = throttles.Record(tmp_path / "throttles-1.json")
    first.see({"1": {LEADER: "777"}}, described, {"a": [0]})
    first.add_rate(50)
    first.save()
    assert stat.S_ISREG(first.path.stat().st_mode)

    later: dict[str, Any] = {"a": ("id-a", {LEADERS: "0:1"}), "b": ("id-b", {})}
    second = throttles.Record.found(tmp_path, later)
    second.see({"1": {LEADER: "50"}, "4": {}}, later, {"a": [2], "b": [1]})
    assert {"1": {LEADER: "777"}, "4": {}} == second.brokers
    assert {"configs": {LEADERS: "*"}, "partitions": [0, 2]} == second.topics["a"]
    assert {"configs": {}, "partitions": [1]} == second.topics["b"]

    # This broker was down when the first run read the others, and got the run's throttle later.
    second.see({"9": {LEADER: "50", FOLLOWER: "6"}}, {}, {})
    assert {FOLLOWER: "6"} == second.brokers["9"]

    # If topics have the same names but other ids, it is another cluster.
    assert None is throttles.Record.found(tmp_path, {"a": ("id-x", {}), "b": ("id-y", {})})
    second.brokers.clear()
    second.topics.clear()
    second.save()
    assert [] == list(tmp_path.iterdir())


def test_a_topic_made_anew_keeps_no_throttles_of_the_one_before(tmp_path: Path) -> None:
    """A topic that was deleted and created again has another id, so the old throttles aren't restored."""
    record = throttles.Record(tmp_path / "throttles-1.json")
    record.see({"1": {}}, {"a": ("id-a", {LEADERS: "*"}), "b": ("id-b", {LEADERS: "*"})}, {"a": [0], "b": [0]})
    record.forget_recreated({"a": ("id-later", {LEADERS: "0:1"}), "b": ("id-b", {LEADERS: "0:1"})})
    assert {} == record.desired_topic("a", {LEADERS: "0:1"})
    assert {LEADERS: "*"} == record.desired_topic("b", {LEADERS: "0:1"})


@pytest.mark.parametrize(
    ("now", "desired", "options"),
    [
        ({}, {}, []),
        ({LEADER: "5"}, {LEADER: "5"}, []),
        ({LEADER: "5", FOLLOWER: "5"}, {LEADER: "7"}, ["--add-config", f"{LEADER}=7", "--delete-config", FOLLOWER]),
        ({}, {LEADERS: "0:1,0:2", FOLLOWERS: "*"}, ["--add-config", f"{FOLLOWERS}=*,{LEADERS}=[0:1,0:2]"]),
    ],
)
def test_kafka_is_told_the_difference(now: dict[str, str], desired: dict[str, str], options: list[str]) -> None:
    """Only differences are changed. A value with commas is in brackets, and only existing settings are deleted."""
    assert options == throttles.alteration(now, desired)


class Cluster:
    """Answers as Kafka's tools do, and keeps the calls."""

    def __init__(self, tmp_path: Path, brokers: str = "", fails: bool = False) -> None:
        target = tmp_path / "target.json"
        target.write_text('{"partitions": [{"topic": "next", "partition": 0, "replicas": [4]}]}')
        self.given = {"journal_dir": str(tmp_path), "target": str(target), "origin": ""}
        self.given["tools"] = self.tools = {"reassign": ["reassign"]}
        self.brokers, self.fails, self.calls = brokers, fails, list[list[str]]()

    def lists(self) -> list[dict[str, list[int]]]:
        """The lists of the next batch."""
        return [{"next-0": [4]}, {}]

    def states(self) -> dict[str, list[list[int]]]:
        """The plan's lists of each partition."""
        return {"a-0": [[1], [2]], "b-0": [[1], [2]]}

    def required(self, tool: str, *options: str) -> str:
        """A call that must succeed."""
        self.calls.append([tool, *options])
        if self.fails:
            raise throttles.ToolError("no node")
        return self.brokers

    def run(self, argv: list[str]) -> tuple[int, str, str]:
        """Any other call."""
        self.calls.append([word for word in argv if not word.startswith("/")])
        return 0, "Clearing topic-level throttles on topics a,b", ""


def described(**lists: str) -> str:
    """What kafka-topics prints for topics with these throttled leaders."""
    return "".join(
        f"Topic: {topic}\tTopicId: id-{topic}\tPartitionCount: 1\tReplicationFactor: 1\t"
        f"Configs: {f'{LEADERS}={value}' if value else ''}\n\tTopic: {topic}\tPartition: 0\tLeader: 1\t"
        "Replicas: 1\tIsr: 1\tElr: \tLastKnownElr: \n"
        for topic, value in lists.items()
    )


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """The folder with the record of a run that moves a, b and next. Topic b had a throttle before."""
    record = throttles.Record(tmp_path / "throttles-1.json")
    topics = {"a": ("id-a", {}), "b": ("id-b", {LEADERS: "*"}), "next": ("id-next", {})}
    record.see({"1": {}, "2": {LEADER: "777"}}, topics, {topic: [0] for topic in topics})
    record.add_rate(50)
    record.save()
    return tmp_path


def test_a_batch_has_a_record_although_another_run_has_removed_it(recorded: Path) -> None:
    """With a record, no tool is called. If another run has removed it, it is written again."""
    cluster = Cluster(recorded)
    cluster.given |= {"plan_id": "abc", "throttle_bytes_per_sec": 50, "before": True, "plan_dir": str(recorded)}
    target, plan = cluster.given["target"], str(recorded / "reassignment.json")
    throttles.Throttles(cluster).keep_record()
    assert [] == cluster.calls
    (recorded / "throttles-1.json").unlink()
    answers = {"topics": described(next=""), "configs": "Dynamic configs for broker 1 are:\n"}
    wanted = {target: {"next-0": [4]}, plan: {"next-0": [4], "next-1": [4]}}
    cluster.lists = lambda: [wanted[cluster.given["target"]], {"next-0": [1], "next-1": [1]}]  # type: ignore[method-assign]
    cluster.required = lambda tool, *_: answers[tool]  # type: ignore[method-assign]
    throttles.Throttles(cluster).keep_record()
    record = throttles.Record.found(recorded, output.topics(answers["topics"]))
    assert ({"1": {}}, [0, 1]) == (record.brokers, record.topics["next"]["partitions"])
    assert target == cluster.given["target"]


@pytest.mark.parametrize(
    ("configs", "left"),
    [
        (f"{FOLLOWERS}=0:4,{LEADERS}=0:1,0:2", 0),
        (f"{FOLLOWERS}=0:4,0:3,{LEADERS}=0:1,0:2", 2),
        (f"{FOLLOWERS}=*,{LEADERS}=*", 2),
        (f"{LEADERS}=0:1,0:2", 1),
    ],
)
def test_throttles_of_a_run_whose_record_is_on_another_host(tmp_path: Path, configs: str, left: int) -> None:
    """Throttles of only this plan's moves are removed, with their brokers' rates. Others count as from before."""
    text = described(next="").replace("Configs: ", f"Configs: {configs}")
    live = f"Dynamic configs for broker 1 are:\n{_rate('30')}Dynamic configs for broker 9 are:\n{_rate('777')}"
    answers = {"topics": text, "configs": live}
    cluster = Cluster(tmp_path)
    cluster.given |= {"plan_id": "abc", "throttle_bytes_per_sec": 50, "before": False}
    cluster.lists = lambda: [{"next-0": [1, 2, 4]}, {"next-0": [1, 2]}]  # type: ignore[method-assign]
    cluster.required = lambda tool, *_: answers[tool]  # type: ignore[method-assign]
    said = throttles.Throttles(cluster).begin()
    assert (0 if left else 1) == sum(each.startswith("Another host's run of this plan throttled") for each in said)
    if not left:
        record = throttles.Record.found(tmp_path, output.topics(text))
        assert {"1": {}, "9": {LEADER: "777"}} == record.brokers
        assert {"next": {"configs": {}, "partitions": [0]}} == record.topics
    cluster.given["before"] = True
    throttles.Throttles(cluster).begin()
    assert left == len(throttles.Record.found(tmp_path, output.topics(text)).topics["next"]["configs"])


def lifted(cluster: Cluster, text: str) -> list[str]:
    """What is said when throttles are lifted before a batch."""
    return list(throttles.Throttles(cluster).lift(text, output.broker_throttles(cluster.brokers)))


def test_before_a_batch_the_topic_that_is_done_is_lifted(recorded: Path) -> None:
    """A call lifts the finished topic's throttle. The batch's own topic stays, because --execute sets its lists."""
    cluster, again = Cluster(recorded), Cluster(recorded)
    assert [] == lifted(cluster, described(a="0:1", b="*", next="0:1"))
    alter = ["--alter", "--entity-type", "topics", "--entity-name", "a", "--delete-config", LEADERS]
    assert [["configs", *alter]] == cluster.calls
    assert [] == lifted(again, described(a="", b="*", next="0:1"))
    assert [] == again.calls


def test_a_rate_that_somebody_sets_between_batches_is_put_back_at_the_end(recorded: Path) -> None:
    """--execute replaces rates, and lists of its topics: they are recorded and told once. Those of runs aren't."""
    brokers = f"Dynamic configs for broker 1 are:\n{_rate('99')}Dynamic configs for broker 2 are:\n{_rate('50')}"
    seen = described(a="", b="*", next="0:1")
    told = [lifted(Cluster(recorded, brokers), seen) for _ in range(2)]
    puts_back = "This run may replace it, and puts it back at its end."
    assert [[f"Somebody else has set {LEADER}=99 on broker 1 meanwhile. {puts_back}"], []] == told
    record = throttles.Record.found(recorded, output.topics(seen))
    assert [{LEADER: "99"}, {LEADER: "777"}] == [record.desired_broker(each, {LEADER: "50"}) for each in ("1", "2")]
    told = [lifted(Cluster(recorded), described(a="", b="*", next="*")) for _ in range(2)]
    assert [[f"Somebody else has set {LEADERS}=* on topic next meanwhile. {puts_back}"], []] == told
    record = throttles.Record.found(recorded, output.topics(seen))
    assert {LEADERS: "*"} == record.desired_topic("next", {LEADERS: "0:1"})


def test_several_topics_are_lifted_at_once(recorded: Path) -> None:
    """One call of Kafka's --verify clears several topics, and then the earlier throttles are set again."""
    brokers = "".join(f"Dynamic configs for broker {each} are:\n  {LEADER}=50 sensitive=false\n" for each in (1, 2))
    cluster = Cluster(recorded, brokers + "".join(f"Dynamic configs for broker {each} are:\n" for each in (3, 4)))
    lifted(cluster, described(a="0:1", b="0:1", next=""))
    cleared, *again = cluster.calls
    assert "--verify" in cleared
    assert [("2", f"{LEADER}=777"), ("b", f"{LEADERS}=*")] == [(call[5], call[7]) for call in again]


@pytest.mark.parametrize("before", ["50", ""])
def test_a_new_rate_turns_nothing_around(recorded: Path, monkeypatch: pytest.MonkeyPatch, before: str) -> None:
    """A rollback's move keeps its target at the new rate, because Kafka never completes a reversed move."""
    cluster, executed = Cluster(recorded), []
    listed = "Current partition reassignments:\nnext-0: replicas: 2,1,4. adding: 2. removing: 4.\n"
    answers = {
        "configs": f"Dynamic configs for broker 1 are:\n{_rate(before)}",
        "topics": described(next="0:1"),
        "reassign": listed,
    }
    cluster.given["throttle_bytes_per_sec"] = 80
    monkeypatch.setattr(cluster, "required", lambda tool, *_: answers[tool])
    cluster.verified = lambda: (0, "Reassignment of partition next-0 is still in progress.\n", "")  # type: ignore[attr-defined]
    keep = lambda argv: executed.append(json.loads(Path(argv[-1]).read_text())) or (0, "", "")  # noqa: E731
    monkeypatch.setattr(cluster, "run", keep)
    assert ["The throttle is 80 bytes per second from now on."] == throttles.Throttles(cluster).set_rate()
    assert [[{"topic": "next", "partition": 0, "replicas": [2, 1]}]] == [each["partitions"] for each in executed]


def test_a_new_rate_is_one_of_log_dirs_too(recorded: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The new rate applies to a move inside a broker, which only --verify shows, and where a log dir is refused."""
    cluster, target = Cluster(recorded), tmp_path / "target.json"
    row = {"topic": "next", "partition": 0, "replicas": [1, 2], "log_dirs": ["/d2", "any"]}
    target.write_text(json.dumps({"partitions": [row]}))
    live = f"Dynamic configs for broker 1 are:\n{_rate('50')}"
    answers = {"configs": live, "topics": described(next="0:1"), "reassign": "No partition reassignments found.\n"}
    cluster.given |= {"throttle_bytes_per_sec": 80, "target": str(target)}
    monkeypatch.setattr(cluster, "required", lambda tool, *_: answers[tool])
    cluster.verified = lambda: (0, "Reassignment of replica next-0-1 is still in progress.\n", "")  # type: ignore[attr-defined]
    executed: list[list[str]] = []
    monkeypatch.setattr(cluster, "run", lambda argv: executed.append(argv) or (0, "", ""))
    assert ["The throttle is 80 bytes per second from now on."] == throttles.Throttles(cluster).set_rate()
    assert ["--throttle", "80", "--replica-alter-log-dirs-throttle", "80"] == executed[0][-6:-2]

    answers["configs"] = live.replace("=50", "=99")
    refused = "Successfully started partition reassignment for next-0\nError: Failed to alter dir for next-0-1\n"
    monkeypatch.setattr(cluster, "run", lambda argv: (1, refused, ""))
    assert f"Somebody else has set {LEADER}=99 on broker 1" in throttles.Throttles(cluster).set_rate()[0]
    fails = 'Current partition replica assignment\n\n{"version":1}\n\nthe option during rollback\nError: no\n'
    monkeypatch.setattr(cluster, "run", lambda argv: (1, fails, ""))
    with pytest.raises(throttles.ToolError, match=r"^the throttle couldn't be changed: Error: no$"):
        throttles.Throttles(cluster).set_rate()


def test_throttles_that_cannot_be_lifted_now_stay(recorded: Path) -> None:
    """If lifting fails, the end of the run puts throttles back. While somebody moves partitions, none is touched."""
    cluster = Cluster(recorded, fails=True)
    [said] = lifted(cluster, described(a="0:1", b="*"))
    assert "The throttles of topics that are done stay until the end of the run: no node" == said
    text = described(a="0:1", b="*").replace("\tElr", "\tAdding Replicas: 7\tElr")
    moving = Cluster(recorded)
    assert [] == lifted(moving, text)
    assert [] == moving.calls


@pytest.mark.parametrize(("ask", "said"), [("restore", {"said": [], "moving": []}), ("set_rate", [NO_THROTTLE])])
def test_throttles_that_a_broker_shows_late_are_put_back_too(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, ask: str, said: object
) -> None:
    """The first answer is older than the batch. The second reading finds its throttles, the third finds none."""
    monkeypatch.setattr(throttles, "_APART_SECONDS", 0)
    behind, informed, right = ([described(a=a, b=b, next="")] for a, b in (("", "*"), ("0:1", "0:1"), ("", "*")))
    heads = "Dynamic configs for broker 1 are:\nDynamic configs for broker 2 are:\n"
    live = [f"{heads}  {LEADER}={rate} sensitive=false\n" for rate in (777, 50, 777)]
    answers = {"topics": [*behind, *informed, *right], "configs": live, "reassign": [""]}
    cluster = Cluster(recorded)

    def required(tool: str, *options: str) -> str:
        cluster.calls.append([tool, *options])
        return "" if "--alter" in options else answers[tool].pop(0)

    monkeypatch.setattr(cluster, "required", required)
    # Finding the record needs the topics' ids, which takes the first answer.
    cluster.given |= {"although_moving": False, "throttle_bytes_per_sec": 0}
    assert said == getattr(throttles.Throttles(cluster), ask)()
    assert [] == list(recorded.glob("throttles-*"))
    altered = [call[5:] for call in cluster.calls if "--alter" in call]
    assert [
        ["2", "--add-config", f"{LEADER}=777"],
        ["a", "--delete-config", LEADERS],
        ["b", "--add-config", f"{LEADERS}=*"],
    ] == altered
    assert {"topics": [], "configs": [], "reassign": []} == answers


def test_a_partition_of_the_plan_that_somebody_else_moves_keeps_no_throttle_of_ours(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The topic keeps its mover's throttle and its record; all others are put back. A move of ours keeps everything."""
    monkeypatch.setattr(throttles, "_APART_SECONDS", 0)
    cluster, now = Cluster(recorded), {1: "50", 2: "777"}
    listed = {"to": "3"}

    def required(tool: str, *options: str) -> str:
        cluster.calls.append([tool, *options])
        if "--alter" in options and tool == "configs":
            now.update({1: ""} if "brokers" in options else {})
        rows = (f"Dynamic configs for broker {broker} are:\n{_rate(rate)}" for broker, rate in now.items())
        lists = f"Current partition reassignments:\nb-0: replicas: {listed['to']},1. adding: 3. removing: 1.\n"
        return {"topics": described(a="", b="0:1", next=""), "configs": "".join(rows), "reassign": lists}[tool]

    monkeypatch.setattr(cluster, "required", required)
    cluster.given["although_moving"] = False
    said = "Somebody else moves partitions of b: the throttles of these topics stay meanwhile."
    assert {"said": [said], "moving": []} == throttles.Throttles(cluster).restore()
    altered = [call[5:] for call in cluster.calls if "--alter" in call]
    assert [["1", "--delete-config", LEADER]] == altered
    kept = json.loads(next(recorded.glob("throttles-*")).read_text())
    assert ({}, ["b"]) == (kept["brokers"], [*kept["topics"]])
    listed["to"] = "2"
    assert ["b-0"] == throttles.Throttles(cluster).restore()["moving"]


def _rate(value: str) -> str:
    return f"  {LEADER}={value} sensitive=false\n" if value else ""
