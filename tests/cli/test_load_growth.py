"""`planner load` without Spark, and `planner growth` from start to end: what they print and refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from folders import TESTS

from planner.cli.commands import commands
from planner.cli.load_growth_size_drain import load
from planner.cli.main import main
from planner.inputs import load_profile_file
from planner.inputs.spec import reading
from planner.model.errors import SetupError, SpecError
from planner.model.load_history import HistoryFacts, Span
from planner.whatif import brokers_for_growth

HOURS = [float(1000 + hour) for hour in range(168)]


def typed(*arguments: str) -> Result:
    """The command's result; an error of planner is its exception."""
    return CliRunner().invoke(load, arguments)


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """A profile of one partition."""
    row = {field.name: 1 for field in load_profile_file.PROFILE_SCHEMA}
    row |= {"topic": "orders", "source": "measured", "hours_in": HOURS, "hours_out": HOURS}  # type: ignore[dict-item]
    rows = pa.Table.from_pylist([row], load_profile_file.PROFILE_SCHEMA)
    file = tmp_path / "load.parquet"
    file.write_bytes(load_profile_file.encoded(rows, HistoryFacts(Span(498_216, 498_216 + 672))))
    return file


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("-o", "{}/gone/load.parquet"), "/gone isn't a folder; allowed: a file in a folder that exists"),
        (("-o", "{}/p", "--column", "tim=ts"), "--column tim=ts: did you mean 'time'? allowed: NAME=COLUMN with one"),
        (
            ("-o", "{}/p", "--column", "time=a", "--column", "time=b"),
            "--column time=b: time is a already; allowed: each",
        ),
        (("-o", "{}/p", "--time-zone", "../x"), "--time-zone ../x: isn't a time zone; allowed: a name such as"),
        (("-o", "{}/p", "--master", "m", "--remote", "r"), "--master and --remote exclude each other"),
    ],
)
def test_what_is_wrong_is_said_before_any_work(tmp_path: Path, arguments: tuple[str, ...], why: str) -> None:
    """A wrong option is refused before any work, and nothing is written."""
    result = typed("x.parquet", *(each.format(tmp_path) for each in arguments))

    assert isinstance(result.exception, SetupError)
    assert why in str(result.exception)
    assert [] == list(tmp_path.iterdir())


def test_a_folder_is_no_output(tmp_path: Path) -> None:
    """A folder as the output file is refused by click."""
    result = typed("x.parquet", "-o", str(tmp_path))

    assert result.exit_code
    assert "is a directory" in result.output


def test_the_page_does_not_replace_the_profile(tmp_path: Path) -> None:
    """The profile and its page are two files, however their paths are written."""
    result = typed("x.parquet", "-o", str(tmp_path / "load"), "--html", f"{tmp_path}/../{tmp_path.name}/load")

    assert isinstance(result.exception, SetupError)
    assert "/load: is the file of --output, too; allowed: another file" in str(result.exception)
    assert [] == list(tmp_path.iterdir())


def test_a_profile_is_shown_in_every_format(profile: Path) -> None:
    """`--show` prints a profile as JSON, Markdown and text."""
    assert 672 == json.loads(typed("--show", str(profile), "--format", "json").output)["about"]["span"]["end"] - 498_216
    assert "orders" in typed("--show", str(profile), "--format", "markdown").output
    assert "Sunday 23:00 UTC" in typed("--show", str(profile)).output


@pytest.mark.parametrize(
    "unused", [("--time-zone", "UTC"), ("--column", "time=ts"), ("-o", "p.parquet"), ("--partitions", "2")]
)
def test_what_a_shown_profile_has_no_use_for_is_refused(profile: Path, unused: tuple[str, str]) -> None:
    """Options for making a profile are refused with `--show`."""
    result = typed("--show", str(profile), *unused)
    assert result.exit_code
    assert "is for making a profile; allowed: without --show" in result.output


def test_what_is_read_is_no_output(profile: Path) -> None:
    """Neither the shown profile nor a file in the history's folder can be the output."""
    before, folder = profile.read_bytes(), str(profile.parent)
    for arguments in (("--show", str(profile), "--html", str(profile)), (folder, "-o", f"{folder}/p.parquet")):
        result = typed(*arguments)
        assert isinstance(result.exception, SetupError)
        assert "is read, and would be changed; allowed: a file elsewhere" in str(result.exception)
    assert [(profile, before)] == [(each, each.read_bytes()) for each in profile.parent.iterdir()]


def test_a_profile_and_its_page_replace_no_file_of_another_kind(profile: Path, tmp_path: Path) -> None:
    """A profile and its page don't replace a file of another kind."""
    notes = tmp_path / "notes.md"
    notes.write_text("mine")
    for arguments in (("--show", str(profile), "--html", str(notes)), (str(profile), "-o", str(notes))):
        assert "notes.md: is there already, and isn't a " in str(typed(*arguments).exception)
    assert "mine" == notes.read_text()


def test_a_profile_replaces_only_a_profile(profile: Path, tmp_path: Path) -> None:
    """`load -o` replaces no other Parquet file, such as another history. An earlier profile passes this check."""
    history = tmp_path / "history.parquet"
    pq.write_table(pa.table({"time": [1]}), history)
    before = history.read_bytes()

    result = typed("gone.csv", "-o", str(history))

    said = f"--output {history}: is there already, and isn't a load profile; allowed: a new file, or a load profile"
    assert said == str(result.exception)
    assert before == history.read_bytes()
    assert (True, False) == tuple(map(load_profile_file.is_profile, (profile, history)))


def test_another_parquet_file_is_refused(tmp_path: Path) -> None:
    """Another Parquet file is refused, with what is allowed."""
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x.parquet")

    result = typed("--show", str(tmp_path / "x.parquet"))

    assert "is a Parquet file, but no load profile of version 1; allowed: what planner load writes" in str(
        result.exception
    )


DATA = TESTS / "data" / "growth"


@pytest.mark.slow
@pytest.mark.parametrize(("form", "file"), [("text", "growth.txt"), ("markdown", "growth.md"), ("json", "growth.json")])
def test_what_is_printed(form, file, request):
    """The output of `planner growth` is the golden file, byte for byte."""
    command = ["growth", str(DATA / "spec.yaml"), "--engine", "local", "--format", form]
    ended = CliRunner().invoke(commands, command, standalone_mode=False)
    if ended.exception:
        raise ended.exception
    shown = ended.stdout if form != "json" else json.dumps(json.loads(ended.stdout), indent=1, sort_keys=True) + "\n"
    if request.config.getoption("--update-goldens"):
        (DATA / file).write_text(shown)

    assert (DATA / file).read_text() == shown


def refused(capsys, *command):
    """What a command prints on stderr; its exit code is 1."""
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, command)))
    assert 1 == ended.value.code
    return " ".join(capsys.readouterr().err.split())


def test_growth_needs_something_that_grows(tmp_path, capsys):
    """Growth can't be judged without sizes or rates, so such a spec is refused."""
    path = tmp_path / "spec.yaml"
    path.write_text(
        "version: 1\ncluster: {name: c, brokers: [{id: 1}], topics: [{name: t, partitions: [{replicas: [1]}]}]}\n"
    )

    assert "growth can't be judged without sizes or rates; allowed" in refused(
        capsys, "growth", path, "--engine", "local"
    )
    assert "allowed: --engine spark" in refused(capsys, "growth", path, "--engine", "local", "--partitions", 2)


def test_a_rate_that_is_none(tmp_path):
    """A growth that isn't a percentage is refused with its key, its value, and what is allowed."""
    path = tmp_path / "spec.yaml"
    path.write_text((DATA / "spec.yaml").read_text().replace("per_month: 8%", "per_month: 0.08"))

    with pytest.raises(SpecError, match=r"growth\[0\].per_month: 0.08 isn't possible here; allowed: a percentage"):
        reading.load(path)


@pytest.mark.spark
@pytest.mark.parametrize("partitions", [1, 3])
def test_spark_gives_the_same_rows(spark, partitions):
    """Spark gives the same rows with any number of tasks."""
    from spark_jobs import worker_tasks

    cases = brokers_for_growth.cases(reading.load(DATA / "spec.yaml"), 6)

    asked = brokers_for_growth.questions(cases)
    assert [each() for each in asked] == worker_tasks.answers(spark, asked, partitions)
