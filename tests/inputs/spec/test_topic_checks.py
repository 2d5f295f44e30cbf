"""Checks against today's topics: brokers, replication factors, filters, patterns, and consumer groups."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from bad_balance_specs import sweep, variants
from bad_cluster_specs import FROM_FILES, Case, after, assert_only_finding, each, findings, line, summary
from folders import DATA
from small_specs import SMALL, spec_of

from planner.inputs.importers.state_parts import Assignment
from planner.inputs.spec.reading import load
from planner.inputs.spec.spec_document import SpecDocument
from planner.inputs.spec.topic_checks import TOPIC_RULES, described_findings, group_patterns
from planner.inputs.yaml_source import read_yaml
from planner.model.cluster import Partition, Topic
from planner.model.errors import SpecError
from planner.model.spec import DescribedGroup

CASES: list[Case] = [
    # inline topics
    (
        "topic_twice",
        after("    - {name: orders, partitions: [{replicas: [1]}]}\n"),
        "11:8 cluster.topics[1].name",
        "'orders' is here twice",
    ),
    *(
        (
            f"config_mistyped_{wrong}",
            line(7, f"      config: {{{wrong}: 2}}"),
            f"7:16 cluster.topics[0].config['{wrong}']",
            f"Kafka has no topic configuration of this name; did you mean '{meant}'?",
        )
        for wrong, meant in (
            ("min.insync.replica", "min.insync.replicas"),
            ("min.insync_replicas", "min.insync.replicas"),
            ("Retention.ms", "retention.ms"),
            ("log.segment.bytes", "segment.bytes"),
        )
    ),
    (
        "replica_on_a_broker_that_joined",
        line(9, "        - {replicas: [1, 2, 9]}") + "changes: {add_brokers: [{id: 9, rack: a}]}\n",
        "9:11 cluster.topics[0].partitions[0]",
        "has a replica on broker 9, which isn't in cluster.brokers; allowed: move 9 there from changes, because it has",
    ),
    (
        "replica_unknown",
        line(9, "        - {replicas: [1, 2, 9]}"),
        "9:11 cluster.topics[0].partitions[0]",
        "has a replica on broker 9, which isn't in cluster.brokers; allowed: 1, 2, 3",
    ),
    (
        "leader_elsewhere",
        line(9, "        - {replicas: [1, 2], leader: 3}"),
        "9:11 cluster.topics[0].partitions[0]",
        "leader 3 isn't a replica; allowed: none, 1, 2",
    ),
    (
        "isr_elsewhere",
        line(9, "        - {replicas: [1, 2], isr: [1, 3]}"),
        "9:11 cluster.topics[0].partitions[0]",
        "broker 3 of the ISR isn't a replica",
    ),
    (
        "sizes_beyond_64_bits",
        line(9, "        - {replicas: [1, 2], size: 7EiB}"),
        "5:3 cluster.topics",
        f"all replicas together have {21 * 2**60 + 36 * 2**30} bytes if every broker gets one of each",
    ),
    # brokers to add, remove and replace
    (
        "remove_too_many",
        after("changes: {remove_brokers: [3]}\n"),
        "11:11 changes.remove_brokers",
        "2 brokers that stay or join are too few for 3 replicas of topic orders",
    ),
    # replication factors
    (
        "factor_too_high",
        after("changes: {set_replication_factor: [{topics: orders, replication_factor: 4}]}\n"),
        "11:53 changes.set_replication_factor[0].replication_factor",
        "4 replicas need 4 brokers; allowed: at most the 3",
    ),
    (
        "factor_below_min_insync",
        after("changes: {set_replication_factor: [{topics: orders, replication_factor: 1}]}\n"),
        "11:53 changes.set_replication_factor[0].replication_factor",
        "1 is below min.insync.replicas of orders (2, its own): before Kafka 3.7, writes with acks=all",
    ),
    (
        "factor_below_inherited_min_insync",
        after("changes: {set_replication_factor: [{topics: orders, replication_factor: 1}]}\n").replace(
            "  topics:\n    - name: orders\n      config: {min.insync.replicas: 2}\n",
            "  config_defaults: {min.insync.replicas: 2}\n  topics:\n    - name: orders\n",
        ),
        "11:53 changes.set_replication_factor[0].replication_factor",
        "1 is below min.insync.replicas of orders (2, inherited from the brokers): before Kafka 3.7, writes",
    ),
    (
        "factor_below_min_insync_of_unknown_origin",
        after("changes: {set_replication_factor: [{topics: orders, replication_factor: 1}]}\n").replace(
            "      config:", "      effective_config:"
        ),
        "11:53 changes.set_replication_factor[0].replication_factor",
        "(2, its own or inherited): before Kafka 3.7, writes with acks=all are refused; since then, whenever a replica "
        "isn't in sync; allowed: 2 or more; or lower min.insync.replicas first, "
        "kafka-configs.sh --alter --entity-type topics --entity-name orders --add-config "
        "min.insync.replicas=1, or Terraform, and capture the state again",
    ),
    (
        "factor_matches_nothing",
        after('changes: {set_replication_factor: [{topics: "order", replication_factor: 2}]}\n'),
        "11:37 changes.set_replication_factor[0].topics",
        "'order' matches no topic; did you mean 'orders'? allowed: a pattern that matches some of orders",
    ),
    (
        "factor_twice",
        after(
            'changes:\n  set_replication_factor:\n    - {topics: "*", replication_factor: 2}\n'
            "    - {topics: orders, replication_factor: 3}\n"
        ),
        "14:24 changes.set_replication_factor[1].replication_factor",
        "3 for orders, which another entry gives 2",
    ),
    (
        "factor_of_excluded",
        after(
            'changes: {set_replication_factor: [{topics: "*", replication_factor: 2}]}\ntopics: {exclude: ["ord*"]}\n'
        ),
        "11:37 changes.set_replication_factor[0].topics",
        "topic orders may not move by the filter in topics",
    ),
    # which topics may move
    (
        "include_matches_nothing",
        after("topics: {include: [orders, clicks]}\n"),
        "11:28 topics.include[1]",
        "'clicks' matches no topic",
    ),
    (
        "exclude_matches_nothing",
        after('topics: {exclude: ["ordres"]}\n'),
        "11:20 topics.exclude[0]",
        "'ordres' matches no topic; did you mean 'orders'?",
    ),
    (
        "exclude_in_other_capitals",
        after('topics: {exclude: ["Orders*"]}\n'),
        "11:20 topics.exclude[0]",
        "'Orders*' matches no topic; did you mean 'orders'?",
    ),
    (
        "growth_matches_nothing",
        after("growth: [{topics: orders, per_month: 5%}, {topics: 'log-*', per_month: 1%}]\n"),
        "11:44 growth[1].topics",
        "'log-*' matches no topic; allowed: a pattern that matches some of orders",
    ),
    (
        "excluded_on_leaving_broker",
        after('changes: {replace_brokers: {3: 9}}\ntopics: {exclude: ["or?ers", "ord*"]}\n'),
        "12:20 topics.exclude[0]",
        "brokers that leave have replicas of topic orders, which may not move; allowed: let them move",
    ),
    (
        "far_from_brokers_and_on_a_leaving_one",
        line(4, "  brokers: [{id: 1, rack: a}, {id: 2, rack: b}, {id: 3, rack: c}, {id: 4, rack: a}]")
        + "changes: {remove_brokers: [1]}\ntopics: {on_brokers: [4]}\n",
        "12:10 topics.on_brokers",
        "brokers that leave have replicas of topic orders, which may not move; allowed: let them move",
    ),
    (
        "far_from_brokers_and_resized",
        line(4, "  brokers: [{id: 1, rack: a}, {id: 2, rack: b}, {id: 3, rack: c}, {id: 4, rack: a}]")
        + "changes: {set_replication_factor: [{topics: orders, replication_factor: 2}]}\ntopics: {on_brokers: [4]}\n",
        "11:37 changes.set_replication_factor[0].topics",
        "topic orders may not move by the filter in topics; allowed: a pattern of topics that may",
    ),
    # rates
    (
        "rate_matches_nothing",
        line(3, '  name: demo\n  rates: [{topics: "ord*", bytes_in: 1MB/s}, {topics: clicks, bytes_in: 1MB/s}]'),
        "4:47 cluster.rates[1].topics",
        "'clicks' matches no topic; allowed: a pattern that matches some of orders",
    ),
    (
        "rates_beyond_64_bits",
        line(9, "        - {replicas: [1, 2, 3], size: 1, bytes_out: 8EB/s}"),
        "5:3 cluster.topics",
        "all traffic together may be more than 9223372036854775807 bytes/s",
    ),
    # variants
    (
        "variant_too_few_brokers",
        variants("    - {name: b, changes: {remove_brokers: [2]}}"),
        "13:27 sweep.variants[0].changes.remove_brokers",
        "2 brokers that stay or join are too few for 3 replicas of topic orders",
    ),
    (
        "variant_pattern",
        variants("    - {name: b, changes: {set_replication_factor: [{topics: gone, replication_factor: 2}]}}"),
        "13:53 sweep.variants[0].changes.set_replication_factor[0].topics",
        "'gone' matches no topic",
    ),
    # scenarios
    (
        "growth_pattern",
        sweep('scenarios: {growth: [{topics: "click*", factor: 2}]}'),
        "11:31 sweep.scenarios.growth[0].topics",
        "'click*' matches no topic; allowed: a pattern that matches some of orders",
    ),
    (
        "growth_beyond_64_bits",
        line(9, "        - {replicas: [1, 2, 3], size: 1EiB}")
        + 'sweep: {scenarios: {growth: [{topics: "*", factor: 9}]}}\n',
        "11:44 sweep.scenarios.growth[0].factor",
        "all replicas together would have more than 9223372036854775807 bytes",
    ),
]


@each(CASES)
def test_each_fault_has_its_place_key_and_message(text: str | bytes, where: str, part: str, tmp_path: Path) -> None:
    """One fault gives one finding, at its line and column, with its key."""
    assert_only_finding(tmp_path, text, where, part)


def test_many_partitions_on_an_unknown_broker_are_one_finding(tmp_path: Path) -> None:
    """A broker missing in the YAML gives one finding, which counts its other partitions."""
    for name, copy in (("kafka-topics-describe.txt", "describe.txt"), ("kafka-log-dirs-describe.txt", "log-dirs.txt")):
        shutil.copy(DATA / "kraft-4.1" / name, tmp_path / copy)
    found = findings(tmp_path, FROM_FILES.replace(", {id: 6}", ""))
    assert ["describe.txt:79:2 audit.log-0"] == summary(found, tmp_path)
    assert "broker 6, which isn't in cluster.brokers (as 36 more partitions do); allowed: 1, 2, 3, 4, 5" in str(
        found[0]
    )


def test_an_excluded_topic_that_has_its_factor_already_is_no_fault(tmp_path: Path) -> None:
    """A pattern may include topics that can't move, if their replication factor stays."""
    text = SMALL + (
        'changes: {set_replication_factor: [{topics: "*", replication_factor: 2}]}\ntopics: {exclude: ["orders"]}\n'
    )
    assert 1 == len(spec_of(tmp_path, text).changes.set_replication_factor)


SPEC = """\
version: 1
cluster:
  name: n
  brokers: [{{id: 1}}, {{id: 2}}, {{id: 3}}]
  topics:
    - {{name: orders, partitions: [{{replicas: [1, 2], size: 5}}]}}
    - {{name: order-items, partitions: [{{replicas: [2, 1], size: 5}}]}}
    - {{name: logs, partitions: [{{replicas: [1], size: 7}}]}}
{rates}changes:
  add_brokers: [{{id: 4}}]
{rest}"""


def refused(folder: Path, rest: str, rates: str = "") -> str:
    """The errors of a spec with these lines; "" if it is valid."""
    (folder / "s.yaml").write_text(SPEC.format(rest=rest, rates=rates), encoding="utf-8")
    try:
        load(folder / "s.yaml")
    except SpecError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("rest", "path"),
    [
        ("topics: {{include: [{0}]}}\n", "topics.include[0]"),
        ('topics: {{include: ["*", {0}]}}\n', "topics.include[1]"),
        ("topics: {{exclude: [{0}]}}\n", "topics.exclude[0]"),
        ("growth: [{{topics: {0}, per_month: 4%}}]\n", "growth[0].topics"),
        (
            "sweep: {{scenarios: {{growth: [{{topics: {0}, factor: 2.0}}]}}}}\n",
            "sweep.scenarios.growth[0].topics",
        ),
        ("consumers: [{{group: g, assignor: range, members: 2, topics: [{0}]}}]\n", "consumers[0].topics[0]"),
        (
            "consumers: [{{group: g, assignor: range, topics: [logs], members: [{{id: c, topics: [{0}]}}]}}]\n",
            "consumers[0].members[0].topics[0]",
        ),
        (
            "  set_replication_factor: [{{topics: {0}, replication_factor: 2}}]\n",
            "changes.set_replication_factor[0].topics",
        ),
        (
            "sweep: {{variants: [{{name: v, changes: {{set_replication_factor: "
            "[{{topics: {0}, replication_factor: 2}}]}}}}]}}\n",
            "sweep.variants[0].changes.set_replication_factor[0].topics",
        ),
    ],
)
def test_a_pattern_that_matches_nothing(rest: str, path: str, tmp_path: Path) -> None:
    """A pattern without a match is refused with its place and similar names."""
    said = refused(tmp_path, rest.format("ordrs"))
    assert f"{path}: 'ordrs' matches no topic; did you mean 'orders' or 'order-items'? allowed: " in said
    assert f"{path}: 'x?*' matches no topic; allowed: " in refused(tmp_path, rest.format('"x?*"'))
    assert "" == refused(tmp_path, rest.format("orders"))


def test_rates_that_match_nothing(tmp_path: Path) -> None:
    """Rates of a pattern without a match are refused with their place in `cluster`."""
    rates = "  rates: [{{topics: {0}, bytes_in: 1MB/s}}]\n"
    said = refused(tmp_path, "", rates.format("ordrs"))
    assert "cluster.rates[0].topics: 'ordrs' matches no topic; did you mean 'orders' or 'order-items'?" in said
    assert "" == refused(tmp_path, "", rates.format("orders"))


@pytest.mark.parametrize(
    ("patterns", "late"),
    [
        (("order*", "orders", "*"), 1),
        (("orders", "order-items", "order*"), 2),
        (("orders", "orders"), 1),
        (("*", "logs"), 1),
        (("orders", "order*", "*"), None),
    ],
)
def test_an_entry_that_comes_too_late(patterns: tuple[str, ...], late: int | None, tmp_path: Path) -> None:
    """The first matching entry of growth and rates counts, so an entry whose topics all match earlier is refused."""
    growth = ", ".join(f'{{topics: "{each}", per_month: 4%}}' for each in patterns)
    rates = ", ".join(f'{{topics: "{each}", bytes_in: 1MB/s}}' for each in patterns)
    found = [refused(tmp_path, f"growth: [{growth}]\n"), refused(tmp_path, "", f"  rates: [{rates}]\n")]
    for said, path in zip(found, ("growth", "cluster.rates"), strict=True):
        if late is None:
            assert "" == said
        else:
            assert f"{path}[{late}].topics: '{patterns[late]}' matches only topics that entries above it match" in said
            assert said.count("\n") == 0


ORDERS = Assignment((Topic("orders", (Partition(0, (1,), 1),)),), ())
OWNED = DescribedGroup("g", members={"a": (("orders", 0), ("orders", 1))})


def groups_of(text: str) -> SpecDocument:
    """A document with these consumer groups, of a cluster with the topic `orders`."""
    return SpecDocument(**vars(read_yaml(f"consumers: [{text}]\n", "s.yaml")), assignment=ORDERS)


def test_every_pattern_of_a_group_has_its_place() -> None:
    """The patterns of a group and those of its members are found with their places."""
    text = groups_of("{group: g, topics: [x], members: [{id: a, rack: r}, {id: b, topics: [y, z]}]}")
    own = ("consumers", 0, "members", 1, "topics")
    assert [(("consumers", 0, "topics", 0), "x"), ((*own, 0), "y"), ((*own, 1), "z")] == list(group_patterns(text))


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("{group: g}, {group: g, members: 1, topics: [o]}", ["consumers[0]", "consumers[1].group"]),
        ("{group: g, members: 2}", ["consumers[0]"]),
        (
            "{group: g, members: [{id: a}, {id: a, topics: [o]}]}",
            ["consumers[0].members[0]", "consumers[0].members[1].id"],
        ),
        ("{group: g, state: g.txt}", []),
        (
            "{group: g, topics: [o], members: [{id: a, instance: i}, {id: b, instance: i}]}",
            ["consumers[0].members[1].instance"],
        ),
        (
            f"{{group: g, topics: [o], members: 1, topic_ids: {{orders: {'A' * 21}g, order: {'A' * 21}g}}}}",
            ["consumers[0].topic_ids.order", "consumers[0].topic_ids.order"],
        ),
    ],
)
def test_what_a_group_lacks_or_has_twice_is_told(text: str, keys: list[str]) -> None:
    """Duplicate names are refused, and so are missing members or topics, unless a state file has them."""
    (rule,) = (rule for reads, rule in TOPIC_RULES if reads == ("consumers",))
    assert sorted(keys) == sorted(finding.key for finding in groups_of(text).with_places(rule(groups_of(text))))


def test_a_state_file_is_of_the_same_group_and_cluster() -> None:
    """A state file of another group, member or cluster is refused; an unreadable one already has its own finding."""
    text = groups_of("{group: h, state: g.txt}, {group: g, state: g.txt, members: [{id: b}]}, {group: x, state: gone}")
    found = list(text.with_places(described_findings(text, {"g.txt": [OWNED]})))
    assert ["consumers[0].group", "consumers[1].members[0].id", "consumers[1].state"] == [each.key for each in found]
    assert "'a' of 'g.txt' owns orders-1, which the cluster doesn't have" in found[2].message


def test_a_share_group_has_one_assignor() -> None:
    """A share group in a state file accepts no other assignor in the YAML."""
    share = replace(OWNED, assignor="simple", members={"a": (("orders", 0),)})
    text = groups_of("{group: g, state: g.txt, assignor: range}, {group: g, state: g.txt, assignor: simple}")
    (found,) = text.with_places(described_findings(text, {"g.txt": [share]}))
    assert ("consumers[0].assignor", "'range' isn't possible here, as 'g' is a share group in 'g.txt'") == (
        found.key,
        found.message.partition(";")[0],
    )
