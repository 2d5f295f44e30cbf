"""Settings of all tests: how many examples a property draws, how tests are dealt out; one Spark a run."""

from __future__ import annotations

import gc
import hashlib
import os
import re
import signal
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import properties
import pytest
import tools
from command_line import Ran, Run
from xdist.scheduler import LoadScopeScheduling

# The tests start hundreds of processes: each would compile all modules anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell's background and nohup have these ignored; what a test starts would take no notice of them either.
for name, handler in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL)):
    if signal.getsignal(getattr(signal, name)) is signal.SIG_IGN:
        signal.signal(getattr(signal, name), handler)


def pytest_configure(config: pytest.Config) -> None:
    """The properties' profile is there before a test module says how many examples it wants."""
    properties.load(config.option.markexpr)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-goldens` writes the golden files instead of comparing with them."""
    parser.addoption(
        "--update-goldens",
        action="store_true",
        help="write golden files, schemas and the docs' tables anew",
    )


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two processes; three where all tests are asked for, as two of them wait for Kafka much of the time."""
    return 3 if properties.are_all(config.option.markexpr) else 2


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before any fixture: what a test runs is here."""
    tools.require(mark.name for mark in item.iter_markers())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What asks for the session is marked `spark`. The tests of the Kafka clusters take longest: they begin first."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
    items.sort(key=lambda item: not item.nodeid.startswith("tests/kafka/"))


def pytest_collection_finish() -> None:
    """What thousands of tests are made of stays until the end: the collector needn't look at it again and again."""
    gc.freeze()


# Half of the time of the tests of a Kafka cluster; the other half is that of all other files there.
FIRST_CLUSTER = re.compile(
    "tests/kafka/test_(access|docs_on_a_cluster|effective_configs|elections|failed|faults_before|loop)"
)


class _ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """A file's tests share their fixtures in one of the processes; those of Kafka share a cluster in each of two."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        return f"tests/kafka {bool(FIRST_CLUSTER.match(file))}" if file.startswith("tests/kafka/") else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """How tests are dealt to the processes."""
    return _ByFile(config, log)


@pytest.fixture(scope="session", autouse=True)
def _plots_of_a_plan_once() -> Iterator[None]:
    """A page draws each plan once a run: drawing takes half the time of tests that write a folder and check it.

    That the same plan gives the same plots is test_plots.py's, which draws them itself.
    """
    from planner.plan.document import codec
    from planner.report import html, plots

    drawn = dict[bytes, Any]()

    def draw(plan: Any, moved: Any) -> Any:
        key = hashlib.sha256(codec.encode(plan)).digest()
        if key not in drawn:
            drawn[key] = plots.draw(plan, moved)
        return drawn[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html, "plots", SimpleNamespace(draw=draw))
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A real session on two cores; Spark is imported by those who ask for it alone."""
    from spark_jobs import session

    with session.open_session(master="local[2]", frames=True) as opened:
        yield opened


@pytest.fixture
def planner(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command line in this process: exit code, stdout, stderr."""
    from planner.cli.main import main

    def run(*arguments: object) -> Ran:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(int(ended.value.code or 0), captured.out, captured.err)

    return run
