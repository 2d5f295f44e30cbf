"""Checks of `apart`: a contradiction in the YAML is refused with both places and with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_cluster_specs import findings, summary

from planner.inputs.spec.reading import load


def text_of(racks: str, rules: str, lists: tuple[str, str, str] = ("1, 2", "1, 2", "3")) -> str:
    """Brokers 1 and up in these racks ("-": none), topics with one partition each, and `rules`."""
    racked = (f", rack: {rack}" if rack != "-" else "" for rack in racks)
    brokers = ", ".join(f"{{id: {at}{rack}}}" for at, rack in enumerate(racked, 1))
    topics = "".join(
        f"    - {{name: {name}, partitions: [{{replicas: [{each}]}}]}}\n"
        for name, each in zip(("orders", "payments", "refunds"), lists, strict=True)
    )
    return f"version: 1\ncluster:\n  name: c\n  brokers: [{brokers}]\n  topics:\n{topics}{rules}"


CASES = [
    (
        "aba",
        "apart: [[orders, payments]]\n",
        "s.yaml:9:9 apart[0] needs 4 brokers, 2 for 'orders', apart[0][0] (9:10) and 2 for 'payments', apart[0][1] "
        "(9:18); cluster.brokers (4:3) leaves 3, as no broker has two sides; allowed: more brokers, or fewer replicas",
    ),
    (
        "abaaa",
        "apart: [[orders, payments]]\n",
        "s.yaml:9:9 apart[0] needs 4 brokers in different racks, 2 for 'orders', apart[0][0] (9:10) and 2 for "
        "'payments', apart[0][1] (9:18); cluster.brokers (4:3) leaves 3, as no broker has two sides; allowed: more "
        "brokers, or fewer replicas",
    ),
    (
        "ababa",
        'broker_sets: {few: [1, 2, 3]}\nplacement: [{topics: "*", brokers: few}]\napart: [[orders, payments]]\n',
        "s.yaml:11:9 apart[0] needs 4 brokers, 2 for 'orders', apart[0][0] (11:10) and 2 for 'payments', apart[0][1] "
        "(11:18); placement (10:1) leaves 3, as no broker has two sides; allowed: more brokers, or fewer replicas",
    ),
    (
        "ababa",
        'broker_sets: {few: [1, 2, 3]}\nplacement: [{topics: "[op]*", brokers: few, exclusive: false}]\n'
        "apart: [[orders, payments, refunds]]\n",
        "s.yaml:11:18 apart[0][1] 'payments' and 'orders' of 'orders', apart[0][0] (11:10), need 4 brokers, and "
        "placement (10:1) leaves them 3; allowed: larger broker_sets, or others",
    ),
    (
        "ababa",
        "topics: {exclude: [orders, payments]}\napart: [[orders, payments]]\n",
        "s.yaml:10:18 apart[0][1] payments-0 and orders-0 of 'orders', apart[0][0] (10:10), are both on broker 1, and "
        "topics.exclude (9:10) lets neither move; allowed: let one of them move, or leave one of them out",
    ),
    (
        "ababb",
        "topics: {exclude: [refunds]}\napart: [[orders, refunds]]\n",
        "s.yaml:10:10 apart[0][0] 'orders' of 'orders', apart[0][0] (10:10), needs 2 brokers, and "
        "refunds-0 of 'refunds', apart[0][1] (10:18), and others that topics (9:1) doesn't let move leave it 1; "
        "allowed: let them move",
    ),
    (
        "ababa",
        'apart: [[refunds, "ref*"]]\n',
        "s.yaml:9:19 apart[0][1] 'ref*' matches 'refunds', as 'refunds', apart[0][0] (9:10) does; allowed: patterns "
        "without a common topic",
    ),
    (
        "ababa",
        "apart: [[click, refunds]]\n",
        "s.yaml:9:10 apart[0][0] 'click' matches no topic; allowed: a pattern that matches some of orders, payments, "
        "refunds",
    ),
    (
        "ababa",
        "changes: {set_replication_factor: [{topics: payments, replication_factor: 4}]}\n"
        "rack_aware: disabled\napart: [[orders, payments]]\n",
        "s.yaml:11:9 apart[0] needs 6 brokers, 2 for 'orders', apart[0][0] (11:10) and 4 for 'payments', apart[0][1] "
        "(11:18); cluster.brokers (4:3) leaves 5, as no broker has two sides; allowed: more brokers, or fewer replicas",
    ),
    (
        "ababa",
        "apart: [{topics: [orders, payments], by: rack}]\n",
        "s.yaml:9:10 apart[0].topics needs 4 racks, 2 for 'orders', apart[0].topics[0] (9:19) and 2 for 'payments', "
        "apart[0].topics[1] (9:27); cluster.brokers (4:3) leaves 2, as no rack has two sides; allowed: more racks, "
        "rack_aware: disabled, or fewer replicas",
    ),
    (
        "ababb",
        "rack_aware: disabled\ntopics: {exclude: [orders, payments]}\n"
        "apart: [{topics: [orders, payments], by: rack}]\n",
        "s.yaml:11:27 apart[0].topics[1] payments-0 and orders-0 of 'orders', apart[0].topics[0] (11:19), are both in "
        "the rack of broker 1, and topics.exclude (10:10) lets neither move; allowed: let one of them move, or leave "
        "one of them out",
    ),
    (
        "---",
        "apart: [{topics: [orders, payments], by: rack}]\n",
        "s.yaml:9:38 apart[0].by no rack has two sides, and cluster.brokers (4:3) has brokers without one, 1, 2, 3; "
        "allowed: a rack for each, or by: broker",
    ),
    (
        "aaa",
        "apart: [{topics: [orders, payments], by: rack_leaders}]\n",
        "s.yaml:9:10 apart[0].topics needs 2 racks, 1 for 'orders', apart[0].topics[0] (9:19) and 1 for 'payments', "
        "apart[0].topics[1] (9:27); cluster.brokers (4:3) leaves 1, as no rack leads two sides; allowed: more racks, "
        "or fewer replicas",
    ),
    (
        "aba",
        "topics: {exclude: [orders, payments]}\napart: [{topics: [orders, payments], by: broker_leaders}]\n",
        "s.yaml:10:27 apart[0].topics[1] payments-0 and orders-0 of 'orders', apart[0].topics[0] (10:19), are both led "
        "on broker 1, and topics.exclude (9:10) lets neither move; allowed: let one of them move, or leave one of them "
        "out",
    ),
    (
        "aba",
        "broker_sets: {all: [1, 2, 3]}\nplacement: [{topics: orders, brokers: all, exclusive: true}]\n"
        "apart: [{topics: [orders, payments], by: broker_leaders}]\n",
        "s.yaml:10:44 placement[0].exclusive 'all', broker_sets.all (9:15), leaves all other topics 0 of the brokers "
        "that stay or join, too few for 2 replicas of topics payments, refunds; allowed: 2 brokers or more, or a "
        "smaller changes.set_replication_factor",
    ),
    (
        "abcabc",
        'leader_racks: [{topics: "[op]*", prefer: [a]}]\napart: [{topics: [orders, payments], by: rack_leaders}]\n',
        "s.yaml:10:10 apart[0].topics 'orders' and 'payments' prefer racks by leader_racks[0] (9:16) that can't be "
        "split between them, as no rack leads both; allowed: other racks in leader_racks, or by: broker_leaders",
    ),
    (
        "abcabc",
        "leader_racks: [{topics: o*, prefer: [a, b]}, {topics: pay*, prefer: [b]}, {topics: refunds, prefer: [a]}]\n"
        'apart: [{topics: [orders, "[pr]*"], by: rack_leaders}]\n',
        "s.yaml:10:10 apart[0].topics 'orders' and 'refunds' prefer racks by leader_racks[0] (9:16) and "
        "leader_racks[2] (9:75) that can't be split between them, as no rack leads both; allowed: other racks in "
        "leader_racks, or by: broker_leaders",
    ),
    (
        "abab",
        "apart: [{topics: [orders, payments], by: region}]\n",
        "s.yaml:9:38 apart[0].by 'region' isn't possible here; allowed: broker, rack, broker_leaders, rack_leaders",
    ),
    (
        "abab",
        "apart: [orders]\n",
        "s.yaml:9:9 apart[0] 'orders' isn't possible here; allowed: a list of patterns, or a mapping with topics and "
        "by",
    ),
]


@pytest.mark.parametrize(("racks", "rules", "expected"), CASES)
def test_what_contradicts_apart_is_told_before_planning(tmp_path: Path, racks: str, rules: str, expected: str) -> None:
    """A contradiction gives one finding with both places."""
    lists = ("1, 2", "1, 2", "1, 3]}, {replicas: [4, 5" if "exclude: [refunds]" in rules else "3")
    found = findings(tmp_path, text_of(racks, rules, lists))
    places = summary(found, tmp_path)
    assert [expected] == [f"{place} {finding.message}" for place, finding in zip(places, found, strict=True)]


@pytest.mark.parametrize("payments", ["[b, a]", "[a, c]", "[c]"])
def test_racks_to_lead_in_may_be_split(tmp_path: Path, payments: str) -> None:
    """Topics in `apart` may prefer common racks, if each side has a rack left that its topics prefer."""
    rules = f"leader_racks: [{{topics: orders, prefer: [a]}}, {{topics: payments, prefer: {payments}}}]\n"
    path = tmp_path / "s.yaml"
    path.write_text(text_of("abcabc", f"{rules}apart: [{{topics: [orders, payments], by: rack_leaders}}]\n"))
    assert "rack_leaders" == load(path).apart[0].by


def test_apart_is_read(tmp_path: Path) -> None:
    """Both notations of `apart` are read; the default is by broker, and no sides are fixed before planning."""
    path = tmp_path / "s.yaml"
    path.write_text(
        "version: 1\ncluster:\n  name: c\n  brokers: [{id: 1, rack: x}, {id: 2, rack: y}]\n  topics:\n"
        "    - {name: a, partitions: [{replicas: [1]}]}\n    - {name: b, partitions: [{replicas: [1]}]}\n"
        "apart: [[a, b], {topics: [b, a], by: rack}]\n"
    )
    rule, by_rack = load(path).apart
    assert (("a", "b"), (), False, "broker") == (rule.topics, rule.sides, rule.proven, rule.by)
    assert (("b", "a"), "rack") == (by_rack.topics, by_rack.by)
