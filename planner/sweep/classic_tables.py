"""Scoring Kafka's classic placements by the million: add up rows of a table instead of placing every partition.

A topic's placement depends on its start index and shift alone, and a score is made of sums over topics. So the tally
of every topic under each of the n × (n - 1) different pairs is made once, and a candidate, which draws one pair a
topic, is a sum of as many table rows as there are topics.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from planner.model.problem import IntArray, LongArray
from planner.scoring import score
from planner.scoring.score import Scores, ScoringBasis, Tally
from planner.scoring.windows import BYTE_WINDOWS
from planner.strategies import kafka_classic

# Larger tables than this are not worth their memory, nor their making.
_MOST_BYTES, _MOST_PLACEMENTS = 128 << 20, 20_000_000
# Candidates added up at once: the block stays within the processor's cache.
_BLOCK = 2048


@dataclass(frozen=True)
class Tables:
    """Tallies of every topic (T) under every pair (K = n × max(n - 1, 1)) of start index and shift.

    terms (T, K, D): the tally's arrays, flat, one after the other; topic_spread (T, K); shapes are those of the arrays
    of one tally
    """

    terms: LongArray
    topic_spread: LongArray
    shapes: tuple[tuple[int, ...], ...]
    brokers: int


@lru_cache(maxsize=1)
def usable(basis: ScoringBasis) -> bool:
    """True where there are placements at all, and the tables are small enough to make and keep."""
    problem = basis.problem
    brokers = int(problem.targets.sum())
    # Tables are of single topics: who leads another one's partition of the same number isn't in them.
    if int(problem.replication_factors.max(initial=0)) > brokers or problem.together is not None:
        return False
    grown = len(basis.scenarios) * len(BYTE_WINDOWS)
    months = 0 if problem.sizes_ahead is None else problem.sizes_ahead.shape[1]
    columns = len(score.SUMS) + (basis.measures + grown) * brokers + (2 + months) * len(problem.broker_ids)
    columns += basis.fragile.width
    pairs = brokers * max(brokers - 1, 1)
    placements = pairs * int(problem.replication_factors.sum())
    return placements <= _MOST_PLACEMENTS and pairs * len(problem.topic_names) * columns * 8 <= _MOST_BYTES


@lru_cache(maxsize=1)
def make(basis: ScoringBasis) -> Tables:
    """The tables of a problem that is `usable`; those of the last one are kept."""
    problem = basis.problem
    brokers = int(problem.targets.sum())
    pairs = [(start, shift) for start in range(brokers) for shift in range(max(brokers - 1, 1))]
    placed = (kafka_classic.assign(problem, 0, start, shift) for start, shift in pairs)
    tallies = [score.topic_tallies(basis, assignment) for assignment in placed]
    flat = [np.concatenate([part.reshape(len(part), -1) for part in each.added], axis=1) for each in tallies]
    spreads = np.stack([tally.topic_spread for tally in tallies], axis=1)
    shapes = tuple(part.shape[1:] for part in tallies[0].added)
    return Tables(np.ascontiguousarray(np.stack(flat, axis=1)), spreads, shapes, brokers)


def scores(basis: ScoringBasis, tables: Tables, starts: IntArray, shifts: IntArray) -> Scores:
    """Scores (C,) of candidates with a start index and a shift for each topic, both (C, T)."""
    pairs = starts * max(tables.brokers - 1, 1) + shifts % max(tables.brokers - 1, 1)
    blocks = [_add_up(tables, pairs[at : at + _BLOCK]) for at in range(0, len(pairs), _BLOCK)]
    added = (np.concatenate(parts) for parts in zip(*(block.added for block in blocks), strict=True))
    return score.finish(basis, Tally.of(added, np.concatenate([block.topic_spread for block in blocks])))


def _add_up(tables: Tables, pairs: IntArray) -> Tally:
    """Sums over topics of the table rows that the pairs (C, T) name."""
    total = np.zeros((len(pairs), tables.terms.shape[2]), dtype=np.int64)
    spread = np.zeros(len(pairs), dtype=np.int64)
    for topic, column in enumerate(pairs.T):
        total += tables.terms[topic].take(column, axis=0)
        np.maximum(spread, tables.topic_spread[topic].take(column), out=spread)
    ends = np.cumsum([prod(shape) for shape in tables.shapes])[:-1]
    parts = zip(np.split(total, ends, axis=1), tables.shapes, strict=True)
    return Tally.of((part.reshape(len(pairs), *shape) for part, shape in parts), spread)
