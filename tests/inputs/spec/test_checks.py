"""How rules are run: which are left out where a key is broken, and how variants are checked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from planner.inputs.importers.state_parts import Assignment, AssignmentEntry
from planner.inputs.spec.checks import DocumentRule, RuleList, Rules, TopicRule, repeated, rule_findings
from planner.inputs.yaml_source import Document, PathFinding, read_yaml
from planner.model.cluster import Partition
from planner.model.errors import Finding, Place

TEXT = """\
cluster: {brokers: [{id: 1}, {id: 2}]}
changes: {remove_brokers: [1]}
sweep: {variants: [{name: v, changes: {remove_brokers: [2]}}]}
"""
DOCUMENT = read_yaml(TEXT, "s.yaml")
BROKER_RULES: RuleList[DocumentRule] = RuleList()
TOPIC_RULES: RuleList[TopicRule] = RuleList()


@BROKER_RULES.reads("cluster.brokers", "changes.remove_brokers")
def told(document: Document) -> Iterator[PathFinding]:
    """The broker that is removed, as a finding at its place."""
    for path, broker in document.items("changes", "remove_brokers"):
        yield path, f"removes {broker}"


@TOPIC_RULES.reads("changes.remove_brokers", "cluster.brokers")
def told_of_topics(document: Document, _: Assignment) -> Iterator[PathFinding]:
    """A finding that isn't about a key of the changes."""
    yield ("cluster", "name"), f"has changes {document.get('changes', 'remove_brokers')}"


def held(*brokers: int) -> Assignment:
    """A partition with replicas on these brokers."""
    return Assignment((), (AssignmentEntry(Place("t", 1, 1), "a-0", "a", Partition(0, brokers, 1)),))


def run(assignment: Assignment | None, *broken: str) -> list[str]:
    """The findings' keys and messages, where these keys are broken."""
    bad = [Finding(Place("s.yaml"), key, "") for key in broken]
    found = rule_findings(DOCUMENT, assignment, bad, Rules(BROKER_RULES, TOPIC_RULES))
    return [f"{finding.key}: {finding.message}" for finding in found]


OF_CHANGES = "changes.remove_brokers[0]: removes 1"
OF_VARIANT = "sweep.variants[0].changes.remove_brokers[0]: removes 2"


def test_variants_are_checked_as_if_they_stood_in_changes() -> None:
    """A finding at the variant's own key has its place there."""
    assert [OF_CHANGES, OF_VARIANT] == run(None)


@pytest.mark.parametrize(
    ("broken", "left"),
    [
        ("changes.remove_brokers[0]", [OF_VARIANT]),
        ("changes", [OF_VARIANT]),
        ("sweep.variants[0].changes.remove_brokers", [OF_CHANGES]),
        ("cluster.brokers[1].id", []),
        ("cluster.broker_classes.big", []),
        ("cluster.name", [OF_CHANGES, OF_VARIANT]),
    ],
)
def test_a_rule_is_left_out_where_a_key_that_it_reads_is_broken(broken: str, left: list[str]) -> None:
    """Inside the key, around it, or the classes that say what brokers can hold."""
    assert left == run(None, broken)


def test_rules_about_topics_run_where_brokers_are_sound() -> None:
    """A finding of a variant that isn't at one of its keys names the variant."""
    found = rule_findings(DOCUMENT, held(1, 2), [], Rules((), TOPIC_RULES))
    assert ["has changes [1]", "has changes [2] (in sweep.variants[0].changes)"] == [each.message for each in found]


def test_a_broker_that_is_not_listed_is_the_only_finding() -> None:
    """It makes every count of brokers wrong, so the rules that count them are left out."""
    found = rule_findings(DOCUMENT, held(1, 7), [], Rules((), TOPIC_RULES))
    assert ["has a replica on broker 7, which isn't in cluster.brokers; allowed: 1, 2"] == [
        each.message for each in found
    ]


def test_what_is_repeated_is_told_each_time_but_the_first() -> None:
    """At its own place."""
    values = [(("cluster", "brokers", 0), "a"), (("cluster", "brokers", 1), "a"), (("changes",), "a")]
    found = list(repeated(values, "each once"))
    assert [values[1][0], values[2][0]] == [path for path, _ in found]
    assert {"'a' is here twice; allowed: each once"} == {message for _, message in found}
