"""Every way of making an assignment; reading `STRATEGIES` is reading the list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from planner.model.build_problem import today
from planner.model.problem import IntArray, Problem
from planner.strategies import kafka_classic, kafka_striped, optimum, round_robin
from planner.strategies.bounds import Certificate
from planner.strategies.candidate import Candidate
from planner.strategies.work_limits import ASKED, OTHERS

UNKNOWN = -1


class Proposal(NamedTuple):
    """An assignment (P, W) with the least that any plan within the same windows moves, UNKNOWN without a proof.

    `certificate` lets anyone work that out again, where it was asked for.
    """

    assignment: IntArray
    least_bytes: int = UNKNOWN
    least_replicas: int = UNKNOWN
    certificate: Certificate | None = None


Strategy = Callable[[Problem, Candidate], Proposal]


def _solved(problem: Problem, candidate: Candidate, *, certify: bool) -> Proposal:
    """The plan that was asked for is worth more work than those that a sweep tries beside it."""
    worth = ASKED if candidate.seed == 0 and candidate.balance == problem.balance else OTHERS
    solution = optimum.solve(problem, candidate.balance, candidate.seed, certify=certify, worth=worth)
    return Proposal(solution.assignment, solution.least_bytes, solution.least_replicas, solution.certificate)


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
        "round_robin": lambda problem, candidate: Proposal(round_robin.assign(problem, candidate)),
        "kafka_classic": lambda problem, candidate: Proposal(kafka_classic.assign(problem, candidate)),
        "kafka_striped": lambda problem, candidate: Proposal(kafka_striped.assign(problem, candidate)),
    }
)
