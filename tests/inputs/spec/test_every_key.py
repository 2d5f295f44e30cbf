"""A spec with every key becomes the model's values, without units, and with patterns and tolerances as values."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from planner.inputs.spec.reading import load
from planner.model.balance import NO_TOLERANCE, Balance, Tolerance
from planner.model.cluster import Broker, Partition, Topic
from planner.model.document_fields import InputRow, ReplicationFactorRow, SpecLimits
from planner.model.spec import (
    BatchRules,
    BrokerClass,
    Budget,
    Changes,
    Choice,
    Execution,
    Growth,
    Monthly,
    Rate,
    Spec,
    Sweep,
    TopicFilter,
    Variant,
)

FULL = """\
version: 1
cluster:
  name: orders-eu
  bootstrap_servers: [kafka-1:9092, "[::1]:9092"]
  brokers:
    - {id: 1, rack: a, class: big}
    - {id: 2, rack: b, capacity: {disk: 2TB, network: 100MB/s}}
    - {id: 3, rack: c}
    - {id: 4, rack: a, class: big}
    - {id: 5, rack: b, class: wide}
  broker_classes: {big: {disk: 4TiB, network: 1Gbit/s}, wide: {network: 10Gbit/s}, unused: {}}
  topics:
    - name: orders
      config: {min.insync.replicas: 2, unclean.leader.election.enable: no, min.cleanable.dirty.ratio: 0.5}
      partitions:
        - {replicas: [1, 2, 3], size: 12GiB, leader: 2, isr: [2, 3], bytes_in: 3MB/s, bytes_out: 9MB/s}
        - {replicas: [4, 5, 1], leader: none, isr: [], size: 0}
    - name: __consumer_offsets
      partitions: [{replicas: [1], size: 7}]
changes:
  add_brokers: [{id: 7, rack: c}]
  remove_brokers: [3]
  replace_brokers: {4: 9}
  set_racks: {5: c}
  set_replication_factor: [{topics: "ord*", replication_factor: 2}]
  rebalance: leaders
topics: {include: ["*"], exclude: ["__consumer_offsets"]}
rack_aware: disabled
balance: {replicas: 5%, leaders: 2, topic_replicas: none, topic_leaders: 1, disk: 2.5%, network_in: 7%}
budget: {bytes_moved: 1TiB, replicas_moved: 400, leaders_changed: 9}
limits: {bytes_moved: 2TiB, replicas_moved: 500, leaders_changed: 0}
sweep:
  candidates: 5000
  seed: 7
  solved: 900
  balance: {replicas: [1, 5%, none], topic_leaders: [3], disk: [2%, none], network_in: [5%], network_out: [9%]}
  aims: [makespan, leaders_changed]
  choose: {fewest_bytes_within_imbalance: 8.5%}
  variants:
    - name: two racks
      changes: {add_brokers: [{id: 8, rack: a, class: big}], replace_brokers: {4: 9}, rebalance: none}
    - {name: nothing, changes: {}}
  scenarios: {growth: [{topics: "o*", factor: 2.0}, {topics: "*", factor: 1.5, name: next year}]}
execution:
  throttle: 50MB/s
  batches: {bytes: 500GiB, moves_per_broker: 4, replicas_per_partition: 1, duration: 30min, elections: 200}
  kafka_bin_dir: /usr/bin
growth: [{topics: "o*", per_month: 8%}]
"""

BIG = Broker(1, "a", 4 * 1024**4, 125_000_000)


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    """The spec with every key."""
    path = tmp_path / "spec.yaml"
    path.write_text(FULL, encoding="utf-8")
    return load(path)


def test_the_cluster(spec: Spec) -> None:
    """Topics are sorted by name, and brokers have the capacity of their class."""
    config = (
        ("min.cleanable.dirty.ratio", "0.5"),
        ("min.insync.replicas", "2"),
        ("unclean.leader.election.enable", "false"),
    )
    orders = (
        Partition(0, (1, 2, 3), 2, (2, 3), 12 * 1024**3, 3_000_000, 9_000_000),
        Partition(1, (4, 5, 1), None, ()),
    )
    offsets = Topic("__consumer_offsets", (Partition(0, (1,), 1, None, 7),))
    assert (offsets, Topic("orders", orders, config)) == spec.cluster.topics
    assert ("kafka-1:9092", "[::1]:9092") == spec.cluster.bootstrap_servers
    assert (
        BIG,
        Broker(2, "b", 2 * 10**12, 10**8),
        Broker(3, "c"),
        replace(BIG, id=4),
        Broker(5, "b", None, 1_250_000_000),
    ) == spec.cluster.brokers


def test_the_changes(spec: Spec) -> None:
    """All changes are read; a replacement has the capacity of the broker that it replaces."""
    assert (
        Changes(
            add_brokers=(Broker(7, "c"), replace(BIG, id=9)),
            remove_brokers=(3,),
            replace_brokers=((4, 9),),
            set_racks=((5, "c"),),
            set_replication_factor=(ReplicationFactorRow("ord*", 2),),
            rebalance="leaders",
        )
        == spec.changes
    )


def test_the_sweep(spec: Spec) -> None:
    """Grids, aims, the rule of choice, variants and scenarios are read."""
    grid = {
        "replicas": (Tolerance("spread", 1), Tolerance("percent", 5), NO_TOLERANCE),
        "topic_leaders": (Tolerance("spread", 3),),
        "disk": (Tolerance("percent", 2), NO_TOLERANCE),
        "network_in": (Tolerance("percent", 5),),
        "network_out": (Tolerance("percent", 9),),
    }
    added = (replace(BIG, id=8), replace(BIG, id=9))
    two_racks = Changes(add_brokers=added, replace_brokers=((4, 9),), rebalance="none")
    assert (
        Sweep(
            5000,
            7,
            grid,
            aims=("makespan", "leaders_changed"),
            choice=Choice("fewest_bytes_within_imbalance", 85_000),
            variants=(Variant("two racks", two_racks), Variant("nothing", Changes())),
            growth=(Growth("o* × 2", "o*", 2.0), Growth("next year", "*", 1.5)),
            solved=900,
        )
        == spec.sweep
    )


def test_all_else(spec: Spec) -> None:
    """All other keys are read, and everything that isn't written has its default."""
    spreads = (Tolerance("percent", 5), Tolerance("spread", 2), NO_TOLERANCE, Tolerance("spread", 1))
    classes = (
        BrokerClass("big", 4 * 1024**4, 125_000_000),
        BrokerClass("wide", None, 1_250_000_000),
        BrokerClass("unused"),
    )
    assert (
        Spec(
            cluster=spec.cluster,
            changes=spec.changes,
            topics=TopicFilter(("*",), ("__consumer_offsets",)),
            rack_aware=False,
            balance=Balance(*spreads, Tolerance("percent", 2.5), Tolerance("percent", 7)),
            budget=Budget(1024**4, 400, 9),
            limits=SpecLimits(2 * 1024**4, 500, 0),
            sweep=spec.sweep,
            execution=Execution(50_000_000, BatchRules(500 * 1024**3, 4, 1, 1_800, None, 200), "/usr/bin"),
            growth=Monthly((Rate("o*", 80_000),), classes),
            inputs=(InputRow("spec.yaml", hashlib.sha256(FULL.encode()).hexdigest()),),
        )
        == spec
    )
