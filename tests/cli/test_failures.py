"""`planner failures` from start to end: which plan it takes, what it prints, and the same rows from Spark."""

from __future__ import annotations

import hashlib
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from folders import EXAMPLES, TESTS
from plan_documents import change, document, plan_id

from planner.cli import failures_restart_consumers as failures_command
from planner.cli.commands import commands
from planner.cli.main import main
from planner.model.errors import SetupError, StalePlanError
from planner.whatif import failure_simulation

DATA = TESTS / "data" / "failures"
MOVES = [
    [("orders", 0, [1, 3, 2], [1, 3, 4]), ("audit.log", 0, [2, 1], [3, 1])],
    [("orders", 1, [2, 4, 1], [3, 4, 1])],
]


@pytest.fixture
def spec(tmp_path):
    """The spec with a plan of two batches beside it; the plan is written by hand, so that it never changes."""
    path = tmp_path / "spec.yaml"
    path.write_bytes((DATA / "spec.yaml").read_bytes())
    made = document(
        [change(*move) for moves in MOVES for move in moves],
        [[change(*move) for move in moves] for moves in MOVES],
        inputs=[{"path": "spec.yaml", "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}],
    )
    (tmp_path / "spec.plan").mkdir()
    (tmp_path / "spec.plan" / "plan.json").write_text(json.dumps({**made, "plan_id": plan_id(made)}))
    return path


def run(*arguments):
    """What `planner failures` prints; its errors are raised."""
    ended = CliRunner().invoke(commands, ["failures", *map(str, arguments)], standalone_mode=False)
    if ended.exception:
        raise ended.exception
    return ended.stdout


@pytest.mark.parametrize(
    ("form", "file"), [("text", "failures.txt"), ("markdown", "failures.md"), ("json", "failures.json")]
)
def test_what_is_printed(spec, form, file, request):
    """The output is the golden file, byte for byte, in any folder."""
    shown = run(
        spec, "--of", "brokers", "--of", "racks", "--of", "pairs", "--of", "3", "--engine", "local", "--format", form
    )
    if form == "json":
        shown = json.dumps(json.loads(shown), indent=1, sort_keys=True) + "\n"
    if request.config.getoption("--update-goldens"):
        (DATA / file).write_text(shown)

    assert (DATA / file).read_text() == shown


def test_a_plan_finds_its_spec(spec):
    """The spec, the plan's folder and its plan.json as arguments give the same output."""
    shown = run(spec)

    assert shown == run(spec.with_suffix(".plan")) == run(spec.with_suffix(".plan") / "plan.json")


@pytest.mark.slow
def test_a_plan_finds_its_spec_from_within_its_folder(spec, monkeypatch):
    """The spec is found from within the plan's folder, where playbooks run, and through a link to the folder."""
    shown = run(spec)
    (spec.parent / "elsewhere").mkdir()
    link = spec.parent / "elsewhere" / "linked"
    link.symlink_to(spec.with_suffix(".plan"))
    assert shown == run(link)
    for folder, plan in (("", "."), ("", "plan.json"), ("ansible", ".."), ("ansible", "../plan.json")):
        within = spec.with_suffix(".plan") / folder
        within.mkdir(exist_ok=True)
        monkeypatch.chdir(within)
        assert shown == run(plan)


def test_a_spec_without_a_plan_says_what_fails_today(spec):
    """Without a plan only today is shown, with a note on how to make a plan."""
    (spec.with_suffix(".plan") / "plan.json").unlink()
    shown = json.loads(run(spec, "--format", "json"))

    assert (None, 0) == (shown["plan_id"], shown["batches"])
    assert ["today"] == [state["state"] for state in shown["kinds"][0]["states"]]
    assert (
        "there is no plan beside the spec, so only today is shown; planner whatif spec.yaml makes one"
        == shown["notes"][0]
    )


def test_a_plan_that_moves_nothing_is_said_to(spec):
    """A plan without moves is described as such, and has no batches."""
    path = spec.with_suffix(".plan") / "plan.json"
    made = document([], [], inputs=json.loads(path.read_text())["inputs"])
    path.write_text(json.dumps({**made, "plan_id": plan_id(made)}))
    scope = run(spec, "--of", "brokers").splitlines()[1]
    assert scope.startswith(f"Failures simulated today, as plan {plan_id(made)[:12]} moves no replica (brokers: all 4)")


def test_no_table_without_rows(spec):
    """For a number of brokers there are too many scenarios for a table, so it is left out."""
    for form in ("text", "markdown"):
        assert "if it fails" not in run(spec, "--of", "3", "--engine", "local", "--format", form).lower()
        assert "if it fails" in run(spec, "--of", "brokers", "--format", form).lower()


def test_a_plan_of_other_files_is_passed_over_or_refused(spec):
    """A plan made from other files is ignored with a note if it was found, and refused if it was named."""
    spec.write_text(spec.read_text() + "# edited\n")
    shown = json.loads(run(spec, "--format", "json"))

    assert shown["notes"][0].startswith("spec.plan was made from files that have changed, so only today is shown")
    with pytest.raises(StalePlanError, match="isn't made from"):
        run(spec, "--plan", spec.with_suffix(".plan"))


def test_every_row_goes_to_parquet(spec, tmp_path):
    """--rows writes one row per scenario and state, in order, and always the same bytes."""
    out, again = tmp_path / "rows.parquet", tmp_path / "again.parquet"
    for path in (out, again):
        run(spec, "--rows", path)
    table = pq.read_table(out)

    assert failure_simulation.ROW_SCHEMA == table.schema
    assert (4 + 2 + 6) * 4 == len(table)
    assert ["today", "batch 1", "batch 2", "planned"] == table["state"].to_pylist()[:4]
    assert out.read_bytes() == again.read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--of", "hosts"), "'hosts' isn't possible here; allowed: brokers, racks, pairs, or a number of brokers"),
        (("--of", "5", "--engine", "local"), "--of 5: 5 brokers can't fail; allowed: at most 4"),
        (
            ("--engine", "local", "--partitions", "2"),
            "--partitions is Spark's; allowed: --engine spark",
        ),
    ],
)
def test_options_that_make_no_sense(spec, options, message, capsys):
    """Wrong options exit with 1 and a sentence that says what is allowed."""
    with pytest.raises(SystemExit) as ended:
        main(["failures", str(spec), *options])

    assert 1 == ended.value.code
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_cluster_of_one_broker_has_no_pairs(tmp_path):
    """With one broker, pairs are left out by default, and refused if they are named."""
    path = tmp_path / "spec.yaml"
    topic = "topics: [{name: a, partitions: [{replicas: [1]}, {replicas: [1]}]}]"
    path.write_text(f"version: 1\ncluster:\n  name: one\n  brokers: [{{id: 1}}]\n  {topic}\n")
    found = json.loads(run(path, "--format", "json"))
    assert ["brokers"] == [each["of"] for each in found["kinds"] if each["possible"]]
    assert 1 == CliRunner().invoke(commands, ["failures", str(path), "--of", "pairs"]).exit_code


def test_racks_that_no_broker_has_cannot_fail(tmp_path):
    """Without racks, `--of racks` is refused."""
    path = tmp_path / "spec.yaml"
    path.write_bytes((EXAMPLES / "no-racks.yaml").read_bytes())
    with pytest.raises(SetupError, match=r"--of racks: no broker of .*spec.yaml has a rack; allowed: brokers, pairs"):
        run(path, "--of", "racks")


def test_a_plan_without_its_spec(spec, tmp_path):
    """If a plan's spec isn't beside it, the error says how to name it."""
    spec.rename(tmp_path / "other.yaml")

    with pytest.raises(
        SetupError, match=r"its spec 'spec.yaml' isn't beside it; allowed: planner failures SPEC --plan"
    ):
        run(spec.with_suffix(".plan"))


def test_a_file_that_cannot_be_written(spec, tmp_path):
    """A missing folder is refused before the simulation; a full disk gives the system's reason."""
    with pytest.raises(SetupError, match=r"--rows .*nowhere/rows.parquet: .*nowhere isn't a folder"):
        run(spec, "--of", "brokers", "--engine", "local", "--rows", tmp_path / "nowhere" / "rows.parquet")
    with pytest.raises(SetupError, match="/dev/full: can't be written: No space left on device"):
        run(spec, "--of", "brokers", "--engine", "local", "--rows", "/dev/full")


def test_rows_replace_no_file_of_another_kind(spec):
    """--rows doesn't replace a file that isn't Parquet, or Parquet with other columns."""
    notes, other, rows = spec.parent / "notes.md", spec.parent / "history.parquet", spec.parent / "rows.parquet"
    notes.write_text("mine")
    pq.write_table(pa.table({"a": [1]}), other)
    before = other.read_bytes()
    with pytest.raises(SetupError, match=r"--rows .*history.parquet: is there already, and isn't a file of failures"):
        run(spec, "--of", "brokers", "--engine", "local", "--rows", other)
    assert before == other.read_bytes()
    for _ in range(2):
        run(spec, "--of", "brokers", "--engine", "local", "--rows", rows)
    with pytest.raises(SetupError, match=r"--rows .*notes.md: is there already, and isn't a file of failures"):
        run(spec, "--of", "brokers", "--engine", "local", "--rows", notes)
    assert "mine" == notes.read_text()


@pytest.mark.spark
@pytest.mark.parametrize("rows", ["spec.yaml", "spec.plan/plan.json", "spec.plan/rows.parquet"])
def test_rows_replace_nothing_that_is_read(spec, rows):
    """--rows replaces neither the spec nor a file in the plan's folder, however the plan was named."""
    before = sorted((each, each.is_file() and each.read_bytes()) for each in spec.parent.rglob("*"))
    for subject in (spec, spec.with_suffix(".plan"), spec.parent / "spec.plan" / "plan.json"):
        with pytest.raises(SetupError, match=r"--rows .* is read, and would be changed; allowed: a file elsewhere"):
            run(subject, "--of", "brokers", "--engine", "local", "--rows", spec.parent / rows)
    assert before == sorted((each, each.is_file() and each.read_bytes()) for each in spec.parent.rglob("*"))


def test_spark_has_no_rows_where_nothing_can_fail(spec, spark):
    """Without scenarios, for example without racks, Spark gives no rows either."""
    from spark_jobs import worker_tasks

    subject = failures_command.find(spec, None)
    study = failure_simulation.study(subject.spec, subject.problem, subject.batches, ())

    answers = worker_tasks.answers(spark, failure_simulation.questions(study, ()))
    assert failure_simulation.join_rows([]).equals(failure_simulation.join_rows(answers))


@pytest.mark.spark
@pytest.mark.parametrize("partitions", [1, 3])
def test_spark_gives_the_same_rows(spec, spark, partitions, monkeypatch):
    """Spark gives the same rows with any number of tasks, and with chunks of two scenarios."""
    from spark_jobs import worker_tasks

    subject = failures_command.find(spec, None)
    wanted = failure_simulation.all_scenarios(subject.problem, ("brokers", "racks", "pairs", "3"), 1000, 0)
    study = failure_simulation.study(subject.spec, subject.problem, subject.batches, wanted)

    in_one = failure_simulation.join_rows(each() for each in failure_simulation.questions(study, wanted))
    monkeypatch.setattr(failure_simulation, "CHUNK", 2)
    answers = worker_tasks.answers(spark, failure_simulation.questions(study, wanted), partitions)
    assert in_one.equals(failure_simulation.join_rows(answers))
