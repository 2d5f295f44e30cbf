"""Start index and shift of each topic, drawn from a candidate's seed: the same on every machine and in any order.

Each number is a hash of (seed, counter), not the next one of a stream, so that thousands of candidates can be drawn
at once and a topic's draw doesn't depend on which other topics are asked for. The hash is the output function of
SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
"""

import numpy as np
from numpy.typing import NDArray

from planner.model.problem import IntArray, LongArray

_GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def draws(seeds: LongArray, topics: int, bound: int) -> tuple[IntArray, IntArray]:
    """Start indices and shifts, both (C, T) and in 0..bound-1, for `seeds` (C,) and topics 0..T-1.

    Topic t uses the counters 2t (start index) and 2t + 1 (shift), so more topics never change the earlier ones.
    """
    drawn = numbers(seeds.astype(np.int64).view(np.uint64), 2 * topics, bound)
    return drawn[:, 0::2], drawn[:, 1::2]


def numbers(seeds: NDArray[np.uint64], count: int, bound: int) -> IntArray:
    """(C, count): numbers in 0..bound-1, each a hash of one of the `seeds` (C,) and a counter."""
    counters = np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN_GAMMA
    hashes = mix(mix(seeds)[:, None] + counters)
    # The high half times the bound, its high half: even enough for any number of brokers, and no division.
    return ((hashes >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32)).astype(np.int32)


def topic_draws(seed: int, start_index: int, shift: int, topics: int, bound: int) -> tuple[IntArray, IntArray]:
    """One seed's start indices and shifts, both (T,): those given, or drawn below `bound` where -1 is given."""
    starts, shifts = draws(np.array([seed], dtype=np.int64), topics, bound)
    return _given_or(start_index, starts[0]), _given_or(shift, shifts[0])


def _given_or(given: int, drawn: IntArray) -> IntArray:
    return drawn if given < 0 else np.full_like(drawn, given)


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's output function, element by element, modulo 2^64."""
    values = (values ^ (values >> np.uint64(30))) * _MIX_1
    values = (values ^ (values >> np.uint64(27))) * _MIX_2
    return values ^ (values >> np.uint64(31))
