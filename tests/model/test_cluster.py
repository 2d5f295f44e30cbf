"""Log dirs that several sources describe."""

from __future__ import annotations

from planner.model.cluster import LogDir, LogDirs, ReplicaDir, merged


def test_of_two_descriptions_the_first_counts() -> None:
    """Brokers that only the second one names are taken from there."""
    one = LogDirs(((1, (LogDir("/a"),)),), (ReplicaDir("t", 0, 1, "/a", 1),))
    two = LogDirs(
        ((1, (LogDir("/b"),)), (2, (LogDir("/b"),))), (ReplicaDir("t", 0, 1, "/b", 2), ReplicaDir("t", 0, 2, "/b", 2))
    )
    assert LogDirs(
        ((1, (LogDir("/a"),)), (2, (LogDir("/b"),))), (ReplicaDir("t", 0, 1, "/a", 1), ReplicaDir("t", 0, 2, "/b", 2))
    ) == merged([one, two])
