"""One real Kafka cluster for all tests of this folder, and an operator who works on it with Kafka's own tools."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "local-cluster"
sys.path.insert(0, str(EXAMPLE))
pytest.register_assert_rewrite("faults", "loop", "operator_at_work")  # so that what differs is printed

from cluster import Cluster, running  # noqa: E402  (the example's own cluster is the one under test)
from operator_at_work import Operator  # noqa: E402
from resident_tools import resident  # noqa: E402


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Six brokers in three racks, started once a run, and stopped with exactly the processes that were started."""
    with running(tmp_path_factory.mktemp("kafka") / "cluster") as started, resident(started):
        yield started


@pytest.fixture
def operator(cluster: Cluster, tmp_path: Path) -> Iterator[Operator]:
    """A folder to work in and an empty cluster; whatever the test did to the cluster is mended afterwards."""
    at_work = Operator(cluster, tmp_path)
    yield at_work
    at_work.tidy_up()
