"""What moves in a group when members or partitions change: keys, racks and events."""

from __future__ import annotations

from fractions import Fraction

import pytest

from planner.whatif.consumers import group_events as consumers_keys


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
    ],
)
def test_murmur2_is_kafkas(key, expected):
    """The values that Kafka's own tests expect."""
    assert expected % 2**32 == consumers_keys.murmur2(key.encode())


@pytest.mark.parametrize(("before", "after"), [(1, 2), (12, 24), (12, 18), (7, 5), (3, 3), (10, 11)])
def test_the_share_of_keys_that_move(before, after):
    """Counted over every hash up to a common multiple."""
    hashes = range(before * after)
    moving = sum(value % before != value % after for value in hashes)

    assert Fraction(moving, len(hashes)) == consumers_keys.moved_share(before, after)
