"""Recognizes KRaft's placement in an assignment."""

from __future__ import annotations

import json

import pytest
from folders import DATA
from hypothesis import given
from hypothesis import strategies as st
from placement_requests import requests

from planner.strategies import kafka_striped
from planner.strategies import kafka_striped as explain_striped


@pytest.mark.parametrize("vector", json.loads((DATA / "kafka-striped-assignments.json").read_text()))
def test_answers_of_krafts_placer_are_told(vector):
    """Each of StripedReplicaPlacer's placements without fenced brokers is recognized."""
    if any(each.get("fenced") for each in vector["brokers"]):
        return
    lists = list(vector["assignment"].values()) if isinstance(vector["assignment"], dict) else vector["assignment"]

    assert kafka_striped.fits([(each["id"], each["rack"]) for each in vector["brokers"]], lists)


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
        fitting += kafka_striped.fits(brokers, lists)

    assert fitting <= 2
