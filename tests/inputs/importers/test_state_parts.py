"""What one source says of a cluster: its rank, and why a reassignment in progress is refused."""

from __future__ import annotations

import pytest

from planner.inputs.importers.state_parts import Rank, RunningReassignment, moving_finding
from planner.model.errors import Place


def test_brokers_outrank_znodes_and_those_documents() -> None:
    """The merge sorts by rank, so its numbers are what is believed first."""
    assert [Rank.CLUSTER, Rank.ZNODES, Rank.DOCUMENT] == sorted([Rank.DOCUMENT, Rank.ZNODES, Rank.CLUSTER])


@pytest.mark.parametrize(
    ("adding", "removing", "seen"),
    [((4, 5), (1,), " (Adding Replicas: 4, 5)"), ((), (1, 2), " (Removing Replicas: 1, 2)"), ((), (), "")],
)
def test_a_reassignment_is_refused_with_what_it_adds_or_else_removes(
    adding: tuple[int, ...], removing: tuple[int, ...], seen: str
) -> None:
    """At the place and under the key where it was read."""
    place = Place("f", 3, 1)
    found = moving_finding(RunningReassignment(place, "a", 7, adding, removing, key="a-7"))
    assert (place, "a-7") == (found.place, found.key)
    assert found.message.startswith(f"partition 7 of a is being reassigned{seen}; allowed: a state without")
