"""`planner growth` from end to end: what it prints, what it refuses, and that Spark gives the same rows."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from folders import TESTS

from planner.cli.commands import commands
from planner.cli.main import main
from planner.inputs.spec.reading import load
from planner.model.errors import SpecError
from planner.whatif import growth_forecast

DATA = TESTS / "data" / "growth"


@pytest.mark.slow
@pytest.mark.parametrize(("form", "file"), [("text", "growth.txt"), ("markdown", "growth.md"), ("json", "growth.json")])
def test_what_is_printed(form, file, request):
    """Byte for byte what it was when it was last looked at."""
    command = ["growth", str(DATA / "spec.yaml"), "--engine", "local", "--format", form]
    ended = CliRunner().invoke(commands, command, standalone_mode=False)
    if ended.exception:
        raise ended.exception
    shown = ended.stdout if form != "json" else json.dumps(json.loads(ended.stdout), indent=1, sort_keys=True) + "\n"
    if request.config.getoption("--update-goldens"):
        (DATA / file).write_text(shown)

    assert (DATA / file).read_text() == shown


def refused(capsys, *command):
    """What a command says on stderr, with exit code 1."""
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, command)))
    assert 1 == ended.value.code
    return " ".join(capsys.readouterr().err.split())


def test_growth_needs_something_that_grows(tmp_path, capsys):
    """Without sizes and rates there is nothing to judge."""
    path = tmp_path / "spec.yaml"
    path.write_text(
        "version: 1\ncluster: {name: c, brokers: [{id: 1}], topics: [{name: t, partitions: [{replicas: [1]}]}]}\n"
    )

    assert "growth can't be judged without sizes or rates; allowed" in refused(
        capsys, "growth", path, "--engine", "local"
    )
    assert "allowed: --engine spark" in refused(capsys, "growth", path, "--engine", "local", "--partitions", 2)


def test_a_rate_that_is_none(tmp_path):
    """The place, the value seen, and what is allowed."""
    path = tmp_path / "spec.yaml"
    path.write_text((DATA / "spec.yaml").read_text().replace("per_month: 8%", "per_month: 0.08"))

    with pytest.raises(SpecError, match=r"growth\[0\].per_month: 0.08 isn't possible here; allowed: a percentage"):
        load(path)


@pytest.mark.spark
@pytest.mark.parametrize("partitions", [1, 3])
def test_spark_gives_the_same_rows(spark, partitions):
    """With any number of tasks."""
    from spark_jobs import whatif

    cases = growth_forecast.cases(load(DATA / "spec.yaml"), 6)

    assert growth_forecast.run(cases) == whatif.growth(spark, cases, partitions=partitions)
