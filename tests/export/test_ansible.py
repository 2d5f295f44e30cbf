"""Real Ansible runs the generated playbooks against stand-ins for Kafka's tools."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fake_kafka_tools
import pytest
from plan_documents import Document, change, document, typed
from playbooks import Playbooks, Run

from planner.export import output_folder, templated_files
from planner.report import run_journal

pytestmark = pytest.mark.ansible

TOOLS = (
    "kafka-reassign-partitions",
    "kafka-leader-election",
    "kafka-broker-api-versions",
    "kafka-topics",
    "kafka-log-dirs",
    "kafka-metadata-quorum",
    "kafka-configs",
    "kafka-consumer-groups",
)

# a-0 takes two batches and gets another leader; a-1 changes its order; a-2 gets a replica; b-0 needs an election.
ORIGIN = {"a-0": [1, 2, 9], "a-1": [2, 3], "a-2": [3, 1], "b-0": [2, 3]}
LEADERS = {"a-0": 1, "a-1": 2, "a-2": 3, "b-0": 3}
TARGET = {"a-0": [4, 2, 3], "a-1": [3, 2], "a-2": [3, 1, 4], "b-0": [2, 3]}
STEP = {"a-0": [1, 2, 3], "a-1": [2, 3], "a-2": [3, 1, 4], "b-0": [2, 3]}


def plan(bin_dir: Path) -> Document:
    """A plan of three batches: first steps of a-0 and a-2; the rest of a-0, and a-1; only an election."""
    elect = change("b", 0, [2, 3], [2, 3], leader=3)
    moves = [change("a", p, ORIGIN[f"a-{p}"], TARGET[f"a-{p}"]) for p in range(3)]
    first = [change("a", p, ORIGIN[f"a-{p}"], STEP[f"a-{p}"]) for p in (0, 2)]
    second = [change("a", p, STEP[f"a-{p}"], TARGET[f"a-{p}"]) for p in (0, 1)]
    execution = {"throttle_bytes_per_sec": 50_000_000, "kafka_bin_dir": str(bin_dir)}
    cluster = {"name": "{{ x }}", "bootstrap_servers": ["h{{ 1 }}'\":9092", "h2:9092"], "sizes_known": True}
    return document([*moves, elect], [first, second, [elect]], execution=execution, cluster=cluster)


@dataclass(frozen=True)
class Site:
    """An output folder, and the stand-in cluster that its inventory names."""

    folder: Path
    bin_dir: Path

    @property
    def cluster(self) -> Document:
        """The stand-in's state."""
        return json.loads((self.bin_dir / "cluster.json").read_text())

    def set_cluster(self, **values: Any) -> None:
        """Replace parts of the stand-in's state."""
        (self.bin_dir / "cluster.json").write_text(json.dumps(self.cluster | values))

    def replicas(self) -> dict[str, list[int]]:
        """Replica lists by partition."""
        return {name: partition["replicas"] for name, partition in self.cluster["partitions"].items()}

    def leaders(self) -> dict[str, int]:
        """Leaders by partition."""
        return {name: partition["leader"] for name, partition in self.cluster["partitions"].items()}

    def calls(self, option: str) -> int:
        """How often a tool was called with this option."""
        return sum(option in call for call in self.cluster["calls"])

    @property
    def playbooks(self) -> Playbooks:
        """The folder's playbooks."""
        return Playbooks(self.folder / "ansible", self.folder.parent / "home")

    def play(self, playbook: str, *options: str) -> Run:
        """Run a playbook of the folder."""
        return self.playbooks.play(playbook, *options)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A plan's folder, and the cluster as the plan found it."""
    return staged(tmp_path, plan)


def staged(tmp_path: Path, planned: Callable[[Path], Document]) -> Site:
    """The folder of a plan, and the cluster as the plan found it. The tools' path needs quoting."""
    bin_dir = staged_tools(tmp_path)
    partitions = {name: {"replicas": ORIGIN[name], "leader": LEADERS[name]} for name in ORIGIN}
    cluster = {"brokers": [1, 2, 3, 4, 9], "partitions": partitions, "throttle": None, "polls": 2}
    (bin_dir / "cluster.json").write_text(json.dumps(cluster | {"calls": [], "lost": []}))
    output_folder.write(tmp_path / "out", templated_files.files(typed(planned(bin_dir))))
    return Site(tmp_path / "out", bin_dir)


def staged_tools(tmp_path: Path) -> Path:
    """Writes the stand-ins for Kafka's tools."""
    bin_dir = tmp_path / "bin {{ 1 + 1 }} 'x' \"y\" # z"
    bin_dir.mkdir()
    for tool in TOOLS:
        fake_kafka_tools.stage(bin_dir / f"{tool}.sh")
    return bin_dir


def said(site: Site) -> list[str]:
    """The sentences in the only journal."""
    [journal] = (site.folder.parent / "home" / ".local" / "state" / "kafka_reassign").glob("*.jsonl")
    return [entry.said for entry in run_journal.entries(journal.read_bytes(), journal.name)]


def at(state: dict[str, list[int]], **running: Document) -> dict[str, Document]:
    """Partitions with the replica lists of `state`, each led by its first replica, updated with `running`."""
    return {
        name: {"replicas": replicas, "leader": replicas[0]} | running.get(name.replace("-", "_"), {})
        for name, replicas in state.items()
    }


@pytest.mark.parametrize("playbook", ["apply", "verify", "rollback"])
def test_syntax(site: Site, playbook: str) -> None:
    """Ansible reads each playbook without a warning."""
    run = site.play(playbook, "--syntax-check")
    assert (0, False) == (run.code, "WARNING" in run.output), run.output


def test_lint(site: Site) -> None:
    """ansible-lint's production profile finds nothing."""
    ended = site.playbooks.tool("ansible-lint", "--profile", "production", "--offline")
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_module_is_documented(site: Site) -> None:
    """ansible-doc prints every option of the role's module."""
    shown = site.playbooks.tool("ansible-doc", "-t", "module", "-M", "roles/kafka_reassign/library", "kafka_reassign")
    assert 0 == shown.returncode, shown.stderr
    assert [] == [
        name for name in ("target", "stop_file", "expected_brokers", "copied_bytes") if name not in shown.stdout
    ]


def test_a_hold_is_said_and_ends_the_run_when_it_lasts(site: Site) -> None:
    """If another broker is down than the check saw, nothing is started, and the playbook can be run again."""
    site.set_cluster(polls=1)
    given = {"kafka_reassign_guard_command": ["sh", "-c", "echo too late; exit 4"], "kafka_reassign_hold_seconds": 1}
    held = site.play("apply", "-e", json.dumps(given | {"kafka_reassign_guard_seconds": 1}))
    assert (2, 0) == (held.code, site.calls("--execute")), held.output
    assert "HELD, Before batch 01: the guard command ends with exit code 4: too late." in held.text
    assert "Stopped before batch 01: held for" in held.text
    stopped = re.fullmatch("The run stopped at batch 01: held for [0-9]+ s: (.*)", said(site)[-2])
    assert stopped is not None
    reason = "the guard command ends with exit code 4: too late."
    assert f"{reason} Run the playbook again to go on, or rollback.yml to go back." == stopped[1]
    unknown = site.play("apply", "-e", json.dumps({"kafka_reassign_reactions": {"disk": "stop"}}))
    assert (2, 0) == (unknown.code, site.calls("--execute"))
    assert "kafka_reassign_reactions: disk: stop isn't possible; allowed: batches, command," in unknown.text
    assert ORIGIN == site.replicas()


def test_apply_and_apply_again(site: Site) -> None:
    """The first run reaches lists and leaders, and clears the throttle. The second run changes nothing."""
    first = site.play("apply")
    assert (0, 5) == (first.code, first.changed), first.output
    assert TARGET == site.replicas()
    assert {"a-0": 4, "a-1": 3, "a-2": 3, "b-0": 2} == site.leaders()
    assert None is site.cluster["throttle"]
    assert "h{{ 1 }}'\":9092,h2:9092" == site.cluster["bootstrap"]
    second = site.play("apply", "-e", "kafka_reassign_bootstrap_servers=h3:9092")
    assert (0, 0, "h3:9092") == (second.code, second.changed, site.cluster["bootstrap"]), second.output
    assert (2, 2) == (site.calls("--execute"), site.calls("--throttle"))
    assert [] == list((site.folder.parent / "home").glob("kafka_reassign.*"))
    kept = site.folder.parent / "home" / ".local" / "state" / "kafka_reassign"
    assert [] == list(kept.glob("throttles-*"))
    journal = min(kept.glob("*-apply-*.jsonl"))
    said = [entry.said for entry in run_journal.entries(journal.read_bytes(), journal.name)]
    one, two, three = (f"Batch {number} of 3" for number in ("01", "02", "03"))
    elected = [f"{two}: 2 leaders were elected.", f"{three}: 1 leader was elected."]
    assert [f"{one} began.", f"{one} ended", f"{two} began.", f"{two} ended", *elected] == [
        line.partition(" after")[0] for line in said if line.startswith("Batch")
    ]
    starts = [int(line.partition("were started ")[2].partition(" ")[0]) for line in said if "were started" in line]
    assert [True, True] == [each <= 6 for each in starts]
    # The role's plugin has no compiled copy. `planner check` would find it, and nobody would have reviewed it.
    assert [] == [path for path in site.folder.rglob("*") if path.suffix == ".pyc"]


def test_a_tool_that_fails_is_asked_again(site: Site) -> None:
    """Earlier throttles are read even if a tool fails at first, as it does for seconds after a broker dies."""
    site.set_cluster(failing={"kafka-configs": 2})
    run = site.play("apply", "--tags", "reassign")
    assert 0 == run.code, run.output
    assert 2 == run.text.count("FAILED - RETRYING: [localhost]: Record the existing throttles")
    assert TARGET == site.replicas()


def test_partition_past_a_batch_stays(site: Site) -> None:
    """A partition that a later batch has moved isn't moved back by an earlier batch."""
    site.set_cluster(partitions=at(TARGET | {"a-1": ORIGIN["a-1"]}))
    run = site.play("apply")
    assert 0 == run.code, run.output
    assert (TARGET, 1) == (site.replicas(), site.calls("--execute"))


def test_failed_batch_clears_the_throttle(site: Site) -> None:
    """A batch that doesn't reach its lists fails the run, no further batch starts, and the throttle is cleared."""
    site.set_cluster(lost=["a-2"])
    run = site.play("apply")
    assert (2, 1) == (run.code, site.calls("--execute")), run.output
    assert None is site.cluster["throttle"]
    assert "Batch 01 isn't complete." in run.text
    assert "Not where they should be: a-2 (replicas 3,1)." in run.text
    stopped = (
        "The run stopped at batch 01: a-2 (replicas 3,1). Run the playbook again to go on, or rollback.yml to go back."
    )
    assert (stopped, True) == (said(site)[-2], stopped in run.text)


def test_a_broker_that_lags_is_asked_again(site: Site) -> None:
    """A broker that still shows the old replicas doesn't fail the batch."""
    site.set_cluster(lag=2)
    run = site.play("apply")
    assert (0, 2) == (run.code, site.calls("--execute")), run.output
    assert TARGET == site.replicas()


def test_a_broker_that_lags_for_long_fails_the_batch(site: Site) -> None:
    """If a broker still shows the old replicas after six more questions, the batch counts as given up."""
    site.set_cluster(lag=7)
    run = site.play("apply")
    assert (2, 1) == (run.code, site.calls("--execute")), run.output
    assert "Batch 01 isn't complete." in run.text
    assert "Not where they should be: a-0 (replicas 1,2,9), a-2 (replicas 3,1)." in run.text


def test_verify_reads_only(site: Site) -> None:
    """verify.yml fails with the count until the plan is reached, then passes. It starts nothing."""
    early = site.play("verify")
    assert 2 == early.code, early.output
    assert "0 of 3 partitions are where reassignment.json wants them" in early.text
    site.set_cluster(partitions=at(TARGET), throttle="1")
    late = site.play("verify")
    assert (0, 0, "1") == (late.code, late.changed, site.cluster["throttle"]), late.output
    assert {"kafka-reassign-partitions", "kafka-topics"} == {call[0] for call in site.cluster["calls"]}
    site.set_cluster(partitions=at(TARGET, b_0={"leader": 3}))
    assert "Leaders aren't as planned, of batch 03. Run apply.yml, which elects them" in site.play("verify").text


@pytest.mark.parametrize(("tag", "executed", "elected"), [("precheck", 0, 0), ("reassign", 2, 0), ("elect", 0, 2)])
def test_tags(site: Site, tag: str, executed: int, elected: int) -> None:
    """Each tag runs only its own part, after the checks."""
    run = site.play("apply", "--tags", tag)
    assert 0 == run.code, run.output
    assert (executed, elected) == (site.calls("--execute"), site.calls("--election-type"))
    assert 1 <= site.calls("--list")


def offline(bin_dir: Path) -> Document:
    """The plan with one more batch, whose partition has no leader."""
    made = plan(bin_dir)
    orphan = change("b", 0, [2, 3], [2, 4], leader=None)
    moves = [change("a", p, ORIGIN[f"a-{p}"], TARGET[f"a-{p}"]) for p in range(3)]
    first = [change("a", p, ORIGIN[f"a-{p}"], STEP[f"a-{p}"]) for p in (0, 2)]
    second = [change("a", p, STEP[f"a-{p}"], TARGET[f"a-{p}"]) for p in (0, 1)]
    kept = {key: made[key] for key in ("execution", "cluster")}
    whole = document([*moves, orphan], [first, second, [orphan]], **kept)
    whole["batches"][2]["leaderless"] = True
    return whole


def test_a_batch_without_a_leader_holds_nothing_up(tmp_path: Path) -> None:
    """A batch without a leader is left out, and the run says so and does all else. A later run finishes it."""
    site = staged(tmp_path, offline)
    partitions = site.cluster["partitions"]
    # One of its replicas is alive but out of sync. That alone stops nothing either.
    partitions["b-0"] |= {"leader": None, "isr": [2]}
    site.set_cluster(partitions=partitions)

    waiting = site.play("apply")

    assert (2, 2) == (waiting.code, site.calls("--execute")), waiting.output
    assert "Left out: batch 03." in waiting.text
    assert "Without a leader: b-0" in waiting.text
    assert TARGET | {"b-0": [2, 3]} == site.replicas()
    assert {"a-0": 4, "a-1": 3, "a-2": 3, "b-0": None} == site.leaders()
    assert None is site.cluster["throttle"]

    partitions = site.cluster["partitions"]
    partitions["b-0"] |= {"leader": 3, "isr": [2, 3]}
    site.set_cluster(partitions=partitions)
    done = site.play("apply")
    assert (0, [2, 4], 2) == (done.code, site.replicas()["b-0"], site.leaders()["b-0"]), done.output


def test_partitions_that_lost_their_leader_stop_before_anything(site: Site) -> None:
    """Apply names partitions that lost their leader, because a batch would wait forever. Rollback isn't refused."""
    partitions = site.cluster["partitions"]
    for name in ("a-2", "a-0", "a-1"):
        partitions[name] |= {"leader": None}
    site.set_cluster(partitions=partitions)
    refused = site.play("apply", "--tags", "precheck")
    assert (2, 0) == (refused.code, site.calls("--execute"))
    assert "3 partitions have lost their leader since the plan was made." in refused.text
    assert "They are a-0, a-1, a-2" in refused.text
    assert 0 == site.play("rollback", "--tags", "precheck").code


def test_brokers_that_are_not_live_stop_before_anything(site: Site) -> None:
    """The run names the brokers that aren't live, sorted by number, and starts nothing."""
    site.set_cluster(brokers=[9])
    refused = site.play("apply", "--tags", "precheck")
    assert (2, 0) == (refused.code, site.calls("--execute"))
    assert "Not live: brokers 1, 2, 3, 4. Nothing was started;" in refused.text


def test_a_rack_that_has_changed_stops_the_plan_but_not_the_way_back(site: Site) -> None:
    """A changed rack stops apply, but not rollback, because the old lists existed before it."""
    site.set_cluster(racks={"1": "elsewhere"})
    refused = site.play("apply", "--tags", "precheck")
    assert (2, True) == (refused.code, "broker 1 in elsewhere, planned for" in refused.text), refused.output
    assert 0 == site.play("rollback", "--tags", "precheck").code


def leaders_only(bin_dir: Path) -> Document:
    """Two batches with one election each. Nothing moves."""
    made = plan(bin_dir)
    elect = [change("a", 0, ORIGIN["a-0"], ORIGIN["a-0"], leader=2), change("b", 0, [2, 3], [2, 3], leader=3)]
    return document(elect, [[each] for each in elect], execution=made["execution"], cluster=made["cluster"])


def test_leaders_alone_change_batch_by_batch(tmp_path: Path) -> None:
    """A run elects one batch after the other. It doesn't elect a preferred leader that already leads."""
    site = staged(tmp_path, leaders_only)
    partitions = site.cluster["partitions"]
    partitions["a-0"] |= {"leader": 2}
    site.set_cluster(partitions=partitions)
    assert 2 == site.play("verify").code
    first = site.play("apply")
    assert (0, 2, 2) == (first.code, first.changed, site.calls("--election-type")), first.output
    assert {"a-0": 1, "b-0": 2} == {name: site.leaders()[name] for name in ("a-0", "b-0")}
    assert "Batch 01 of 2: 1 leader was elected." in first.text
    assert " s. It moved no replica, and elected 2 leaders in 2 batches." in first.text
    again = site.play("apply")
    assert (0, 0, 2) == (again.code, again.changed, site.calls("--election-type")), again.output
    assert " s. It completed no batch." in again.text


def test_batches_of_elections_count_too(tmp_path: Path) -> None:
    """With at most one batch a run, the first run elects one leader and says so, and the next run elects the other."""
    site = staged(tmp_path, leaders_only)
    partitions = site.cluster["partitions"]
    partitions["a-0"] |= {"leader": 2}
    site.set_cluster(partitions=partitions)
    first = site.play("apply", "-e", "kafka_reassign_batches_at_most=1")
    assert (2, 1) == (first.code, site.calls("--election-type")), first.output
    said = "Stopped before the elections of batch 02: this run has started as many batches as it may. None of them was"
    assert said in first.text
    assert 0 == (again := site.play("apply", "-e", "kafka_reassign_batches_at_most=1")).code, again.output
    assert 2 == site.calls("--election-type")


def test_tools_that_lack_an_option_are_called_without_it(site: Site, tmp_path: Path) -> None:
    """With tools of Kafka 3.9, a run tries the new option once, and uses the election tool's older option."""
    config = tmp_path / "client.properties"
    config.touch()
    refused = {"kafka-reassign-partitions": ["--disallow-replication-factor-change"]}
    site.set_cluster(unknown_options=refused | {"kafka-leader-election": ["--command-config"]})
    run = site.play("apply", "-e", f"kafka_reassign_command_config={config}")
    assert 0 == run.code, run.output
    assert TARGET == site.replicas()
    assert (3, 1) == (site.calls("--execute"), site.calls("--disallow-replication-factor-change"))
    elections = [call for call in site.cluster["calls"] if call[0] == "kafka-leader-election"]
    assert [False, True, True] == ["--admin.config" in call for call in elections]
    assert 0 == site.calls("--help")


def test_every_tool_gets_the_environment(site: Site) -> None:
    """Each tool gets the environment as given, without replacing variables in it."""
    run = site.play("apply", "-e", json.dumps({"kafka_reassign_environment": {"KAFKA_OPTS": "-Da=$HOME"}}))
    assert 0 == run.code, run.output
    assert {"-Da=$HOME"} == set(site.cluster["kafka_opts"])
    assert len(site.cluster["calls"]) == len(site.cluster["kafka_opts"])
