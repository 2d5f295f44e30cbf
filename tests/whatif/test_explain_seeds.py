"""Start index and shift, found from assignments: compared with the placement itself, real clusters, and by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from folders import DATA
from hypothesis import given
from hypothesis import strategies as st
from placement_requests import requests

from planner.cli.place_and_seeds import read_brokers
from planner.model.cluster import Partition, Topic
from planner.strategies import kafka_classic
from planner.whatif import explain_seeds

ZOOKEEPER = DATA / "zookeeper-3.9" / "kafka-topics-describe.txt"
KRAFT = DATA / "kraft-4.1" / "kafka-topics-describe.txt"
RACKS = [(broker, f"rack{broker % 2}") for broker in range(4)]


def topic(lists, name="t") -> Topic:
    """A topic with these replica lists, from partition 0."""
    return Topic(name, tuple(Partition(number, tuple(replicas)) for number, replicas in enumerate(lists)))


@pytest.mark.parametrize(("count", "start", "factor"), [(7, 0, 2), (12, 2, 3), (30, 4, 4)])
def test_a_plain_round_robin_is_called_one(count, start, factor):
    """A round robin longer than one round fits no pair, and is named as round robin instead of edited by hand."""
    lists = kafka_classic.round_robin(range(5), count, factor, start)

    found = explained(lists, unracked(5))

    assert ("round_robin", start, (), ()) == (found.verdict, found.start_index, found.shifts, found.differences)


def test_a_round_robin_with_one_partition_elsewhere_is_none():
    """A topic with one partition changed isn't named as round robin."""
    lists = kafka_classic.round_robin(range(5), 30, 3)
    lists[17] = lists[17][::-1]

    assert "round_robin" != explained(lists, unracked(5)).verdict


def unracked(count: int) -> list[tuple[int, str | None]]:
    """Brokers 0, 1, … without racks."""
    return [(broker, None) for broker in range(count)]


def explained(lists, brokers, **options) -> explain_seeds.Explanation:
    """The explanation of a single topic."""
    (found,) = explain_seeds.explain([topic(lists)], brokers, **options)
    return found


@given(requests())
def test_a_placement_is_explained_by_its_own_pair(request):
    """The pair it was made with is among those found, and every one of those gives the same placement."""
    brokers, partitions, factor, (start, shift) = request
    lists = kafka_classic.place(brokers, partitions, factor, start_index=start, next_replica_shift=shift)

    found = explained(lists, brokers)

    assert "exact" == found.verdict
    assert start == found.start_index
    assert shift in found.shifts
    for each in found.shifts:
        again = kafka_classic.place(brokers, partitions, factor, start_index=start, next_replica_shift=each)
        assert lists == again


@given(requests(), st.data())
def test_every_pair_reported_gives_all_but_the_differences(request, data):
    """Whatever was edited: placing again by the pair, on the list said, gives exactly what the report says."""
    brokers, partitions, factor, (start, shift) = request
    lists = kafka_classic.place(brokers, partitions, factor, start_index=start, next_replica_shift=shift)
    for number in data.draw(st.sets(st.integers(0, partitions - 1), max_size=4)):
        lists[number] = tuple(data.draw(st.permutations([each for each, _ in brokers]))[:factor])

    found = explained(lists, brokers)

    changed = {each.partition: each.expected for each in found.differences}
    for each in found.shifts:
        racks = dict(brokers) if found.brokers.rack_aware else {}
        again = kafka_classic.place(
            [(broker, racks.get(broker)) for broker in found.brokers.order],
            found.grown_from or partitions,
            factor,
            start_index=found.start_index,
            next_replica_shift=each,
        )
        kept = [number for number in range(len(again)) if number not in changed]
        assert [lists[number] for number in kept] == [again[number] for number in kept]
    assert changed == {number: explain_seeds.placed(found, [number])[0] for number in changed}


@given(requests(), st.integers(2, 30))
def test_a_grown_topic_is_explained_in_two_parts(request, more):
    """Partitions added later follow Kafka's rule: it starts from the place of partition 0's leader."""
    brokers, partitions, factor, (start, shift) = request
    lists = kafka_classic.place(brokers, partitions, factor, start_index=start, next_replica_shift=shift)
    place = [each for each, _ in brokers].index(lists[0][0])
    added = kafka_classic.place(
        brokers, more, factor, start_index=place, next_replica_shift=place, start_partition_id=partitions
    )

    found = explained(lists + added, brokers)

    assert "exact" == found.verdict
    assert lists + added == explain_seeds.placed(found, range(partitions + more))


@pytest.mark.parametrize("vector", json.loads((DATA / "kafka-classic-assignments.json").read_text()))
def test_answers_of_kafka_are_explained(vector):
    """Each of AdminUtils' placements that began at partition 0 is explained."""
    if vector["start_partition_id"] > 0:
        return
    lists = [tuple(vector["assignment"][str(number)]) for number in range(vector["partitions"])]

    found = explained(lists, [(each["id"], each["rack"]) for each in vector["brokers"]])

    assert "exact" == found.verdict
    assert lists == explain_seeds.placed(found, range(len(lists)))


@pytest.mark.parametrize(
    ("brokers", "lists", "start", "shift"),
    [
        (4, "320 031 102", 3, 2),
        (4, "312 023 130 201 320", 3, 1),
        (4, "102 213 320 031 123 230 301 012 130", 1, 2),
        (3, "201 012 120 210 021 102", 2, 0),
    ],
    ids=["three partitions", "five", "nine", "topic-test4"],
)
def test_published_assignments(brokers, lists, start, shift):
    """For published introductions to Kafka's placement, the authors' pair is among those found."""
    found = explained([tuple(map(int, word)) for word in lists.split()], unracked(brokers))

    assert ("exact", start) == (found.verdict, found.start_index)
    assert shift in found.shifts


def test_topic_test1_and_6_are_the_two_brokers_turns():
    """0,1 and 1,0 alternate: on brokers 0 and 1 there is no other placement with this leader."""
    found = explained([(0, 1), (1, 0), (0, 1), (1, 0)], unracked(2))

    assert ("exact", 0, (0, 1)) == (found.verdict, found.start_index, found.shifts)


def test_topic_test7_was_edited_by_hand():
    """Partition 1 lost a replica: the pair is found, and the list that the partition would have."""
    found = explained([(0, 1), (1,), (0, 1), (1, 0)], unracked(2))

    assert ("nearest", 2, 3) == (found.verdict, found.replication_factor, found.agreeing)
    assert (explain_seeds.PlacementDifference(1, (1,), (1, 0)),) == found.differences


def test_tp_re_01_has_no_pair():
    """All five partitions on broker 0 can't come from Kafka's placement on two brokers, but can on broker 0 alone."""
    lists = [(0,)] * 5

    found = explained(lists, unracked(2))

    assert ("exact", (0,)) == (found.verdict, found.brokers.order)
    assert "brokers up to 0" == found.brokers.name


def test_tp_demo_03_is_a_pair_on_two_brokers():
    """The manual assignment 0:1,1:0,0:1 is one that Kafka could have made."""
    assert "exact" == explained([(0, 1), (1, 0), (0, 1)], unracked(2)).verdict


def test_scattered_replicas_have_no_pair():
    """If every sequence explains fewer than half of the partitions, there is no pair."""
    found = explained([(0, 1), (0, 2), (3, 4), (3, 1), (3, 0), (2, 0)], unracked(5))

    assert ("none", None, (), 0) == (found.verdict, found.brokers, found.shifts, found.agreeing)
    with pytest.raises(ValueError, match="no pair explains t"):
        explain_seeds.placed(found, [0])


def test_a_swapped_follower_is_named():
    """If one partition of twelve differs, its replicas and those of the pair are named."""
    lists = kafka_classic.place(RACKS, 12, 2, start_index=1, next_replica_shift=2)
    edited = [*lists[:5], (lists[5][0], lists[6][0] if lists[6][0] != lists[5][1] else lists[4][0]), *lists[6:]]

    found = explained(edited, RACKS)

    assert ("nearest", 1, 11) == (found.verdict, found.start_index, found.agreeing)
    assert (explain_seeds.PlacementDifference(5, edited[5], lists[5]),) == found.differences


def test_brokers_that_joined_later():
    """A topic older than two of the brokers is explained by the others; a newer topic by today's brokers."""
    old = kafka_classic.place(RACKS[:2], 6, 2, start_index=1, next_replica_shift=0)
    new = kafka_classic.place(RACKS, 6, 2, start_index=3, next_replica_shift=1)

    before, after = explain_seeds.explain([topic(old, "old"), topic(new, "new")], RACKS)

    assert ("exact", "brokers up to 1", (0, 1)) == (before.verdict, before.brokers.name, before.brokers.order)
    assert ("exact", "today's brokers") == (after.verdict, after.brokers.name)


def test_a_broker_in_between_that_joined_later():
    """If the new broker's id isn't the highest, the brokers that the topic uses explain it."""
    lists = kafka_classic.place([(0, None), (2, None), (5, None)], 9, 2, start_index=0, next_replica_shift=1)

    found = explained(lists, [(broker, None) for broker in (0, 1, 2, 5)])

    assert ("exact", "the brokers that the topic uses") == (found.verdict, found.brokers.name)


def test_a_list_that_explains_one_topic_is_tried_on_the_others():
    """A small topic doesn't show the brokers of its time, but a large one does, and its list explains both."""
    then = [(broker, None) for broker in (0, 2, 3, 5, 6, 7)]
    many = kafka_classic.place(then, 24, 3, start_index=2, next_replica_shift=4)
    few = kafka_classic.place(then, 3, 2, start_index=0, next_replica_shift=2)

    assert "nearest" == explained(few, unracked(8)).verdict
    _, found = explain_seeds.explain([topic(many, "many"), topic(few, "few")], unracked(8))

    assert few == explain_seeds.placed(found, range(3))
    assert ("the brokers of other topics", (0, 2, 3, 5, 6, 7)) == (found.brokers.name, found.brokers.order)


def test_topics_from_before_the_racks():
    """Racks that were set later are ignored if that explains the topic."""
    lists = kafka_classic.place(unracked(4), 9, 3, start_index=1, next_replica_shift=2)

    found = explained(lists, RACKS)

    assert ("exact", False) == (found.verdict, found.brokers.rack_aware)
    assert found == replace(explained(lists, unracked(4)), brokers=found.brokers)
    assert "today's brokers" == explained(lists, RACKS, rack_aware=False).brokers.name


def test_a_single_replica_leaves_the_shift_open():
    """With one replica, every shift gives the same placement."""
    found = explained([(1,), (2,), (0,)], unracked(3))

    assert (1, (0, 1, 2)) == (found.start_index, found.shifts)


def test_a_real_cluster_with_racks():
    """All topics made by a ZooKeeper cluster of four brokers in two racks are explained."""
    found = explain_seeds.explain(read_brokers(ZOOKEEPER)[0], RACKS)

    assert {"exact"} == {each.verdict for each in found}


def test_a_real_kraft_cluster():
    """Topics of a KRaft cluster have no pair, and are recognized as KRaft's, not as edited by hand."""
    brokers = [(broker, f"rack{(broker - 1) % 3}") for broker in range(1, 7)]
    found = {each.topic: each.verdict for each in explain_seeds.explain(read_brokers(KRAFT)[0], brokers)}

    assert "exact" == found.pop("dead-letter")  # one partition: any placement of it has a pair
    assert {"striped"} == set(found.values())


@pytest.mark.slow
def test_a_thousand_topics_on_ninety_brokers():
    """Half of the topics are Kafka's, on today's or earlier brokers, half have all replicas moved."""
    brokers = [(broker, f"r{broker % 3}") for broker in range(90)]
    topics = []
    for number in range(1000):
        count = 90 if number % 4 < 2 else 60
        pair = {"start_index": number % count, "next_replica_shift": number * 7 % count}
        lists = kafka_classic.place(brokers[:count], 30, 3, **pair)
        if number % 2:
            lists = [tuple((broker * 17 + row * row) % 90 for broker in each) for row, each in enumerate(lists)]
        topics.append(topic(lists, f"t{number}"))

    found = explain_seeds.explain(topics, brokers)

    assert {"exact"} == {each.verdict for each in found[::2]}
    assert {"none"} == {each.verdict for each in found[1::2]}


def test_a_round_robin_begins_where_it_began():
    """A round robin is recognized with its start on its own order of brokers only, also from some of its partitions."""
    lists = kafka_classic.round_robin((3, 1, 2), 9, 2, 1)
    partitions = [Partition(number, tuple(replicas)) for number, replicas in enumerate(lists)]

    assert 1 == explain_seeds.start_of((3, 1, 2), partitions[4:])
    assert explain_seeds.start_of((1, 2, 4), partitions) is None
    assert explain_seeds.start_of((2, 1, 3), partitions) is None
    assert explain_seeds.start_of((3, 1, 2), [*partitions, Partition(9, (1,))]) is None
