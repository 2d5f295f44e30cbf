"""Loads to pack into batches; each has bytes on one or more lanes."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from planner.execution.batch_filling import BatchLoads

CAN_WAIT = 2


def loads_of(sizes: Sequence[dict[int, int]], lanes: int, risks: Sequence[int] = ()) -> BatchLoads:
    """One load for each {lane: bytes}, with one replica on each lane."""
    loads = BatchLoads(lanes)
    for number, own in enumerate(sizes):
        risk = risks[number] if risks else CAN_WAIT
        loads.add((list(own), list(own.values()), [1] * len(own)), sum(own.values()), risk)
    return loads


def lengths(loads: BatchLoads, batches: Sequence[int]) -> list[int]:
    """The bytes of the busiest lane in each batch, summed load by load."""
    filled: list[dict[int, int]] = [{} for _ in range(max(batches) + 1)]
    for load, batch in enumerate(batches):
        for lane, size in zip(*loads.sizes_of(load), strict=True):
            filled[batch][lane] = filled[batch].get(lane, 0) + size
    return [max(batch.values()) for batch in filled]


def many(count: int, lanes: int, risk: int = CAN_WAIT) -> BatchLoads:
    """Loads of different sizes, on two lanes each; the same loads every time."""
    random = Random(3)
    sizes = [dict.fromkeys(random.sample(range(lanes), 2), int(random.lognormvariate(6, 1))) for _ in range(count)]
    return loads_of(sizes, lanes, [risk] * count)
