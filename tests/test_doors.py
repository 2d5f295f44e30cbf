"""Functions that other programs import keep their names and parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from planner.strategies import kafka_classic, kafka_striped
from planner.whatif import assignors


@pytest.mark.parametrize(
    ("door", "parameters"),
    [
        (
            kafka_classic.place,
            "brokers partitions replication_factor * start_index next_replica_shift start_partition_id rack_aware",
        ),
        (kafka_striped.place, "brokers partitions replication_factor * java_random_seed start_partition"),
        (assignors.assign, "assignor topics subscriptions owned * topic_ids instances racks"),
    ],
    ids=["kafka_classic.place", "kafka_striped.place", "consumers.assign"],
)
def test_parameters(door: Callable[..., Any], parameters: str) -> None:
    """The parameters keep their names and order. Those after the star are keyword-only."""
    positional, _, by_name = (part.split() for part in parameters.partition("*"))
    asked = inspect.signature(door).parameters.values()
    assert positional == [each.name for each in asked if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert by_name == [each.name for each in asked if each.kind is each.KEYWORD_ONLY]


def test_classic_placement() -> None:
    """Kafka's classic placement returns a tuple of brokers for each partition."""
    brokers = [(1, "a"), (2, "b"), (3, "a")]
    placed = kafka_classic.place(brokers, 2, 2, start_index=0, next_replica_shift=0)
    assert [(1, 2), (2, 3)] == placed


def test_striped_placement() -> None:
    """Kafka's striped placement returns a tuple of brokers for each partition. It avoids a fenced broker if it can."""
    placed = kafka_striped.place([(1, None, False), (2, None, False), (3, None, True)], 2, 2, java_random_seed=7)
    assert [(2, 1), (1, 2)] == placed


def test_assignment_of_a_group() -> None:
    """The assignment has each member's partitions."""
    assert {"a": [("t", 0), ("t", 1)], "b": [("t", 2)]} == assignors.assign("range", {"t": 3}, {"a": ["t"], "b": ["t"]})
