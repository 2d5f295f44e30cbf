"""What a partition's row says about its changes."""

from __future__ import annotations

from plan_documents import row

from planner.model.document_fields import TopicPartition
from planner.plan.document.partition_types import PartitionRow, StepRow


def partition(**values: object) -> PartitionRow:
    """A row of partition 3 of topic t on brokers 1 and 2, led by broker 1, with no change."""
    lists = {"replicas_before": [1, 2], "replicas": [1, 2], "leader_before": 1, "reason": "balance_leaders"}
    return row(PartitionRow, {"topic": "t", "partition": 3, **lists}, **values)


def test_a_partition_is_named_as_kafka_prints_it() -> None:
    """A partition's name is its topic and number, also if the topic's name ends in a number."""
    assert ("a-1-2", ("a-1", 2)) == ((one := TopicPartition(topic="a-1", partition=2)).name, one.key)


def test_kafka_is_told_of_another_list_another_order_and_log_dirs() -> None:
    """Kafka gets a reassignment for another list, another order, or a log dir; the same list without one isn't sent."""
    same = row(StepRow, {"topic": "t", "replicas_before": [1, 2], "replicas": [1, 2]})
    assert not same.reassigned
    assert not row(StepRow, {"replicas_before": [1], "replicas": [1], "log_dirs": ["any"]}).reassigned
    assert row(StepRow, {"replicas_before": [1, 2], "replicas": [2, 1]}).reassigned
    assert row(StepRow, {"replicas_before": [1], "replicas": [1], "log_dirs": ["/d"]}).reassigned


def test_a_leader_is_elected_where_another_than_the_preferred_one_leads() -> None:
    """A leader is elected if another than the preferred one leads, unless only log dirs change."""
    assert not partition().elects
    assert partition(leader_before=2).elects
    assert partition(leader_before=None).elects
    assert not partition(leader_before=2, reason="balance_log_dirs").elects
