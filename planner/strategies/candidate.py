"""What a strategy is given: one small row that says everything about how to make an assignment."""

from __future__ import annotations

from typing import NamedTuple

from planner.model.balance import Balance


class Candidate(NamedTuple):
    """A strategy's name with its seeds and knobs; the assignment can always be made again from it.

    `start_index` and `next_replica_shift` are Kafka's, -1: drawn for each topic from the seed.
    """

    strategy: str
    seed: int = 0
    start_index: int = -1
    next_replica_shift: int = -1
    balance: Balance = Balance()
