"""What a budget pays for: a search for the most even plan within it, and the first step of a change that it can't pay.

What the changes force costs each partition at least so much, whatever the others do, so the choice is a knapsack of
whole partitions. Brokers that leave are emptied one by one, the cheapest first, then topics; what is left of the budget
takes the largest partitions that still fit, from the next broker on, so that the change needs few steps. A partition
that waits keeps its replicas and its leader; a plan made from the state after the step moves it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from planner.model.balance import BYTE_WINDOWS, NO_TOLERANCE, Balance, Tolerance
from planner.model.errors import InfeasibleError
from planner.model.formats import exactly, stated
from planner.model.problem import BoolArray, IntArray, LongArray, Problem
from planner.model.spec import Budget
from planner.model.together import without_waiting
from planner.scoring.growth_scenarios import without
from planner.scoring.score import adding
from planner.scoring.window_excess import beyond
from planner.scoring.windows import held_today, windows
from planner.strategies import optimum

# How far from its fair share each broker may be, in per cent, on the ladder: where only the costly windows are
# loosened, and where all are. With the parts below they are about what a small cluster's sweep solves.
LEVELS_OF_COST = (5, 12, 20, 30, 50, 75)
LEVELS = (2, 8, 16, 25, 40, 50, 60, 75, 90)
# How far each broker goes from what it holds today to its windows, in per cent; and how many of them are tried, the
# largest that the budget may pay for. An empty broker needs the small ones: no level asks for less than a tenth of
# its share.
PARTS = (1, 1.3, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8, 10, 12.5, 16, 20, 25, 32, 40, 50, 63, 80)
PARTS_TRIED = 6
TERMS = ("bytes_moved", "replicas_moved", "leaders_changed")
_COUNTS = ("replicas", "leaders")
_TOPICS = ("topic_replicas", "topic_leaders")
# The windows that cost what a term limits. Even counts cost few bytes: they are met by moving small partitions.
_COSTLY = {"bytes_moved": BYTE_WINDOWS, "replicas_moved": ("replicas", *BYTE_WINDOWS), "leaders_changed": ("leaders",)}
_OPEN = Balance(*[NO_TOLERANCE] * 7)


def asked(budget: Budget) -> bool:
    """True where anything is limited."""
    return any(getattr(budget, term) is not None for term in TERMS)


def amounts(term: str, taken: int, allowed: int) -> tuple[str, str]:
    """What is taken of a term, exactly, and what is allowed, as it is written."""
    return (exactly(taken), stated(allowed)) if term == "bytes_moved" else (str(taken), str(allowed))


def ladder(balance: Balance, budget: Budget, affordable: float = 1) -> tuple[Balance, ...]:
    """Balances from the one asked for to none at all, ever looser.

    The windows of single topics go first, since they cost most for what they even out. Then those windows are loosened
    that cost what the budget limits; then each broker goes a part of its way to all of them, at most the `affordable`
    part; then all are loosened; and last, where the budget limits leaders, all without that of leaders. Leaders that it
    doesn't limit stay as even as asked: they copy nothing.
    """
    no_topics = _without(balance, _TOPICS)
    costly = tuple(dict.fromkeys(knob for term in TERMS if getattr(budget, term) is not None for knob in _COSTLY[term]))
    everything = ("replicas", *(() if budget.leaders_changed is None else ("leaders",)), *BYTE_WINDOWS)
    looser = _ever_looser(no_topics, costly, LEVELS_OF_COST)
    parts = [part for part in PARTS if part <= 100 * affordable][-PARTS_TRIED:]
    goals = {knob: getattr(balance, knob) for knob in everything if getattr(balance, knob) != NO_TOLERANCE}
    ways = [{knob: Tolerance("part", part, goal) for knob, goal in goals.items()} for part in reversed(parts)]
    looser += [replace(no_topics, **way) for way in ways]
    looser += _ever_looser(no_topics, everything, LEVELS)
    if budget.leaders_changed is not None:
        looser += _ever_looser(_without(no_topics, ("leaders",)), everything, LEVELS)
    return tuple(dict.fromkeys([balance, no_topics, *looser, _without(no_topics, (*_COUNTS, *BYTE_WINDOWS))]))


def affordable(problem: Problem) -> float:
    """The most of the brokers' way to the balance asked for that the budget may pay for, at least what they lack; 1
    where nothing is known.
    """
    held, wanted, most = held_today(problem), windows(problem, problem.balance), list[float]()
    for term, name in zip(TERMS, ("disk", "replicas", "leaders"), strict=True):
        limit, bounds = getattr(problem.budget, term), getattr(wanted, name)
        if limit is not None and bounds is not None:
            most += [limit / forced for forced in [int(beyond(bounds, held[name]).sum(axis=1).max())] if forced]
    return min(most, default=1.0)


def spread_out(balances: Sequence[Balance]) -> tuple[Balance, ...]:
    """A ladder in an order in which the first few, however many, lie far apart: the ends, the middle, the quarters."""
    last = max(len(balances) - 1, 1)
    bits = last.bit_length()
    halves = (round(int(f"{at:0{bits}b}"[::-1], 2) * last / (1 << bits)) for at in range(1 << bits))
    order = dict.fromkeys([0, len(balances) - 1, *halves, *range(len(balances))])
    return tuple(balances[at] for at in order if at < len(balances))


def within(budget: Budget, spent: Mapping[str, int]) -> bool:
    """True where a candidate's row spends no more than there is."""
    limits = [(getattr(budget, term), spent[term]) for term in TERMS]
    return all(limit is None or value <= limit for limit, value in limits)


def _ever_looser(balance: Balance, knobs: Sequence[str], levels: Sequence[int]) -> list[Balance]:
    """A balance for each level, and one without these windows."""
    looser = [replace(balance, **{knob: _looser(getattr(balance, knob), level) for knob in knobs}) for level in levels]
    return [*looser, _without(balance, knobs)]


def _without(balance: Balance, knobs: Sequence[str]) -> Balance:
    return replace(balance, **dict.fromkeys(knobs, NO_TOLERANCE))


def _looser(tolerance: Tolerance, level: int) -> Tolerance:
    """The tolerance, or `level` per cent where that is looser; no tolerance stays none."""
    if tolerance.kind == "none" or (tolerance.kind == "percent" and tolerance.value >= level):
        return tolerance
    return Tolerance("percent", level)


def first_step(problem: Problem) -> Problem:
    """The problem as it is where its budget pays for everything, or for nothing of what must change; else without the
    partitions that wait: not movable, with the replicas that they have, and `deferred` if they must change.
    """
    if not asked(problem.budget) or (costs := _costs(problem)) is None:
        return problem
    # What isn't forced copies for the rack rule alone; a leader that isn't the preferred one may well stay.
    must = problem.forced | (costs[1] > 0)
    done = _affordable(problem, costs, must)
    deferred = must & ~done
    if done.all() or (deferred.any() and not costs[:, must & done].any()):
        return problem
    held = (problem.replicas >= 0).sum(axis=1).astype(problem.replication_factors.dtype)
    together = problem.together
    if together is not None:
        together = without_waiting(together, ~done & problem.movable)
    return replace(
        problem,
        together=together,
        movable=problem.movable & done,
        forced=problem.forced & done,
        replication_factors=np.where(done, problem.replication_factors, held),
        deferred=deferred,
    )


def _costs(problem: Problem) -> LongArray | None:
    """(3, P): the least of TERMS that each partition takes, however uneven the plan; None where there is no plan."""
    try:
        roomy = replace(without(problem), disk_limit_bytes=np.full_like(problem.disk_limit_bytes, -1))
        chosen = optimum.solve(roomy, _OPEN).assignment
    except InfeasibleError:
        return None
    copies = adding(problem, chosen).sum(axis=1)
    elected = problem.may_lead_anew & ~problem.is_new & (problem.leaders != chosen[:, 0])
    return np.stack([copies * problem.size_bytes, copies, elected]).astype(np.int64)


def _affordable(problem: Problem, costs: LongArray, must: BoolArray) -> BoolArray:
    """(P,): the partitions whose turn it is: first of those that must change, then of the others."""
    done: BoolArray = (costs == 0).all(axis=0)
    endless, limits = np.iinfo(np.int64).max, [getattr(problem.budget, term) for term in TERMS]
    left = np.array([endless if limit is None else limit for limit in limits], dtype=np.int64)
    for among in (must, ~must):
        # Groups that what is left pays for as a whole; then single partitions, the largest of each group first.
        for whole in (True, False):
            for rows in _groups(problem, costs, among, done):
                for part in [rows] if whole else rows[np.argsort(-costs[0, rows], kind="stable")][:, None]:
                    price = costs[:, part].sum(axis=1)
                    if (price <= left).all():
                        done[part] = True
                        left -= price
    return done


def _groups(problem: Problem, costs: LongArray, among: BoolArray, done: BoolArray) -> Iterator[IntArray]:
    """Partitions of `among` that aren't done: those of each broker that leaves, the cheapest first, then by topic."""
    waiting = [(problem.replicas == broker).any(axis=1) for broker in np.flatnonzero(~problem.targets)]
    others = ~done & ~np.any([np.zeros_like(done), *waiting], axis=0)
    while waiting:
        # Two brokers may have partitions in common: what is left of one depends on what became of the other.
        prices = [tuple(costs[:, each & ~done].sum(axis=1).tolist()) for each in waiting]
        yield np.flatnonzero(waiting.pop(prices.index(min(prices))) & among & ~done)
    rows = np.flatnonzero(others)
    topics = np.split(rows, np.flatnonzero(np.diff(problem.topic_of[rows])) + 1) if len(rows) else []
    for topic in sorted(topics, key=lambda each: tuple(costs[:, each].sum(axis=1).tolist())):
        yield topic[among[topic]]
