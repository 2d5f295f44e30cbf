"""A topic that grows."""

from __future__ import annotations

from dataclasses import replace

from clusters import spec_of

from planner.model.spec import Monthly, Rate

RACKS = {1: "a", 2: "b"}


def rated(config=(), *, size=0, bytes_in=0, ppm=0, sizes_known=True, rates=None):
    """A topic with one partition on two brokers, with its bytes, its rate and its growth."""
    spec = spec_of(RACKS, {"t": [[1, 2]]}, sizes=size, config={"t": tuple(sorted(config))})
    topic = spec.cluster.topics[0]
    part = replace(topic.partitions[0], bytes_in_per_sec=bytes_in, bytes_out_per_sec=2 * bytes_in)
    cluster = replace(spec.cluster, topics=(replace(topic, partitions=(part,)),), sizes_known=sizes_known)
    return replace(spec, cluster=cluster, growth=Monthly(rates or (Rate("t", ppm),)))
