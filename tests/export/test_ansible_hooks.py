"""The operator's own tasks around a run, and limits of guards. Real Ansible, stand-ins for Kafka's tools."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from folders import ROOT
from test_ansible import ORIGIN, STEP, TARGET, Site, at, leaders_only, plan, staged

pytestmark = pytest.mark.ansible

HOOKS = ("before_batch", "after_batch", "on_hold", "on_failure")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A plan's folder, and the cluster as the plan found it."""
    return staged(tmp_path, plan)


@pytest.fixture
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The address of a server on loopback, and the events that it received."""
    told: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        """Keeps the posted events."""

        def do_POST(self) -> None:
            """Keep one event."""
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["event"])
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/", told
        server.shutdown()


def hooked(url: str, **further: object) -> tuple[str, str]:
    """Options that make each hook post to this address."""
    hooks = {f"kafka_reassign_{name}": str(ROOT / "examples" / "hooks" / "webhook.yml") for name in HOOKS}
    return "-e", json.dumps({"webhook_url": url, **hooks, **further})


def test_a_webhook_is_told_of_each_batch(site: Site, webhook: tuple[str, list[dict[str, Any]]]) -> None:
    """The webhook gets each batch's number before and after the batch. It gets nothing for finished batches."""
    url, told = webhook
    run = site.play("apply", *hooked(url))
    assert 0 == run.code, run.output
    assert [
        ("before_batch", "01"),
        ("after_batch", "01"),
        ("before_batch", "02"),
        ("after_batch", "02"),
    ] == [(event["event"], event["batch"]) for event in told]
    assert {"apply"} == {event["direction"] for event in told}
    assert 0 == site.play("apply", *hooked(url)).code
    assert 4 == len(told)


def test_a_webhook_is_told_of_a_hold_and_of_a_stop(site: Site, webhook: tuple[str, list[dict[str, Any]]]) -> None:
    """The webhook gets the reason of a hold and of a stop. A webhook that doesn't answer stops nothing."""
    url, told = webhook
    site.set_cluster(behind={"billing": 5_001})
    limits = {"kafka_reassign_lag_limits": {"billing": 5_000}, "kafka_reassign_hold_seconds": 1}
    run = site.play("apply", *hooked(url, kafka_reassign_guard_seconds=1, **limits))
    assert (2, 0) == (run.code, site.calls("--execute")), run.output
    behind = "consumer group billing is 5001 records behind, its limit is 5000"
    assert f"HELD, Before batch 01: {behind}." in run.text
    held, stopped = told
    assert ("on_hold", "01", behind) == (held["event"], held["batch"], held["said"])
    assert ("on_failure", "01") == (stopped["event"], stopped["batch"])
    # The time that the webhook took counts.
    assert f"held for {behind}" == re.sub("[0-9]+ s: ", "", stopped["said"])

    site.set_cluster(behind={"billing": 5_000})
    assert 0 == site.play("apply", *hooked("http://127.0.0.1:9/", **limits)).code
    assert TARGET == site.replicas()


def test_a_webhook_is_told_of_a_hold_before_elections(
    tmp_path: Path, webhook: tuple[str, list[dict[str, Any]]]
) -> None:
    """The webhook gets a hold before elections, like a hold before a batch that moves replicas."""
    url, told = webhook
    site = staged(tmp_path, leaders_only)
    partitions = site.cluster["partitions"]
    partitions["a-0"] |= {"leader": 2}
    site.set_cluster(partitions=partitions, behind={"billing": 5_001})
    limits = {"kafka_reassign_lag_limits": {"billing": 5_000}, "kafka_reassign_hold_seconds": 1}
    run = site.play("apply", *hooked(url, kafka_reassign_guard_seconds=1, **limits))
    assert (2, 0) == (run.code, site.calls("--election-type")), run.output
    behind = "consumer group billing is 5001 records behind, its limit is 5000"
    assert f"HELD, Before the elections of batch 01: {behind}." in run.text
    assert [("on_hold", "01"), ("on_failure", "01")] == [(event["event"], event["batch"]) for event in told]
    assert [True, True] == [behind in event["said"] for event in told]


@pytest.mark.parametrize(
    ("to", "said_of_it"),
    [
        ([3, 2], "Partitions of batch 02 move already. This run did not start that"),
        ([3, 4], "Partitions of batch 02 are neither where the plan found them nor where it wants them."),
    ],
    ids=["another run", "somebody else"],
)
def test_a_batch_that_moves_already(site: Site, tmp_path: Path, to: list[int], said_of_it: str) -> None:
    """The run and the journal say whether another run moves the batch to its target, or somebody else elsewhere."""
    script, tasks = tmp_path / "begin.py", tmp_path / "begin.yml"
    begun = f'cluster["partitions"]["a-1"].update(target={to}, polls=9)'
    path = str(site.bin_dir / "cluster.json")
    script.write_text(f"import json\nwith open({path!r}, 'r+') as file:\n cluster = json.load(file)\n {begun}\n")
    with script.open("a") as file:
        file.write(" file.seek(0)\n json.dump(cluster, file)\n file.truncate()\n")
    task = {"name": "Begin", "ansible.builtin.command": {"argv": [sys.executable, str(script)]}}
    tasks.write_text(json.dumps([task]))
    run = site.play("apply", "-e", f"kafka_reassign_after_batch={tasks}")
    assert (2, 1) == (run.code, site.calls("--execute")), run.output
    assert said_of_it in run.text
    assert ([3, 4] == to) == ("They are a-1 (somebody else moves it to 3,4)" in run.text)
    assert f"The run stopped at batch 02: {said_of_it.partition('.')[0]}" in run.text
    assert ([3, 4] == to) == ("To go back, take these partitions out of rollback.json" in run.text)


def test_a_list_that_a_killed_rollback_left_turned_is_turned_back(site: Site) -> None:
    """If a killed rollback left a list reordered, verify.yml fails, and another rollback restores the list."""
    site.set_cluster(partitions=at(ORIGIN, a_0={"leader": 1}, b_0={"replicas": [3, 2], "leader": 3}))
    assert 2 == site.play("verify", "-e", "kafka_reassign_direction=rollback").code
    back = site.play("rollback")
    assert (0, ORIGIN, 3) == (back.code, site.replicas(), site.leaders()["b-0"]), back.output
    again = site.play("rollback")
    assert (0, 0) == (again.code, again.changed), again.output


def test_tasks_that_are_missing_or_fail(site: Site, tmp_path: Path) -> None:
    """A missing file stops the run at once. Tasks for a hold may fail, but tasks before a batch may not."""
    missing = site.play("apply", "-e", "kafka_reassign_on_hold=no/such.yml")
    assert (2, 0) == (missing.code, len(site.cluster["calls"])), missing.output
    assert "no/such.yml isn't there; allowed: the path of a file with tasks" in missing.text
    failing = tmp_path / "failing.yml"
    failing.write_text("- name: Fail\n  ansible.builtin.fail:\n    msg: never\n")
    refused = site.play("apply", "-e", f"kafka_reassign_before_batch={failing}")
    assert (2, 0) == (refused.code, site.calls("--execute")), refused.output
    flag = tmp_path / "flag"
    command = ["sh", "-c", f"test -e {flag} || {{ touch {flag}; exit 1; }}"]
    given = {"kafka_reassign_on_hold": str(failing), "kafka_reassign_guard_command": command}
    held = site.play("apply", "-e", json.dumps(given | {"kafka_reassign_guard_seconds": 1}))
    assert 0 == held.code, held.output
    assert "The tasks of kafka_reassign_on_hold failed. The run waits nevertheless." in held.text
    assert TARGET == site.replicas()


def test_a_stop_file_that_appears_during_the_tasks_before_a_batch(site: Site, tmp_path: Path) -> None:
    """The tasks may wait for somebody's consent for hours, so the guards are asked again before the batch starts."""
    tasks, stop = tmp_path / "consent.yml", tmp_path / "stop"
    tasks.write_text(json.dumps([{"name": "Stop", "ansible.builtin.copy": {"dest": str(stop), "content": ""}}]))
    run = site.play("apply", "-e", f"kafka_reassign_before_batch={tasks}", "-e", f"kafka_reassign_stop_file={stop}")
    assert (2, 0) == (run.code, site.calls("--execute")), run.output
    said_of_it = (
        f"Stopped before batch 01, after the tasks of kafka_reassign_before_batch: the stop file {stop} exists."
    )
    assert (True, True) == (said_of_it in run.text, f"The run stopped at batch 01: {said_of_it}" in run.text)
    stop.unlink()
    tasks.write_text("[]")
    assert (0, TARGET) == (site.play("apply", "-e", f"kafka_reassign_before_batch={tasks}").code, site.replicas())


def test_a_refused_plan_is_told_too(site: Site, webhook: tuple[str, list[dict[str, Any]]]) -> None:
    """The webhook gets the sentence with which apply refuses a plan. With --check it gets nothing."""
    url, told = webhook
    site.set_cluster(brokers=[9])
    assert 2 == site.play("apply", *hooked(url)).code
    assert 2 == site.play("apply", "--check", *hooked(url)).code
    assert [
        (
            "on_failure",
            "Not live: brokers 1, 2, 3, 4. Nothing was started; start them, or make a new plan without them.",
        )
    ] == [(event["event"], event["said"]) for event in told]


@pytest.mark.parametrize("playbook", ["apply", "verify"])
def test_a_value_with_a_blank_needs_quotes_of_its_own(site: Site, playbook: str) -> None:
    """Without inner quotes, Ansible drops what follows the blank, here a window's time zone. Nothing is started."""
    window = "kafka_reassign_window={0}00:00-23:59 Europe/Berlin{0}"
    cut = site.play(playbook, "-e", window.format(""))
    assert (2, 0) == (cut.code, len(site.cluster["calls"])), cut.output
    assert "'Europe/Berlin' belongs to no setting" in cut.text
    whole = site.play("apply", "-e", window.format("'"), "--tags", "precheck")
    assert 0 == whole.code, whole.output


def test_settings_that_cannot_be_are_refused(site: Site) -> None:
    """A misspelled setting would run all batches and is refused; so are impossible values and the plan's variables."""
    for given, said_of_it in (
        ("batch_at_most=1", "no such setting; the nearest is kafka_reassign_batches_at_most. Nothing was started"),
        ("throttle_bytes_per_sec=-5", "kafka_reassign_throttle_bytes_per_sec mustn't be negative."),
        ("throttle_bytes_per_sec=5e7", "is '5e7'; allowed: a whole number of bytes per second, or 0 for no throttle."),
        ("environment=KAFKA_OPTS=-Da=b", "kafka_reassign_environment is 'KAFKA_OPTS=-Da=b'; allowed: -e '{"),
        (
            "batches=1",
            "-e kafka_reassign_batches: it isn't a setting; the plan and the role set it; allowed: the settings in",
        ),
        (
            "direction=rollback",
            "-e kafka_reassign_direction=rollback: this playbook's direction is apply; allowed: only",
        ),
        ("stop_file=~/stop", "kafka_reassign_stop_file is '~/stop'; allowed: an absolute path. Nothing was started"),
        ("bin_dir=/no/bin", "/no/bin/kafka-broker-api-versions.sh can't be started: No such file or directory"),
    ):
        run = site.play("apply", "-e", f"kafka_reassign_{given}")
        assert (2, 0, True) == (run.code, site.calls("--execute"), said_of_it in run.text), run.output


def test_a_full_disk_stops_the_run(site: Site) -> None:
    """The run, and one with --check, stops before a batch if a disk is too full. An unknown consumer group holds it."""
    size = [
        {"broker": 4, "logDirs": [{"logDir": "/a", "error": None, "partitions": [{"partition": "x-0", "size": 9}]}]}
    ]
    site.set_cluster(log_dirs_print=size)
    plan = site.folder / "ansible/roles/kafka_reassign/vars/main/plan.yml"
    plan.write_text(plan.read_text().replace("kafka_reassign_disk_limits: {}", "kafka_reassign_disk_limits: {4: 8}"))
    for how, stopped in (("--check",), "Would stop"), ((), "Stopped"):
        full = site.play("apply", *how)
        assert (2, 0) == (full.code, site.calls("--execute")), full.output
        assert f"{stopped} before batch 01: broker 4 holds 0.0 MB, its limit is 0.0 MB." in full.text
    plan.write_text(plan.read_text().replace("kafka_reassign_disk_limits: {4: 8}", "kafka_reassign_disk_limits: {}"))
    assert ORIGIN == site.replicas()
    site.set_cluster(behind={})
    unknown = {"kafka_reassign_lag_limits": {"nobody": 1}, "kafka_reassign_hold_seconds": 0}
    held = site.play("apply", "-e", json.dumps(unknown | {"kafka_reassign_guard_seconds": 1}))
    assert (2, 0) == (held.code, site.calls("--execute")), held.output
    assert "the lag of consumer group nobody is unknown" in held.text


@pytest.mark.parametrize("cancels", [True, False])
def test_what_an_interrupted_run_left_is_canceled_if_a_disk_is_full(site: Site, cancels: bool) -> None:
    """A full disk cancels also what an interrupted run left, though the tool fails once. --check cancels nothing."""
    size = [{"broker": 4, "logDirs": [{"logDir": "/a", "error": None, "partitions": [{"partition": "x", "size": 9}]}]}]
    site.set_cluster(partitions=at(ORIGIN, a_2={"target": STEP["a-2"], "polls": 9000}), log_dirs_print=size)
    site.set_cluster(failing={"kafka-reassign-partitions --cancel": 1})
    plan = site.folder / "ansible/roles/kafka_reassign/vars/main/plan.yml"
    plan.write_text(plan.read_text().replace("kafka_reassign_disk_limits: {}", "kafka_reassign_disk_limits: {4: 8}"))
    given = {"kafka_reassign_guard_seconds": 0, "kafka_reassign_cordon": False}
    given |= {} if cancels else {"kafka_reassign_reactions": {"disk": "hold"}, "kafka_reassign_hold_seconds": 0}
    if cancels:
        assert 2 == site.play("apply", "-e", json.dumps(given), "--check").code
        assert 0 == site.calls("--cancel")
    run = site.play("apply", "-e", json.dumps(given))
    assert (2, cancels) == (run.code, site.calls("--cancel") > 0), run.output
    assert cancels == (site.cluster["partitions"]["a-2"]["target"] is None)
    assert "What an interrupted run left isn't complete: " in run.text


@pytest.mark.parametrize(("fails", "code"), [(1, 0), (99, 2)], ids=["once", "for good"])
def test_a_rollback_tries_again_to_cancel(site: Site, fails: int, code: int) -> None:
    """After a broker has died, Kafka's tool may fail once. If it fails for good, the last lines say why."""
    moves = at(ORIGIN, a_2={"target": STEP["a-2"], "polls": 9000})
    site.set_cluster(partitions=moves, failing={"kafka-reassign-partitions --cancel": fails})
    run = site.play("rollback")
    assert code == run.code, run.output
    assert (code == 0) == (site.cluster["partitions"]["a-2"]["target"] is None)
    why = "What still moves could not be canceled: Error: kafka-reassign-partitions fails. Run the playbook again"
    assert (code == 2) == (why in run.text)


def test_a_webhook_is_told_of_elections_that_fail(site: Site, webhook: tuple[str, list[dict[str, Any]]]) -> None:
    """The webhook gets the batch and the error if Kafka's tool doesn't elect the leaders of moved replicas."""
    url, told = webhook
    site.set_cluster(failing={"kafka-leader-election": 1})
    assert 2 == (run := site.play("apply", *hooked(url))).code, run.output
    batches = [(f"{when}_batch", batch) for batch in ("01", "02") for when in ("before", "after")]
    assert [*batches, ("on_failure", "02")] == [(event["event"], event["batch"]) for event in told]
    assert "Error: kafka-leader-election fails" == told[-1]["said"]
    assert "Unknown error" not in run.output
    assert 0 == (run := site.play("apply")).code, run.output
    assert TARGET == site.replicas()
