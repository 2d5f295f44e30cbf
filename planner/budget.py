"""A budget turned into a search: the most even plan within so many bytes, replicas or leader changes.

A limit only says yes or no. A budget makes the sweep look at ever looser windows, each with its own least cost, and the
most even plan that fits wins: the first step of a change in stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.balance import NO_TOLERANCE, Balance, Tolerance
from planner.model import Budget

# How far from its fair share each broker may be, in per cent, from one step of the ladder to the next.
LEVELS = (2, 5, 8, 12, 16, 20, 25, 30, 40, 50, 60, 75, 90, 100)
TERMS = ("bytes_moved", "replicas_moved", "leaders_changed")
_LOOSENED = ("replicas", "leaders", "disk", "network_in", "network_out")


def asked(budget: Budget) -> bool:
    """True where anything is limited."""
    return any(getattr(budget, term) is not None for term in TERMS)


def ladder(balance: Balance) -> tuple[Balance, ...]:
    """Balances from the one asked for to none at all, ever looser.

    Every step as it is, without the windows of single topics, and without those of leaders either.
    """
    steps = [balance, *(_loosened(balance, level) for level in LEVELS)]
    no_topics = {"topic_replicas": NO_TOLERANCE, "topic_leaders": NO_TOLERANCE}
    open_ended = Balance(**dict.fromkeys((*_LOOSENED, "topic_replicas", "topic_leaders"), NO_TOLERANCE))
    found = [
        each
        for step in steps
        for each in (step, replace(step, **no_topics), replace(step, **no_topics, leaders=NO_TOLERANCE))
    ]
    return tuple(dict.fromkeys([*found, open_ended]))


def spread_out(steps: Sequence[Balance]) -> tuple[Balance, ...]:
    """The steps in an order in which the first few, however many, lie far apart: the ends, the middle, the quarters."""
    last = max(len(steps) - 1, 1)
    bits = last.bit_length()
    halves = (round(int(f"{at:0{bits}b}"[::-1], 2) * last / (1 << bits)) for at in range(1 << bits))
    order = dict.fromkeys([0, len(steps) - 1, *halves, *range(len(steps))])
    return tuple(steps[at] for at in order if at < len(steps))


def within(budget: Budget, spent: Mapping[str, int]) -> bool:
    """True where a candidate's row spends no more than there is."""
    limits = [(getattr(budget, term), spent[term]) for term in TERMS]
    return all(limit is None or value <= limit for limit, value in limits)


def _loosened(balance: Balance, level: int) -> Balance:
    knobs = {knob: _looser(getattr(balance, knob), level) for knob in _LOOSENED}
    return replace(balance, **knobs)


def _looser(tolerance: Tolerance, level: int) -> Tolerance:
    """At least so many per cent; what isn't asked for stays so."""
    if tolerance.kind == "none" or (tolerance.kind == "percent" and tolerance.value >= level):
        return tolerance
    return Tolerance("percent", level)
