"""A real Kafka cluster for each process that runs tests of this folder, and an operator with Kafka's tools."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from filelock import FileLock

EXAMPLE = Path(__file__).parents[2] / "examples" / "local-cluster"
sys.path.insert(0, str(EXAMPLE))
pytest.register_assert_rewrite("faults", "loop", "operator_at_work")  # so that pytest prints the differences

from cluster import CONTROLLER, Cluster, install, reserved_ports, running  # noqa: E402  (the example's own cluster is the one under test)
from operator_at_work import Operator  # noqa: E402
from resident_tools import resident  # noqa: E402


@pytest.fixture(scope="session")
def folder_with_jars(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes a folder for a cluster, with a link to Kafka's jars. Maven fetches the jars once a run."""
    # All processes of a run have their folders below the same parent folder.
    own = tmp_path_factory.getbasetemp()
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "kafka"
    with FileLock(f"{shared}.lock"):
        if not (shared / "recorded").exists():
            _record_classes(shared)
            (shared / "recorded").touch()

    def linked(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        (folder / "libs").symlink_to(shared / "libs")
        return folder

    return linked


def _record_classes(folder: Path) -> None:
    """Installs Kafka's jars, and records class archives of brokers and tools: loading takes half of a start's CPU."""
    with reserved_ports(2) as ports, pytest.MonkeyPatch.context() as patch:
        cluster = Cluster(folder, install(folder), {1: "r0"}, dict(zip((CONTROLLER, 1), ports, strict=True)))
        cluster.write_properties()
        cluster.format()
        try:
            cluster.start(CONTROLLER)
            patch.setenv("KAFKA_ARCHIVE_OPT", f"-XX:ArchiveClassesAtExit={folder / 'libs' / 'servers.jsa'}")
            cluster.start(1)
            patch.undo()
            cluster.record_classes()
        finally:
            cluster.stop()


# Stopped after the last test of this folder, because even idle brokers take 4 s of CPU a minute.
_UNTIL_THE_LAST_TEST = ExitStack()


@pytest.fixture(scope="session")
def cluster(folder_with_jars: Callable[[str], Path]) -> Cluster:
    """Six brokers in three racks, started once a run. Only the processes that were started are stopped."""
    started = _UNTIL_THE_LAST_TEST.enter_context(running(folder_with_jars("cluster")))
    _UNTIL_THE_LAST_TEST.enter_context(resident(started))
    return started


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Stops the cluster after the last test of this folder instead of at the end of the run."""
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        _UNTIL_THE_LAST_TEST.close()


@pytest.fixture
def operator(cluster: Cluster, tmp_path: Path) -> Iterator[Operator]:
    """An operator with a folder and an empty cluster. Afterwards, the fixture repairs and empties the cluster."""
    at_work = Operator(cluster, tmp_path)
    yield at_work
    at_work.tidy_up()
