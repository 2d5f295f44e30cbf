"""A sound spec becomes the model's values; the schema describes every key."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from folders import DATA
from jsonschema import Draft202012Validator

from planner.inputs.spec.reading import load
from planner.model.balance import Tolerance
from planner.model.cluster import Broker
from planner.model.errors import SetupError
from planner.model.file_reading import resource
from planner.model.spec import Choice, Limits, Spec

SMALL = """\
version: 1
cluster:
  name: demo
  brokers: [{id: 1, rack: a}, {id: 2, rack: b}, {id: 3, rack: c}]
  topics:
    - name: orders
      partitions: [{replicas: [1, 2]}, {replicas: [2, 3]}]
"""


def spec_of(folder: Path, text: str) -> Spec:
    """The spec that a text gives."""
    path = folder / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path)


def test_defaults_are_the_models(tmp_path: Path) -> None:
    """What isn't written is as in the model, but for `execution`, whose defaults need the changes to be known."""
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
    """One partition with a size is enough for a window on bytes, unless another one is asked for."""
    spec = spec_of(tmp_path, SMALL.replace("[1, 2]", f"[1, 2]{size}") + balance)
    assert Tolerance.parse(disk) == spec.balance.disk


def test_state_files_lie_beside_the_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are relative to the YAML, wherever it is called from, and recorded as written with their digests."""
    shutil.copytree(DATA / "kraft-4.1", tmp_path / "specs" / "state")
    text = (
        "version: 1\ncluster:\n  name: demo\n"
        "  brokers: [{id: 1}, {id: 2}, {id: 3}, {id: 4}, {id: 5}, {id: 6}]\n"
        "  state: {assignment: state/kafka-topics-describe.txt, sizes: state/kafka-log-dirs-describe.txt}\n"
    )
    (tmp_path / "specs" / "spec.yaml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    spec = load(Path("specs/spec.yaml"))
    written = ["spec.yaml", "state/kafka-topics-describe.txt", "state/kafka-log-dirs-describe.txt"]
    digests = [hashlib.sha256((tmp_path / "specs" / name).read_bytes()).hexdigest() for name in written]
    assert list(zip(written, digests, strict=True)) == [(each.path, each.sha256) for each in spec.inputs]
    assert spec.cluster.sizes_known
    assert 90 == sum(row.size_bytes > 0 for topic in spec.cluster.topics for row in topic.partitions)


def test_state_without_sizes_has_unknown_sizes(tmp_path: Path) -> None:
    """No sizes, no invented ones."""
    shutil.copy(DATA / "zookeeper-3.9" / "kafka-topics-describe.txt", tmp_path / "d.txt")
    text = (
        "version: 1\ncluster:\n  name: demo\n  brokers: [{id: 0}, {id: 1}, {id: 2}, {id: 3}]\n"
        "  state: {assignment: d.txt}\n"
    )
    spec = spec_of(tmp_path, text)
    assert not spec.cluster.sizes_known
    assert {0} == {row.size_bytes for topic in spec.cluster.topics for row in topic.partitions}


def test_a_cluster_with_disks_and_rates(tmp_path: Path) -> None:
    """Capacities are bytes, limits seconds and millionths, and a topic's rate is dealt to its partitions."""
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
changes: {add_brokers: [{id: 7, capacity: {disk: 9}}], replace_brokers: {3: 8, 2: 9}}
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
    assert Limits(eta_seconds=21_600) == spec.limits


def test_every_gate_of_limits_is_read(tmp_path: Path) -> None:
    """Sizes in bytes, counts as they are, percentages in millionths."""
    text = "cross_rack_bytes: 1MB, broker_offline: 0, broker_refused: 1, rack_offline: 2, rack_refused: 3, gap: 0.5%"

    sized = SMALL.replace("], [", "").replace("]}", "], size: 1GB}")
    expected = Limits(None, None, None, None, None, 10**6, 0, 1, 2, 3, 5_000)
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
    """A rule and its amount, in bytes or millionths."""
    sized = SMALL.replace("[1, 2]", "[1, 2], size: 1GB")
    assert choice == spec_of(tmp_path, f"{sized}sweep: {{choose: {text}}}\n").sweep.choice


@pytest.mark.parametrize(("text", "ppm"), [("80%", 800_000), ("87.5%", 875_000), ("100%", 10**6), ("0.0001%", 1)])
def test_a_share_of_the_disks(text: str, ppm: int, tmp_path: Path) -> None:
    """Exact to four decimals; a broker that leaves needs to state no disk."""
    sized = SMALL.replace("]}", "], size: 1GB}").replace("[1, 2], size: 1GB}", "[1, 2], size: 2GB}")
    disks = sized.replace("rack: a}", "rack: a, capacity: {disk: 1TB}}").replace(
        "rack: b}", "rack: b, capacity: {disk: 1TB}}"
    )
    spec = spec_of(tmp_path, f"{disks}changes: {{remove_brokers: [3]}}\nlimits: {{disk_used: {text}}}\n")
    assert Limits(disk_used_ppm=ppm) == spec.limits


def test_rates_of_topics_in_state_files(tmp_path: Path) -> None:
    """What the describe file can't say is said by pattern, whole topics at a time; the sum is the topic's rate."""
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
    """A new id that is named nowhere else inherits the rack; one that is known already doesn't join again."""
    assert added == spec_of(tmp_path, f"{SMALL}changes: {{{changes}}}\n").changes.add_brokers


def test_aliases_are_values_like_others(tmp_path: Path) -> None:
    """A modest use of anchors is fine, in JSON-like YAML too."""
    text = SMALL.replace("[{replicas: [1, 2]}, {replicas: [2, 3]}]", "[&p {replicas: [1, 2]}, *p]")
    assert 2 == len(spec_of(tmp_path, text).cluster.topics[0].partitions)


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    """Editors on Windows write one."""
    assert "demo" == spec_of(tmp_path, "\ufeff" + SMALL).cluster.name


def test_a_leaving_broker_needs_no_rack(tmp_path: Path) -> None:
    """Only brokers that may hold replicas afterwards must have racks."""
    text = SMALL.replace("{id: 3, rack: c}", "{id: 3}") + "changes: {remove_brokers: [3]}\n"
    assert (3,) == spec_of(tmp_path, text).changes.remove_brokers


def test_an_excluded_topic_that_has_its_factor_already_is_no_fault(tmp_path: Path) -> None:
    """A pattern may cover topics that don't move, where nothing has to change."""
    text = SMALL + (
        'changes: {set_replication_factor: [{topics: "*", replication_factor: 2}]}\ntopics: {exclude: ["orders"]}\n'
    )
    assert 1 == len(spec_of(tmp_path, text).changes.set_replication_factor)


def schema() -> dict[str, Any]:
    """The schema, as shipped."""
    loaded: dict[str, Any] = json.loads(resource("schemas", "spec.schema.json").read_text(encoding="utf-8"))
    return loaded


def keys(part: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each key that the schema knows, with its own part of the schema."""
    if isinstance(part, dict):
        for name, inner in part.get("properties", {}).items():
            yield f"{path}.{name}", inner
        for name, inner in part.items():
            yield from keys(inner, f"{path}.{name}")


def test_the_schema_describes_each_key() -> None:
    """A walk over the whole schema: no key without a description that ends as a sentence."""
    found = dict(keys(schema(), ""))
    assert 75 < len(found)
    assert [] == [name for name, part in found.items() if not part.get("description", "").endswith(".")]


def test_the_schema_allows_no_unknown_keys() -> None:
    """Every mapping is closed, but for maps of names, whose values are described."""

    def mappings(part: Any) -> Iterator[dict[str, Any]]:
        if isinstance(part, dict):
            if part.get("type") == "object":
                yield part
            for inner in part.values():
                yield from mappings(inner)

    found = list(mappings(schema()))
    assert 20 < len(found)
    assert [] == [part for part in found if part["additionalProperties"] is not False and "propertyNames" not in part]


def test_the_schema_is_valid() -> None:
    """It is JSON Schema of draft 2020-12, and its own defaults and examples satisfy it."""
    Draft202012Validator.check_schema(schema())
    rules = Draft202012Validator(schema())

    def stated(part: Any) -> Iterator[tuple[Any, Any]]:
        if isinstance(part, dict):
            yield from (
                (part, value) for value in (*part.get("examples", ()), *[part[k] for k in ("default",) if k in part])
            )
            for inner in part.values():
                yield from stated(inner)

    found = list(stated(schema()))
    assert 20 < len(found)
    bare = [({key: value for key, value in part.items() if key != "$id"}, value) for part, value in found]
    assert [] == [(part, value) for part, value in bare if not rules.evolve(schema=part).is_valid(value)]


def test_resources_that_are_not_shipped_are_a_setup_error() -> None:
    """The message names the file and the way out."""
    assert "schemas" == resource("schemas").name
    with pytest.raises(SetupError, match=r"schemas/gone\.json isn't part of this installation"):
        resource("schemas", "gone.json")
