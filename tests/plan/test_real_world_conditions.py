"""Real-world conditions of clusters, from the output of Kafka's tools to the plan and its report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from condition_clusters import NONE, SIX, THREE, Described, Racks, plan_of, spec_in

from planner.inputs.spec.reading import load
from planner.model.errors import SpecError

LARGEST = 2**31 - 1


def racks_of(racks: Racks, replicas: list[int]) -> list[str | None]:
    """The racks of replicas, sorted."""
    return sorted(str(racks[broker]) for broker in replicas)


def test_unlike_replication_factors_across_topics(tmp_path: Path) -> None:
    """Each topic keeps its own factor, and the report's table of topics shows it."""
    topics = {"one": Described([[1]] * 3), "two": Described([[1, 2]] * 3), "three": Described([[1, 2, 3]] * 3)}
    found = plan_of(tmp_path, SIX, topics)
    assert {"one": {1}, "two": {2}, "three": {3}} == {name: {*map(len, found.lists(name))} for name in topics}
    assert {"one": ([1], 1), "two": ([2], 2), "three": ([3], 3)} == {
        row["name"]: (row["replication_factor_before"], row["replication_factor"]) for row in found.plan["topics"]
    }
    assert dict.fromkeys(SIX, 3) == found.held()


def test_unlike_replication_factors_within_a_topic(tmp_path: Path) -> None:
    """topic-test7 of the introductions, 0:1,1:2,2: each partition keeps its factor, and the report says so."""
    topics = {"topic-test7": Described([[0, 1], [1, 2], [2]])}
    found = plan_of(tmp_path, {0: None, 1: None, 2: None}, topics)
    assert ([], {0: 1, 1: 2, 2: 2}) == (found.plan["partitions"], found.held())
    assert found.warns("1 topic with unlike replication factors within the topic")


@pytest.mark.slow
def test_unlike_replication_factors_made_alike(tmp_path: Path) -> None:
    """A factor that is asked for adds a replica to the partition that lacks one, and changes nothing else."""
    change = "changes: {set_replication_factor: [{topics: topic-test7, replication_factor: 2}]}\n"
    topics = {"topic-test7": Described([[0, 1], [1, 2], [2]])}
    found = plan_of(tmp_path, {0: None, 1: None, 2: None}, topics, change)
    assert [("topic-test7", 2, [2, 0], "replication_factor")] == [
        (each["topic"], each["partition"], each["replicas"], each["reason"]) for each in found.plan["partitions"]
    ]


@pytest.mark.slow
def test_a_replacement_that_cannot_take_over_everything(tmp_path: Path) -> None:
    """A replacement can't take over a partition that it has, or that its rack has: the report says so, and no more."""
    racks = {1: "a", 2: "b", 3: "a", 4: "b"}
    topics = {"t": Described([[1, 4], [1, 2], [3, 2]])}
    found = plan_of(tmp_path, racks, topics, "changes: {replace_brokers: {1: 4}}\n")
    assert [{3, 4}, {2, 3}] == [*map(set, found.lists("t"))]
    assert found.warns(
        "2 of the 2 replicas of broker 1 go to other brokers than 4: 4 has a replica of the partition today, or a rule "
        "(racks, placement, apart, caps) keeps it away"
    )
    assert not plan_of(tmp_path, racks, topics, "changes: {replace_brokers: {1: 3}}\n").warns("go to other brokers")


def test_a_replication_factor_above_the_racks(tmp_path: Path) -> None:
    """Three replicas in two racks are two and one, wherever they were; the report warns that there are few racks."""
    racks = {1: "a", 2: "b", 3: "a", 4: "b", 5: "a"}
    change = "changes: {remove_brokers: [5]}\n"
    found = plan_of(tmp_path, racks, {"t": Described([[1, 3, 5], [2, 1, 5], [1, 3, 2], [5, 4, 1]])}, change)
    spreads = [racks_of(racks, row) for row in found.lists("t")]
    assert (len(spreads), True) == (4, all(spread in (["a", "a", "b"], ["a", "b", "b"]) for spread in spreads))
    assert {1: 3, 2: 3, 3: 3, 4: 3, 5: 0} == found.held()
    assert found.warns(
        "4 partitions with more replicas than there are racks (2): some racks hold several of a partition, until there "
        "are more racks or fewer replicas"
    )


@pytest.mark.slow
def test_racks_of_unequal_size(tmp_path: Path) -> None:
    """One replica in each rack: the brokers of small racks hold more than their share, and the report says why."""
    racks = {1: "a", 2: "a", 3: "a", 4: "b", 5: "c"}
    found = plan_of(tmp_path, racks, {"t": Described([[1, 4, 5]] * 6)})
    assert {1: 2, 2: 2, 3: 2, 4: 6, 5: 6} == found.held()
    why = "brokers in smaller racks hold more: racks b, c have 1 broker each, the other rack 3"
    assert {("replicas", None): why, ("topic_replicas", "t"): why} == found.relaxed()
    assert why in found.report


@pytest.mark.slow
def test_one_rack(tmp_path: Path) -> None:
    """With one rack, brokers are balanced as if there were no racks, and the report warns of the risk."""
    racks = {1: "a", 2: "a", 3: "a"}
    found = plan_of(tmp_path, racks, {"t": Described([[1, 2]] * 6)})
    assert {1: 4, 2: 4, 3: 4} == found.held()
    assert (6, 6) == found.term("on_one_rack")
    assert found.warns(
        "all brokers are in one rack: replicas can't be spread over racks, and its failure takes all of them"
    )


def test_brokers_with_no_replica(tmp_path: Path) -> None:
    """Brokers that aren't in the state, because they hold nothing yet, get replicas."""
    found = plan_of(tmp_path, SIX, {"t": Described([[1, 2, 3]] * 6)})
    assert {1: 6, 2: 6, 3: 6, 4: 0, 5: 0, 6: 0} == found.held("before")
    assert dict.fromkeys(SIX, 3) == found.held()
    assert "| 4 | `a` | 0 → 3 |" in found.report


def test_brokers_in_the_state_but_not_in_the_list(tmp_path: Path) -> None:
    """A broker that isn't listed is refused with the partition's line, and no wrong counts are reported besides."""
    spec = spec_in(tmp_path, {1: "a", 2: "b"}, {"t": Described([[1, 2, 3]] * 6)})
    with pytest.raises(SpecError) as refused:
        load(spec)
    (finding,) = refused.value.findings
    message = "has a replica on broker 3, which isn't in cluster.brokers (as 5 more partitions do); allowed: 1, 2"
    assert ("describe.txt", 2, "t-0", message) == (
        Path(finding.place.file).name,
        finding.place.line,
        finding.key,
        finding.message,
    )


def test_brokers_in_the_list_but_not_live(tmp_path: Path) -> None:
    """Brokers that are missing from the list of live brokers, or live but not listed, each have a warning."""
    seen = {1: "a", 2: "b", 9: "c"}
    live = "".join(f"h:{broker} (id: {broker} rack: {rack}) -> (\n)\n" for broker, rack in seen.items())
    found = plan_of(tmp_path, THREE, {"t": Described([[1, 2, 3]] * 3)}, more={"versions.txt": live})
    assert found.warns("broker 9 is live by versions.txt, but isn't in cluster.brokers: it gets no replica")
    assert found.warns("broker 3 of cluster.brokers isn't among the live ones of versions.txt")
    assert 9 not in found.held()


@pytest.mark.slow
def test_dead_brokers(tmp_path: Path) -> None:
    """A broker in no ISR is named by its id, and under-replicated partitions are counted."""
    rows = [[1, 2, 3], [4, 5, 6], [4, 2, 3]]
    found = plan_of(tmp_path, SIX, {"t": Described(rows, leaders={1: 5, 2: 2}, isrs={1: [5, 6], 2: [2, 3]})})
    assert found.warns(
        "broker 4 is in no ISR of its 2 replicas: it seems to be down; apply.yml starts only once it is live: "
        "start it, or remove or replace it in changes"
    )
    assert found.warns(
        "2 partitions under-replicated: apply.yml starts only once all their replicas are in sync, or with "
        "-e kafka_reassign_allow_under_replicated=true"
    )


@pytest.mark.slow
def test_replicas_out_of_sync_on_brokers_that_leave(tmp_path: Path) -> None:
    """apply.yml waits until replicas of brokers that stay are in sync, but not for replicas of brokers that leave."""
    topics = {"a": Described([[1, 2], [3, 2]], isrs={0: [2], 1: [2]})}
    found = plan_of(tmp_path, SIX, topics, "changes: {remove_brokers: [1]}\n")
    assert 1 == found.plan["risks"]["out_of_sync"]
    assert found.warns(
        "1 partition under-replicated, only on brokers that the plan empties: apply.yml doesn't wait for these"
    )


def test_new_leaders_that_are_out_of_sync(tmp_path: Path) -> None:
    """As after a failed log dir on a live broker: only broker 1 could lead b-0, and isn't in its ISR."""
    topics = {"a": Described([[2]]), "b": Described([[2, 1]], isrs={0: [2]}), "c": Described([[3, 1]])}
    found = plan_of(tmp_path, SIX, topics, "changes: {rebalance: leaders}\n")
    assert [[1, 2]] == found.lists("b")
    assert found.warns(
        "1 partition (b-0) with a new preferred leader that isn't in sync today: wait until it is, or it isn't elected"
    )


@pytest.mark.parametrize(
    ("demoted", "lists", "elected", "still"),
    [
        (4, [[1, 4], [5, 4, 1]], [], None),
        (6, [[5, 6]], [1], None),
        (5, [[6, 5], [1, 5, 4], [1, 4, 5]], [2, 3], "t-4"),
    ],
)
def test_demoted_brokers_lead_neither_now_nor_once_they_are_back(
    tmp_path: Path, demoted: int, lists: list[list[int]], elected: list[int], still: str | None
) -> None:
    """Broker 4 is down and first in lists; 6 leads though 5 is preferred; only 5 is in sync in t-4."""
    rows = [[4, 1], [5, 6], [5, 4, 1], [4, 5, 1], [5, 4]]
    in_sync = {at: [broker for broker in row if broker != 4] for at, row in enumerate(rows)}
    topics = {"t": Described(rows, leaders={0: 1, 1: 6, 3: 5}, isrs=in_sync)}
    found = plan_of(tmp_path, dict.fromkeys(SIX), topics, f"changes: {{demote_brokers: [{demoted}]}}\n")
    assert lists == found.lists("t")
    assert elected == [each["partition"] for batch in found.plan["batches"] for each in batch["elect"]]
    assert {"leader_rule"} == {each["reason"] for each in found.plan["partitions"]}
    told = "they stay as they are, or no other of their replicas is in sync"
    assert (still is not None) == found.warns(f"1 partition ({still}) still led by demoted broker {demoted}: {told}")


@pytest.mark.slow
def test_dead_brokers_that_leave(tmp_path: Path) -> None:
    """A dead broker's replicas are copied to other brokers, from replicas in sync."""
    topics = {"t": Described([[4, 5, 6], [4, 2, 3]], leaders={0: 5, 1: 2}, isrs={0: [5, 6], 1: [2, 3]})}
    found = plan_of(tmp_path, SIX, topics, "changes: {remove_brokers: [4]}\n")
    assert [[1], [1]] == [sorted({*row} - {2, 3, 5, 6}) for row in found.lists("t")]
    assert (0, 2) == (found.held()[4], found.term("replicas_moved")[1])
    assert found.warns(
        "broker 4 is in no ISR of its 2 replicas: it seems to be down; the plan empties it, "
        "and rollback.yml can put nothing back on it while it is down"
    )


def test_offline_partitions_stay(tmp_path: Path) -> None:
    """An offline partition stays, because it has no leader to copy from: its reassignment would never end."""
    rows, lost = [[1, 2]] * 8, dict.fromkeys(range(4), NONE)
    found = plan_of(tmp_path, dict.fromkeys([1, 2, 3, 4]), {"t": Described(rows, leaders=lost)})
    assert {4, 5, 6, 7} >= {each["partition"] for each in found.plan["partitions"]}
    assert (4, 4) == found.term("without_leader")
    assert found.warns(
        "4 partitions (t-0, t-1, t-2 and 1 more) without a leader today: there is nothing to copy from, "
        "so nothing moves"
    )


def test_offline_partitions_that_have_to_move(tmp_path: Path) -> None:
    """A broker that leaves has offline partitions: they move, and the plan says which ones have to wait."""
    topics = {"t": Described([[1, 2], [2, 3]], leaders={0: NONE}, isrs={0: [1]})}
    found = plan_of(tmp_path, dict.fromkeys([1, 2, 3, 4]), topics, "changes: {remove_brokers: [1], rebalance: none}\n")
    assert [("t", 0, "broker_leaves")] == [(e["topic"], e["partition"], e["reason"]) for e in found.plan["partitions"]]
    assert found.warns(
        "1 partition (t-0) without a leader: nothing to copy from until a replica in sync is back; apply.yml skips "
        "its batch until then; run it again"
    )
    assert [True] == [batch["leaderless"] for batch in found.plan["batches"]]


@pytest.mark.slow
def test_replicas_of_a_reassignment_that_an_old_kafka_does_not_tell(tmp_path: Path) -> None:
    """Before 2.4, old and new replicas are listed together: more than the factor, and some not in sync."""
    found = plan_of(tmp_path, SIX, {"t": Described([[1, 2, 3], [1, 2, 6, 5]], isrs={1: [1, 2]})})
    assert found.warns(
        "partition t-1 with more replicas than others of the topic, and not all in sync: perhaps being reassigned; "
        "check with kafka-reassign-partitions --list"
    )


@pytest.mark.slow
def test_internal_topics(tmp_path: Path) -> None:
    """Internal topics move like all others, unless they are excluded."""
    topics = {
        "__consumer_offsets": Described([[1, 2, 3]] * 4, "compression.type=producer,cleanup.policy=compact"),
        "__transaction_state": Described([[1, 2, 3]] * 2, "cleanup.policy=compact,min.insync.replicas=2"),
    }
    found = plan_of(tmp_path, SIX, topics)
    assert dict.fromkeys(SIX, 3) == found.held()
    assert "| `__consumer_offsets` |" in found.report
    kept = plan_of(tmp_path, SIX, topics, 'topics: {exclude: ["__*"]}\n')
    assert ([], found.held("before")) == (kept.plan["partitions"], kept.held())
    assert kept.warns(
        "2 topics excluded by the YAML's topics key (__consumer_offsets, __transaction_state): "
        "not moved, but counted for the balance"
    )


def test_tiered_and_compacted_topics(tmp_path: Path) -> None:
    """Of tiered and compacted topics, only the bytes on brokers' disks move; for tiered ones, the report says so."""
    topics = {
        "tiered": Described([[1]] * 2, "remote.storage.enable=true,local.retention.ms=1000", size_bytes=lambda _: 50),
        "compacted": Described([[1]] * 2, "cleanup.policy=compact", size_bytes=lambda _: 7000),
    }
    found = plan_of(tmp_path, {1: None}, topics, "changes: {replace_brokers: {1: 2}}\n")
    assert {"tiered": 100, "compacted": 14_000} == {row["name"]: row["bytes_moved"] for row in found.plan["topics"]}
    assert found.warns("1 topic with tiered storage: only the data on brokers' disks is counted and moved")


@pytest.mark.parametrize("size_bytes", [0, 10**9])
def test_empty_topics(size_bytes: int, tmp_path: Path) -> None:
    """Empty replicas are spread as evenly as others, beside topics with bytes and without any."""
    full = Described([[4, 5, 6]] * 6, size_bytes=lambda _: size_bytes)
    found = plan_of(tmp_path, SIX, {"empty": Described([[1, 2, 3]] * 6, size_bytes=lambda _: 0), "full": full})
    assert dict.fromkeys(SIX, 6) == found.held()
    moved = {row["name"]: row["bytes_moved"] for row in found.plan["topics"]}
    assert (0, found.term("bytes_moved")[1]) == (moved["empty"], moved["full"])
    assert [] == found.plan["warnings"]


@pytest.mark.slow
def test_one_partition_of_two_fifths_of_all_bytes(tmp_path: Path) -> None:
    """A partition larger than a broker's window of bytes stays, and the report names it as why the target is missed."""
    topics = {
        "big": Described([[1]], size_bytes=lambda _: 40_000),
        "t": Described([[1], [2], [3], [4]] * 15, size_bytes=lambda _: 1_000),
    }
    found = plan_of(tmp_path, dict.fromkeys([1, 2, 3, 4]), topics)
    assert [] == found.lists("big")
    assert {("disk", None): "a single partition is larger than the target allows"} == found.relaxed()
    assert "a single partition is larger than the target allows" in found.report


@pytest.mark.slow
def test_thousands_of_topics_with_one_partition(tmp_path: Path) -> None:
    """Topics with one partition are spread evenly over few brokers; the report is short enough for a pull request."""
    topics = {f"svc.{at:05d}-events-{at % 10}": Described([[1, 2, 3]]) for at in range(2_000)}
    found = plan_of(tmp_path, SIX, topics)
    assert dict.fromkeys(SIX, 1_000) == found.held()
    assert {333, 334} == {*found.held(what="leaders").values()}
    assert (2_000, 3_000) == (len(found.plan["topics"]), found.term("replicas_moved")[1])
    assert len(found.report) < 65_536


@pytest.mark.slow
def test_the_largest_ids(tmp_path: Path) -> None:
    """Broker ids up to 2147483647 are right in every file that Kafka reads."""
    racks = {0: "a", 1000: "b", LARGEST: "c"}
    rows = [[0, LARGEST], [LARGEST, 1000], [0, 1000]]
    found = plan_of(tmp_path, racks, {"t": Described(rows)}, f"changes: {{replace_brokers: {{0: {LARGEST - 1}}}}}\n")
    assert [[LARGEST - 1, LARGEST], [LARGEST - 1, 1000]] == found.lists("t")
    assert [row for row in rows if 0 in row] == _replicas(tmp_path / "plan" / "rollback.json")
    assert [[LARGEST - 1, LARGEST], [LARGEST - 1, 1000]] == _replicas(tmp_path / "plan" / "reassignment.json")
    assert f"| {LARGEST - 1:,} |".replace(",", "") in found.report.replace(",", "")


def _replicas(file: Path) -> list[list[int]]:
    """The replica lists in a reassignment JSON."""
    return [each["replicas"] for each in json.loads(file.read_bytes())["partitions"]]


ODD_NAMES: Mapping[str, int] = {
    "a": 12,
    "a-1": 3,
    "a-1-1": 1,
    "a.b-0": 1,
    "a_b-0": 1,
    "-": 1,
    "0": 2,
    "...": 1,
    "_x.9": 1,
    "x" * 249: 2,
    "9" * 249: 1,
}


def test_names_that_end_like_partitions_and_names_of_249_characters(tmp_path: Path) -> None:
    """Partition 1 of `a-1` and partition 11 of `a` are different, and each has its own size."""
    at = {name: number for number, name in enumerate(ODD_NAMES, start=1)}
    topics = {
        name: Described([[1, 2, 3]] * count, size_bytes=lambda number, name=name: at[name] * 1_000 + number)  # type: ignore[misc]
        for name, count in ODD_NAMES.items()
    }
    found = plan_of(tmp_path, THREE, topics, "changes: {replace_brokers: {1: 7}}\n")
    moved = {(each["topic"], each["partition"]): each["size_bytes"] for each in found.plan["partitions"]}
    sized = {(name, number): at[name] * 1_000 + number for name, many in ODD_NAMES.items() for number in range(many)}
    assert sized == moved
    named = json.loads((tmp_path / "plan" / "reassignment.json").read_bytes())["partitions"]
    assert set(moved) == {(each["topic"], each["partition"]) for each in named}
    assert "`a-1-1`" in found.report


@pytest.mark.slow
def test_topics_marked_for_deletion(tmp_path: Path) -> None:
    """Topics marked for deletion stay as they are, and other topics are balanced around them."""
    topics = {"gone": Described([[1, 2, 3]] * 6, deleting=True), "t": Described([[1, 2, 3]] * 6)}
    found = plan_of(tmp_path, SIX, topics)
    assert ([], dict.fromkeys(SIX, 6)) == (found.lists("gone"), found.held())
    assert found.warns("1 topic marked for deletion: kept as is, and counted")
