"""Recognizes KRaft's placement and plain round robin in an assignment."""

from __future__ import annotations

import json

import pytest
from folders import DATA
from hypothesis import given
from hypothesis import strategies as st
from placement_requests import requests

from planner.model.cluster import Partition
from planner.strategies import kafka_classic, kafka_striped
from planner.whatif import explain_striped


@pytest.mark.parametrize("vector", json.loads((DATA / "kafka-striped-assignments.json").read_text()))
def test_answers_of_krafts_placer_are_told(vector):
    """Each of StripedReplicaPlacer's placements without fenced brokers is recognized."""
    if any(each.get("fenced") for each in vector["brokers"]):
        return
    lists = list(vector["assignment"].values()) if isinstance(vector["assignment"], dict) else vector["assignment"]

    assert explain_striped.fits([(each["id"], each["rack"]) for each in vector["brokers"]], lists)


@given(requests(), st.integers(0, 2**32))
def test_krafts_placement_always_fits_itself(request, seed):
    """Whatever the seed, racks and rounds."""
    brokers, partitions, factor, _ = request
    lists = kafka_striped.place([(*each, False) for each in brokers], partitions, factor, java_random_seed=seed)

    assert explain_striped.fits(brokers, lists)


def test_krafts_placement_seldom_fits_what_was_edited():
    """If one replica of one partition is on another broker, at least 99 of 100 placements aren't recognized."""
    brokers = [(broker, f"r{broker % 3}") for broker in range(9)]
    fitting = 0
    for seed in range(200):
        lists = kafka_striped.place([(*each, False) for each in brokers], 24, 3, java_random_seed=seed)
        at = seed % 24
        lists[at] = (*lists[at][:2], next(each for each, _ in brokers if each not in lists[at]))
        fitting += explain_striped.fits(brokers, lists)

    assert fitting <= 2


def test_a_round_robin_begins_where_it_began():
    """A round robin is recognized with its start on its own order of brokers only, also from some of its partitions."""
    lists = kafka_classic.round_robin((3, 1, 2), 9, 2, 1)
    partitions = [Partition(number, tuple(replicas)) for number, replicas in enumerate(lists)]

    assert 1 == explain_striped.start_of((3, 1, 2), partitions[4:])
    assert explain_striped.start_of((1, 2, 4), partitions) is None
    assert explain_striped.start_of((2, 1, 3), partitions) is None
    assert explain_striped.start_of((3, 1, 2), [*partitions, Partition(9, (1,))]) is None
