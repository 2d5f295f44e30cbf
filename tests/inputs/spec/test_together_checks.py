"""Checks of `together`: a contradiction in the YAML is refused with both places and with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_cluster_specs import findings, summary

from planner.inputs.spec.reading import load

_GROUP = "together: [{topics: [orders, clicks]}]\n"
_FIRST = "'clicks' and 'orders' of together[0].topics[0]"


def spec_text(rules: str) -> str:
    """Six brokers in two racks, three topics with one or two partitions, and these rules."""
    brokers = ", ".join(f"{{id: {at}, rack: {'ab'[at % 2]}}}" for at in range(1, 7))
    topics = "".join(
        f"    - {{name: {name}, partitions: [{', '.join(f'{{replicas: [{each}]}}' for each in lists)}]}}\n"
        for name, lists in (("orders", ["1, 2"]), ("clicks", ["3, 4"]), ("views", ["1, 2", "2, 1"]))
    )
    return f"version: 1\ncluster:\n  name: c\n  brokers: [{brokers}]\n  topics:\n{topics}{rules}"


CASES = [
    (
        'together: [[views, "*"]]\n',
        "s.yaml:9:20 together[0][1] 'clicks' and 'views' of together[0][0] (9:13) have 1 and 2 partitions (other "
        "topics of this pattern that differ: 1); allowed: equally many, for example by changes.add_partitions",
    ),
    (
        "together: [[orders, views]]\n",
        "s.yaml:9:21 together[0][1] 'views' and 'orders' of together[0][0] (9:13) have 2 and 1 partitions; allowed: "
        "equally many, for example by changes.add_partitions",
    ),
    (
        "together: [{topics: [orders, clicks]}, [click*]]\n",
        "s.yaml:9:40 together[1] matches one topic, 'clicks'; allowed: patterns that match two topics or more",
    ),
    (
        'together: [[orders, clicks], ["[oc]*"]]\n',
        "s.yaml:9:31 together[1][0] 'clicks' is in the group of together[0][1] (9:21), too; allowed: one group for "
        "each topic",
    ),
    (
        "together: [[orders, click]]\n",
        "s.yaml:9:21 together[0][1] 'click' matches no topic; did you mean 'clicks'? allowed: a pattern that matches "
        "some of clicks, orders, views",
    ),
    (
        f"{_GROUP}apart: [{{topics: [orders, clicks], by: broker_leaders}}]\n",
        f"s.yaml:9:30 together[0].topics[1] {_FIRST} (9:22) are kept apart by apart[0].topics (10:10); allowed: one of "
        "the two rules",
    ),
    (
        f"{_GROUP}broker_sets: {{one: [1, 2], two: [3, 4]}}\n"
        "placement: [{topics: orders, brokers: one}, {topics: clicks, brokers: two}]\n",
        f"s.yaml:9:30 together[0].topics[1] {_FIRST} (9:22) have no broker in common that placement (11:1) lets lead "
        "both; allowed: sets with a common broker that isn't demoted",
    ),
    (
        f"{_GROUP}broker_sets: {{one: [1, 2, 3], two: [3, 4]}}\nchanges: {{demote_brokers: [3]}}\n"
        "placement: [{topics: orders, brokers: one}, {topics: clicks, brokers: two}]\n",
        f"s.yaml:9:30 together[0].topics[1] {_FIRST} (9:22) have no broker in common that changes.demote_brokers "
        "(11:11) lets lead both; allowed: sets with a common broker that isn't demoted",
    ),
    (
        f"{_GROUP}leader_racks: [{{topics: orders, prefer: [a]}}, {{topics: clicks, prefer: [b, a]}}]\n",
        f"s.yaml:9:30 together[0].topics[1] {_FIRST} (9:22) are to be led in b and a by leader_racks[1] (10:47) and "
        "leader_racks[0] (10:16); allowed: the same first rack for both",
    ),
    (
        f"{_GROUP}topics: {{exclude: [orders, clicks]}}\n",
        "s.yaml:9:30 together[0].topics[1] clicks-0 and orders-0 of together[0].topics[0] (9:22) are led by 3 and 1, "
        "and topics.exclude (10:10) lets neither move; allowed: let one of them move",
    ),
    (
        f"{_GROUP}topics: {{exclude: [orders]}}\nbroker_sets: {{set: [3, 4, 5], all: [1, 2, 3]}}\n"
        "placement: [{topics: clicks, brokers: set}, {topics: views, brokers: all}]\n",
        "s.yaml:9:30 together[0].topics[1] clicks-0 may not be led by 1, which leads orders-0 of together[0].topics[0] "
        "(9:22), and topics.exclude (10:10) doesn't let that move; allowed: let it move",
    ),
    (
        "together: [orders]\n",
        "s.yaml:9:12 together[0] 'orders' isn't possible here; allowed: a list of patterns, or a mapping with topics",
    ),
]


@pytest.mark.parametrize(("rules", "expected"), CASES)
def test_what_contradicts_together_is_told_before_planning(tmp_path: Path, rules: str, expected: str) -> None:
    """A contradiction gives one finding with both places."""
    found = findings(tmp_path, spec_text(rules))
    places = summary(found, tmp_path)
    assert [expected] == [f"{place} {finding.message}" for place, finding in zip(places, found, strict=True)]


def test_partitions_that_are_added_and_topics_that_are_created_count(tmp_path: Path) -> None:
    """Partitions are counted as after the change, so topics may become equal by it; both notations are read."""
    path = tmp_path / "s.yaml"
    made = "create_topics: [{name: carts, partitions: 1, replication_factor: 2}]"
    path.write_text(
        spec_text(
            f"changes: {{{made}, add_partitions: [{{topic: orders, partitions: 2}}]}}\n"
            'together: [[orders, "v*"], {topics: [carts, "click*"]}]\n'
        )
    )
    assert (("orders", "v*"), ("carts", "click*")) == load(path).together
