"""Settings of all tests: properties are drawn the same in every run, and never fail for being slow; one Spark a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "planner",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("planner")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-goldens` writes the golden folders instead of comparing with them."""
    parser.addoption("--update-goldens", action="store_true", help="write tests/cases/ from what is there now")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file's tests share their fixtures in one of the two processes; all tests of the one Kafka cluster do too."""
    for item in items:
        of_kafka = item.get_closest_marker("kafka") is not None
        item.add_marker(pytest.mark.xdist_group("kafka" if of_kafka else item.path.stem))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A real session on two cores; Spark is imported by those who ask for it alone."""
    from spark_jobs import session

    with session.open_session(master="local[2]") as opened:
        yield opened
