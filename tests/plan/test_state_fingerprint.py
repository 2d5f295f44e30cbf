"""The state in plan.json: what tells changed partitions from others without a copy of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from planner.model.cluster import Partition, Topic
from planner.plan.document.cluster_types import StateRow
from planner.plan.state_fingerprint import digest, of_leader, section, unlike


def topic(*lists: tuple[int, ...], name: str = "a", leaders: dict[int, int | None] | None = None) -> Topic:
    """A topic of 10 bytes a partition; the first replica leads where nothing else is said."""
    led = leaders or {}
    return Topic(name, tuple(Partition(at, each, led.get(at, each[0]), None, 10) for at, each in enumerate(lists)))


def row(made: Topic) -> StateRow:
    """What a plan has of a topic."""
    return section([made], sizes_known=True).topics[0]


def test_a_topic_takes_three_characters_a_partition() -> None:
    """Its sizes as one number; none where they aren't known."""
    made = row(topic((1, 2), (2, 3), (3, 1), leaders={1: 3, 2: None}))

    assert (6, "AB-", 30) == (len(made.replicas), made.leaders, made.size_bytes)
    assert section([topic((1,))], sizes_known=False).topics[0].size_bytes is None


def test_changed_lists_and_leaders_are_named() -> None:
    """A leader of other replicas isn't told apart; partitions that came later aren't among them."""
    before = row(topic((1, 2), (2, 3), (3, 1)))

    assert ([], []) == unlike(before, topic((1, 2), (2, 3), (3, 1)))
    assert ([0, 2], [1]) == unlike(before, topic((2, 1), (2, 3), (3, 4), (5, 6), leaders={1: 3}))
    assert ([], []) == unlike(before, topic((1, 2), (2, 3)))


def test_few_of_many_lists_are_taken_for_each_other() -> None:
    """Twelve bits a list: of thousands about one in 4,096 pairs."""
    lists = list(permutations(range(1, 13), 3))
    before = row(topic(*lists))
    shifted = topic(*(lists[1:] + lists[:1]))
    changed, _ = unlike(before, shifted)

    assert len(lists) - 5 <= len(changed) <= len(lists)


def test_the_digest_is_over_names_lists_and_leaders() -> None:
    """Sizes change all the time; they aren't in it."""
    made = topic((1, 2), (2, 3))
    sized = replace(made, partitions=tuple(replace(each, size_bytes=99) for each in made.partitions))

    assert digest([made]) == digest([sized])
    others = [topic((1, 2), (3, 2)), topic((1, 2), (2, 3), leaders={1: 3}), topic((1, 2), (2, 3), name="b")]
    assert 4 == len({digest([made]), *(digest([each]) for each in others)})


def test_a_leader_outside_its_replicas_is_nobody() -> None:
    """As where there is none."""
    assert "-" == of_leader(Partition(0, (1, 2), 9)) == of_leader(Partition(0, (1, 2), None))
