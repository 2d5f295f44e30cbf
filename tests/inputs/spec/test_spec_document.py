"""What follows from several keys of a spec is worked out once for each document, and anew for each variant."""

from __future__ import annotations

from dataclasses import replace

from planner.inputs.importers.state_parts import Assignment
from planner.inputs.spec.spec_document import SpecDocument
from planner.inputs.yaml_source import read_yaml
from planner.model.cluster import Partition, Topic

TEXT = """\
cluster: {brokers: [{id: 1, rack: a}, {id: 2, rack: b}, {id: 3}]}
broker_sets: {first: [1], others: [2, 4]}
placement: [{topics: "a*", brokers: first, exclusive: true}]
changes: {replace_brokers: {2: 4}, set_racks: {3: a}, add_partitions: [{topic: b, partitions: 3}]}
sweep: {variants: [{name: v, changes: {remove_brokers: [1]}}]}
"""
DOCUMENT = SpecDocument(**vars(read_yaml(TEXT, "s.yaml")))


def test_brokers_are_made_once() -> None:
    """The brokers after the change, with their racks, are the same objects each time."""
    assert {1: "a", 3: "a", 4: "b"} == DOCUMENT.racks_after
    assert DOCUMENT.target_brokers is DOCUMENT.target_brokers


def test_a_variant_has_brokers_of_its_own() -> None:
    """A variant's changes stand in the place of `changes`, also for what the document has worked out already."""
    before = DOCUMENT.racks_after
    ((_, view),) = DOCUMENT.variants
    assert {2: "b", 3: None} == view.racks_after
    assert before == DOCUMENT.racks_after


def test_a_set_that_is_exclusive_is_for_its_topics_alone() -> None:
    """A topic uses the brokers of its rule; all other topics use those outside exclusive sets."""
    assert ({1}, {3, 4}) == (DOCUMENT.usable_brokers("ab"), DOCUMENT.usable_brokers("b"))


def test_partitions_are_added_to_topics_that_exist() -> None:
    """Without today's topics, nothing is known about partitions to be added; with them, their replicas are."""
    assert () == DOCUMENT.added_partitions
    topic = Topic("b", (Partition(0, (1, 2), 1),))
    (new,) = replace(DOCUMENT, assignment=Assignment((topic,))).added_partitions
    assert ("b", 1, 3, 2) == (new.topic, new.first, new.count, new.replication_factor)
