"""The sections of the reports: the same order in all of them, and none without content. And what is left to do after a
refusal, before the next step, and with Terraform.
"""

from __future__ import annotations

import re

import pytest
from plan_documents import Document, change, document, new_partitions, typed
from report_documents import GB, broker, small, with_alternatives

from planner.plan.document.cluster_types import THROTTLE_CONFIGS
from planner.report import markdown, plot_movement, terminal
from planner.report.plan_sections_and_next_steps import before_next_step, if_refused, sections
from planner.report.view import Facts, Lines, Table


def test_sections_stand_in_the_order_of_reading() -> None:
    """What was asked for and what is wrong come first; the plots' numbers are there only if they are asked for."""
    plan = typed(small())
    without = [section.name for section in sections(plan)]
    every = [section.name for section in sections(plan, plot_movement.movement(plan))]

    assert [
        "facts",
        "warnings",
        "gates",
        "risks",
        "commands",
        "racks",
        "brokers",
        "batches",
        "front",
        "others",
        "every-term",
        "found",
    ] == without
    assert ["movement", "held"] == [name for name in every if name not in without]


def test_nothing_to_show_is_no_section() -> None:
    """Without moves, front or warnings there are no sections for them."""
    plan = typed(document([]))
    found = sections(plan, plot_movement.movement(plan))

    assert not {"warnings", "movement", "held", "front"} & {section.name for section in found}
    assert all(section.blocks for section in found)


def test_the_rollback_copies_back_only_what_the_plan_removes() -> None:
    """The rollback copies back only replicas that the plan removes; a plan that only reorders removes none."""

    def rollback(plan: Document) -> str:
        section = next(each for each in sections(typed(plan)) if each.name == "commands")
        (lines,) = section.blocks
        assert isinstance(lines, Lines)
        return terminal.line(lines.lines[-1])

    plan = small()
    assert rollback(plan).endswith("old replica list and leader; it copies 24.0 GB (2 replicas) at most.")
    reordered = [{**row, "replicas": row["replicas_before"][::-1]} for row in plan["partitions"]]
    assert rollback(plan | {"partitions": reordered}).endswith("old replica list and leader; it copies nothing.")


def test_what_only_some_plans_have() -> None:
    """Variants and scenarios have sections if the plan has them."""
    found = {section.name: section for section in sections(typed(with_alternatives()))}

    assert isinstance(found["variants-and-plans"].blocks[0], Table)
    (scenarios,) = found["scenarios"].blocks
    assert isinstance(scenarios, Lines)
    assert 2 == len(scenarios.lines)


def test_facts_without_an_answer_are_left_out() -> None:
    """A fact without a value is left out, for example defaults if the YAML states everything."""
    (facts,) = sections(typed(small()))[-1].blocks
    assert isinstance(facts, Facts)

    assert ["Chosen", "Proof of the minimum", "Searched", "The winner"] == [label for label, _ in facts.facts]


def crossed(key: str, value: int = 2) -> Document:
    """A limit of 1 that is exceeded."""
    return {"key": f"limits.{key}", "limit": 1, "value": value}


def test_the_next_step_of_a_plan_that_is_not_safe_is_what_its_reasons_allow() -> None:
    """If a limit is exceeded too, both are said."""
    plan = small(unsafe=["broker 5 is cordoned"])
    assert "nothing was written: do what is allowed (see Unsafe), then run the same command again" == (
        if_refused(typed(plan))
    )
    both = if_refused(typed(plan | {"limits": [crossed("gap")]}))
    assert both.endswith(", or ask for less; do what is allowed (see Unsafe); then run the same command again")


def test_a_plan_too_slow_may_copy_faster() -> None:
    """A plan that takes too long may also get a higher throttle."""
    told = if_refused(typed(small(limits=[crossed("eta", 120)])))
    assert "raise limits.eta to 2 min, or raise execution.throttle, or ask for less; then" in told


def test_no_limit_beyond_the_whole_disk_is_offered() -> None:
    """`limits.disk_used` is at most 100 %, so a larger value isn't suggested; the disk is called too small."""
    plan = small(limits=[{"key": "limits.disk_used", "limit": 40 * GB, "value": 49 * GB, "broker": 1}])
    plan["brokers"][0]["disk_bytes"] = 45 * GB
    told = if_refused(typed(plan))
    assert told == "nothing was written: broker 1's disk is too small; ask for less; then run the same command again"
    plan["brokers"][0]["disk_bytes"] = 100 * GB
    assert "raise limits.disk_used to 49 %, or ask for less" in if_refused(typed(plan))


def test_brokers_that_have_joined_are_moved_before_the_next_step() -> None:
    """A joining broker that a first step gives replicas is one of the cluster's then; an empty one still joins."""
    rows = [broker(1, "stays", (4, 2), (3, 1)), broker(7, "added", (0, 0), (1, 1)), broker(8, "added", (0, 0), (0, 0))]
    assert "capture the state again, move broker 7 to cluster.brokers" == before_next_step(typed(small(brokers=rows)))
    assert "capture the state again" == before_next_step(typed(small(brokers=rows[:1])))


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
