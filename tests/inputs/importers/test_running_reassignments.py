"""What `kafka-reassign-partitions --list` prints."""

from __future__ import annotations

import pytest

from planner.inputs.importers.any_format import read_part
from planner.model.errors import ImportStateError

HEADING = "Current partition reassignments:\n"


def test_a_line_is_a_reassignment() -> None:
    """Its topic may end like a partition; adding and removing replicas may be missing."""
    text = HEADING + "a-1-0: replicas: 4,1,2. adding: 4. removing: 1.\nb-3: replicas: 1,2. removing: 1.\n"
    assert [("a-1", 0, (4,), (1,), (4, 1, 2)), ("b", 3, (), (1,), (1, 2))] == [
        (row.topic, row.partition, row.adding, row.removing, row.replicas) for row in read_part(text, "f0").moving
    ]


def test_no_reassignment_in_the_list_is_none() -> None:
    """The tool says so in words."""
    assert () == read_part("No partition reassignments found.\n", "f0").moving


def test_a_line_of_the_list_that_is_cut_is_refused() -> None:
    """Otherwise a reassignment would be overlooked."""
    with pytest.raises(
        ImportStateError, match=r"f0:2:1: 'a-0: replicas: 4,1' isn't a reassignment; allowed: what kafka"
    ):
        read_part(HEADING + "a-0: replicas: 4,1", "f0")
