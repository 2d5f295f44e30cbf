"""How the role starts a change in a cluster, and how it calls tools of Kafka that lack an option."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from role_files import loaded

changes = loaded("module_utils/kafka_reassign_changes")

STARTED = (0, "Successfully started partition reassignment for a-0\n", "")
SHOWN = "\tTopic: a\tPartition: 0\tLeader: 2\tReplicas: {},2\tIsr: 2\tElr: \n"
DOWN = (1, "", "Error: Timed out waiting for a node assignment. Call: incrementalAlterConfigs\n")
KEEPS, RATE = "--disallow-replication-factor-change", "--throttle"


def unknown(option: str) -> tuple[int, str, str]:
    """What a tool of Kafka 3.9 prints if it doesn't know an option."""
    name = "joptsimple.UnrecognizedOptionException"
    return 1, "", f'Exception in thread "main" {name}: {option} is not a recognized option\n\tat joptsimple...\n'


class Cluster:
    """Gives the answers one after the other, and keeps the calls."""

    def __init__(self, folder: Path, *answers: tuple[int, str, str], **given: Any) -> None:
        self.given = {
            "plan_dir": str(folder),
            "journal_dir": str(folder),
            "target": "t.json",
            "throttle_bytes_per_sec": 50,
            "down_brokers": [],
            "with_log_dirs": False,
            "execute_options": [],
            "keeps_replication_factor": True,
            "name": "Batch 01 of 2",
            "command_config": "",
        } | given
        self.tools = {"reassign": ["reassign"], "election": ["election"], "topics": ["topics"]}
        self.answers, self.calls = list(answers), list[list[str]]()
        (folder / "throttles-1.json").touch()

    def run(self, argv: list[str]) -> tuple[int, str, str]:
        """The next answer."""
        self.calls.append(argv)
        return self.answers.pop(0)

    def asked(self, tool: str, *options: str) -> str:
        """The output of the next answer."""
        return self.run([*self.tools[tool], *options])[1]

    def lists(self) -> list[dict[str, list[int]]]:
        """The lists of the batch."""
        return [{"a-0": [1], "a-1": [2]}, {}]


def test_a_batch_starts_with_one_call(tmp_path: Path) -> None:
    """One call has the throttle, the operator's own options, and the option that refuses other replication factors."""
    cluster = Cluster(tmp_path, STARTED, execute_options=["--timeout", "5"])
    assert {"started": True, "changed": True, "said_by_kafka": ""} == changes.start(cluster)
    execute = ["reassign", "--execute", "--reassignment-json-file", "t.json"]
    assert [[*execute, RATE, "50", "--timeout", "5", KEEPS]] == cluster.calls


def test_what_kafka_says_has_no_stack_trace(tmp_path: Path) -> None:
    """If Kafka refuses a batch, its sentence is reported without the stack trace."""
    said = "Error: Unknown broker id 4\nAdminCommandFailedException: Unknown broker id 4"
    cluster = Cluster(tmp_path, (1, f"{said}\n\tat org.apache.kafka.tools.A.b(A.java:9)\n", ""))
    assert {"started": False, "changed": False, "said_by_kafka": said, "msg": said} == changes.start(cluster)


def test_what_kafka_says_is_not_lost_among_lines_of_the_jvm(tmp_path: Path) -> None:
    """If the JVM and the client print much before and after Kafka's sentence, it is reported nevertheless."""
    warning = "WARN Connection to node -1 (kafka-1/10.0.0.1:9092) could not be established.\n" * 9
    said = "Error: org.apache.kafka.common.errors.PolicyViolationException: not on Fridays"
    heap = "[0.8s][info][gc,heap,exit] Heap\n" * 30
    started = changes.start(Cluster(tmp_path, (1, f"\n{said}\n\tat some.Class\n{heap}", warning)))
    assert f" ... {said} ... " in started["said_by_kafka"]
    assert len(started["said_by_kafka"]) < 800


def test_newer_tools_start_a_batch_of_older_brokers(tmp_path: Path) -> None:
    """Brokers before Kafka 4.1 refuse the option that keeps replication factors, so a run tries it only once."""
    now = "Current partition replica assignment\n\n{}\n\n"
    now += "Save this to use as the --reassignment-json-file option during rollback\n"
    refused = "a-0: The broker does not support the AllowReplicationFactorChange option for the API."
    cluster = Cluster(tmp_path, (1, now + refused, ""), STARTED, STARTED)
    assert (True, True) == (changes.start(cluster)["started"], changes.start(cluster)["started"])
    assert [True, False, False] == [KEEPS in call for call in cluster.calls]
    cluster = Cluster(tmp_path, (1, f"{now}Error: refused", ""), keeps_replication_factor=False)
    assert "Error: refused" == changes.start(cluster)["said_by_kafka"]


def test_a_client_without_tls_is_told_so(tmp_path: Path) -> None:
    """Without TLS, Kafka's client takes the brokers' TLS for an answer of a gigabyte and reports too little memory."""
    cluster = Cluster(tmp_path, (1, "", "Java heap space\njava.lang.OutOfMemoryError: Java heap space\n\tat x\n"))
    said = changes.start(cluster)["said_by_kafka"]
    assert "Java heap space, such as when brokers require TLS and kafka_reassign_command_config doesn't say so" == said


def test_a_batch_without_a_throttle_or_with_another_replication_factor(tmp_path: Path) -> None:
    """A batch without a throttle or with another replication factor gets neither of the two options."""
    cluster = Cluster(tmp_path, STARTED, throttle_bytes_per_sec=0, keeps_replication_factor=False)
    assert changes.start(cluster)["started"]
    assert [["reassign", "--execute", "--reassignment-json-file", "t.json"]] == cluster.calls


def test_log_dirs_have_a_throttle_of_their_own(tmp_path: Path) -> None:
    """Moves between log dirs have a throttle, too. If a broker is down, --execute can't set it."""
    cluster = Cluster(tmp_path, STARTED, with_log_dirs=True)
    changes.start(cluster)
    assert ("--replica-alter-log-dirs-throttle", "50") in pairwise(cluster.calls[0])
    cluster = Cluster(tmp_path, DOWN, STARTED, with_log_dirs=True, down_brokers=[4])
    changes.start(cluster)
    assert "--replica-alter-log-dirs-throttle" not in cluster.calls[1]
    assert ("--timeout", "60000") in pairwise(cluster.calls[1])


def test_with_a_broker_down_the_throttle_is_set_first(tmp_path: Path) -> None:
    """The first call sets the throttle and fails at that broker; the second starts. Another error starts nothing."""
    cluster = Cluster(tmp_path, DOWN, STARTED, down_brokers=[4])
    assert changes.start(cluster)["started"]
    throttled, started = cluster.calls
    assert (RATE in throttled, "--additional" in throttled) == (True, False)
    assert (RATE in started, "--additional" in started) == (False, True)
    refused = Cluster(tmp_path, (1, "", "Error: not authorized\n"), down_brokers=[4])
    assert {
        "started": False,
        "changed": False,
        "said_by_kafka": "Error: not authorized",
        "msg": "Error: not authorized",
    } == changes.start(refused)


def test_what_kafka_says_of_a_batch_that_does_not_start_is_kept(tmp_path: Path) -> None:
    """What Kafka prints is kept, whatever the exit code, if the batch doesn't start."""
    cluster = Cluster(tmp_path, (0, "Cannot execute because there is an existing partition assignment.\n", ""))
    found = changes.start(cluster)
    assert (False, False) == (found["started"], found["changed"])
    assert "Cannot execute because there is an existing partition assignment." == found["said_by_kafka"]


@pytest.mark.parametrize(
    ("out", "said"),
    [
        (f"{STARTED[1]}Error: Failed to alter dir for a-0-1", "Error: Failed to alter dir for a-0-1"),
        (
            "Error: Error reassigning partition(s):\na-1: refused",
            "Error: Error reassigning partition(s):\na-1: refused",
        ),
    ],
    ids=["a log dir", "a partition"],
)
def test_a_batch_of_which_kafka_refuses_a_part_is_no_batch_that_was_not_started(
    tmp_path: Path, out: str, said: str
) -> None:
    """If Kafka refuses a log dir or a partition, the others move: the result says so, with the refusal alone."""
    before = "Current partition replica assignment\n\n{}\n\nSave this to use as the option during rollback\n"
    found = changes.start(Cluster(tmp_path, (1, f"{before}{out}", "")))
    assert (False, True, True) == (found["started"], found["changed"], found["partly"])
    assert said == found["said_by_kafka"]


@pytest.mark.parametrize(
    ("code", "out", "said"),
    [
        (
            1,
            "Error: Error reassigning partition(s):\na-0: Call(callName=x, tries=1) timed out at 7\na-1: refused",
            "Error: ",
        ),
        (
            1,
            "Error: Error reassigning partition(s):\na-0: The request timed out.\na-1: The request timed out.",
            "Error: ",
        ),
        (-9, "", "Kafka's tool ended with exit code -9"),
        (
            143,
            "Current partition replica assignment\n\n{}\n\nSave this to use as the option during rollback\n",
            "Kafka's",
        ),
    ],
)
def test_a_start_without_an_answer_may_be_one(tmp_path: Path, code: int, out: str, said: str) -> None:
    """If the tool was killed, or the controller gave no answer, partitions may move: it doesn't count as refused."""
    found = changes.start(Cluster(tmp_path, (code, out, "")))
    assert (False, True) == (found["started"], found["changed"])
    assert "said_by_kafka" not in found
    assert found["msg"].startswith(said)


def test_a_batch_that_kafka_refuses_whole_was_not_started(tmp_path: Path) -> None:
    """If Kafka refuses every partition, for example for lack of an ACL, nothing moves."""
    out = (
        "Error: Error reassigning partition(s):\na-0: Cluster authorization failed.\na-1: Cluster authorization failed."
    )
    found = changes.start(Cluster(tmp_path, (1, out, "")))
    assert (False, False, None) == (found["started"], found["changed"], found.get("partly"))


def test_an_option_that_the_tool_does_not_know_is_left_out(tmp_path: Path) -> None:
    """An option that the tool doesn't know is tried once a run, and then left out."""
    cluster = Cluster(tmp_path, unknown(KEEPS[2:]), STARTED, STARTED)
    assert changes.start(cluster)["started"]
    assert changes.start(cluster)["started"]
    assert [True, False, False] == [KEEPS in call for call in cluster.calls]


@pytest.mark.parametrize(
    ("answers", "options"),
    [
        ([(0, "", "")], [["--command-config", "c"]]),
        ([unknown("command-config"), (0, "", "")], [["--command-config", "c"], ["--admin.config", "c"]]),
    ],
)
def test_the_election_tool_is_given_the_clients_properties(
    tmp_path: Path, answers: list[tuple[int, str, str]], options: list[list[str]]
) -> None:
    """By the name that its version has for the option."""
    cluster = Cluster(tmp_path, *answers, command_config="c")
    found = changes.elect(cluster)
    assert (True, False, 0, []) == (found["elected"], found["changed"], found["elections"], found["said"])
    election = ["election", "--election-type", "preferred", "--path-to-json-file", "t.json"]
    assert [[*election, *each] for each in options] == cluster.calls


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("a-0", "Batch 01 of 2: 1 leader was elected."),
        ("a-0, b.c-12, d-1", "Batch 01 of 2: 3 leaders were elected."),
    ],
)
def test_leaders_that_are_elected_are_a_change(tmp_path: Path, names: str, said: str) -> None:
    """Elected leaders count as a change. Those that led before don't."""
    text = f"Successfully completed leader election (PREFERRED) for partitions {names}\n"
    cluster = Cluster(tmp_path, (0, f"{text}Valid replica already elected for partitions e-0, e-1\n", ""))
    elected = {"elected": True, "elections": len(names.split()), "changed": True, "said": [said], "said_by_kafka": ""}
    assert elected == changes.elect(cluster)
    assert [] == [word for word in cluster.calls[0] if "config" in word]


def test_elections_that_fail_are_told_in_the_tools_words(tmp_path: Path) -> None:
    """If no leader was elected, the tool's own words are reported."""
    failed = Cluster(tmp_path, (1, "", "Not authorized to perform leader election\n"))
    assert {
        "elected": False,
        "elections": 0,
        "changed": False,
        "said": [],
        "msg": "Not authorized to perform leader election",
        "said_by_kafka": "Not authorized to perform leader election",
    } == changes.elect(failed)


def test_leaders_that_cannot_be_elected_are_named(tmp_path: Path) -> None:
    """Each partition is named once with its reason, although Kafka 4 repeats it inside a stack trace."""
    name = "org.apache.kafka.common.errors.PreferredLeaderNotAvailableException"
    error = f"Error completing leader election (PREFERRED) for partition: {{}}: {name}: The leader was not available.\n"
    out = "Successfully completed leader election (PREFERRED) for partitions d-1\n" + error.format("b.c-12")
    err = "1 replica(s) could not be elected\n\tat org.apache.kafka.tools.LeaderElectionCommand\n\tSuppressed: "
    failed = changes.elect(Cluster(tmp_path, (1, out, f"{err}{error.format('b.c-12')}{error.format('a-0')}")))
    because = "(The leader was not available)"
    assert (False, 1) == (failed["elected"], failed["elections"])
    assert f"2 of its leaders couldn't be elected: b.c-12 {because}, a-0 {because}" == failed["said_by_kafka"]


def test_a_dead_preferred_leader_holds_no_rollback_up(tmp_path: Path) -> None:
    """A leader that isn't elected because its broker is down is reported. Any other failure still fails."""
    why = "org.apache.kafka.common.errors.PreferredLeaderNotAvailableException: The preferred leader was not available."
    failed = 1, f"Error completing leader election (PREFERRED) for partition: a-0: {why}\n", ""
    led = f"{failed[1]}Successfully completed leader election (PREFERRED) for partitions b-1\n"
    both = Cluster(tmp_path, (1, led, ""), (0, SHOWN.format(9), ""), down_brokers=[9])
    said = ": 1 leader was elected; without its preferred leader, which isn't live: a-0."
    assert [True] == [each.endswith(said) for each in changes.elect(both)["said"]]
    for first, elected in ((9, True), (1, False)):
        shown = 0, SHOWN.format(first), ""
        found = changes.elect(Cluster(tmp_path, failed, shown, down_brokers=[9]))
        assert (elected, 0) == (found["elected"], found["elections"])
        assert ([] == found["said"]) != elected
    assert not changes.elect(Cluster(tmp_path, failed))["elected"]


class Throttled:
    """Throttles of a run that moves topics a and b. Setting them fails if `fails`."""

    def __init__(self, topics: str, fails: bool = False) -> None:
        self.topics, self.fails = dict.fromkeys(topics), fails
        self.seen: dict[str, Any] = {}

    def record(self) -> Throttled:
        """The record, which has the topics."""
        return self

    def set_rate(self) -> list[str]:
        """Sets the rate."""
        if self.fails:
            raise changes.ToolError("no node")
        return ["The throttle is 70."]


@pytest.mark.parametrize(
    ("throttled", "configs", "said"),
    [
        (Throttled("ab"), "", "Somebody has removed the throttle of what moves. It is set again. The throttle is 70."),
        (
            Throttled("ab", fails=True),
            "",
            "Somebody has removed the throttle of what moves, and it isn't set again yet: no node",
        ),
        (Throttled(""), "", ""),
        (Throttled("ab"), "leader.replication.throttled.replicas=0:1", ""),
    ],
)
def test_a_throttle_that_somebody_has_removed_is_set_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, throttled: Throttled, configs: str, said: str
) -> None:
    """A cancel by hand may remove all throttles. `--tags unthrottle` empties the record too: nothing is set then."""
    monkeypatch.setattr(changes, "Throttles", lambda cluster: throttled)
    cluster = Cluster(tmp_path)
    cluster.wanted_rate = lambda: (70, "")  # type: ignore[attr-defined]
    text = f"Topic: a\tTopicId: x\tConfigs: \nTopic: b\tTopicId: y\tConfigs: {configs}\n"
    assert said == " ".join(changes.throttle_again(cluster, text, ["a-0", "b-1"]))
    assert (70 if said else 50) == cluster.given["throttle_bytes_per_sec"]
    cluster.given["throttle_bytes_per_sec"] = 0
    assert [] == changes.throttle_again(cluster, text, ["a-0", "b-1"])
    assert [] == changes.throttle_again(Cluster(tmp_path), text, [])
