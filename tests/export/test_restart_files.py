"""Real Ansible runs the playbook of a restart against stand-ins for Kafka's tools."""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path

import pytest
import yaml
from playbooks import Run
from test_ansible import Site, said, staged_tools

from planner.export import output_folder, templated_files
from planner.inputs.spec.reading import load
from planner.whatif import restart_steps

pytestmark = pytest.mark.ansible

# b-0 has as many replicas as min.insync.replicas. The leader of c-0 isn't its preferred one.
LISTS = {"a": [[1, 2, 3], [2, 3, 4]], "b": [[3, 1]], "c": [[2, 4]]}
LEAST = {"a": 2, "b": 2, "c": 1}
LEADERS = {"a-0": 1, "a-1": 2, "b-0": 3, "c-0": 4}
RACKS = {1: "a{{ 0 }}", 2: "r1", 3: "r2", 4: "a{{ 0 }}"}
# The operator's tasks act on the stand-in: another broker leads, and the content of `spoilt` is merged in.
TASKS = """---
- name: Restart
  ansible.builtin.script: {script}
  loop: "{{{{ kafka_reassign_restart_brokers{only} }}}}"
"""
RESTART = """#!{python}
import json, sys
from pathlib import Path
path = Path({path!r})
cluster = json.loads(path.read_text())
with Path({notes!r}).open("a") as notes:
    print(sys.argv[1], file=notes)
cluster["restarted"] = [*cluster.get("restarted", []), int(sys.argv[1])]
for each in cluster["partitions"].values():
    others = [broker for broker in each["replicas"] if broker != int(sys.argv[1])]
    if each["leader"] == int(sys.argv[1]):
        each["leader"] = (others or each["replicas"])[0]
cluster["partitions"].update(cluster.pop("spoilt", {{}}))
path.write_text(json.dumps(cluster))
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A restart's folder, and the cluster as the restart found it."""
    return made(tmp_path, LISTS, LEAST, LEADERS)


@pytest.fixture
def pair(tmp_path: Path) -> Site:
    """The same, but brokers 1 and 4 restart together: of x-0, which both have, one replica in sync is enough."""
    return made(tmp_path, {"a": [[1, 2, 3], [4, 2, 3]], "x": [[1, 4, 2]]}, {"a": 2, "x": 1}, {"a-1": 4})


def made(
    tmp_path: Path, placed: dict[str, list[list[int]]], least: dict[str, int], leaders: dict[str, int | None]
) -> Site:
    """A restart's folder, and the cluster with these replica lists; by default the first replica leads, None: none."""
    bin_dir = staged_tools(tmp_path)
    leaders = {
        f"{topic}-{number}": each[0] for topic, lists in placed.items() for number, each in enumerate(lists)
    } | leaders
    topics = [
        {
            "name": topic,
            "config": {"min.insync.replicas": least[topic]},
            "partitions": [
                {"replicas": replicas} | ({"leader": leader} if leader else {"leader": "none", "isr": []})
                for leader, replicas in ((leaders[f"{topic}-{number}"], each) for number, each in enumerate(lists))
            ],
        }
        for topic, lists in placed.items()
    ]
    spec = {
        "version": 1,
        "cluster": {
            "name": "{{ x }}",
            "bootstrap_servers": ["h1:9092"],
            "brokers": [{"id": broker, "rack": rack} for broker, rack in RACKS.items()],
            "topics": topics,
        },
        "execution": {"kafka_bin_dir": str(bin_dir)},
    }
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec))
    partitions = {
        f"{topic}-{number}": {"replicas": replicas, "leader": leaders[f"{topic}-{number}"], "least": least[topic]}
        for topic, lists in placed.items()
        for number, replicas in enumerate(lists)
    }
    racks = {str(broker): rack for broker, rack in RACKS.items()}
    cluster = {"brokers": [*RACKS], "racks": racks, "partitions": partitions, "throttle": None, "polls": 2}
    (bin_dir / "cluster.json").write_text(json.dumps(cluster | {"calls": [], "lost": []}))
    loaded = load(tmp_path / "spec.yaml")
    output_folder.write(
        tmp_path / "out", templated_files.restart_files(restart_steps.document(loaded), restart_steps.states(loaded))
    )
    return Site(tmp_path / "out", bin_dir)


def play(site: Site, *options: str, allow: bool = True, only: str = "") -> Run:
    """Run the restart with the operator's own tasks, for all brokers of a step or only for a slice of them."""
    folder = site.folder.parent
    script = folder / "restart.py"
    script.write_text(
        RESTART.format(
            python=site.playbooks.programs / "python",
            path=str(site.bin_dir / "cluster.json"),
            notes=str(folder / "notes"),
        )
    )
    script.chmod(0o755)
    quoted = json.dumps(f"{shlex.quote(str(script))} {{{{ item }}}}")
    (folder / "tasks.yml").write_text(TASKS.format(script=quoted, only=only))
    given = ["-e", f"kafka_reassign_restart_tasks={folder / 'tasks.yml'}", *options]
    return site.play("restart", *given, *(("-e", "kafka_reassign_allow_refused_writes=true") if allow else ()))


def test_syntax_and_lint(site: Site) -> None:
    """Ansible reads the playbook without a warning, and ansible-lint's production profile finds nothing."""
    run = site.play("restart", "--syntax-check")
    assert (0, False) == (run.code, "WARNING" in run.output), run.output
    ended = site.playbooks.tool("ansible-lint", "--profile", "production", "--offline")
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_every_broker_restarts_once_and_the_preferred_leaders_lead_again(site: Site) -> None:
    """Brokers restart in the order of the steps, and preferred leaders lead again. c-0 keeps its other leader."""
    assert 0 == (run := play(site)).code, run.output
    steps = json.loads(restart := (site.folder / "restart.json").read_text())["steps"]
    assert [broker for step in steps for broker in step["brokers"]] == site.cluster["restarted"]
    assert [[1], [4], [2], [3]] == [step["brokers"] for step in steps]
    assert LEADERS == site.leaders()  # c-0 went from 4 to 2 and back, without an election
    assert "After step 4 of 4: 1 leader was elected." in run.text
    elected = [f"After step {number} of 4: 1 leader was elected." for number in (1, 3, 4)]
    began, *rest = said(site)
    assert (f"A run began: restart {json.loads(restart)['restart_id'][:12]}.", elected) == (began, rest)


def test_elections_that_were_replaced_are_not_started(site: Site) -> None:
    """If the folder's files are exchanged during a step, the run stops, and elects nothing that wasn't reviewed."""
    files = site.folder / "ansible" / "roles" / "kafka_reassign" / "files"
    hook = site.folder.parent / "exchange.yml"
    exchange = {"src": str(files / "elections" / "3.json"), "dest": str(files / "elections" / "1.json")}
    hook.write_text(json.dumps([{"name": "Exchange", "ansible.builtin.copy": exchange}]))
    run = play(site, "-e", f"kafka_reassign_before_restart={hook}")
    assert (2, [1], 2) == (run.code, site.cluster["restarted"], site.leaders()["a-0"]), run.output
    assert "elections/1.json isn't the file that was planned and reviewed: it was changed after the run" in run.text


def test_check_mode_restarts_nothing(site: Site) -> None:
    """With --check, the run says which brokers would restart."""
    assert 0 == (run := play(site, "--check")).code, run.output
    assert "step 2 of 4 restarts broker 4." in run.text
    assert "restarted" not in site.cluster


def test_foretold_errors_have_to_be_allowed(site: Site) -> None:
    """If a step refuses writes, nothing restarts unless the operator allows it."""
    run = play(site, allow=False)
    assert 2 == run.code
    assert "Partitions refuse writes with acks=all, have no leader or lose records in step 1, 4;" in run.text
    assert 2 == (run := play(site, "-e", "kafka_reassign_from_step=2", allow=False)).code
    assert "or lose records in step 4;" in run.text
    assert "restarted" not in site.cluster


def test_what_was_not_foretold_stops_the_run_and_it_can_go_on(site: Site) -> None:
    """Before each step, the run asks Kafka which partitions would refuse writes now, and stops at an unexpected one."""
    spoilt = {"a-1": {"replicas": [2, 3, 4], "leader": 2, "least": 3}}
    site.set_cluster(spoilt=spoilt)
    assert 2 == (run := play(site)).code
    assert (
        "Stopped before step 2 of 4: not in report.md: partitions would refuse writes with acks=all: a-1. None of its "
        "brokers was restarted. Run the playbook again with -e kafka_reassign_from_step=2 to go on" in run.text
    )
    assert said(site)[-1].startswith("The run stopped before step 2 of 4: not in report.md: partitions")
    assert (True, True) == (
        said(site)[-1] in run.text,
        said(site)[-1].endswith("as it is now (new steps count from 1)."),
    )
    assert [1] == site.cluster["restarted"]
    site.set_cluster(partitions=site.cluster["partitions"] | {"a-1": spoilt["a-1"] | {"least": 2}})
    assert 0 == (run := play(site, "-e", "kafka_reassign_from_step=2")).code, run.output
    assert [1, 4, 2, 3] == site.cluster["restarted"]


def test_a_higher_min_insync_replicas_keeps_two_brokers_from_restarting_together(pair: Site) -> None:
    """x-0 has three replicas in sync. Since min.insync.replicas was raised to 2, 1 and 4 can't both stop."""
    partitions = pair.cluster["partitions"]
    partitions["x-0"]["least"] = 2
    pair.set_cluster(partitions=partitions)
    assert 2 == (run := play(pair)).code, run.output
    assert (
        "Stopped before step 1 of 3: not in report.md: partitions would refuse writes with acks=all: x-0." in run.text
    )
    assert "restarted" not in pair.cluster


def test_a_topic_with_fewer_replicas_than_min_insync_replicas_can_be_allowed(tmp_path: Path) -> None:
    """d-0 has no leader while its only broker restarts. report.md says so, and the operator allows it."""
    site = made(tmp_path, {"a": [[1, 2, 3], [4, 2, 3]], "d": [[1]]}, {"a": 2, "d": 2}, {})
    assert 0 == (run := play(site)).code, run.output
    assert [1, 4, 2, 3] == site.cluster["restarted"]


def test_tasks_that_restart_only_one_of_two_brokers(pair: Site) -> None:
    """Each broker of a step must have been stopped, not only one of them."""
    assert 2 == (run := play(pair, only="[:1]")).code, run.output
    assert "Stopped after step 1 of 3: broker 4 still leads all that it led before your tasks." in run.text
    assert [1] == pair.cluster["restarted"]


def test_controllers_that_do_not_answer_stop_the_run(site: Site) -> None:
    """If nobody knows the controllers, nobody knows whether a majority stays."""
    site.set_cluster(voters=None)
    assert 2 == (run := play(site)).code
    assert (True, False) == ("kafka-metadata-quorum describe" in run.text, "restarted" in site.cluster), run.output


def test_after_the_tasks_before_a_restart_the_cluster_is_checked_again(site: Site) -> None:
    """A stop file that appears during these tasks is obeyed. Variables for Kafka's tools aren't set for these tasks."""
    stop, heap = site.folder.parent / "stop", site.folder.parent / "heap"
    hook = site.folder.parent / "hook.yml"
    hook.write_text(
        f"---\n- name: Note\n  ansible.builtin.shell: 'touch {stop}; echo \"heap $KAFKA_HEAP_OPTS\" > {heap}'\n"
    )
    given = {"kafka_reassign_before_restart": str(hook), "kafka_reassign_environment": {"KAFKA_HEAP_OPTS": "-Xmx9m"}}
    run = play(site, "-e", json.dumps(given | {"kafka_reassign_stop_file": str(stop)}))
    assert 2 == run.code, run.output
    assert f"Stopped before step 1 of 4: the stop file {stop} exists. None of its brokers was restarted." in run.text
    assert ("heap \n", False) == (heap.read_text(), "restarted" in site.cluster)


def test_a_majority_of_the_controllers_never_restarts_together(site: Site) -> None:
    """Without a majority, no leader is elected. No step predicts that, because the planner knows no controllers."""
    site.set_cluster(voters=[1])
    assert 2 == (run := play(site)).code
    reason = "Stopped before step 1 of 4: broker 1 is 1 of the 1 controllers, and the others are no majority:"
    assert (True, False) == (reason in run.text, "restarted" in site.cluster), run.output
    assert "no leader is elected (planner restart --at-most 1). None of its brokers was restarted" in run.text


def test_a_broker_that_does_not_come_back_into_sync_stops_the_run(site: Site) -> None:
    """If replicas don't come back into sync, no other broker restarts, and the run says how to go on."""
    site.set_cluster(spoilt={"a-0": {"replicas": [1, 2, 3], "leader": 2, "isr": [2, 3], "least": 2}})
    run = play(site, "-e", "kafka_reassign_hold_seconds=1")
    assert 2 == run.code
    assert (
        "WAITS, After step 1 of 4: 1 partition under-replicated: a-0. No other broker restarts. The run goes"
        in run.text
    )
    assert "under-replicated: a-0. No other broker was restarted. Once all is as before: run the playbook" in run.text
    assert [1] == site.cluster["restarted"]


@pytest.mark.parametrize(("step", "led", "restarted"), [(2, "a-0", [4, 2, 3]), (5, "b-0", None)])
def test_a_run_that_goes_on_elects_what_the_step_before_it_did_not(
    site: Site, step: int, led: str, restarted: list[int] | None
) -> None:
    """A step that stopped while it waited has elected no leaders. That may be the last step, with none after it."""
    partitions = site.cluster["partitions"]
    partitions[led]["leader"] = partitions[led]["replicas"][1]
    site.set_cluster(partitions=partitions)
    assert 0 == (run := play(site, "-e", f"kafka_reassign_from_step={step}")).code, run.output
    assert (LEADERS[led], restarted) == (site.leaders()[led], site.cluster.get("restarted"))
    assert f"After step {step - 1} of 4: 1 leader was elected." == said(site)[1]


def test_elections_that_fail_do_not_keep_a_run_from_going_on(site: Site) -> None:
    """A replica that never gets in sync again can't lead. The run that goes on after its step says so, and goes on."""
    site.set_cluster(elects="none")
    assert 2 == (run := play(site, "-e", "kafka_reassign_from_step=4")).code, run.output
    assert [3] == site.cluster.get("restarted"), run.output
    assert 1 == run.output.count("...ignoring"), run.output


def test_tasks_that_return_before_anything_stopped(site: Site) -> None:
    """If a broker still leads all that it led, it hasn't restarted, so the next one must not restart."""
    (site.folder.parent / "idle.yml").write_text("---\n- name: Do nothing\n  ansible.builtin.debug:\n    msg: later\n")
    run = play(site, "-e", f"kafka_reassign_restart_tasks={site.folder.parent / 'idle.yml'}")
    assert 2 == run.code
    assert "Stopped after step 1 of 4: broker 1 still leads all that it led before your tasks." in run.text
    assert "step 2 of 4 restarts" not in run.text


NOTE = """---
- name: Note
  ansible.builtin.lineinfile:
    path: {path}
    line: "{{{{ kafka_reassign_event | to_json(sort_keys=true) }}}}"
- name: Stop where the test wants it
  ansible.builtin.assert:
    that: kafka_reassign_event.event ~ kafka_reassign_event.step != stop | default('')
"""


def test_tasks_before_and_after_each_restart(site: Site) -> None:
    """Tasks run before a step's brokers restart and after they lead again. A failing task ends the run there."""
    folder = site.folder.parent
    notes = folder / "notes"
    notes.touch()
    (folder / "note.yml").write_text(NOTE.format(path=notes))
    hooks = [f"kafka_reassign_{when}_restart={folder / 'note.yml'}" for when in ("before", "after")]
    given = [word for hook in hooks for word in ("-e", hook)]
    assert 0 == play(site, *given, "--check").code
    assert "" == notes.read_text()
    assert 2 == play(site, *given, "-e", "stop=before_restart2").code
    again = (
        "Run the playbook again with -e kafka_reassign_from_step=2 to restart its brokers, or 3 if they were restarted."
    )
    assert f"The run stopped at step 2: see the output of the run. {again}" == said(site)[-1]
    assert [1] == site.cluster["restarted"]
    assert 2 == play(site, *given, "-e", "stop=after_restart2", "-e", "kafka_reassign_from_step=2").code
    assert LEADERS | {"c-0": 2} == site.leaders()  # broker 4 led it without being its preferred leader
    assert 0 == play(site, *given, "-e", "kafka_reassign_from_step=3").code
    name = json.loads((site.folder / "restart.json").read_text())["restart_id"]
    expected = []
    for step, broker in enumerate((1, 4, 2, 3), start=1):
        before, after = (
            {"event": f"{when}_restart", "plan_id": name, "step": step, "brokers": [broker]}
            for when in ("before", "after")
        )
        expected += [before, broker, after]
    assert expected == [json.loads(line) for line in notes.read_text().splitlines()]


def test_a_partition_without_a_leader_does_not_keep_brokers_from_restarting(tmp_path: Path) -> None:
    """If it had none when the steps were made, it needn't have one. If it has lost its leader since, nothing starts."""
    site = made(tmp_path, {"a": [[1, 2, 3]], "c": [[2, 4]]}, {"a": 1, "c": 1}, {"c-0": None})
    offline = {"leader": None, "isr": []}
    partitions = site.cluster["partitions"]
    site.set_cluster(partitions={"a-0": partitions["a-0"] | offline, "c-0": partitions["c-0"] | offline})
    lost = play(site)
    assert (2, True) == (lost.code, "has lost its leader since the plan was made" in lost.text), lost.output
    assert "restarted" not in site.cluster
    site.set_cluster(partitions=partitions | {"c-0": partitions["c-0"] | offline})
    assert 0 == (run := play(site)).code, run.output
    assert [1, 2, 3, 4] == sorted(site.cluster["restarted"])


def test_a_broker_that_no_step_restarts_is_an_error(site: Site) -> None:
    """A broker that has joined since would keep its old version or configuration, so nothing restarts."""
    site.set_cluster(brokers=[1, 2, 3, 4, 9])
    assert 2 == (run := play(site)).code
    assert "No step restarts broker 9, which has joined since the steps were made. Nothing was restarted" in run.text
    assert "restarted" not in site.cluster


def test_another_cluster_than_the_steps_were_made_for(site: Site) -> None:
    """A replica list has changed since the steps were made, so nothing restarts: the predictions may be wrong."""
    site.set_cluster(partitions=site.cluster["partitions"] | {"c-0": {"replicas": [2, 3], "leader": 2}})
    assert 2 == (run := play(site)).code
    assert "1 partition isn't as the plan was made from. Nothing was started" in run.text
    assert "restarted" not in site.cluster


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("kafka_reassign_restart_tasks=", "the path of a file with your tasks that restart"),
        ("kafka_reassign_restart_tasks=/nowhere.yml", "/nowhere.yml isn't there; allowed: the path of a file"),
        ("kafka_reassign_before_restart=/nowhere.yml", "/nowhere.yml isn't there; allowed: the path of a file"),
        (
            "kafka_reassign_from_step=6",
            "kafka_reassign_from_step 6 isn't a step that is left; allowed: 1 to 4, or 5 for the leaders of the last",
        ),
        ("kafka_reassign_from_step=0", "kafka_reassign_from_step 0 isn't a step that is left; allowed: 1 to 4, or 5"),
    ],
)
def test_settings_that_make_no_sense(site: Site, setting: str, sentence: str) -> None:
    """A wrong setting gives one sentence with the allowed values, and nothing restarts."""
    run = play(site, "-e", setting)
    assert (2, True) == (run.code, sentence in run.text), run.output


def test_a_changed_file_does_not_run(site: Site) -> None:
    """A file that was changed after the review stops the run."""
    path = site.folder / templated_files.ROLE / "files" / "restart.json"
    path.write_text(path.read_text().replace('"at_most": null', '"at_most": 1'))
    assert 2 == (run := play(site)).code
    assert "restart.json isn't the file that was made and reviewed" in run.text


def test_the_same_bytes_each_time(site: Site) -> None:
    """The same spec gives the same bytes, and the id is a hash of the content."""
    loaded = load(site.folder.parent / "spec.yaml")
    again = templated_files.restart_files(restart_steps.document(loaded), restart_steps.states(loaded))
    assert {path: (site.folder / path).read_bytes() for path in again} == again
    document = json.loads(again["restart.json"]) | {"restart_id": ""}
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    assert json.loads(again["restart.json"])["restart_id"] == hashlib.sha256(text.encode()).hexdigest()
