"""Settings of all tests: the number of examples of a property, the test processes, one Spark session a run."""

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
import spark_servers
import tools
from command_line import Ran, Run
from xdist.scheduler import LoadScopeScheduling

# The tests start hundreds of processes. Without this, each process would compile all modules again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell's background jobs and nohup ignore these signals. Programs that a test starts would then ignore them too.
for name, handler in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL)):
    if signal.getsignal(getattr(signal, name)) is signal.SIG_IGN:
        signal.signal(getattr(signal, name), handler)


def pytest_configure(config: pytest.Config) -> None:
    """Loads the hypothesis profile before test modules are imported, because they ask for numbers of examples."""
    properties.load(config.option.markexpr)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--update-goldens`, which writes the golden files instead of comparing with them."""
    parser.addoption(
        "--update-goldens",
        action="store_true",
        help="write golden files, schemas and the docs' tables anew",
    )


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two processes, or three if all tests are asked for, because two of those often wait for Kafka."""
    return 3 if properties.are_all(config.option.markexpr) else 2


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Checks, before any fixture is set up, that the tools that the test runs are installed. Prepares Spark's Java."""
    marks = {mark.name for mark in item.iter_markers()}
    tools.require(sorted(marks))
    if "spark" in marks:
        spark_servers.warm_once()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests that use the Spark session as `spark`. Runs the Kafka tests first, because they take longest."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
    items.sort(key=lambda item: not item.nodeid.startswith("tests/kafka/"))


def pytest_collection_finish() -> None:
    """Keeps all objects so far out of garbage collection: thousands of tests need them until the end."""
    gc.freeze()


# These files take half of the time of the Kafka tests. All other files in tests/kafka take the other half.
FIRST_CLUSTER = re.compile(
    "tests/kafka/test_(access|docs_on_a_cluster|effective_configs|elections|failed|faults_before|loop)"
)


class _ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """Runs a file's tests in one process, because they share fixtures. Kafka tests run in two, with a cluster each."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        return f"tests/kafka {bool(FIRST_CLUSTER.match(file))}" if file.startswith("tests/kafka/") else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """The scheduler that deals the tests to the processes."""
    return _ByFile(config, log)


@pytest.fixture(scope="session", autouse=True)
def _plots_of_a_plan_once() -> Iterator[None]:
    """Draws each plan's plots once a run: otherwise, plots take half the time of tests that write and check folders.

    test_plots.py tests that the same plan gives the same plots, and draws them itself.
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
    """A real Spark session on two cores. Spark is imported only if a test asks for this fixture."""
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
