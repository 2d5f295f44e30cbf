"""How checks run: they are skipped if a key that they read is broken, and they run for each variant too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from planner.inputs.importers.state_parts import Assignment, AssignmentEntry
from planner.inputs.spec.checks import RuleList, Rules, repeated, rule_findings
from planner.inputs.spec.spec_document import SpecDocument
from planner.inputs.yaml_source import PathFinding, read_yaml
from planner.model.cluster import Partition
from planner.model.errors import Finding, Place

TEXT = """\
cluster: {brokers: [{id: 1}, {id: 2}]}
changes: {remove_brokers: [1]}
sweep: {variants: [{name: v, changes: {remove_brokers: [2]}}]}
"""
DOCUMENT = SpecDocument(**vars(read_yaml(TEXT, "s.yaml")))
BROKER_RULES, TOPIC_RULES = RuleList(), RuleList()


@BROKER_RULES.reads("cluster.brokers", "changes.remove_brokers")
def told(document: SpecDocument) -> Iterator[PathFinding]:
    """A finding at each broker to be removed."""
    for path, broker in document.items("changes", "remove_brokers"):
        yield path, f"removes {broker}"


@TOPIC_RULES.reads("changes.remove_brokers", "cluster.brokers")
def told_of_topics(document: SpecDocument) -> Iterator[PathFinding]:
    """A finding that isn't at a key of the changes."""
    yield ("cluster", "name"), f"has changes {document.get('changes', 'remove_brokers')}"


def held(*brokers: int) -> SpecDocument:
    """The document, and an assignment of one partition with replicas on these brokers."""
    entry = AssignmentEntry(Place("t", 1, 1), "a-0", "a", Partition(0, brokers, 1))
    return replace(DOCUMENT, assignment=Assignment((), (entry,)))


def run(*broken: str) -> list[str]:
    """Keys and messages of the findings, if these keys are broken."""
    bad = [Finding(Place("s.yaml"), key, "") for key in broken]
    found = rule_findings(DOCUMENT, bad, Rules(BROKER_RULES, ()))
    return [f"{finding.key}: {finding.message}" for finding in found]


OF_CHANGES = "changes.remove_brokers[0]: removes 1"
OF_VARIANT = "sweep.variants[0].changes.remove_brokers[0]: removes 2"


def test_variants_are_checked_as_if_they_stood_in_changes() -> None:
    """A check of `changes` also runs for each variant's changes, with the place there."""
    assert [OF_CHANGES, OF_VARIANT] == run()


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
    """A check is skipped if a key that it reads is broken, or a key inside or around it, or the broker classes."""
    assert left == run(broken)


def test_rules_about_topics_run_where_brokers_are_sound() -> None:
    """A finding for a variant that isn't at one of the variant's keys names the variant in its message."""
    found = rule_findings(held(1, 2), [], Rules((), TOPIC_RULES))
    assert ["has changes [1]", "has changes [2] (in sweep.variants[0].changes)"] == [each.message for each in found]


def test_a_broker_that_is_not_listed_is_the_only_finding() -> None:
    """A replica on an unlisted broker is the only finding, because checks that count brokers would be wrong."""
    found = rule_findings(held(1, 7), [], Rules((), TOPIC_RULES))
    assert ["has a replica on broker 7, which isn't in cluster.brokers; allowed: 1, 2"] == [
        each.message for each in found
    ]


def test_what_is_repeated_is_told_each_time_but_the_first() -> None:
    """A repeated value is a finding at each place except the first."""
    values = [(("cluster", "brokers", 0), "a"), (("cluster", "brokers", 1), "a"), (("changes",), "a")]
    found = list(repeated(values, "each once"))
    assert [values[1][0], values[2][0]] == [path for path, _ in found]
    assert {"'a' is here twice; allowed: each once"} == {message for _, message in found}
