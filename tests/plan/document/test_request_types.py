"""What was asked for: keys that the YAML doesn't state are left out, others are as in the YAML."""

from __future__ import annotations

import msgspec
import pytest

from planner.model.document_fields import SpecLimits
from planner.plan.document.request_types import AddPartitionsRow, CreateTopicRow, SpecSection, SpecTopics


def test_what_the_yaml_does_not_state_is_left_out() -> None:
    """A key that the YAML doesn't state is left out, but a limit of 0 isn't."""
    assert {"bytes_moved": 0} == msgspec.to_builtins(SpecLimits(bytes_moved=0))
    topic = CreateTopicRow(name="t", partitions=1, replication_factor=2)
    assert {"name": "t", "partitions": 1, "replication_factor": 2} == msgspec.to_builtins(topic)


def test_a_topic_gets_more_partitions_than_one() -> None:
    """add_partitions needs at least 2 partitions, because a topic has one already."""
    assert 2 == msgspec.convert({"topic": "t", "partitions": 2}, AddPartitionsRow).partitions
    with pytest.raises(msgspec.ValidationError, match="partitions"):
        msgspec.convert({"topic": "t", "partitions": 1}, AddPartitionsRow)


def test_a_broker_may_have_had_no_rack_before() -> None:
    """A broker that had no rack before has null, unlike a broker whose rack stays; keys must be broker ids."""
    topics = SpecTopics(include=("*",), exclude=())
    section = SpecSection(topics=topics, survive="none", aims=(), limits=SpecLimits(), racks_before={"3": None})
    document = msgspec.to_builtins(section)
    assert ({"3": None}, section) == (document["racks_before"], msgspec.convert(document, SpecSection))
    with pytest.raises(msgspec.ValidationError, match="racks_before"):
        msgspec.convert({**document, "racks_before": {"x": None}}, SpecSection)
