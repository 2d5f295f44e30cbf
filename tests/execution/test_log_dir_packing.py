"""A broker's replicas are packed into its log dirs: closest to the windows, then with the fewest bytes, and a bound."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from planner.execution.log_dir_packing import Dirs, pack


def dirs_of(
    sizes: list[int], homes: list[int], window: tuple[int, int], count: int, settled: list[int] | None = None
) -> Dirs:
    """Replicas with their log dirs (-1: new), and one window for all `count` log dirs."""
    longs = [np.array(values, dtype=np.int64) for values in (sizes, homes, settled or [0] * count)]
    return Dirs(*longs, np.repeat(np.array(window, dtype=np.int64)[:, None], count, axis=1))


@st.composite
def small(draw: st.DrawFn) -> Dirs:
    """Up to five replicas in up to three log dirs, with windows that can or can't be met."""
    count = draw(st.integers(1, 3))
    sizes = draw(st.lists(st.sampled_from((0, 1, 2, 3, 7, 40)), max_size=5))
    homes = [draw(st.integers(-1, count - 1)) for _ in sizes]
    settled = [draw(st.sampled_from((0, 0, 5))) for _ in range(count)]
    share = (sum(sizes) + sum(settled)) // count
    slack = draw(st.sampled_from((0, 1, 4)))
    return dirs_of(sizes, homes, (max(share - slack, 0), share + slack), count, settled)


def fewest(dirs: Dirs) -> tuple[int, int]:
    """(bytes outside the windows, bytes moved) of the best of all packings."""
    every = (np.array(each, dtype=np.int64) for each in product(range(len(dirs.fixed_bytes)), repeat=len(dirs.sizes)))
    return min((dirs.outside(places), dirs.bytes_moved(places)) for places in every)


@given(small())
@examples(60)
def test_no_packing_is_nearer_or_moves_less(dirs: Dirs) -> None:
    """Every packing tried: none is nearer to the windows, and none as near moves fewer bytes; the bound says so."""
    packed = pack(dirs)
    assert fewest(dirs) == (dirs.outside(packed.places), dirs.bytes_moved(packed.places))
    assert (packed.outside_bytes, packed.bytes_moved, packed.least_bytes_moved, packed.nearest) == (
        *fewest(dirs),
        packed.bytes_moved,
        True,
    )


@given(small())
@examples(30)
def test_the_same_packing_each_time(dirs: Dirs) -> None:
    """Ties don't depend on chance."""
    assert pack(dirs).places.tolist() == pack(dirs).places.tolist()


def test_what_is_even_stays() -> None:
    """If each log dir is within its window, nothing moves."""
    packed = pack(dirs_of([5, 5, 4, 4], [0, 1, 0, 1], (8, 10), 2))
    assert ([0, 1, 0, 1], 0, 0) == (packed.places.tolist(), packed.bytes_moved, packed.least_bytes_moved)


def test_new_replicas_fill_what_is_empty_and_nothing_moves() -> None:
    """New replicas go to the log dirs with the most room, and nothing else moves."""
    packed = pack(dirs_of([10, 6, 4], [0, -1, -1], (10, 10), 2))
    assert ([0, 1, 1], 0) == (packed.places.tolist(), packed.bytes_moved)


def test_empty_new_replicas_are_dealt_by_number() -> None:
    """Empty new replicas are dealt out evenly, because their bytes don't matter."""
    packed = pack(dirs_of([0] * 6, [-1] * 6, (0, 0), 3))
    assert [2, 2, 2] == np.bincount(packed.places, minlength=3).tolist()


def test_a_replica_larger_than_any_window_stays() -> None:
    """A replica larger than any window stays; the result has the bytes outside the windows."""
    packed = pack(dirs_of([100], [0], (45, 55), 2))
    assert ([0], 0, 90, True) == (packed.places.tolist(), packed.bytes_moved, packed.outside_bytes, packed.nearest)


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 12])
def test_large_brokers_end_next_to_the_bound(count: int) -> None:
    """4,000 replicas are packed within the windows without CP-SAT, at most 0.01 % above the bound."""
    random = np.random.default_rng(5)
    sizes = (random.lognormal(0, 1.5, 4000) * 1e9).astype(np.int64)
    homes = np.where(random.random(4000) < 0.5, 0, random.integers(0, count, 4000))
    share = int(sizes.sum()) // count
    packed = pack(dirs_of(sizes.tolist(), homes.tolist(), (share * 9 // 10, share * 11 // 10), count))
    assert 0 == packed.outside_bytes
    assert packed.least_bytes_moved <= packed.bytes_moved <= 1.0001 * packed.least_bytes_moved


def test_more_bytes_than_can_be_weighed_are_refused() -> None:
    """Sizes whose sum could exceed 64 bits are refused."""
    with pytest.raises(OverflowError, match="too many"):
        pack(dirs_of([1 << 60, 1 << 60], [0, 0], (0, 1 << 61), 2))
