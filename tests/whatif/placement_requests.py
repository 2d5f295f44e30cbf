"""What Kafka's placements are asked for."""

from __future__ import annotations

from hypothesis import strategies as st


@st.composite
def requests(draw):
    """Brokers, with racks or without, and what is placed on them: partitions, factor, start index, shift."""
    ids = sorted(draw(st.sets(st.integers(0, 40), min_size=1, max_size=9)))
    racks = draw(st.integers(0, 4))
    brokers = [(each, f"r{draw(st.integers(0, racks - 1))}" if racks else None) for each in ids]
    pair = draw(st.integers(0, len(ids) - 1)), draw(st.integers(0, len(ids) - 1))
    return brokers, draw(st.integers(1, 40)), draw(st.integers(1, len(ids))), pair
