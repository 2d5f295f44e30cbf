"""What a sweep keeps: the same rows for any split, and all rows that the plan is made from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from clusters import no_racks, problem_of
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from planner.model.problem import LongArray
from planner.model.spec import Sweep
from planner.sweep import evaluate, sweep_result
from planner.sweep.candidates import KAFKA_STRATEGIES, candidates
from planner.sweep.sweep_result import COLUMNS, best, front, kept_of_part, merged_parts, most_rows, ranking_of, sampled

PROBLEM = problem_of(no_racks(1, 2, 3, 4), {"x": [(1, 2), (2, 1)] * 4, "y": [(3, 1)] * 3})
EVERY = candidates(PROBLEM, Sweep(600, solved=5))
NUMBERS = np.arange(len(EVERY), dtype=np.int64)
SCORED = evaluate.scored(PROBLEM, EVERY, NUMBERS)


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of 40 of the 600 candidates, merged often."""
    monkeypatch.setattr(sweep_result, "ALL_ROWS", 40)
    monkeypatch.setattr(sweep_result, "_MERGE_AT", 30)


def numbers(part: LongArray) -> list[int]:
    """The candidates' numbers in a part."""
    return sorted(part[0].tolist())


@examples(60)
@given(st.randoms(use_true_random=False))
def test_any_order_and_any_split_keeps_the_same(random: Any) -> None:
    """Parts that were reduced, put together in any way, are what the whole is reduced to."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sweep_result, "ALL_ROWS", 40)
        patched.setattr(sweep_result, "_MERGE_AT", 30)
        order = NUMBERS.copy()
        random.shuffle(order)
        cuts = sorted(random.sample(range(1, len(order)), 7))
        parts = [kept_of_part(PROBLEM, EVERY, SCORED[:, part]) for part in np.split(order, cuts)]
        assert numbers(merged_parts(PROBLEM, EVERY, parts)) == numbers(kept_of_part(PROBLEM, EVERY, SCORED))


@pytest.mark.usefixtures("few_rows")
def test_what_is_chosen_from_is_kept() -> None:
    """The best rows, the front, Kafka's best and every solved plan are kept from all rows; the rest is a sample."""
    every = sweep_result.rows(EVERY, SCORED)
    found = evaluate.run(PROBLEM, EVERY)
    order = ranking_of(PROBLEM)
    assert 40 < len(found.scores) < 100
    assert len(found.scores) <= most_rows(found.by_strategy)
    assert (600, EVERY.by_strategy) == (found.evaluated, found.by_strategy)
    assert found.top.equals(best(every, 10, order))
    assert found.front.equals(front(every, order))
    of_kafka = every.filter(np.isin(every["strategy"], KAFKA_STRATEGIES))
    assert best(found.kafka(), 1, order).equals(best(of_kafka, 1, order))
    assert {0, 1, 2, 3, 4, 5} <= set(found.scores["candidate"].to_pylist())
    assert set(NUMBERS[sampled(NUMBERS, 600)]) <= set(found.scores["candidate"].to_pylist())
    assert found.scores.equals(every.take(found.scores["candidate"]))


def test_a_small_sweep_keeps_every_row() -> None:
    """A sweep keeps all its rows if they fit into candidates.parquet."""
    assert kept_of_part(PROBLEM, EVERY, SCORED).shape == (len(COLUMNS), 600)


@pytest.mark.parametrize("count", [1, 99_999, 100_000, 100_001, 250_000, 1_000_000])
def test_the_sample_is_one_of_each_so_many_neighbors(count: int) -> None:
    """All of a few candidates; never more than 100,000, spread evenly over all of them."""
    every = np.flatnonzero(sampled(np.arange(count, dtype=np.int64), count))
    stride = -(-count // 100_000)
    assert count // stride <= len(every) <= min(100_000, -(-count // stride))
    assert (np.arange(len(every)) == every // stride).all()


def test_the_sample_has_no_period() -> None:
    """The sample isn't periodic: each position among ten neighbors is drawn about equally often."""
    places = np.flatnonzero(sampled(np.arange(1_000_000), 1_000_000)) % 10
    assert np.abs(np.bincount(places) - 10_000).max() < 500
