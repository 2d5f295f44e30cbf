"""Start indices and shifts drawn from seeds."""

from __future__ import annotations

import numpy as np
from clusters import no_racks, problem_of

from planner.strategies.kafka_classic import draws, starts_and_shifts

MASK = (1 << 64) - 1


def mix(value: int) -> int:
    """SplitMix64's output function on a plain integer."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


def test_draws_are_the_documented_hash() -> None:
    """Counter 2t gives topic t's start index, 2t + 1 its shift; negative seeds count modulo 2^64."""
    seeds = [0, 1, -5, 2**62]
    starts, shifts = draws(np.array(seeds, dtype=np.int64), 3, 150)

    def draw(seed: int, counter: int) -> int:
        return (mix(mix(seed & MASK) + (counter + 1) * 0x9E3779B97F4A7C15 & MASK) >> 32) * 150 >> 32

    assert [[draw(seed, 2 * t) for t in range(3)] for seed in seeds] == starts.tolist()
    assert [[draw(seed, 2 * t + 1) for t in range(3)] for seed in seeds] == shifts.tolist()


def test_draws_of_a_topic_do_not_depend_on_the_others() -> None:
    """A topic's draw stays the same if more topics, or other seeds too, are asked for."""
    few = draws(np.array([9]), 2, 7)
    many = draws(np.array([3, 9]), 50, 7)
    assert few[0].tolist() == many[0][1:, :2].tolist()
    assert few[1].tolist() == many[1][1:, :2].tolist()


def test_draws_reach_every_broker_evenly() -> None:
    """Over many seeds, each of 6 brokers begins about a sixth of the time; starts and shifts alike."""
    for numbers in draws(np.arange(1000), 60, 6):
        counts = np.bincount(numbers.ravel(), minlength=6)
        assert 6 == len(counts)
        assert np.abs(counts - 10_000).max() < 500


def test_a_start_or_a_shift_that_is_given_is_not_drawn() -> None:
    """A given start or shift is used for every topic; the other of the two is still drawn."""
    problem = problem_of(no_racks(*range(9)), {name: [(1,)] for name in "abcde"})
    starts, shifts = starts_and_shifts(problem, 4, 2, -1)
    assert [2] * 5 == starts.tolist()
    assert draws(np.array([4]), 5, 9)[1][0].tolist() == shifts.tolist()
    starts, shifts = starts_and_shifts(problem, 4, -1, 0)
    assert draws(np.array([4]), 5, 9)[0][0].tolist() == starts.tolist()
    assert [0] * 5 == shifts.tolist()
