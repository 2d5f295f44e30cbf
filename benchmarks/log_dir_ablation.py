"""Measures the worth of each part of placing a broker's replicas in log dirs: with all parts, and with one off.

Brokers are random: their replicas differ in size, and are in any dir, in any but a new dir, or mostly in one dir.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Literal
from unittest.mock import patch

import numpy as np

from benchmarks.apart import apart
from benchmarks.table import Entries, Figures, gap, gigabytes, head, row
from planner.execution import log_dir_packing
from planner.execution.log_dir_packing import Dirs, pack
from planner.model.problem import IntArray

Today = Literal["anywhere", "a new dir", "most in one dir"]

# Replicas and dirs of a broker; and the standard deviations of the logarithms of the replicas' sizes.
SHAPES = ((40, 3), (200, 4), (900, 4), (5_000, 8))
_SIGMAS = (1.0, 2.0)
_TODAY: tuple[Today, ...] = ("anywhere", "a new dir", "most in one dir")
# Each dir may differ from its share by this fraction.
_TOLERANCE = 0.1
_TYPICAL_BYTES = 1e9

EVERY_PART, CP_SAT, EXCHANGES = "none", "CP-SAT", "exchanges"
_COLUMNS = ("replicas", "dirs", "sizes", "today", "switched off", "GB moved", "bound GB", "gap", "GB outside", "s")


@dataclass(frozen=True)
class PackedBroker:
    """A broker packed without a part: bytes moved and their bound, bytes outside of windows, and the time."""

    replicas: int
    dirs: int
    sigma: float
    today: Today
    part: str
    bytes_moved: int
    least_bytes: int
    outside_bytes: int
    seconds: float


def entries() -> Entries:
    """The table as Markdown, a shape's rows as soon as they are measured, all in one process."""
    yield from ("## With a part of the placement in log dirs switched off", "")
    yield from head(_COLUMNS)
    for replicas, dirs in SHAPES:
        for each in apart(measure, replicas, dirs):
            yield Figures("log dirs", asdict(each))
            yield row(_cells(each))


def measure(replicas: int, dirs: int) -> tuple[PackedBroker, ...]:
    """Packs brokers of a shape, each with all parts, and without each of the two."""
    all_kinds = [(sigma, today) for sigma in _SIGMAS for today in _TODAY]
    return tuple(
        _pack_without(drawn(replicas, dirs, *kind), kind, part)
        for kind in all_kinds
        for part in (EVERY_PART, CP_SAT, EXCHANGES)
    )


def drawn(replicas: int, dirs: int, sigma: float, today: Today) -> Dirs:
    """A random broker; the same arguments always give the same one."""
    random = np.random.default_rng([replicas, dirs, int(10 * sigma), _TODAY.index(today)])
    sizes = np.rint(np.exp(random.normal(0, sigma, replicas)) * _TYPICAL_BYTES).astype(np.int64)
    homes = random.integers(0, dirs - 1 if today == "a new dir" else dirs, replicas)
    if today == "most in one dir":
        homes = np.where(random.random(replicas) < 0.7, 0, homes)
    share = sizes.sum() / dirs
    least, most = (np.full(dirs, round(share * factor), dtype=np.int64) for factor in (1 - _TOLERANCE, 1 + _TOLERANCE))
    return Dirs(sizes, homes, np.zeros(dirs, dtype=np.int64), np.stack([least, most]))


def _pack_without(broker: Dirs, kind: tuple[float, Today], part: str) -> PackedBroker:
    choices = 0 if part == CP_SAT else log_dir_packing._MOST_CHOICES
    improved = _unimproved if part == EXCHANGES else log_dir_packing._improved
    with (
        patch.object(log_dir_packing, "_MOST_CHOICES", choices),
        patch.object(log_dir_packing, "_improved", improved),
    ):
        started = perf_counter()
        packing = pack(broker)
        seconds = perf_counter() - started
    shape = len(broker.sizes), len(broker.fixed_bytes)
    return PackedBroker(
        *shape, *kind, part, packing.bytes_moved, packing.least_bytes_moved, packing.outside_bytes, seconds
    )


def _unimproved(_: Dirs, places: IntArray) -> IntArray:
    return places


def _cells(each: PackedBroker) -> tuple[str, ...]:
    return (
        f"{each.replicas:,}",
        str(each.dirs),
        f"σ {each.sigma:g}",
        each.today,
        each.part,
        gigabytes(each.bytes_moved),
        gigabytes(each.least_bytes),
        gap(each.bytes_moved, each.least_bytes),
        gigabytes(each.outside_bytes),
        f"{each.seconds:.2f}",
    )
