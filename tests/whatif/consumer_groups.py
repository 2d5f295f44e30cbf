"""Consumer groups for the assignors: Kafka's own answers, and any group."""

from __future__ import annotations

import json

from folders import ROOT
from hypothesis import strategies as st

DATA = ROOT / "tests" / "data"
VECTORS = json.loads((DATA / "consumer-assignments.json").read_text())


def owners(rows) -> dict[str, list[tuple[str, int]]]:
    """Ownership of a JSON file, only of topics that anybody subscribes to where those are given."""
    return {member: [(topic, partition) for topic, partition in held] for member, held in rows.items()}


def sizes(ownership) -> list[int]:
    """How many partitions members have, the fewest first."""
    return sorted(map(len, ownership.values()))


@st.composite
def groups(draw):
    """Topics with partition counts, and members with what they subscribe to."""
    topics = {f"t{number}": draw(st.integers(0, 8)) for number in range(draw(st.integers(1, 4)))}
    some = st.lists(st.sampled_from(sorted(topics)), unique=True)
    return topics, {f"C{number}": draw(some) for number in range(draw(st.integers(1, 6)))}
