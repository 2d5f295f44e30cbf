"""What a plan means for a Terraform configuration that declares its topics, as sentences of report.md.

The plan's folder has the topics as they will be, as tfvars: `news` says what is new in them, and `old_tfvars` what an
apply does that still has the old ones. Plain text; whoever prints it escapes it.
"""

from __future__ import annotations

from planner.model.formats import counted
from planner.plan.document.cluster_types import TopicRow
from planner.plan.document.plan_types import Plan


def news(plan: Plan) -> str:
    """What the tfvars say that Terraform doesn't know yet, and what they leave out; empty without news."""
    grown = {topic.topic for topic in plan.new_topics}
    told = plan.declared_topics
    changed = sum(topic.name in told and (_resized(topic) or topic.name in grown) for topic in plan.topics)
    left_out = len(plan.topics) - len(told)
    if not changed:
        return ""
    new = sum(not topic.partitions_before for topic in plan.new_topics)
    resized = sum(topic.name in told and _resized(topic) and topic.name not in grown for topic in plan.topics)
    kinds = ((resized, "with another replication factor"), (len(grown) - new, "with more partitions"), (new, "new"))
    said = ", ".join(f"{counted(count, 'topic')} {what}" for count, what in kinds if count)
    missing = f"; {counted(left_out, 'topic')} left out (internal to Kafka, or with mixed replication factors)"
    unknown = sum(topic["config"] is None for topic in told.values())
    unsaid = (
        f"; the config of {counted(unknown, 'topic')} is null, because the state doesn't say what is inherited: "
        "write the config into the tfvars, or add the output of kafka-configs --describe --entity-type topics --all "
        "to the state"
    )
    return f"{said}{missing if left_out else ''}{unsaid if unknown else ''}"


def old_tfvars(plan: Plan) -> str:
    """What an apply with the old tfvars would do after the plan: `undo the new replication factors`; may be empty.

    A provider has no other way to fewer partitions than a new topic (kafka_topic of Mongey/kafka: ForceNew).
    """
    grown = {topic.topic for topic in plan.new_topics if topic.partitions_before}
    factors = any(topic.replication_factor_before and _resized(topic) for topic in plan.topics)
    deletes = "delete each topic that has more partitions now, with its data, and create it anew"
    return " and ".join([*(["undo the new replication factors"] if factors else []), *([deletes] if grown else [])])


def _resized(topic: TopicRow) -> bool:
    return topic.replication_factor_before != (topic.replication_factor,)
