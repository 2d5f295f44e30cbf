"""How a run ends and what it says, also if Kafka doesn't answer or something is left over. Real Ansible, stand-ins
for Kafka's tools.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from test_ansible import ORIGIN, STEP, TARGET, Site, at, plan, said, staged
from test_ansible_new_partitions import emptying

from planner.report import run_journal

pytestmark = pytest.mark.ansible

# After the last batch with partitions, the tool that reads throttles fails from now on.
FAILS = """---
- name: Let a tool fail
  ansible.builtin.command: {python} {script}
  when: kafka_reassign_event.batch == "02"
"""
SCRIPT = """import json, pathlib
path = next(pathlib.Path(__file__).parent.glob("bin*/cluster.json"))
path.write_text(json.dumps(json.loads(path.read_text()) | {"failing": {"kafka-configs": 99}}))
"""
LEFT = "The throttles of the run may still be set, because they could not be put back: kafka-configs.sh --describe"

# A connection that breaks for as many commands as a file says.
BREAKS = """DOCUMENTATION = '''
name: breaks
short_description: local, with breaks
description: [local, with breaks]
extends_documentation_fragment: [connection_pipelining]
'''
import pathlib
from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection import local
class Connection(local.Connection):
    transport = "breaks"
    def exec_command(self, *given, **named):
        left = pathlib.Path({path!r})
        if left.exists() and (number := int(left.read_text())):
            left.write_text(str(number - 1))
            raise AnsibleConnectionFailure("Connection reset by peer")
        return super().exec_command(*given, **named)
"""
# A connection that loses the answer of the first command that has started a batch.
LOSES = (
    BREAKS.partition("        left =")[0]
    + """        answer, cluster = super().exec_command(*given, **named), pathlib.Path({path!r})
        if '"--execute"' in cluster.read_text() and not pathlib.Path(__file__ + ".lost").exists():
            pathlib.Path(__file__ + ".lost").touch()
            raise AnsibleConnectionFailure("Connection reset by peer")
        return answer
"""
)
# A guard command: at its second start, during the first batch, it breaks the connection.
SECOND = """import pathlib
starts, path = pathlib.Path(__file__ + ".starts"), pathlib.Path({path!r})
starts.write_text((starts.read_text() if starts.exists() else "") + "x")
starts.read_text() == "xx" and path.write_text("3")
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A plan's folder, and the cluster as the plan found it."""
    return staged(tmp_path, plan)


def failing(site: Site) -> tuple[str, ...]:
    """Options that make the tool that reads throttles fail after all moves, and that report a failed run."""
    script, hook, told = (site.folder.parent / name for name in ("fails.py", "fails.yml", "told.yml"))
    script.write_text(SCRIPT)
    hook.write_text(FAILS.format(python=sys.executable, script=script))
    told.write_text("---\n- name: Tell\n  ansible.builtin.debug:\n    msg: 'TOLD {{ kafka_reassign_event.said }}'\n")
    hooks = {"kafka_reassign_after_batch": str(hook), "kafka_reassign_on_failure": str(told)}
    return ("-e", json.dumps(hooks | {"kafka_reassign_throttle_bytes_per_sec": 7}))


@pytest.mark.slow
def test_throttles_that_stay_are_told_and_taken_off_by_name(site: Site) -> None:
    """Throttles that can't be removed are reported with the command to remove them. `--tags unthrottle` does it."""
    run = site.play("apply", *failing(site))
    assert (2, TARGET, "7") == (run.code, site.replicas(), site.cluster["throttle"]), run.output
    assert (True, True) == (f"TOLD {LEFT}" in run.text, LEFT in said(site)[-2])
    assert "Run ansible-playbook apply.yml --tags unthrottle once this is over" in run.text

    site.set_cluster(failing={}, calls=[])
    again = site.play("apply", "--tags", "unthrottle")
    assert (0, None) == (again.code, site.cluster["throttle"]), again.output
    assert {"kafka-topics", "kafka-reassign-partitions", "kafka-configs"} == {call[0] for call in site.cluster["calls"]}


def test_a_throttle_of_which_this_host_knows_nothing_is_told(site: Site) -> None:
    """Without a record of a throttle, `--tags unthrottle` says so, keeps what is set, and prints it."""
    site.set_cluster(throttle="7")
    run = site.play("apply", "--tags", "unthrottle")
    assert (0, "7") == (run.code, site.cluster["throttle"]), run.output
    assert "This host has no record of a throttle, and no topic is throttled for this plan's moves alone" in run.text
    assert "Set on brokers: broker 1: leader.replication.throttled.rate=7; broker 2:" in run.text


def test_nothing_looks_well_that_was_not_looked_at(site: Site) -> None:
    """Another playbook's tag skips no check of verify.yml, and a folder without an admin host is an error."""
    run = site.play("verify", "--tags", "reassign")
    assert (2, True) == (run.code, "0 of 3 partitions are where" in run.text), run.output
    empty = site.folder.parent / "empty.yml"
    empty.write_text("kafka_admin:\n  hosts:\n")
    for playbook in ("apply", "verify", "rollback"):
        run = site.play(playbook, "-i", str(empty))
        assert 0 != run.code, run.output
        assert "The inventory has no host in kafka_admin: run the playbook in its folder, or name" in run.text


def test_a_question_without_an_answer_is_asked_again_and_told(site: Site) -> None:
    """verify.yml retries a tool without an answer, as while most controllers are away. It reports the last error."""
    site.set_cluster(partitions=at(TARGET), failing={"kafka-reassign-partitions": 2})
    run = site.play("verify")
    assert (0, 2) == (run.code, run.text.count("FAILED - RETRYING")), run.output
    site.set_cluster(failing={"kafka-reassign-partitions": 99})
    run = site.play("verify")
    assert 2 == run.code
    assert "kafka-reassign-partitions --verify: Error: kafka-reassign-partitions fails" in run.text


def test_a_check_without_an_answer_says_so(site: Site) -> None:
    """If Kafka's tools stop answering, before the run or before batch 2, it says so. It names a missing command."""
    site.set_cluster(failing={"kafka-topics": 99})
    run = site.play("apply", "--check")
    assert (2, False) == (run.code, "conditional" in run.text), run.output
    assert "kafka-topics fails" in run.text
    site.set_cluster(failing={})
    script = site.folder.parent / "fails.py"
    script.write_text(SCRIPT.replace("kafka-configs", "kafka-topics"))
    run = site.play(
        "apply", "--check", "-e", json.dumps({"kafka_reassign_guard_command": [sys.executable, str(script)]})
    )
    assert (2, True) == (run.code, "Kafka's tools get no answer from the cluster" in run.text), run.output
    assert "has no attribute" not in run.text
    site.set_cluster(failing={})
    given = {"kafka_reassign_guard_command": ["/no/command"], "kafka_reassign_hold_seconds": 0}
    run = site.play("apply", "-e", json.dumps(given))
    assert "the guard command ends with exit code 127: /no/command can't be started: No such file" in run.text, (
        run.output
    )


@pytest.mark.parametrize(
    ("voters", "told"),
    [
        ([100, 101, 102], ""),
        ([2, 9, 4], "Broker 9 is 1 of the 3 controllers: once stopped, none of the others may fail."),
        (
            [{"id": 9, "endpoints": []}],
            "Don't stop them yet: broker 9 is 1 of the 1 controllers, and the others are no",
        ),
    ],
)
def test_a_broker_that_leaves_and_is_a_controller(tmp_path: Path, voters: list[object], told: str) -> None:
    """verify.yml says what stopping the leaving brokers does to the controllers' majority."""
    site = staged(tmp_path, emptying)
    site.set_cluster(partitions=at(TARGET), voters=voters)
    run = site.play("verify")
    assert (0, True, bool(told)) == (run.code, told in run.text, "controllers" in run.text), run.output


def test_a_setting_of_the_inventory_that_is_misspelled(site: Site) -> None:
    """A misspelled setting stops the run. A setting of another playbook or of the operator's own doesn't."""
    variables = site.folder / "ansible" / "group_vars" / "kafka_admin.yml"
    variables.parent.mkdir()
    variables.write_text("kafka_reassign_restart_tasks: x.yml\nkafka_reassign_from_step: 2\nkafka_reassign_mine: 1\n")
    run = site.play("apply", "--tags", "precheck")
    assert 0 == run.code, run.output
    variables.write_text("kafka_reassign_stopfile: /stop\n")
    site.set_cluster(calls=[])
    run = site.play("apply")
    assert (2, 0) == (run.code, len(site.cluster["calls"])), run.output
    assert "no such setting; the nearest is kafka_reassign_stop_file. Nothing was started" in run.text


def test_a_connection_that_breaks_holds_the_run(site: Site) -> None:
    """If the admin host can't be reached for a moment, the run is held and goes on, because a batch takes hours."""
    folder, path = site.folder / "ansible" / "connection_plugins", str(site.folder.parent / "breaks")
    folder.mkdir()
    (folder / "breaks.py").write_text(BREAKS.format(path=path))
    (script := site.folder.parent / "second.py").write_text(SECOND.format(path=path))
    site.set_cluster(polls=9)
    settings = {"kafka_reassign_guard_command": [sys.executable, str(script)], "kafka_reassign_guard_seconds": 0}
    run = site.play("apply", "-e", "ansible_connection=breaks", "-e", json.dumps(settings))
    assert (0, TARGET) == (run.code, site.replicas()), run.output
    held = "HELD, Batch 01 of 3: the admin host has no answer: Connection reset by peer. Replicas keep moving"
    goes_on = "GOES ON, Batch 01 of 3, no longer held: the admin host has no answer: Connection reset by peer."
    assert (True, True) == (held in run.text, goes_on in said(site)), run.output


@pytest.mark.parametrize("cancels", [False, True], ids=["moves", "is canceled"])
def test_a_start_whose_answer_is_lost_is_told(site: Site, cancels: bool) -> None:
    """The run doesn't say that nothing was started, and cancels what may move if it is asked to."""
    folder = site.folder / "ansible" / "connection_plugins"
    folder.mkdir()
    (folder / "breaks.py").write_text(LOSES.format(path=str(site.bin_dir / "cluster.json")))
    site.set_cluster(polls=9)
    settings = {"kafka_reassign_cancel_on_failure": cancels, "ansible_connection": "breaks"}
    run = site.play("apply", "-e", json.dumps(settings))
    assert (2, cancels) == (run.code, site.calls("--cancel") == 1), run.output
    assert cancels == (site.cluster["partitions"]["a-0"]["target"] is None)
    goes_on = "Its moves were canceled" if cancels else "If it moves, it goes on"
    told = f"Batch 01 may have been started, or not: its start gave no answer. {goes_on}: the admin host has no answer"
    assert (True, True) == (told in run.text, told in said(site)[-2]), run.output
    assert (0, TARGET) == (site.play("apply").code, site.replicas())


def test_no_task_timeout_ends_a_batch(site: Site) -> None:
    """A task_timeout in the operator's ansible.cfg doesn't end a batch, because a batch takes hours."""
    with (site.folder / "ansible" / "ansible.cfg").open("a") as config:
        config.write("task_timeout = 1\n")
    site.set_cluster(polls=30)
    run = site.play("apply")
    assert (0, TARGET) == (run.code, site.replicas()), run.output


@pytest.mark.parametrize("options", [("--skip-tags", "precheck"), ("--start-at-task", "Record the existing throttles")])
def test_checks_that_are_left_out(site: Site, options: tuple[str, str]) -> None:
    """Without the results of the checks nothing is started, and the run gives that as the reason."""
    run = site.play("apply", *options)
    assert (2, 0) == (run.code, len(site.cluster["calls"])), run.output
    assert "Nothing was started: the checks were left out, by --skip-tags or --start-at-task; run it" in run.text


def test_a_run_that_starts_at_its_checks_starts_all_batches(site: Site) -> None:
    """--start-at-task may leave out the first tasks. Then no batch is started and left because a count is missing."""
    run = site.play("apply", "--start-at-task", "Compare the plan's files with their digests")
    assert (0, TARGET) == (run.code, site.replicas()), run.output


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--tags", "unthrotle"), "there is no tag unthrotle; the nearest is unthrottle. Nothing was started"),
        (("--skip-tags", "elects"), "there is no tag elects; the nearest is elect. Nothing was started"),
        (("--skip-tags", "reassign"), "Nothing was started: the checks were left out, by --skip-tags or"),
    ],
)
def test_tags_that_do_not_do_what_they_say(site: Site, options: tuple[str, str], told: str) -> None:
    """A misspelled tag would end well with the throttle still set, or elect leaders that were to stay."""
    run = site.play("apply", *options)
    assert (2, 0, True) == (run.code, len(site.cluster["calls"]), told in run.text), run.output


def test_a_tag_of_another_playbook_is_no_error(site: Site) -> None:
    """A tag that isn't like one of the role's selects nothing here, as in a playbook that imports this one."""
    run = site.play("rollback", "--tags", "dashboards")
    assert (0, 0) == (run.code, len(site.cluster["calls"])), run.output


def test_two_playbooks_of_one_command(site: Site) -> None:
    """If apply ends well and rollback in the same command fails, the failure is reported as rollback's."""
    hook, told = (site.folder.parent / name for name in ("forth.yml", "told.yml"))
    forth = "kafka_reassign_event.direction == 'apply'"
    hook.write_text(f"---\n- name: Go forth only\n  ansible.builtin.assert:\n    that: {forth}\n")
    told.write_text("---\n- name: Tell\n  ansible.builtin.debug:\n    msg: TOLD {{ kafka_reassign_event.direction }}\n")
    hooks = {"kafka_reassign_after_batch": str(hook), "kafka_reassign_on_failure": str(told)}
    both = "---\n- import_playbook: apply.yml\n- import_playbook: rollback.yml\n"
    (site.folder / "ansible" / "both.yml").write_text(both)
    run = site.play("both", "-e", json.dumps(hooks))
    assert (2, True) == (run.code, "The run stopped at batch 02: see the output of the run." in run.text), run.output
    assert "TOLD rollback" in run.text


def test_the_end_says_what_was_planned_and_measured(tmp_path: Path) -> None:
    """The output, the journal and `planner show --journal` have planned and copied bytes of batches and of the run."""
    site = staged(tmp_path, plan)
    held = [{"partition": name, "size": 1_000} for name in ("a-0", "a-1", "a-2")]
    dirs = [{"logDir": "/a", "error": None, "partitions": held}]
    site.set_cluster(log_dirs_print=[{"broker": broker, "logDirs": dirs} for broker in (1, 2, 3, 4)])
    run = site.play("apply")
    assert 0 == run.code, run.output
    [end] = [line for line in run.output.splitlines() if line.startswith("The run ended after")]
    assert end.endswith("(2 s planned at the throttle), 3 kB copied (200 B planned). It elected 3 leaders.")
    kept = site.folder.parent / "home" / ".local" / "state" / "kafka_reassign"
    [journal] = kept.glob("*-apply-*.jsonl")
    entries = run_journal.entries(journal.read_bytes(), journal.name)
    assert end in [entry.said for entry in entries]
    figures = [entry.figures for entry in entries if entry.figures]
    assert [("01", 1, 2_000, 100), ("02", 1, 1_000, 100)] == [
        (each.batch, each.planned_seconds, each.copied_bytes, each.planned_bytes) for each in figures
    ]


def test_a_rollback_stops_before_a_batch_with_a_dead_broker_in_its_lists(site: Site) -> None:
    """The batches after that one are undone. Once the broker is back, the next rollback does the rest."""
    assert 0 == site.play("apply").code
    site.set_cluster(brokers=[1, 2, 3, 4], times_out=True)
    # Brokers from a command line are text, and any setting of the role may come from there.
    run = site.play("rollback", "-e", "kafka_reassign_expected_brokers=1,2,3,4,9")
    assert (2, STEP) == (run.code, site.replicas()), run.output
    why = "have brokers that aren't live, and Kafka refuses such lists: 9. Nothing of the plan moves anymore"
    assert f"Rolled back as far as possible. The lists of batch 01 {why}" in run.text
    assert "replaces it. rollback.yml goes back" not in run.text
    site.set_cluster(brokers=[1, 2, 3, 4, 9], times_out=False)
    run = site.play("rollback")
    assert (0, ORIGIN) == (run.code, site.replicas()), run.output


def test_a_batch_that_would_move_partitions_back_is_not_started(site: Site) -> None:
    """If a partition is back where it was and another of its batch is at a later step, the run says what is left."""
    site.set_cluster(partitions=at(TARGET | {"a-2": ORIGIN["a-2"]}))
    run = site.play("apply")
    assert (2, 0) == (run.code, site.calls("--execute")), run.output
    left = "Partitions of batch 01 wait for it, but others of it are at another step already, and the batch would move "
    left += "these back. It was not started; make a new plan of what is left (planner resume). They are a-2"
    assert left in run.text
    assert f"The run stopped at batch 01: {left}. rollback.yml goes back." == said(site)[-2]

    site.set_cluster(partitions=at(TARGET | {"a-0": ORIGIN["a-0"]}))
    assert 2 == (run := site.play("rollback")).code, run.output
    assert "It was not started; make a new plan from the cluster as it is now. They are a-1" in run.text
    assert "rollback.yml goes back" not in run.text


@pytest.mark.parametrize("cancels", [False, True], ids=["moves", "is canceled"])
def test_a_batch_that_kafka_starts_in_part_is_told(site: Site, cancels: bool) -> None:
    """If Kafka refuses a log dir, replicas move all the same: the run says so, and cancels them if it is asked to."""
    site.set_cluster(refuses_dirs=True)
    run = site.play("apply", "-e", f"kafka_reassign_cancel_on_failure={cancels}")
    assert (2, cancels) == (run.code, site.calls("--cancel") == 1), run.output
    goes_on = ", and its moves were canceled" if cancels else "; what of it moves goes on"
    assert f"Batch 01 was started only in part{goes_on}; Kafka says Error: Failed to alter dir for a-0-9" in run.text
    told = "Its moves were canceled." if cancels else "What still moves goes on at its throttle."
    stopped = (
        f"The run stopped at batch 01: Error: Failed to alter dir for a-0-9. {told} Run the playbook again to go on"
    )
    assert f"{stopped}, or rollback.yml to go back." == said(site)[-2]
    site.set_cluster(refuses_dirs=False)
    assert (0, TARGET) == (site.play("apply").code, site.replicas())


def test_a_trial_leaves_an_earlier_runs_record_as_it_is(tmp_path: Path) -> None:
    """A killed run left its record. Before a batch, --check neither lifts a throttle nor records another one."""
    site = staged(tmp_path, plan)
    state = tmp_path / "home" / ".local" / "state" / "kafka_reassign"
    state.mkdir(parents=True)
    content = {"topic_ids": ["a id-a"], "rates": ["50"], "brokers": {"1": {}}, "topics": {}}
    record = state / "throttles-1.json"
    record.write_text(json.dumps(content))
    site.set_cluster(throttle=99)
    trial = site.play("apply", "--check")
    assert (0, content) == (trial.code, json.loads(record.read_text())), trial.output
    assert "Somebody else has set" not in trial.text


def test_a_folder_for_journals_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """The run stops before it moves anything, and doesn't say that the admin host gives no answer."""
    site = staged(tmp_path, plan)
    run = site.play("apply", "-e", "kafka_reassign_journal_dir=/dev/null/x")
    assert (2, ORIGIN) == (run.code, site.replicas()), run.output
    assert "Not a directory: '/dev/null/x'" in run.text
    assert "no answer" not in run.text
