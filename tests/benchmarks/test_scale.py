"""The benchmark's curves: clusters of one family, stored numbers, and plots with the same bytes each time."""

from __future__ import annotations

import json
import re

import pytest

from benchmarks import benchmark, files, scale
from benchmarks.benchmark import Scope
from benchmarks.cases import Recipe
from benchmarks.table import Figures
from planner.model.errors import SetupError

TINY = Recipe(3, 3, 6, 3, 4, 5, 3, None, 1.0)


def tiny_point(name: str = "tiny") -> dict[str, object]:
    """A point of the curve in its stored form, measured here."""
    point = scale.measure(name, TINY)
    return {**vars(point), "seconds": point.seconds}


def test_a_point_is_a_checked_plan_with_its_times():
    """The plan is within one, breaks no rule, copies the least bytes, and has each phase's time."""
    point = scale.measure("tiny", TINY)

    assert (3, 6, 3, 4) == (point.brokers_before, point.brokers_after, point.replication_factor, point.topics)
    assert (point.partitions * 3, 0) == (point.replicas, point.violations)
    assert max(point.spreads) <= 1
    assert point.least_bytes <= point.bytes_moved <= point.least_bytes * 1.00001
    assert min(point.build_seconds, point.solve_seconds, point.leaders_seconds, point.check_seconds) > 0
    assert point.seconds == pytest.approx(point.build_seconds + point.solve_seconds + point.check_seconds)
    assert point.peak_bytes > 20_000_000


def test_the_curve_reaches_the_sizes_it_is_named_for():
    """The curve begins at about a thousand replicas and ends at millions on 215 brokers. Each point has more."""
    recipes = list(scale.RECIPES.values())
    replicas = [recipe.topics * recipe.mean_partitions * recipe.replication_factor for recipe in recipes]

    assert sorted(replicas) == replicas
    assert (1_008, 215) == (replicas[0], recipes[-1].brokers_after)
    assert 2_800_000 <= replicas[-1] <= 2_900_000


def test_the_curve_is_a_table_and_numbers(monkeypatch):
    """Each point has a row and its figures. Last come the times that users report of another planner."""
    monkeypatch.setattr(scale, "RECIPES", {"tiny": TINY})
    monkeypatch.setattr(scale, "apart", lambda function, *given: function(*given))

    found = list(scale.entries(("tiny",)))

    (figures,) = (entry for entry in found if isinstance(entry, Figures))
    assert ("scale", "tiny") == (figures.table, figures.values["point"])
    assert found[5].startswith(f"| {figures.values['replicas']:,} | {figures.values['partitions']:,} × 3 | 4 | 3 → 6 |")
    assert "18 to 95 minutes" in found[-1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scale", "sweep"])
def test_a_plot_is_the_same_bytes_each_time(name):
    """A plot has no time, version or random id, and has every series."""
    rows = {
        "scale": [{**tiny_point(), "replicas": replicas} for replicas in (1000, 10_000)],
        "sweep": [
            {"job": job, "workers": workers, "seconds": 9.0 / (workers or 1), "session_seconds": 1.0}
            for job in ("placements", "what-if")
            for workers in (0, 1, 2)
        ],
    }[name]

    first, second = files.PLOTS[name](rows), files.PLOTS[name](rows)

    assert first == second
    text = first.decode()
    assert [] == re.findall(r"<dc:date>|Matplotlib v", text)
    wanted = {"scale": ("leaders", "peak memory, MB"), "sweep": ("what-if, seconds", "without, if ideal")}[name]
    assert [word for word in wanted if word not in text] == []


def test_plots_without_their_library_are_refused_at_once(monkeypatch, tmp_path):
    """The error comes before anything is measured, and says what to install."""
    monkeypatch.setattr(files, "find_spec", lambda name: None)

    with pytest.raises(SetupError, match="install the kafka-planner wheel again"):
        benchmark.lines(Scope(out=tmp_path))


def test_a_folder_that_cannot_be_made_is_refused_at_once(tmp_path):
    """If a file has the folder's path, the error comes at once."""
    (tmp_path / "taken").write_text("")

    with pytest.raises(SetupError, match=r"--out .*taken: the folder can't be made"):
        benchmark.lines(Scope(out=tmp_path / "taken"))


@pytest.mark.slow
def test_files_hold_what_was_said_and_measured(tmp_path):
    """The folder has the printed Markdown, the numbers by table, and each table's plot, if it has one."""
    point = tiny_point()

    files.write(tmp_path, ["## Scale", ""], [Figures("scale", point), Figures("plans", {"case": "a"})])

    assert ["bench.json", "bench.md", "scale.svg"] == sorted(file.name for file in tmp_path.iterdir())
    assert "## Scale\n\n" == (tmp_path / "bench.md").read_text()
    numbers = json.loads((tmp_path / "bench.json").read_text())
    assert ({"plans", "scale"}, point["replicas"]) == (set(numbers), numbers["scale"][0]["replicas"])


@pytest.mark.slow
def test_a_run_writes_its_files_at_the_end(tmp_path):
    """The printed lines are those of the written Markdown file."""
    lines = list(benchmark.lines(Scope(("expand-small",), ("plans",), seeds=20, out=tmp_path / "new" / "folder")))

    assert lines == (tmp_path / "new" / "folder" / "bench.md").read_text().splitlines()
    (plan,) = json.loads((tmp_path / "new" / "folder" / "bench.json").read_text())["plans"]
    assert ("expand-small", 189 * 10**9) == (plan["case"], plan["plan"]["bytes_moved"])
