"""The strategies, ways to make an assignment: `STRATEGIES` lists them, a `Candidate` says which one to run and how."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from planner.model.balance import Balance
from planner.model.build_problem import today
from planner.model.problem import Problem
from planner.strategies import kafka_classic, kafka_striped, optimum
from planner.strategies.optimum import UNKNOWN, Proposal
from planner.strategies.work_limits import ASKED, OTHERS

__all__ = ["STRATEGIES", "UNKNOWN", "Candidate", "Proposal", "prove"]


class Candidate(NamedTuple):
    """A strategy's name with its seeds and knobs: all that is needed to make the assignment again.

    `start_index` and `next_replica_shift` are Kafka's, -1: drawn for each topic from the seed.
    """

    strategy: str
    seed: int = 0
    start_index: int = -1
    next_replica_shift: int = -1
    balance: Balance = Balance()


Strategy = Callable[[Problem, Candidate], Proposal]


def _solved(problem: Problem, candidate: Candidate, *, certify: bool) -> Proposal:
    """The plan that was asked for is worth more work than those that a sweep tries beside it."""
    worth = ASKED if candidate.seed == 0 and candidate.balance == problem.balance else OTHERS
    return optimum.solve(problem, candidate.balance, candidate.seed, certify=certify, worth=worth)


def prove(problem: Problem, candidate: Candidate) -> Proposal:
    """What the candidate's strategy proposes, with the certificate of its bound where it has one."""
    if candidate.strategy != "optimum":
        return STRATEGIES[candidate.strategy](problem, candidate)
    return _solved(problem, candidate, certify=True)


STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        # Do nothing: the baseline that every plan is held against.
        "unchanged": lambda problem, candidate: Proposal(today(problem)),
        "optimum": lambda problem, candidate: _solved(problem, candidate, certify=False),
        "round_robin": lambda problem, it: Proposal(kafka_classic.assign_round_robin(problem, it.seed, it.start_index)),
        "kafka_classic": lambda problem, it: Proposal(
            kafka_classic.assign(problem, it.seed, it.start_index, it.next_replica_shift)
        ),
        "kafka_striped": lambda problem, it: Proposal(kafka_striped.assign(problem, it.seed)),
    }
)
