"""What the whole plan says of itself."""

from __future__ import annotations

import pytest
from golden_plans import GOLDEN
from plan_documents import new_partitions, row, typed

from planner.plan.document import codec
from planner.plan.document.partition_types import NewPartitionsRow
from planner.plan.document.plan_types import Plan

PLANS = [codec.decode(path.read_bytes(), path.name) for path in GOLDEN]


@pytest.mark.parametrize("plan", PLANS, ids=[path.parent.name for path in GOLDEN])
def test_the_plan_is_one_of_those_that_it_is_compared_with(plan: Plan) -> None:
    """Its row there has the bytes of its bound."""
    assert ("this plan", plan.bound.bytes_moved) == (plan.own_row.label, plan.own_row.bytes_moved)


def test_topics_with_new_partitions_and_none() -> None:
    """A plan without the section makes none."""
    new = {"topic": "n", "partitions": 1, "replication_factor": 1, "replicas": [[1]], "replica_assignment": "1"}
    assert (row(NewPartitionsRow, new),) == typed({"new_partitions": new_partitions(new)}).new_topics
    assert () == typed({"new_partitions": None}).new_topics


def test_the_end_of_a_plan_is_that_of_its_validity() -> None:
    """None without a validity, and where that has no end."""
    until = "2026-11-21T10:00:00Z"
    validity = {"captured_at": "2026-11-20T10:00:00Z", "valid_for_seconds": 86_400, "valid_until": until}
    assert until == typed({"validity": validity}).valid_until
    assert None is typed({"validity": {**validity, "valid_for_seconds": None, "valid_until": None}}).valid_until
    assert None is typed({}).valid_until


def test_topics_are_declared_by_name_without_those_that_cannot_be() -> None:
    """Kafka's own are left out."""
    topics = [{"name": name, "partitions": 1, "replication_factor": 1} for name in ("t", "__consumer_offsets")]
    assert {"t": {"partitions": 1, "replication_factor": 1, "config": {}}} == typed({"topics": topics}).declared_topics
