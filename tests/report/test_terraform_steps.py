"""What report.md says to people who declare topics with Terraform."""

from __future__ import annotations

import re

import pytest
from plan_documents import change, new_partitions, typed
from report_documents import small

from planner.plan.document.cluster_types import THROTTLE_CONFIGS
from planner.report import markdown


def test_terraform_is_told_what_changes_for_it() -> None:
    """If a topic is declared anew, the order of operations and the rule that ignores throttles are there."""
    topic = {**small()["topics"][0], "name": "orders", "replication_factor_before": [2], "replication_factor": 3}
    raised = change("orders", 5, [1, 2], [1, 2, 4])
    mixed = {**topic, "name": "mixed", "replication_factor_before": [1, 2], "replication_factor": None}
    plan = small(topics=[topic, mixed])
    written = markdown.report(typed(plan | {"partitions": [*plan["partitions"], raised]}))
    (rule,) = re.findall(r"```hcl\n(.*?)```", written, flags=re.DOTALL)

    assert "<summary>Terraform</summary>" in written
    assert "1 topic with another replication factor; 1 topic left out" in written
    assert all(f'config["{key}"]' in rule for key in THROTTLE_CONFIGS)
    assert "Terraform" not in markdown.report(typed(small()))
    assert "the old tfvars would undo the new replication factors.\n" in written
    assert "import the new topics" not in written


@pytest.mark.parametrize(
    ("before", "said", "unsaid"),
    [
        (2, "would delete each topic that has more partitions now, with its data", "import the new topics"),
        (0, "import the new topics", "the old tfvars"),
    ],
)
def test_terraform_is_told_of_new_partitions_and_topics(before: int, said: str, unsaid: str) -> None:
    """With the old number, a provider would replace the topic; nothing is copied, so no throttle has to be ignored."""
    made = {
        "topic": "orders",
        "partitions_before": before,
        "partitions": 3,
        "replication_factor": 2,
        "config": {},
        "replicas": [[1, 2]] * (3 - before),
        "replica_assignment": ",".join(["1:2"] * 3),
    }
    topic = {**small()["topics"][0], "name": "orders", "partitions": 3, "replication_factor": 2}
    topic |= {"replication_factor_before": [2] if before else []}
    plan = small(topics=[topic], new_partitions=new_partitions(made), partitions=[], batches=[])
    written = markdown.report(typed(plan))

    assert said in written
    assert unsaid not in written
    assert "ignore_changes" not in written
