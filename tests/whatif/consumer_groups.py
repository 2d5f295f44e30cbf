"""Consumer groups for the assignors: Kafka's own answers, and random groups."""

from __future__ import annotations

import json

from folders import ROOT
from hypothesis import strategies as st

DATA = ROOT / "tests" / "data"
VECTORS = json.loads((DATA / "consumer-assignments.json").read_text())


def owners(rows) -> dict[str, list[tuple[str, int]]]:
    """Ownership from a JSON file, with (topic, partition) tuples."""
    return {member: [(topic, partition) for topic, partition in held] for member, held in rows.items()}


def sizes(ownership) -> list[int]:
    """The numbers of partitions that members have, in ascending order."""
    return sorted(map(len, ownership.values()))


@st.composite
def groups(draw):
    """Topics with numbers of partitions, and members with their subscriptions."""
    topics = {f"t{number}": draw(st.integers(0, 8)) for number in range(draw(st.integers(1, 4)))}
    some = st.lists(st.sampled_from(sorted(topics)), unique=True)
    return topics, {f"C{number}": draw(some) for number in range(draw(st.integers(1, 6)))}
