"""A budget turned into a search: the most even plan within so many bytes, replicas or leader changes.

A limit only says yes or no. A budget makes the sweep look at ever looser windows, each with its own least cost, and the
most even plan that fits wins: the first step of a change in stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.balance import NO_TOLERANCE, Balance, Tolerance
from planner.model import Budget

# How far from its fair share each broker may be, in per cent, from one step of the ladder to the next: where only the
# costly windows are loosened, and where all are. No more steps than a small cluster's sweep solves.
LEVELS_OF_COST = (5, 12, 20, 30, 50, 75)
LEVELS = (2, 8, 16, 25, 40, 50, 60, 75, 90)
TERMS = ("bytes_moved", "replicas_moved", "leaders_changed")
_BYTES = ("disk", "network_in", "network_out")
_COUNTS = ("replicas", "leaders")
_TOPICS = ("topic_replicas", "topic_leaders")
# The windows that cost what a term limits. Even counts cost few bytes: they are met by moving small partitions.
_COSTLY = {"bytes_moved": _BYTES, "replicas_moved": ("replicas", *_BYTES), "leaders_changed": ("leaders",)}


def asked(budget: Budget) -> bool:
    """True where anything is limited."""
    return any(getattr(budget, term) is not None for term in TERMS)


def ladder(balance: Balance, budget: Budget) -> tuple[Balance, ...]:
    """Balances from the one asked for to none at all, ever looser.

    The windows of single topics go first, since they cost most for what they even out. Then those windows are loosened
    that cost what the budget limits; then all; then all, and the leaders' are let go of.
    """
    no_topics = _without(balance, _TOPICS)
    costly = tuple(dict.fromkeys(knob for term in TERMS if getattr(budget, term) is not None for knob in _COSTLY[term]))
    everything = (*_COUNTS, *_BYTES)
    steps = [*_ever_looser(no_topics, costly, LEVELS_OF_COST), *_ever_looser(no_topics, everything, LEVELS)]
    if budget.leaders_changed is not None:
        steps += _ever_looser(_without(no_topics, ("leaders",)), everything, LEVELS)
    return tuple(dict.fromkeys([balance, no_topics, *steps, _without(no_topics, everything)]))


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


def _ever_looser(balance: Balance, knobs: Sequence[str], levels: Sequence[int]) -> list[Balance]:
    """A step for each level, and one without these windows."""
    steps = [replace(balance, **{knob: _looser(getattr(balance, knob), level) for knob in knobs}) for level in levels]
    return [*steps, _without(balance, knobs)]


def _without(balance: Balance, knobs: Sequence[str]) -> Balance:
    return replace(balance, **dict.fromkeys(knobs, NO_TOLERANCE))


def _looser(tolerance: Tolerance, level: int) -> Tolerance:
    """At least so many per cent; what isn't asked for stays so."""
    if tolerance.kind == "none" or (tolerance.kind == "percent" and tolerance.value >= level):
        return tolerance
    return Tolerance("percent", level)
