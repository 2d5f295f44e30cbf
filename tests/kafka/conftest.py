"""A real Kafka cluster in each process that runs tests of this folder, and an operator with Kafka's tools."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "local-cluster"
sys.path.insert(0, str(EXAMPLE))
pytest.register_assert_rewrite("faults", "loop", "operator_at_work")  # so that what differs is printed

from cluster import Cluster, install, running  # noqa: E402  (the example's own cluster is the one under test)
from operator_at_work import Operator  # noqa: E402
from resident_tools import resident  # noqa: E402


@pytest.fixture(scope="session")
def folder_with_jars(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes a folder for a cluster of this name, with links to Kafka's jars, which Maven brings once a run."""
    jars = install(tmp_path_factory.mktemp("jars")).parent / "libs"
    return lambda name: (
        Path(shutil.copytree(jars, tmp_path_factory.mktemp(name) / "libs", copy_function=os.link)).parent
    )


# Brokers that nobody asks anything still take 4 s of CPU a minute.
_UNTIL_THE_LAST_TEST = ExitStack()


@pytest.fixture(scope="session")
def cluster(folder_with_jars: Callable[[str], Path]) -> Cluster:
    """Six brokers in three racks, started once a run, and stopped with exactly the processes that were started."""
    started = _UNTIL_THE_LAST_TEST.enter_context(running(folder_with_jars("cluster")))
    _UNTIL_THE_LAST_TEST.enter_context(resident(started))
    return started


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """The cluster ends with the last test of this folder, and not with the run."""
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        _UNTIL_THE_LAST_TEST.close()


@pytest.fixture
def operator(cluster: Cluster, tmp_path: Path) -> Iterator[Operator]:
    """A folder to work in and an empty cluster; whatever the test did to the cluster is mended afterwards."""
    at_work = Operator(cluster, tmp_path)
    yield at_work
    at_work.tidy_up()
