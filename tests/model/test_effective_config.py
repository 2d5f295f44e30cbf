"""The configuration in force for a topic, and its min.insync.replicas."""

from __future__ import annotations

from planner.model.cluster import Topic, in_force, largest_min_insync, min_insync_replicas

DEFAULTS = (("a", "broker"), ("b", "broker"), ("c", "broker"))


def test_a_topics_own_outranks_what_it_inherits() -> None:
    """A topic's own value counts first, then a printed one of unknown origin, then the brokers'."""
    topic = Topic("t", (), config=(("a", "own"),), effective_config=(("b", "printed"),))
    assert {"a": "own", "b": "printed", "c": "broker"} == in_force(topic, DEFAULTS)


def test_kafkas_default_is_one_replica() -> None:
    """If nobody sets min.insync.replicas, Kafka's default is 1."""
    assert (1, 2) == (min_insync_replicas({}), min_insync_replicas({"min.insync.replicas": "2"}))


def test_the_largest_of_brokers_that_disagree_counts() -> None:
    """If brokers differ, the largest value counts, with a note; values that aren't numbers are ignored."""
    assert ({}, ()) == largest_min_insync([None, "two", "9" * 5000])
    assert ({"min.insync.replicas": "2"}, ()) == largest_min_insync(["2", None, "2"])
    assert ({"min.insync.replicas": "10"}, 1) == (lambda found, notes: (found, len(notes)))(
        *largest_min_insync(["9", "10"])
    )
