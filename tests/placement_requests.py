"""Requests for Kafka's placements."""

from __future__ import annotations

from hypothesis import strategies as st


@st.composite
def requests(draw):
    """Brokers with or without racks, and a request: partitions, factor, start index and shift."""
    ids = sorted(draw(st.sets(st.integers(0, 40), min_size=1, max_size=9)))
    racks = draw(st.integers(0, 4))
    brokers = [(each, f"r{draw(st.integers(0, racks - 1))}" if racks else None) for each in ids]
    pair = draw(st.integers(0, len(ids) - 1)), draw(st.integers(0, len(ids) - 1))
    return brokers, draw(st.integers(1, 40)), draw(st.integers(1, len(ids))), pair
