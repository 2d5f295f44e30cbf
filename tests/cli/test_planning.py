"""`planner whatif`, `validate` and `render` as a user runs them: exit codes, limits, output, and files."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from command_line import Ran
from folders import EXAMPLES

from planner.cli.main import main

SPEC = """\
version: 1
cluster:
  name: demo
  brokers: [{id: 1, capacity: {disk: 4TiB}}, {id: 2, capacity: {disk: 4TiB}}]
  rates: [{topics: "*", bytes_in: 30MB/s}]
  topics:
    - {name: clicks, partitions: [{replicas: [1], size: 1TB}, {replicas: [2], size: 1TB}]}
changes: {add_brokers: [{id: 3, capacity: {disk: 4TiB}}], replace_brokers: {2: 3}, rebalance: none}
"""


@pytest.fixture
def whatif(planner, tmp_path):
    """Runs `whatif` in this process with few candidates, into a folder of the test."""

    def run(spec, *arguments) -> Ran:
        out = ("--out", tmp_path / "plan") if "--out" not in arguments else ()
        return planner("whatif", spec, "--engine", "local", "--candidates", 20, *out, *arguments)

    return run


def test_whatif_succeeds_and_says_where_it_wrote(whatif, tmp_path):
    """Exit code 0; the output names the folder and the next command."""
    ran = whatif(EXAMPLES / "expand.yaml")

    assert 0 == ran.code
    assert (tmp_path / "plan" / "plan.json").exists()
    files = len([path for path in (tmp_path / "plan").rglob("*") if path.is_file()])
    where = f"\nFiles     {tmp_path}/plan/ ({files} files)"
    assert f"{where}: review report.md or report.html, apply with ansible/\n" in ran.out
    assert f"\nNext      cd {tmp_path}/plan/ansible && ansible-playbook apply.yml --check\n" in ran.out
    assert "" == ran.err


@pytest.mark.slow
def test_detailed_exitcode_tells_plans_with_moves_from_plans_without(whatif, tmp_path):
    """--detailed-exitcode is 2 if the plan moves something, and 0 if it doesn't."""
    assert 2 == whatif(EXAMPLES / "expand.yaml", "--detailed-exitcode").code

    even = tmp_path / "even.yaml"
    even.write_text(
        "version: 1\ncluster:\n  name: even\n  brokers: [{id: 1}, {id: 2}]\n"
        "  topics:\n    - name: t\n      partitions: [{replicas: [1], size: 1GB}, {replicas: [2], size: 1GB}]\n"
    )
    assert 0 == whatif(even, "--detailed-exitcode", "--out", tmp_path / "even").code


@pytest.mark.slow
def test_a_crossed_gate_exits_3_and_writes_nothing(whatif, tmp_path):
    """A plan above its limits exits with 3, names each exceeded limit and writes nothing."""
    spec = tmp_path / "gated.yaml"
    text = (EXAMPLES / "expand.yaml").read_text().replace("limits: {bytes_moved: 300MB, leaders_changed: 60}", "")
    spec.write_text(text + "\nlimits: {bytes_moved: 1MB, replicas_moved: 3}\n")
    shutil.copytree(EXAMPLES / "state", tmp_path / "state")

    ran = whatif(spec)

    assert 3 == ran.code
    assert "limits.bytes_moved" in ran.err
    assert "limits.replicas_moved" in ran.err
    assert "allowed: at most 3" in ran.err
    assert not (tmp_path / "plan").exists()
    assert "still has the plan" not in ran.err


@pytest.mark.slow
def test_an_older_plan_is_not_taken_for_the_one_that_is_refused(whatif, tmp_path):
    """If a plan is refused, an earlier plan stays in its folder, and the error says so."""
    spec = tmp_path / "gated.yaml"
    shutil.copytree(EXAMPLES / "state", tmp_path / "state")
    text = (EXAMPLES / "expand.yaml").read_text()
    spec.write_text(text)
    assert 0 == whatif(spec).code
    before = (tmp_path / "plan" / "plan.json").read_bytes()
    spec.write_text(text.replace("bytes_moved: 300MB", "bytes_moved: 1MB"))

    ran = whatif(spec)

    assert (3, before) == (ran.code, (tmp_path / "plan" / "plan.json").read_bytes())
    assert ran.err.endswith(f"{tmp_path}/plan still has the plan made before\n")


def test_a_state_that_is_too_old_is_told_at_once(whatif, tmp_path):
    """If the state is too old, the plan is written as usual; the screen or a warning says that apply.yml refuses it."""
    spec = tmp_path / "old.yaml"
    spec.write_text(
        "version: 1\nvalid_for: 1d\ncluster:\n  name: old\n  brokers: [{id: 1}, {id: 2}]\n"
        "  captured_at: 2026-11-20T10:00:00Z\n"
        "  topics:\n    - name: t\n      partitions: [{replicas: [1], size: 1GB}, {replicas: [1], size: 1GB}]\n"
    )
    said = r"plan \w{12} was valid until 2026-11-21T10:00:00Z, now it is \S+Z: apply.yml refuses it"
    ran, data = whatif(spec), whatif(spec, "--format", "json")

    assert (0, "", 0) == (ran.code, ran.err, data.code)
    assert re.match(rf"Expired: {said}\.\n", ran.out)
    assert re.fullmatch(rf"warning: {said}\n", data.err)


def test_a_state_of_the_future_is_refused(planner, whatif, tmp_path):
    """A plan from a state captured in the future would be valid for too long: nothing is planned or written."""
    spec = tmp_path / "future.yaml"
    spec.write_text(SPEC.replace("  name: demo\n", "  name: demo\n  captured_at: 2962-11-20T10:00:00Z\n"))
    for ran in (whatif(spec), planner("validate", spec)):
        assert 1 == ran.code
        said = (
            r"future.yaml:4:3: cluster.captured_at: '2962-11-20T10:00:00Z' is in the future, now it is \S+Z; allowed: "
        )
        assert re.search(said, ran.err)
    assert not (tmp_path / "plan").exists()


def test_bad_input_exits_1_with_the_place_and_no_traceback(whatif, tmp_path):
    """A fault in the spec exits with 1 and its place on stderr, without a traceback, and nothing is written."""
    spec = tmp_path / "bad.yaml"
    spec.write_text("version: 1\nclutser: {}\n")

    ran = whatif(spec)

    assert 1 == ran.code
    assert f"{spec}:2:1" in ran.err
    assert "did you mean" in ran.err.lower()
    assert "Traceback" not in ran.err
    assert not (tmp_path / "plan").exists()


def test_spark_options_are_refused_with_the_local_engine(whatif):
    """Spark options with the local engine are refused."""
    ran = whatif(EXAMPLES / "expand.yaml", "--master", "local[2]")

    assert 1 == ran.code
    assert "--master" in ran.err


def test_a_folder_that_is_not_ours_is_refused_before_the_sweep_and_kept(whatif, tmp_path):
    """A folder with other files is refused before the sweep, and stays unchanged."""
    precious = tmp_path / "plan" / "thesis.tex"
    precious.parent.mkdir()
    precious.write_text("years of work")

    ran = whatif(EXAMPLES / "expand.yaml")

    assert 1 == ran.code
    assert "years of work" == precious.read_text()
    assert [precious] == list(precious.parent.iterdir())


@pytest.mark.slow
def test_planning_again_replaces_the_earlier_plan(whatif, tmp_path):
    """A second run replaces the first plan, and writes the same bytes."""
    folder = tmp_path / "plan"
    runs = [
        (whatif(EXAMPLES / "expand.yaml").code, {path: path.read_bytes() for path in folder.rglob("*.json")})
        for _ in range(2)
    ]
    assert 0 == runs[0][0]
    assert runs[0] == runs[1]


@pytest.mark.slow
def test_render_writes_the_same_bytes_again(whatif, planner, tmp_path):
    """`render` writes the same bytes as `whatif`; it copies bound.json and candidates.parquet, and renders the rest."""
    whatif(EXAMPLES / "expand.yaml")
    folder, again = tmp_path / "plan", tmp_path / "again"

    assert 0 == planner("render", folder, "--out", again).code

    first = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    second = {path.relative_to(again): path.read_bytes() for path in again.rglob("*") if path.is_file()}
    assert first == second


def test_validate_reads_everything_and_writes_nothing(planner, tmp_path):
    """`validate` writes nothing."""
    before = sorted(EXAMPLES.rglob("*"))

    assert 0 == planner("validate", EXAMPLES / "expand.yaml").code
    assert before == sorted(EXAMPLES.rglob("*"))


def test_a_byte_limit_needs_every_size(whatif, tmp_path):
    """A limit on bytes is refused with its place, before the sweep, if a partition has no size."""
    spec = tmp_path / "unsized.yaml"
    spec.write_text(
        "version: 1\ncluster:\n  name: c\n  brokers: [{id: 1}, {id: 2}]\n"
        "  topics: [{name: t, partitions: [{replicas: [1], size: 1GB}, {replicas: [1]}]}]\nlimits: {bytes_moved: 9GB}\n"
    )

    ran = whatif(spec)

    assert 1 == ran.code
    assert ran.err.endswith(
        "unsized.yaml:6:10: limits.bytes_moved: '9GB' can't be judged with 1 partition without a size; allowed: sizes "
        "for every partition (cluster.state.sizes, or size in cluster.topics), or no such limit\n"
    )
    assert not (tmp_path / "plan").exists()


def test_a_topic_with_unlike_replication_factors_is_planned(whatif, tmp_path):
    """A topic with different replication factors is planned by every strategy, also by Kafka's placers."""
    spec = tmp_path / "mixed.yaml"
    spec.write_text(
        "version: 1\ncluster:\n  name: c\n  brokers: [{id: 1, rack: a}, {id: 2, rack: b}]\n"
        "  topics: [{name: t, partitions: [{replicas: [1, 2]}, {replicas: [1]}, {replicas: [1, 2]}]}]\n"
    )

    assert 0 == whatif(spec).code


def test_where_it_runs_is_never_replaced(whatif, tmp_path, monkeypatch):
    """`--out .` is refused, because it would replace the working directory."""
    monkeypatch.chdir(tmp_path)

    assert 1 == whatif(EXAMPLES / "expand.yaml", "--out", ".").code


UNSAFE = "Refused: it can't be applied safely; "


@pytest.mark.parametrize(
    ("text", "said", "shown"),
    [
        ("execution: {throttle: 15MB/s}", "execution.throttle: 15 MB/s never lets batch 1 complete", UNSAFE),
        (
            "limits: {eta: 2h}\nexecution: {throttle: 100MB/s}",
            "limits.eta: the plan comes to 3 h 16 min (11765 s), allowed: at most 2 h",
            "Refused: 1 of 2 limits is exceeded (limits.eta: 3 h 16 min, at most 2 h); ",
        ),
        (
            "limits: {disk_used: 20%}",
            "limits.disk_used: broker 3 holds 1.00 TB (1000000000000 bytes) in batch 1, allowed: at most",
            "Refused: 1 of 1 limit is exceeded (limits.disk_used: ",
        ),
    ],
    ids=["throttle", "eta", "disk_used"],
)
def test_the_command_exits_3_and_writes_nothing(
    text: str, said: str, shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A refused plan exits with 3: stdout shows the plan, stderr the key to change, and no folder is made."""
    (tmp_path / "s.yaml").write_text(f"{SPEC}{text}\n", encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["whatif", str(tmp_path / "s.yaml"), "--engine", "local", "--candidates", "20"])
    captured = capsys.readouterr()

    assert 3 == ended.value.code
    assert captured.out.startswith(shown)
    assert "ansible-playbook" not in captured.out
    assert said in captured.err
    assert ["s.yaml"] == [path.name for path in tmp_path.iterdir()]


def test_the_command_plans_within_its_gates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Within its limits the plan is written: 1 TB at 100 − 15 MB/s takes 3 h 16 min, on disks of 4 TiB."""
    text = "limits: {eta: 4h, disk_used: 25%}\nexecution: {throttle: 100MB/s}\n"
    (tmp_path / "s.yaml").write_text(SPEC + text, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["whatif", str(tmp_path / "s.yaml"), "--engine", "local", "--candidates", "20"])
    captured = capsys.readouterr()

    assert (0, "") == (ended.value.code, captured.err)
    shown = " ".join(captured.out.split())
    assert "1 batch, at least 3 h 16 min at 100 MB/s per broker (your throttle)" in shown
    assert "duration 3 h 16 min at most 4 h fullest disk 22.7 % 22.7 % at most 25 %" in shown
