"""The whole documents: a plan's, and a rolling restart's."""

from __future__ import annotations

import hashlib
import json

import pytest
from clusters import spec_of
from golden_plans import GOLDEN
from msgspec import json as msgspec_json
from plan_documents import new_partitions, row, typed

from planner.plan.document import codec
from planner.plan.document.partition_types import NewPartitionsRow
from planner.plan.document.plan_types import RESTART_FILE, Plan, RestartDocument
from planner.whatif import restart_steps

PLANS = [codec.decode(path.read_bytes(), path.name) for path in GOLDEN]


@pytest.mark.parametrize("plan", PLANS, ids=[path.parent.name for path in GOLDEN])
def test_the_plan_is_one_of_those_that_it_is_compared_with(plan: Plan) -> None:
    """A plan is in its own comparison, with the bytes of its bound."""
    assert ("this plan", plan.bound.bytes_moved) == (plan.own_row.label, plan.own_row.bytes_moved)


def test_topics_with_new_partitions_and_none() -> None:
    """A plan without new partitions has no new topics."""
    new = {"topic": "n", "partitions": 1, "replication_factor": 1, "replicas": [[1]], "replica_assignment": "1"}
    assert (row(NewPartitionsRow, new),) == typed({"new_partitions": new_partitions(new)}).new_topics
    assert () == typed({"new_partitions": None}).new_topics


def test_the_end_of_a_plan_is_that_of_its_validity() -> None:
    """A plan ends when its validity does; without a validity, or without an end, it has none."""
    until = "2026-11-21T10:00:00Z"
    validity = {"captured_at": "2026-11-20T10:00:00Z", "valid_for_seconds": 86_400, "valid_until": until}
    assert until == typed({"validity": validity}).valid_until
    assert None is typed({"validity": {**validity, "valid_for_seconds": None, "valid_until": None}}).valid_until
    assert None is typed({}).valid_until


def test_topics_are_declared_by_name_without_those_that_cannot_be() -> None:
    """Topics are declared by name, without Kafka's own."""
    topics = [{"name": name, "partitions": 1, "replication_factor": 1} for name in ("t", "__consumer_offsets")]
    assert {"t": {"partitions": 1, "replication_factor": 1, "config": {}}} == typed({"topics": topics}).declared_topics


RACKS = {1: "a", 2: "b", 3: "b"}


def made() -> RestartDocument:
    """A restart with a step that refuses writes."""
    config = {"t": (("min.insync.replicas", "2"),)}
    return restart_steps.document(spec_of(RACKS, {"t": [[1, 2], [3, 1]]}, config=config))


def test_the_id_is_of_all_else() -> None:
    """The id is the hash of everything else in the document."""
    document = json.loads(made().encoded())
    unnamed = json.dumps(document | {"restart_id": ""}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"

    assert "restart.json" == RESTART_FILE
    assert hashlib.sha256(unnamed.encode()).hexdigest() == document["restart_id"] == made().restart_id
    assert made() == made().identified()


def test_it_is_read_back_as_it_was_written() -> None:
    """A restart is read back with its types as it was written."""
    assert made() == msgspec_json.decode(made().encoded(), type=RestartDocument)


def test_names_are_those_of_kafkas_tools() -> None:
    """Partitions have the names of Kafka's tools, and a step that refuses writes is in `refusing`."""
    document = made()
    assert {"t-0", "t-1"} == {name for each in document.steps[0].writes_refused for name in each.names}
    assert document.steps[0] in document.refusing
