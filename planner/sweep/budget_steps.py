"""What a budget pays for: a part of the plan for all, else a looser balance; and first steps of what must change.

For a first step, the forced changes cost each partition a fixed minimum, whatever other partitions do, so the choice
is a knapsack of whole partitions. Removed brokers are emptied one by one, the cheapest first, then topics follow. The
rest of the budget takes the largest partitions that still fit, from the next broker on, so that the change needs few
steps. A partition that waits keeps its replicas and its leader; a plan made from the state after the step moves it.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, zip_longest

import numpy as np

from planner.model.balance import BYTE_WINDOWS, NO_TOLERANCE, Balance, Tolerance
from planner.model.build_problem import today
from planner.model.errors import InfeasibleError
from planner.model.formats import as_stated, size_and_bytes
from planner.model.problem import BoolArray, IntArray, LongArray, Problem
from planner.model.spec import Budget
from planner.model.together import without_waiting
from planner.scoring.broker_loads import disks_at_least
from planner.scoring.growth_scenarios import without
from planner.scoring.independent_check import broken_rules
from planner.scoring.score import added_replicas
from planner.scoring.window_excess import beyond
from planner.scoring.windows import held_today, windows
from planner.strategies import optimum

# The part of its way, in percent, that each broker goes from what it holds today to its windows; and how far from its
# fair share each broker may be, in percent, which leaves an empty broker the same part of its way to go.
PARTS = tuple(round(98 * 0.94**step, 1) for step in range(75))
LEVELS = tuple(round(100 - part, 1) for part in PARTS)
# Of each kind of balance, every fourth is tried from the tightest one on that the budget may pay for: four of them, the
# last of which costs about half as much.
_APART, TRIED = 4, 4
TERMS = ("bytes_moved", "replicas_moved", "leaders_changed")
_COUNTS = ("replicas", "leaders")
_TOPICS = ("topic_replicas", "topic_leaders")
# The windows whose cost a term limits. Even counts cost few bytes, because small partitions are moved to meet them.
_COSTLY = {"bytes_moved": BYTE_WINDOWS, "replicas_moved": ("replicas", *BYTE_WINDOWS), "leaders_changed": ("leaders",)}
_OPEN = Balance(*[NO_TOLERANCE] * 7)


def amounts(term: str, taken: int, allowed: int) -> tuple[str, str]:
    """How much of a term is taken, exactly, and how much is allowed, as written in the YAML."""
    return (size_and_bytes(taken), as_stated(allowed)) if term == "bytes_moved" else (str(taken), str(allowed))


def ladder(problem: Problem) -> tuple[Balance, ...]:
    """Balances to try in this order: the one asked for, none at all, then looser ones that the budget may pay for, of
    each kind in turn the tightest first.

    All are without the windows of single topics, which cost most for the evenness they give. The first kind loosens
    only the windows that cost what the budget limits. In the second, each broker goes part of its way to all windows.
    The third loosens all windows; so does the last, without the windows of leaders, if the budget limits leaders.
    Leaders that the budget doesn't limit stay as even as asked, because they copy nothing.
    """
    budget, no_topics = problem.budget, _without(problem.balance, _TOPICS)
    limited = [term for term in TERMS if getattr(budget, term) is not None]
    costly = tuple(dict.fromkeys(window for term in limited for window in _COSTLY[term]))
    everything = ("replicas", *(() if budget.leaders_changed is None else ("leaders",)), *BYTE_WINDOWS)
    goals = {window: goal for window in everything if (goal := getattr(no_topics, window)) != NO_TOLERANCE}
    ways = [{window: Tolerance("part", part, goal) for window, goal in goals.items()} for part in PARTS]
    kinds = [
        [no_topics, *_ever_looser(no_topics, costly)],
        [replace(no_topics, **way) for way in ways],
        _ever_looser(no_topics, everything),
    ]
    if budget.leaders_changed is not None:
        kinds.append(_ever_looser(_without(no_topics, ("leaders",)), everything))
    # The windows only widen within a kind, so what they cost only falls.
    firsts = [bisect_left(kind, True, key=lambda balance: _payable(problem, balance)) for kind in kinds]
    picked = [kind[first::_APART][:TRIED] for kind, first in zip(kinds, firsts, strict=True)]
    loosest = _without(no_topics, (*_COUNTS, *BYTE_WINDOWS))
    in_turn = filter(None, chain.from_iterable(zip_longest(*picked)))
    return tuple(dict.fromkeys([problem.balance, loosest, *in_turn, *(kind[-1] for kind in kinds)]))


def _payable(problem: Problem, balance: Balance) -> bool:
    """False if the budget can't pay for the windows of a balance: what brokers lack must be added, and what they hold
    beyond their windows must leave. New partitions and deleted replicas do so without being copied.
    """
    loads, target_windows, sizes = held_today(problem), windows(problem, balance), problem.size_bytes
    missing = problem.replication_factors.astype(np.int64) - (problem.replicas >= 0).sum(axis=1)
    created, deleted = np.where(problem.is_new, missing, 0), -missing.clip(max=0)
    not_copied = {
        "disk": (created @ sizes, deleted @ sizes),
        "replicas": (created.sum(), deleted.sum()),
        "leaders": (problem.is_new.sum(), 0),
    }
    for term, name in zip(TERMS, not_copied, strict=True):
        limit, bounds = getattr(problem.budget, term), getattr(target_windows, name)
        if limit is not None and bounds is not None:
            least = beyond(bounds, loads[name]).sum(axis=1) - np.array(not_copied[name])
            if least.max() > limit:
                return False
    return True


def within(budget: Budget, spent: Mapping[str, int]) -> bool:
    """True if a candidate's row spends no more than the budget allows."""
    limits = [(getattr(budget, term), spent[term]) for term in TERMS]
    return all(limit is None or value <= limit for limit, value in limits)


def _ever_looser(balance: Balance, names: Sequence[str]) -> list[Balance]:
    """A balance with these windows at each level, then one without these windows."""
    tolerances = {window: getattr(balance, window) for window in names if getattr(balance, window).kind != "none"}
    looser = []
    for level in LEVELS:
        # A wider percentage stays; a wide spread may become tighter.
        tighter = [name for name, each in tolerances.items() if each.kind != "percent" or each.value < level]
        looser.append(replace(balance, **dict.fromkeys(tighter, Tolerance("percent", level))))
    return [*looser, _without(balance, names)]


def _without(balance: Balance, names: Sequence[str]) -> Balance:
    return replace(balance, **dict.fromkeys(names, NO_TOLERANCE))


def first_step(problem: Problem) -> Problem:
    """The problem unchanged if its budget pays for everything, or for no change at all. Else the partitions that wait
    are not movable and keep their number of replicas; they are `deferred` if they must change.
    """
    if problem.budget == Budget():
        return problem
    try:
        # What each partition takes at least, however uneven the plan.
        roomy = replace(without(problem), disk_limit_bytes=np.full_like(problem.disk_limit_bytes, -1))
        costs = _costs_of(problem, optimum.solve(roomy, _OPEN).assignment)
    except InfeasibleError:
        return problem
    # One that only changes its leader, for balance alone, may stay as it is.
    must = _must_change(problem) | (costs[1] > 0)
    is_paid = _affordable(problem, costs, must)
    deferred = must & ~is_paid
    if is_paid.all():
        return problem
    factors_now = (problem.replicas >= 0).sum(axis=1).astype(problem.replication_factors.dtype)
    step = replace(
        problem,
        together=None if problem.together is None else without_waiting(problem.together, ~is_paid & problem.movable),
        movable=problem.movable & is_paid,
        forced=problem.forced & is_paid,
        replication_factors=np.where(is_paid, problem.replication_factors, factors_now),
        deferred=deferred,
        # A broker that is too full today may stay so until a later step.
        disk_limit_bytes=disks_at_least(problem, today(problem)) if deferred.any() else problem.disk_limit_bytes,
    )
    pays_none = deferred.any() and not costs[:, must & is_paid].any()
    return problem if pays_none and not _pays_for_balance(step) else step


def _pays_for_balance(step: Problem) -> bool:
    """True if the budget pays for a part of a plan in which nothing must change."""
    with suppress(InfeasibleError):
        if step.rebalance == "all":
            return bool((part_of(step, optimum.solve(step, step.balance).assignment) != today(step)).any())
    return False


def _costs_of(problem: Problem, assignment: IntArray) -> LongArray:
    """(3, P): the amount of each of TERMS that each partition takes with an assignment (P, W)."""
    copies = added_replicas(problem, assignment).sum(axis=1)
    elected = problem.may_lead_anew & ~problem.is_new & (problem.leaders != assignment[:, 0])
    return np.stack([copies * problem.size_bytes, copies, elected]).astype(np.int64)


def part_of(problem: Problem, assignment: IntArray) -> IntArray:
    """The part of an assignment (P, W) that the budget pays for, as (P, W): other partitions stay as they are.

    A partition copies as much in a later step, so steps along one plan copy no more in all than the plan at once.
    """
    unchanged, slots = today(problem), problem.slot_of
    # Where another replica than the preferred one leads today, staying takes an election, too.
    least = _costs_of(problem, unchanged)
    # A slot of `together` is done as a whole: its first partition stands for all.
    single = np.arange(problem.rows) + problem.rows
    _, first, unit = np.unique(np.where(slots < 0, single, slots), return_index=True, return_inverse=True)
    unit_row, costs, must = first[unit], np.zeros_like(least), np.zeros_like(problem.forced)
    np.add.at(costs.T, unit_row, (_costs_of(problem, assignment) - least).T)
    np.logical_or.at(must, unit_row, _must_change(problem))
    is_paid = _affordable(problem, costs, must, least.sum(axis=1))[unit_row]
    return np.where(is_paid[:, None], assignment, unchanged)


def _must_change(problem: Problem) -> BoolArray:
    """(P,): the partitions that changes force, or that break a rule today."""
    must: BoolArray = problem.forced | np.any(list(broken_rules(problem, today(problem)).values()), axis=0)
    return must


def _affordable(problem: Problem, costs: LongArray, must: BoolArray, spent: LongArray | int = 0) -> BoolArray:
    """(P,): the partitions that the budget pays for: first those that must change, then the others."""
    is_paid: BoolArray = np.all(costs <= 0, axis=0)
    # Amounts without a limit may be negative, but never run out.
    endless, limits = np.iinfo(np.int64).max >> 1, [getattr(problem.budget, term) for term in TERMS]
    remaining = np.array([endless if limit is None else limit for limit in limits], dtype=np.int64)
    remaining -= spent + costs[:, is_paid].sum(axis=1)
    for eligible in (must, ~must):
        # First whole groups that the rest of the budget pays for; then single partitions, each group's largest first.
        for as_group in (True, False):
            for rows in _groups(problem, costs, eligible, is_paid):
                for part in [rows] if as_group else rows[np.argsort(-costs[0, rows], kind="stable")][:, None]:
                    price = costs[:, part].sum(axis=1)
                    if (price <= remaining).all():
                        is_paid[part] = True
                        remaining -= price
    return is_paid


def _groups(problem: Problem, costs: LongArray, eligible: BoolArray, is_paid: BoolArray) -> Iterator[IntArray]:
    """Partitions of `eligible` that aren't paid: by removed broker, the cheapest first, then by topic."""
    waiting = [(problem.replicas == broker).any(axis=1) for broker in np.flatnonzero(~problem.targets)]
    others = ~is_paid & ~np.any([np.zeros_like(is_paid), *waiting], axis=0)
    while waiting:
        # Two brokers may share partitions, so the price of one depends on what was done for the other.
        prices = [tuple(costs[:, each & ~is_paid].sum(axis=1).tolist()) for each in waiting]
        yield np.flatnonzero(waiting.pop(prices.index(min(prices))) & eligible & ~is_paid)
    rows = np.flatnonzero(others)
    topics = np.split(rows, np.flatnonzero(np.diff(problem.topic_of[rows])) + 1) if len(rows) else []
    for topic in sorted(topics, key=lambda each: tuple(costs[:, each].sum(axis=1).tolist())):
        yield topic[eligible[topic]]
