"""The balance that an assignment reaches: the one asked for, with each window that it misses widened until it is met.

Its bytes are compared with those of plans that reach the same balance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.model.balance import NO_TOLERANCE, Balance, Tolerance
from planner.model.problem import IntArray, Problem
from planner.scoring.broker_loads import loads
from planner.scoring.score import ScoringBasis, by_topic
from planner.scoring.window_excess import BROKER_PRICE, TOPIC_PRICE, beyond
from planner.scoring.windows import BYTE_WINDOWS, excess_anywhere, windows

# The windows that depend on where replicas are. A bound on bytes holds for these; changes of leaders copy nothing.
OF_REPLICAS = ("replicas", "topic_replicas", "disk", "network_in")
_ALL = (*OF_REPLICAS, "leaders", "topic_leaders", "network_out")
# Percentages are widened in hundredths of a percent.
_HUNDREDTHS = 100
# No cluster needs a million replicas or percent: a window that is missed even then holds at no width.
_WIDEST = 1 << 20


def missed(problem: Problem, assignment: IntArray) -> tuple[str, ...]:
    """The windows of `problem.balance` that an assignment (P, W) misses, by their keys."""
    return tuple(_missed(problem, assignment, _ALL))


def reached(problem: Problem, assignment: IntArray) -> Balance:
    """`problem.balance` with each window that an assignment (P, W) misses as narrow as the assignment keeps it.

    A window that is missed at any width, because a broker's share is 0, becomes `none`.
    """
    widened = {name: _widened(problem, assignment, name) for name in missed(problem, assignment)}
    return replace(problem.balance, **widened)


def _missed(problem: Problem, assignment: IntArray, names: tuple[str, ...]) -> Iterator[str]:
    wanted, balance = windows(problem, problem.balance), problem.balance
    counts = by_topic(ScoringBasis.of(problem), assignment).per_broker
    held = dict(zip(("replicas", "leaders"), counts.sum(axis=0), strict=False))
    held |= {"topic_replicas": counts[:, 0], "topic_leaders": counts[:, 1]}
    of_bytes = dict(zip(BYTE_WINDOWS, loads(problem, assignment), strict=True))
    for name in names:
        tolerance, bounds = getattr(balance, name), getattr(wanted, name)
        if tolerance.kind == "none" or bounds is None:
            continue
        if name in of_bytes:
            outside = beyond(bounds, of_bytes[name])
        else:
            price = TOPIC_PRICE if name.startswith("topic") else BROKER_PRICE
            outside = excess_anywhere(bounds, held[name], price, tolerance)
        if outside.any():
            yield name


def _widened(problem: Problem, assignment: IntArray, name: str) -> Tolerance:
    """The narrowest tolerance of a window, of its own kind, that the assignment keeps."""
    asked = getattr(problem.balance, name)
    unit = _HUNDREDTHS if asked.kind == "percent" else 1

    def keeps(width: int) -> bool:
        wider = replace(problem.balance, **{name: Tolerance(asked.kind, width / unit)})
        return not any(_missed(replace(problem, balance=wider), assignment, (name,)))

    # Doubled until it holds, then bisected: it is missed at `below` and holds at `above`.
    below = int(asked.value * unit)
    above = 2 * below + 1
    while not keeps(above):
        if above > _WIDEST * unit:
            return NO_TOLERANCE
        below, above = above, 2 * above
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if keeps(middle) else (middle, above)
    return Tolerance(asked.kind, above / unit)
