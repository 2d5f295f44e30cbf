"""The role's checks of a plan's partitions and of reasons not to begin: pure functions."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from role_files import loaded

guards, output = loaded("module_utils/kafka_reassign_guards"), loaded("module_utils/kafka_reassign_output")
Cluster = loaded("module_utils/kafka_reassign_cluster").Cluster
ToolError = loaded("module_utils/kafka_reassign_cluster").ToolError

# a-0 is at its target, a-1 as found, a-2 has the right brokers in another order, a-3 is elsewhere, a-4 is gone.
DESCRIBED = {
    "a-0": (4, [4, 2], [4, 2]),
    "a-1": (1, [1, 2], [1, 2]),
    "a-2": (2, [2, 1], [2, 1]),
    "a-3": (5, [5, 6], [5, 6]),
}
TARGET = {f"a-{number}": [4, 2] for number in range(5)}
ORIGIN = {f"a-{number}": [1, 2] for number in range(5)}


def test_each_partition_of_a_batch_has_one_standing() -> None:
    """Each partition is done, pending in any order, elsewhere with its list, or gone."""
    assert {
        "done": ["a-0"],
        "pending": ["a-1", "a-2"],
        "moving": [],
        "strangers": ["a-3 (replicas 5,6)", "a-4 (gone)"],
    } == guards.standing(TARGET, ORIGIN, DESCRIBED, {}, [], {})


def test_what_moves_or_lies_in_another_log_dir_is_not_done() -> None:
    """A partition with a running reassignment, or with a replica in another log dir, isn't done."""
    target, states = {"a-0": [4, 2], "a-1": [1, 2]}, {"a-0": [[1, 2], [2, 4]]}
    stands = guards.standing(target, ORIGIN, DESCRIBED, {"a-0": [4, 2]}, {"a-1"}, states)
    assert {"done": [], "pending": ["a-1"], "moving": ["a-0"], "strangers": []} == stands
    stands = guards.standing(target, ORIGIN, DESCRIBED, {"a-0": [4, 5]}, {"a-1"}, states)
    assert ([], ["a-0 (somebody else moves it to 4,5)"]) == (stands["moving"], stands["strangers"])


@pytest.mark.parametrize(
    ("expected", "racks", "said"),
    [
        ([1, 2], {1: "r0", 2: "r1", 3: "r9"}, ""),
        (
            [1, 2, 7, 5],
            {1: "r0", 2: "r1"},
            "Not live: brokers 5, 7. Nothing was started; start them, or make a new plan without them.",
        ),
        (
            [1],
            {1: "r1", 2: "r1"},
            "as it is now. They are broker 1 in r1, planned for r0",
        ),
    ],
)
def test_brokers_are_live_and_in_their_racks(expected: list[int], racks: dict[int, str], said: str) -> None:
    """Brokers must be live and in their planned racks. One without a planned rack may be in any rack."""
    found = guards.absent(expected, racks, {"1": "r0", "2": "r1"})
    assert (said in found, bool(said)) == (True, bool(found))


def test_log_dirs_are_there_and_have_no_error() -> None:
    """Log dirs are read from kafka-log-dirs. Each missing or broken one is named with its broker."""
    rows = (
        '{"logDir":"/a","error":null,"partitions":[]},{"logDir":"/b","error":"KafkaStorageException","partitions":[]}'
    )
    warned = '{"level":"WARN","message":"Connection to node 4 could not be established."}'
    usable = output.usable_dirs(f'Querying\n{warned}\n{{"version":1,"brokers":[{{"broker":1,"logDirs":[{rows}]}}]}}\n')
    assert {1: ["/a"]} == usable
    assert "" == guards.unusable_dirs({"1": ["/a"]}, usable)
    said = guards.unusable_dirs({"1": ["/b", "/a"], "2": ["/a"]}, usable)
    assert said.endswith("give it to planner adopt. They are /b of broker 1, /a of broker 2")


def test_letters_that_java_does_not_print_are_told() -> None:
    """Without a locale, Java prints ? for ö. Then the racks and log dirs are right, and the locale is wrong."""
    hint = "Kafka's tools print ? for letters beyond ASCII there: set LC_ALL to C.UTF-8 in kafka_reassign_environment"
    assert guards.absent([1], {1: "k?ln"}, {"1": "köln"}).endswith(f"broker 1 in k?ln, planned for köln. {hint}")
    assert guards.unusable_dirs({"1": ["/dät"]}, {1: ["/d?t"]}).endswith(f"They are /dät of broker 1. {hint}")
    assert "LC_ALL" not in guards.absent([1], {1: "bonn"}, {"1": "köln"})
    assert "" == guards.absent([1], {1: "köln"}, {"1": "köln"})


STATES = {"a-0": [[1, 2], [1, 4], [4, 2]], "a-1": [[1, 2], [4, 2]]}


def test_only_the_plans_own_reassignments_may_run() -> None:
    """A running reassignment is the plan's own if it ends at one of its steps, in any order of the replicas."""
    running = output.listed(
        "Current partition reassignments:\n"
        "a-0: replicas: 4,1,2. adding: 4. removing: 2.\n"
        "a-1: replicas: 7,1,2. adding: 7. removing: 1.\n"
        "b-0: replicas: 2,1.\n"
    )
    assert {"a-0": [4, 1], "a-1": [7, 2], "b-0": [2, 1]} == running
    assert "" == guards.foreign({"a-0": [4, 1]}, STATES)
    assert guards.foreign(running, STATES).endswith("The partitions are a-1, b-0")


def test_what_was_turned_around_never_completes() -> None:
    """If a replica that is being added is also to be removed, Kafka 4.3 keeps adding it and never completes."""
    text = "a-0: replicas: 4,2,3,1. adding: 1. removing: 1.\na-1: replicas: 4,2,1. adding: 4. removing: 1.\n"
    assert ["a-0"] == output.turned_around(text + "a-2: replicas: 4,2,1. adding: 4.\n")
    assert "cancels them. The partitions are a-0" in guards.never_complete(["a-0"])
    assert "" == guards.never_complete([])


def test_partitions_are_on_the_plans_way() -> None:
    """Each step of the plan is accepted. Only a rollback accepts the right brokers in another order."""
    on_the_way = {"a-0": (1, [2, 1], []), "a-1": (1, [4, 2], [])}
    assert guards.strangers(STATES, on_the_way, [], any_order=False).endswith(
        "It is a-0 (replicas 2,1, planned from 1,2)"
    )
    assert "" == guards.strangers(STATES, on_the_way, [], any_order=True)
    assert "" == guards.strangers(STATES, on_the_way, ["a-0"], any_order=False)
    gone = guards.strangers(STATES, {}, [], any_order=True)
    assert gone.startswith("2 partitions aren't as the plan was made from. Nothing was started; roll back what was")
    assert "They are a-0 (gone), a-1 (gone). If topics were deleted, planner resume plans the rest, and planner" in gone


@pytest.mark.parametrize(
    ("replicas", "goes_on"),
    [([2, 3, 1], True), ([3, 2, 4], True), ([3, 2, 1], False), ([1, 3, 2], False), ([4, 3, 2], False)],
)
def test_a_canceled_step_can_be_started_anew(replicas: list[int], goes_on: bool) -> None:
    """After a cancel, Kafka lists the remaining brokers first, in the target's order. Only this order is accepted."""
    states = {"a-0": [[3, 1, 2], [2, 3, 4]]}
    assert goes_on == ("" == guards.strangers(states, {"a-0": (3, replicas, [])}, [], any_order=False))


def test_partitions_keep_their_leaders_and_isr() -> None:
    """Partitions need a leader and a full ISR, except for waiting ones, replicas being copied and leaving brokers."""
    described = {"a-0": (None, [1, 2], []), "a-1": (1, [1, 2, 4], [1]), "b-0": (1, [1, 3], [1])}
    assert "It is a-0" in guards.without_leader(described, STATES, set())
    assert "" == guards.without_leader(described, STATES, {"a-0"})
    said = guards.behind(described, {"a-1": [4]}, [3], {"a-0"})
    assert said.startswith("1 partition is under-replicated. Nothing was started;")
    assert said.endswith("It is a-1 (replicas 1,2,4, in sync 1)")
    assert "" == guards.behind(described, {"a-1": [4, 2]}, [3], {"a-0"})


def test_a_broker_that_is_not_live_is_in_no_list_to_come() -> None:
    """A partition's current list counts, not its first one. A partition that waits for a leader isn't refused."""
    described = {"a-0": (1, [1, 2], [1]), "a-1": (1, [1, 2], [1])}
    assert "" == guards.kept_on_dead(described, {}, STATES, [1, 4, 2], set())
    assert guards.kept_on_dead(described, {}, STATES, [2, 4], set()).endswith("It is a-0 (broker 1)")
    assert "" == guards.kept_on_dead({**described, "a-0": (4, [4, 1], [4])}, {}, STATES, [2, 4], set())
    assert "" == guards.kept_on_dead(described, {"a-0": [1, 4]}, STATES, [2, 4], set())
    assert "" == guards.kept_on_dead(described, {}, STATES, [2, 4], {"a-0"})


@pytest.mark.parametrize(
    ("there", "unmade", "otherwise"),
    [
        ({}, ["new"], ["more"]),
        ({"more-0": [1, 2]}, ["new", "more"], []),
        ({"more-0": [1, 2], "more-1": [3, 1], "new-0": [2, 3]}, [], []),
        ({"more-0": [1, 2], "more-1": [3, 2], "new-0": [3, 2]}, [], ["new", "more"]),
        ({"more-0": [1, 2], "more-1": [3, 1], "more-2": [3, 1], "new-0": [2, 3]}, [], ["more"]),
    ],
)
def test_new_partitions_are_missing_or_as_planned(
    there: dict[str, list[int]], unmade: list[str], otherwise: list[str]
) -> None:
    """A topic has either its old partitions, or the planned ones with the planned replicas."""
    new: dict[str, Any] = {
        "new": {"partitions_before": 0, "partitions": 1, "replicas": {"0": "2,3"}},
        "more": {"partitions_before": 1, "partitions": 2, "replicas": {"1": "3,1"}},
    }
    described = {name: (replicas[0], replicas, replicas) for name, replicas in there.items()}
    assert {"unmade": unmade, "made_otherwise": otherwise} == guards.new_partitions(new, described)


def test_leaders_are_told_as_the_plan_writes_them() -> None:
    """Leaders are written as topic, number and leader. The leader may be None."""
    assert {"a.b-c 0 4", "a.b-c 12 None"} == guards.leading({"a.b-c-0": (4, [4], [4]), "a.b-c-12": (None, [1], [])})


def test_disks_are_summed_by_broker() -> None:
    """All partitions of all log dirs count. A broker without log dirs is unknown, not empty."""
    dirs = [
        {
            "logDir": path,
            "error": None,
            "partitions": [{"partition": "a-0", "size": size}, {"partition": "b-1", "size": 1}],
        }
        for path, size in (("/x", 2_000_000), ("/y", 1_000_000))
    ]
    rows = [{"broker": 4, "logDirs": dirs}, {"broker": 5, "logDirs": []}]
    used = output.used_bytes("Querying\n" + json.dumps({"version": 1, "brokers": rows}))
    assert {4: 3_000_002} == used
    assert "broker 4 holds 3.0 MB, its limit is 2.9 MB" == guards.overfull(used, {"5": 1, "4": 2_900_000})
    assert "" == guards.overfull(used, {"4": 3_000_002})
    assert "broker 4 holds 95.0 GB, its limit is 80.0 GB" == guards.overfull({4: 95 * 10**9}, {"4": 80 * 10**9})


@pytest.mark.parametrize("rows", [[], [{"broker": 5, "logDirs": []}]])
def test_a_disk_that_nobody_tells_of_is_no_empty_disk(rows: list[object]) -> None:
    """A live broker with a limit that isn't in the answer, or has no log dirs in it, holds the run."""
    full = {"logDir": "/x", "error": None, "partitions": [{"partition": "a-0", "size": 2_000_000}]}
    text = json.dumps({"version": 1, "brokers": [{"broker": 4, "logDirs": [full]}, *rows]})
    given = {"tools": {"log_dirs": ["log_dirs"]}, "lag_limits": {}, "disk_limits": {"4": 1_000_000, "5": 1, "6": 1}}
    cluster = Cluster(SimpleNamespace(params=given, run_command=lambda *_, **__: (0, text, "")))
    full_disk = "broker 4 holds 2.0 MB, its limit is 1.0 MB"
    assert {"disk": full_disk, "no_answer": "kafka-log-dirs lists no log dir of broker 5"} == cluster.limits({4, 5})


def test_lag_of_members_whose_names_have_spaces_counts() -> None:
    """Client and group ids may have spaces, and a topic's name may be a number: no row is left out or misread."""
    rows = (("my group 7", "orders", 0, 10, 17, 7, "app 1-8f", "app 1"), ("my group 7", "7", 1, 2, 32, 30, "b-2", "b"))
    line = "{:<12} {:<8} {:<4} {:<6} {:<6} {:<5} {:<20} /10.0.0.7 {:<10}\n"
    assert 37 == output.lag("\nGROUP TOPIC PARTITION\n" + "".join(line.format(*row) for row in rows), "my group 7")


def test_lag_is_summed_by_consumer_group() -> None:
    """Read from Kafka 4.3's lines. A partition without a committed offset adds none; a group without any is unknown."""
    text = (
        "\nGROUP    TOPIC   PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID  HOST       CLIENT-ID\n"
        "billing  orders  0          10              17              7    c-1-8f3a     /10.0.0.7  c-1\n"
        "billing  orders  1          20              25              5    -            -          -      \n"
        "billing  orders  2          -               25              -    -            -          -\n"
    )
    assert 12 == output.lag(text, "billing")
    assert None is output.lag("Error: Consumer group 'billing' does not exist.", "billing")
    said = guards.lagging({"billing": 12, "audit": None, "fine": 3}, {"billing": 11, "audit": 5, "fine": 3})
    assert (
        "the lag of consumer group audit is unknown, consumer group billing is 12 records behind, its limit is 11"
        == said
    )


def test_what_refuses_writes_without_some_brokers() -> None:
    """Partitions at min.insync.replicas with one of these brokers in sync, and those in sync nowhere else."""
    described = {
        "a-0": (1, [1, 2, 3], [1, 2, 3]),
        "a-1": (2, [1, 2], [2]),
        "b-0": (3, [3, 4], [3, 4]),
        "c-0": (None, [1], []),
    }
    scarce = {"a-1": described["a-1"], "b-0": described["b-0"]}
    assert {"a-1"} == guards.refusing(scarce, described, {2}, {})
    assert {"b-0"} == guards.refusing(scarce, described, {1, 3}, {})
    assert set() == guards.refusing(scarce, described, {1}, {})
    assert {"a-0", "a-1", "b-0"} == guards.refusing({}, described, {1, 2, 3, 4}, {})


def test_a_partition_with_replicas_to_spare_refuses_writes_if_several_stop() -> None:
    """Three replicas in sync of which two must be aren't scarce, but two of them must not stop together."""
    text = "Topic: a\tTopicId: x\tPartitionCount: 1\tConfigs: min.insync.replicas=2,segment.bytes=1\n"
    text += "Topic: b\tTopicId: y\tPartitionCount: 1\tConfigs: \n"
    least = output.min_insync(text)
    described = {"a-0": (1, [1, 4, 2], [1, 4, 2]), "b-0": (1, [1, 4, 2], [1, 4, 2]), "a-1": (2, [2, 1], [2])}
    assert {"a": 2} == least
    assert {"a-0"} == guards.refusing({}, described, {1, 4}, least)
    assert set() == guards.refusing({}, described, {1}, least)


def test_a_partition_with_fewer_replicas_than_required_refuses_writes_without_one_of_them() -> None:
    """Since Kafka 3.7 all replicas are enough, and Kafka doesn't list such a partition, so it is found here."""
    described = {"a-0": (1, [1, 2], [1, 2]), "a-1": (2, [2, 3], [2])}
    assert {"a-0"} == guards.refusing({}, described, {1}, {"a": 3})
    assert set() == guards.refusing({}, described, {3}, {"a": 3})


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ((0, "ClusterId: c\nCurrentVoters:          [1, 2]\n", ""), [1, 2]),
        ((127, "", "not found"), []),
        ((1, "", "UnsupportedVersionException: The broker does not support DESCRIBE_QUORUM"), []),
        ((1, "", "TimeoutException: Timed out"), None),
    ],
)
def test_controllers_that_do_not_answer_are_not_taken_for_none(
    answer: tuple[int, str, str], found: list[int] | None
) -> None:
    """With ZooKeeper or old tools there are no controllers to ask; any other error is one."""
    given = {"tools": {"quorum": ["quorum"]}}
    cluster = Cluster(SimpleNamespace(params=given, run_command=lambda *_, **__: answer))
    if found is None:
        with pytest.raises(ToolError, match="kafka-metadata-quorum describe: TimeoutException"):
            cluster.quorum()
    else:
        assert found == cluster.quorum()


def test_what_brokers_lead_that_others_could() -> None:
    """If a partition's last replica in sync stops, no other broker can lead it, so it doesn't count."""
    described = {"a-0": (1, [1, 2], [1, 2]), "a-1": (1, [1, 2], [1]), "a-2": (2, [1, 2], [1, 2])}
    assert ["1 a-0"] == guards.led_by(described, {1})
    assert ["2 a-2"] == guards.led_by(described, {2})
    assert [] == guards.led_by(described, {1, 2})


def test_a_move_that_completes_between_two_answers_is_no_stranger(tmp_path: Path) -> None:
    """The controller may have completed a reassignment that a lagging broker still shows. It still counts as ours."""
    wanted, before = {"topic": "a", "partition": 0, "replicas": [3, 2, 4]}, [3, 1, 2]
    for name, row in {"target": wanted, "origin": wanted | {"replicas": before}}.items():
        (tmp_path / name).write_text(json.dumps({"partitions": [row]}))
    (tmp_path / "states.json").write_text(json.dumps({"a-0": ["3,1,2", "3,2,4"]}))
    moving = "Replicas: 3,2,4,1\tIsr: 1,2,3\tAdding Replicas: 4\tRemoving Replicas: 1"
    answers = {
        "brokers": "".join(f"h:9092 (id: {broker} rack: a isFenced: false) -> (\n" for broker in range(1, 5)),
        "reassign": "No partition reassignments found.\n",
        "topics": f"Topic: a\tTopicId: x\tConfigs: \n\tTopic: a\tPartition: 0\tLeader: 3\t{moving}\tElr: \n",
    }
    given = {"planned_log_dirs": {}, "racks": {}, "direction": "apply", "allow_under_replicated": False}
    given |= {"expected_brokers": [1, 2, 3, 4], "leaving_brokers": [], "plan_dir": str(tmp_path)}
    given |= {"target": str(tmp_path / "target"), "origin": str(tmp_path / "origin")}
    given |= {"tools": {each: [each] for each in answers}}
    module = SimpleNamespace(params=given, run_command=lambda argv, **_: (0, answers[argv[0]], ""))
    found = Cluster(module).check()
    assert ("", ["a-0"]) == (found["problem"], found["moving"])
    # It completes after the tool has asked a broker where replicas are, and before it asks the controller what moves.
    answers["reassign"] = "Current partition reassignments:\na-0: replicas: 3,2,4,1. adding: 4. removing: 1.\n"
    answers["topics"] = answers["topics"].replace("\tAdding Replicas: 4\tRemoving Replicas: 1", "")
    found = Cluster(module).check()
    assert ("", ["a-0"]) == (found["problem"], found["moving"])


def test_a_throttle_file_that_cannot_be_read_changes_nothing(tmp_path: Path) -> None:
    """If the throttle file can't be read, the run keeps its throttle and says why."""
    given = {"tools": {}, "throttle_file": str(tmp_path), "throttle_bytes_per_sec": 7}
    rate, said = Cluster(SimpleNamespace(params=given)).wanted_rate()
    assert (7, True) == (rate, "Is a directory" in said)


def test_a_rollback_goes_on_without_brokers_that_are_down(tmp_path: Path) -> None:
    """A broker that was down from the start is no reason to hold. Lists with it are named before they are needed."""
    wanted = {"apply": {}, "rollback": {}, "unpreferred": ["a 0 2"]}
    (tmp_path / "leaders.json").write_text(json.dumps(wanted))
    answers = {
        "brokers": "".join(f"h:9092 (id: {broker} rack: a isFenced: false) -> (\n" for broker in (1, 2)),
        "topics": "\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1,2,9\tIsr: 1,2\tElr: \n",
    }
    given = {"target": "", "origin": "", "leaving_brokers": [], "known": [], "before": False, "direction": "rollback"}
    given |= {"expected_brokers": [1, 2, 9], "disk_limits": {}, "lag_limits": {}, "plan_dir": str(tmp_path)}
    given |= {"tools": {each: [each] for each in answers}}

    def run(argv: list[str], **_: object) -> tuple[int, str, str]:
        return 0, "" if "--under-min-isr-partitions" in argv else answers[argv[0]], ""

    for down, reasons in (([9], set()), ([], {"live_brokers"})):
        cluster = Cluster(SimpleNamespace(params={**given, "down_brokers": down}, run_command=run))
        assert (reasons, down) == (cluster.look()["reasons"].keys(), cluster.leaders()["needed"])


def test_what_a_batch_adds_replicas_to_although_it_is_cordoned() -> None:
    """A broker with all log dirs cordoned, if the replica isn't there yet; and a log dir that the batch names."""
    row = {"topic": "a", "partition": 0, "replicas": [1, 2, 3]}
    dirs = row | {"log_dirs": ["/d1", "any", "any"]}
    described = {"a-0": (1, [1, 2], [1, 2])}
    also = ", and the batch would add replicas there"

    def said(row: dict[str, Any], cordons: dict[str, str], applied: bool = True) -> str:
        return str(guards.cordoned([row], described, cordons, applied))

    assert ["", "", f"broker 3 is cordoned{also}"] == [said(row, {each: "*"}) for each in "123"]
    assert "" == said(row, {"3": "*"}, applied=False) == said(row, {"1": "/d1", "3": "/d1"}) == said(dirs, {"1": "/d2"})
    assert f"broker 1, broker 3 are cordoned{also}" == said(dirs, {"1": "*", "3": "*"})
    assert f"log dir /d1 of broker 1 is cordoned{also}" == said(dirs, {"1": "/d2,/d1"}, applied=False)
