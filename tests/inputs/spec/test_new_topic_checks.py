"""`create_topics` and `add_partitions`: how they are read, which faults are refused, and the default of `rebalance`."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_balance_specs import variants
from bad_cluster_specs import SOUND, Case, after, assert_only_finding, each, line
from bad_new_topic_specs import create

from planner.inputs.spec.reading import load
from planner.model.spec import NewPartitions, Spec


def loaded(folder: Path, changes: str, more: str = "") -> Spec:
    """The sound spec with these changes."""
    path = folder / "s.yaml"
    path.write_text(f"{SOUND}changes: {{{changes}}}\n{more}", encoding="utf-8")
    return load(path)


CREATE = "create_topics: [{name: r, partitions: 2, replication_factor: 1}]"
ADD = "add_partitions: [{topic: orders, partitions: 6}]"


def test_topics_to_create(tmp_path: Path) -> None:
    """A topic to create is read with its configuration as text, and its size in bytes."""
    stated = "config: {retention.ms: 86400000, preallocate: true}, size: 2GiB"
    spec = loaded(tmp_path, f"create_topics: [{{name: r.v2, partitions: 12, replication_factor: 3, {stated}}}]")

    config = (("preallocate", "true"), ("retention.ms", "86400000"))
    assert (NewPartitions("r.v2", 0, 12, 3, config, 2 << 30),) == spec.changes.new_partitions


def test_partitions_to_add(tmp_path: Path) -> None:
    """New partitions are numbered after today's, and have the replication factor of the first partition."""
    spec = loaded(tmp_path, ADD)

    assert (NewPartitions("orders", 2, 6, 3),) == spec.changes.new_partitions


def test_variants_have_their_own(tmp_path: Path) -> None:
    """A variant has the new partitions of its own changes."""
    spec = loaded(tmp_path, CREATE, f"sweep: {{variants: [{{name: b, changes: {{{ADD}}}}}]}}\n")

    assert (NewPartitions("orders", 2, 6, 3),) == spec.sweep.variants[0].changes.new_partitions
    assert "none" == spec.sweep.variants[0].changes.rebalance


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (CREATE, "none"),
        (f"{CREATE}, {ADD}", "none"),
        ("replace_brokers: {3: 9}", "none"),
        ("replace_brokers: {3: 9}, add_brokers: [{id: 9, rack: c}]", "none"),
        ("replace_brokers: {3: 9}, add_brokers: [{id: 8, rack: c}]", "all"),
        (f"{CREATE}, add_brokers: [{{id: 9, rack: c}}]", "all"),
        (f"{CREATE}, rebalance: all", "all"),
        (f"{ADD}, rebalance: leaders", "leaders"),
        ("create_topics: []", "all"),
        ("set_racks: {3: d}", "all"),
        ("", "all"),
    ],
)
def test_what_may_move_where_nothing_is_said(tmp_path: Path, changes: str, expected: str) -> None:
    """If only new partitions or replacements are asked for, the default is `rebalance: none`."""
    assert expected == loaded(tmp_path, changes).changes.rebalance


def test_a_factor_that_stays_is_no_conflict(tmp_path: Path) -> None:
    """A replication factor equal to today's doesn't conflict with partitions to add."""
    factors = 'set_replication_factor: [{topics: "*", replication_factor: 3}]'

    assert 6 == loaded(tmp_path, f"{ADD}, {factors}").changes.new_partitions[0].count


def add(text: str, cluster: str = SOUND) -> str:
    """A spec with partitions to add."""
    return f"{cluster}changes: {{add_partitions: [{text}]}}\n"


UNSIZED = SOUND.replace(", size: 12GiB", "")
OFFSETS = SOUND.replace("orders", "__consumer_offsets")
# SOUND, but topics inherit a min.insync.replicas of 4 from the brokers.
INHERITING = SOUND.replace("  topics:", "  config_defaults: {min.insync.replicas: 4}\n  topics:").replace(
    "      config: {min.insync.replicas: 2}\n", ""
)
STARVED = SOUND.replace("min.insync.replicas: 2", "min.insync.replicas: 4")
DELETING = SOUND.replace("    - name: orders\n", "    - name: orders\n      marked_for_deletion: true\n")
DOTTED = SOUND.replace("orders", "orders.v2")


CASES: list[Case] = [
    # inline topics
    (
        "min_insync_text",
        line(7, "      config: {min.insync.replicas: two}"),
        "7:16 cluster.topics[0].config['min.insync.replicas']",
        "min.insync.replicas is 'two'; allowed: a whole number from 1",
    ),
    (
        "min_insync_0",
        line(7, "      config: {min.insync.replicas: 0}"),
        "7:16 cluster.topics[0].config['min.insync.replicas']",
        "min.insync.replicas is '0'",
    ),
    (
        "retention_with_unit",
        line(7, "      config: {retention.ms: 7d}"),
        "7:16 cluster.topics[0].config['retention.ms']",
        "retention.ms is '7d'; allowed: a whole number from -1",
    ),
    # variants
    (
        "variant_fewer_partitions",
        variants("    - {name: b, changes: {add_partitions: [{topic: orders, partitions: 2}]}}"),
        "13:60 sweep.variants[0].changes.add_partitions[0].partitions",
        "2 partitions, orders has 2 today; allowed: 3 or more",
    ),
    # names
    (
        "create_known",
        create(name="orders"),
        "11:28 changes.create_topics[0].name",
        "'orders' is a topic of the cluster",
    ),
    (
        "create_metadata",
        create(name="__cluster_metadata"),
        "11:28 changes.create_topics[0].name",
        "the controller's own",
    ),
    (
        "create_colliding",
        f"{DOTTED}changes: {{create_topics: [{{name: orders_v2, partitions: 1, replication_factor: 1}}]}}\n",
        "11:28 changes.create_topics[0].name",
        "'orders_v2' collides with topic 'orders.v2': metrics write dots as underscores",
    ),
    (
        "create_twice",
        after("changes:\n  create_topics:\n") + "    - {name: r, partitions: 1, replication_factor: 1}\n" * 2,
        "14:8 changes.create_topics[1].name",
        "'r' is here twice; allowed: each topic once",
    ),
    # numbers
    ("create_too_many", create(partitions=10_001), "11:43 changes.create_topics[0].partitions", "at most 10000"),
    (
        "create_too_long_a_list",
        create(partitions=10_000, replication_factor=3)
        .replace("{id: 3,", "{id: 300000,")
        .replace("3]", "300000]", 1)
        .replace("[2, 3, 1]", "[2, 300000, 1]"),
        "11:43 changes.create_topics[0].partitions",
        "the list of 30000 replicas is longer than a command line may hold; allowed: about 18724 replicas",
    ),
    (
        "create_too_wide",
        create(replication_factor=4),
        "11:58 changes.create_topics[0].replication_factor",
        "4 replicas need 4 brokers; allowed: at most the 3 that stay or join",
    ),
    (
        "create_min_insync",
        create(config="{min.insync.replicas: 4}"),
        "11:90 changes.create_topics[0].config['min.insync.replicas']",
        "min.insync.replicas is '4'; allowed: a whole number from 1 to 3, the topic's replication_factor; above it",
    ),
    (
        "create_min_insync_word",
        create(config="{min.insync.replicas: two}"),
        "11:90 changes.create_topics[0].config['min.insync.replicas']",
        "min.insync.replicas is 'two'; allowed: a whole number from 1 to 3",
    ),
    (
        "create_retention_with_unit",
        create(config="{retention.ms: 7d}"),
        "11:90 changes.create_topics[0].config['retention.ms']",
        "retention.ms is '7d'; allowed: a whole number from -1",
    ),
    # more partitions
    (
        "add_to_unknown",
        add("{topic: order, partitions: 9}"),
        "11:29 changes.add_partitions[0].topic",
        "'order' isn't a topic of the cluster; did you mean 'orders'? allowed: a topic that exists, or changes.create",
    ),
    ("add_none", add("{topic: orders, partitions: 2}"), "11:44 changes.add_partitions[0].partitions", "has 2 today"),
    (
        "add_twice",
        add("{topic: orders, partitions: 9}, {topic: orders, partitions: 8}"),
        "11:61 changes.add_partitions[1].topic",
        "'orders' is here twice",
    ),
    (
        "add_to_numbered",
        add("{topic: __consumer_offsets, partitions: 9}", OFFSETS),
        "11:29 changes.add_partitions[0].topic",
        "clients find their partition by their number",
    ),
    (
        "add_to_deleted",
        add("{topic: orders, partitions: 9}", DELETING),
        "12:29 changes.add_partitions[0].topic",
        "'orders' is marked for deletion; allowed: topics that aren't",
    ),
    (
        "add_too_many",
        add("{topic: orders, partitions: 10003}"),
        "11:44 changes.add_partitions[0].partitions",
        "10001 new partitions; allowed: at most 10000",
    ),
    (
        "add_and_resize",
        add("{topic: orders, partitions: 9}").replace(
            "]}\n", '], set_replication_factor: [{topics: "o*", replication_factor: 2}]}\n'
        ),
        "11:29 changes.add_partitions[0].topic",
        "orders gets another replication factor too, and Kafka adds partitions with today's 3",
    ),
    (
        "add_under_min_insync",
        add("{topic: orders, partitions: 9}", STARVED),
        "11:29 changes.add_partitions[0].topic",
        "orders has 3 replicas a partition, below its min.insync.replicas of 4",
    ),
    (
        "add_under_inherited_min_insync",
        add("{topic: orders, partitions: 9}", INHERITING),
        "11:29 changes.add_partitions[0].topic",
        "orders has 3 replicas a partition, below its min.insync.replicas of 4",
    ),
    (
        "create_under_inherited_min_insync",
        f"{INHERITING}changes: {{create_topics: [{{name: r, partitions: 1, replication_factor: 3}}]}}\n",
        "11:52 changes.create_topics[0].replication_factor",
        "3 is below the min.insync.replicas of 4 that topics inherit from the brokers",
    ),
    # loads that can't be compared
    (
        "create_size_alone",
        f"{UNSIZED}changes: {{create_topics: [{{name: r, partitions: 1, replication_factor: 1, size: 1GB}}]}}\n",
        "11:75 changes.create_topics[0].size",
        "'1GB' can't be compared with the other partitions; allowed: with cluster.state.sizes, or size",
    ),
    (
        "add_rate_alone",
        add("{topic: orders, partitions: 9, bytes_in: 1MB/s}"),
        "11:59 changes.add_partitions[0].bytes_in",
        "allowed: with cluster.rates",
    ),
    (
        "create_overflow",
        create(partitions=9_000, size="1000000TB"),
        "11:43 changes.create_topics[0].partitions",
        "all replicas together would have more than 9223372036854775807 bytes",
    ),
]


@each(CASES)
def test_each_fault_has_its_place_key_and_message(text: str | bytes, where: str, part: str, tmp_path: Path) -> None:
    """One fault gives one finding, at its line and column, with its key."""
    assert_only_finding(tmp_path, text, where, part)
