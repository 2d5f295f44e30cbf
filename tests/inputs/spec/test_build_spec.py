"""A document becomes the model's values: units, defaults, and values that follow from other keys."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from folders import DATA
from small_specs import SMALL, spec_of

from planner.inputs.spec.build_spec import execution, groups
from planner.inputs.yaml_source import Document, read_yaml
from planner.model.balance import Tolerance
from planner.model.cluster import Broker
from planner.model.document_fields import SpecLimits
from planner.model.spec import UNSTATED, BatchRules, Choice, ConsumerMember, Execution, Spec

THROTTLE, DURATION, MOVES, REPLICAS, ELECTIONS = UNSTATED.unset


def test_defaults_are_the_models(tmp_path: Path) -> None:
    """Missing keys have the model's defaults, except `execution`, whose defaults depend on the changes."""
    spec = spec_of(tmp_path, SMALL)
    assert Spec(cluster=spec.cluster, inputs=spec.inputs, execution=spec.execution) == spec
    assert "all" == spec.changes.rebalance
    assert not spec.cluster.sizes_known
    assert [1, 2] == [row.leader for row in spec.cluster.topics[0].partitions]


@pytest.mark.parametrize(
    ("size", "balance", "disk"),
    [
        ("", "", "none"),
        (", size: 1GB", "", "10%"),
        (", size: 1GB", "balance: {disk: none}", "none"),
        (", size: 1GB", "balance: {replicas: 2, disk: 3%}", "3%"),
        ("", "balance: {disk: none}", "none"),
    ],
)
def test_bytes_are_even_where_they_are_known(size: str, balance: str, disk: str, tmp_path: Path) -> None:
    """If any partition has a size, bytes get a target of 10 %, unless the YAML states another."""
    spec = spec_of(tmp_path, SMALL.replace("[1, 2]", f"[1, 2]{size}") + balance)
    assert Tolerance.parse(disk) == spec.balance.disk


def test_a_cluster_with_disks_and_rates(tmp_path: Path) -> None:
    """Capacities are read in bytes and limits in seconds; a topic's rate is divided among its partitions."""
    text = """\
version: 1
cluster:
  name: demo
  brokers: [{id: 1, capacity: {disk: 4TiB}}, {id: 2, capacity: {disk: 2 TB}}, {id: 3, capacity: {}}]
  rates: [{topics: "click*", bytes_in: 11, bytes_out: 5}, {topics: "*", bytes_in: 1MB/s}]
  topics:
    - name: clicks
      partitions:
        - {replicas: [1], size: 1}
        - {replicas: [1], size: 1, bytes_in: 0}
        - {replicas: [1], size: 1, bytes_out: 7}
        - {replicas: [1], size: 1}
    - {name: orders, partitions: [{replicas: [2], size: 1}]}
changes: {add_brokers: [{id: 7, capacity: {disk: 9B}}], replace_brokers: {3: 8, 2: 9}}
limits: {eta: 6h}
execution: {throttle: 5MB/s}
"""
    spec = spec_of(tmp_path, text)
    assert [4 * 1024**4, 2 * 10**12, None] == [broker.disk_bytes for broker in spec.cluster.brokers]
    assert (Broker(7, None, 9), Broker(8), Broker(9, None, 2 * 10**12)) == spec.changes.add_brokers
    rates = [[row.bytes_in_per_sec for row in topic.partitions] for topic in spec.cluster.topics]
    assert [[3, 0, 3, 2], [10**6]] == rates
    read = [[row.bytes_out_per_sec for row in topic.partitions] for topic in spec.cluster.topics]
    assert [[2, 1, 7, 1], [0]] == read
    assert SpecLimits(eta_seconds=21_600) == spec.limits


def test_every_gate_of_limits_is_read(tmp_path: Path) -> None:
    """Limits are read: sizes in bytes, counts as they are, percentages in millionths."""
    text = "cross_rack_bytes: 1MB, broker_offline: 0, broker_refused: 1, rack_offline: 2, rack_refused: 3, gap: 0.5%"

    sized = SMALL.replace("], [", "").replace("]}", "], size: 1GB}")
    expected = SpecLimits(None, None, None, None, None, 10**6, 0, 1, 2, 3, 5_000)
    assert expected == spec_of(tmp_path, f"{sized}limits: {{{text}}}\n").limits


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("asked", Choice()),
        ("{most_even_within_bytes: 1TiB}", Choice("most_even_within_bytes", 1024**4)),
        ("{fewest_bytes_within_imbalance: 0.0001%}", Choice("fewest_bytes_within_imbalance", 1)),
        ("{fewest_bytes_within_imbalance: 250%}", Choice("fewest_bytes_within_imbalance", 2_500_000)),
    ],
)
def test_what_is_chosen(text: str, choice: Choice, tmp_path: Path) -> None:
    """The rule of `choose` is read with its amount in bytes or millionths."""
    sized = SMALL.replace("[1, 2]", "[1, 2], size: 1GB")
    assert choice == spec_of(tmp_path, f"{sized}sweep: {{choose: {text}}}\n").sweep.choice


@pytest.mark.parametrize(("text", "ppm"), [("80%", 800_000), ("87.5%", 875_000), ("100%", 10**6), ("0.0001%", 1)])
def test_a_share_of_the_disks(text: str, ppm: int, tmp_path: Path) -> None:
    """limits.disk_used is exact to four decimals; a broker to be removed needs no stated disk."""
    sized = SMALL.replace("]}", "], size: 1GB}").replace("[1, 2], size: 1GB}", "[1, 2], size: 2GB}")
    disks = sized.replace("rack: a}", "rack: a, capacity: {disk: 1TB}}").replace(
        "rack: b}", "rack: b, capacity: {disk: 1TB}}"
    )
    spec = spec_of(tmp_path, f"{disks}changes: {{remove_brokers: [3]}}\nlimits: {{disk_used: {text}}}\n")
    assert SpecLimits(disk_used_ppm=ppm) == spec.limits


def test_rates_of_topics_in_state_files(tmp_path: Path) -> None:
    """Rates by pattern apply to topics of state files; the rates of a topic's partitions add up to the stated rate."""
    shutil.copytree(DATA / "kraft-4.1", tmp_path / "state")
    text = (
        "version: 1\ncluster:\n  name: demo\n"
        "  brokers: [{id: 1}, {id: 2}, {id: 3}, {id: 4}, {id: 5}, {id: 6}]\n"
        "  rates: [{topics: audit.log, bytes_in: 1000001}]\n"
        "  state: {assignment: state/kafka-topics-describe.txt, sizes: state/kafka-log-dirs-describe.txt}\n"
    )
    spec = spec_of(tmp_path, text)
    sums = {topic.name: sum(row.bytes_in_per_sec for row in topic.partitions) for topic in spec.cluster.topics}
    assert {"audit.log": 1_000_001} == {name: total for name, total in sums.items() if total}
    assert all(row.size_bytes for topic in spec.cluster.topics if topic.name == "audit.log" for row in topic.partitions)


@pytest.mark.parametrize(
    ("changes", "added"),
    [
        ("replace_brokers: {3: 9}", (Broker(9, "c"),)),
        ("replace_brokers: {3: 9}, add_brokers: [{id: 9, rack: z}]", (Broker(9, "z"),)),
        ("replace_brokers: {3: 2}", ()),
        ("replace_brokers: {3: 9}, set_racks: {9: z}", (Broker(9, "c"),)),
    ],
)
def test_a_replacement_joins_in_the_old_rack(changes: str, added: tuple[Broker, ...], tmp_path: Path) -> None:
    """A new broker gets the rack of the one that it replaces, unless it is named under add_brokers or known already."""
    assert added == spec_of(tmp_path, f"{SMALL}changes: {{{changes}}}\n").changes.add_brokers


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", UNSTATED),
        ("execution: {}", UNSTATED),
        ("execution: {throttle: none, batches: none}", Execution()),
        ("execution: {throttle: 5MB/s, batches: none}", Execution(5_000_000)),
        ("execution: {throttle: none}", Execution(unset=(DURATION, MOVES, REPLICAS, ELECTIONS))),
        ("execution: {batches: none, kafka_bin_dir: /k}", Execution(kafka_bin_dir="/k", unset=(THROTTLE,))),
    ],
)
def test_only_none_rules_out_a_throttle_and_batches(text: str, wanted: Execution) -> None:
    """Only `none` switches a throttle or batches off; a missing key has its default."""
    assert wanted == stated(text)


@pytest.mark.parametrize(
    ("batches", "rules", "unset"),
    [
        ("bytes: 1GB", BatchRules(bytes=10**9), (MOVES, REPLICAS, ELECTIONS)),
        ("moves_per_broker: 4", BatchRules(moves_per_broker=4), (REPLICAS, ELECTIONS)),
        ("duration: 2h", BatchRules(seconds=7_200), (MOVES, REPLICAS, ELECTIONS)),
        ("duration: 2h, bytes: 1GB", BatchRules(bytes=10**9, seconds=7_200), (MOVES, REPLICAS, ELECTIONS)),
        ("duration: none", BatchRules(), (REPLICAS, ELECTIONS)),
        ("duration: none, bytes: 1GB", BatchRules(bytes=10**9), (MOVES, REPLICAS, ELECTIONS)),
        ("bytes: none", BatchRules(), (DURATION, MOVES, REPLICAS, ELECTIONS)),
        ("moves_per_broker: none", BatchRules(), (DURATION, REPLICAS, ELECTIONS)),
        ("replicas_per_partition: none", BatchRules(), (DURATION, MOVES, ELECTIONS)),
        ("replicas_per_partition: 2", BatchRules(replicas_per_partition=2), (DURATION, MOVES, ELECTIONS)),
        ("elections: none", BatchRules(), (DURATION, MOVES, REPLICAS)),
        ("elections: 50", BatchRules(elections=50), (DURATION, MOVES, REPLICAS)),
    ],
)
def test_each_limit_has_a_default_of_its_own(batches: str, rules: BatchRules, unset: tuple[str, ...]) -> None:
    """Each missing limit has its own default; a batch limited in bytes or replicas has no default limit in time."""
    found = stated(f"execution: {{throttle: none, batches: {{{batches}}}}}")
    assert (rules, unset) == (found.batches, found.unset)


def stated(text: str) -> Execution:
    """The `execution` of this text."""
    return execution(read_yaml(f"version: 1\n{text}\n", "spec.yaml"))


def document(text: str) -> Document:
    """A document with these consumer groups."""
    return read_yaml(f"consumers: [{text}]\n", "s.yaml")


def test_members_that_are_counted_sort_by_their_names() -> None:
    """A number of members becomes ids with leading zeros, and each member has the group's topics."""
    (group,) = groups(document("{group: g, members: 10, topics: [o*]}"), {})
    assert ["consumer-01", "consumer-10"] == [group.members[0].id, group.members[-1].id]
    assert {("o*",)} == {member.topics for member in group.members}


def test_a_members_own_topics_take_the_place_of_the_groups() -> None:
    """A member's own topics replace the group's; a member without its own has the group's."""
    text = document("{group: g, topics: [x], members: [{id: a, rack: r}, {id: b, topics: [y, z]}]}")
    assert (ConsumerMember("a", ("x",), "r"), ConsumerMember("b", ("y", "z"))) == groups(text, {})[0].members
