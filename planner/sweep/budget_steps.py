"""What a budget pays for: the most even plan within it, or the first step of a change that exceeds it.

The forced changes cost each partition a fixed minimum, whatever other partitions do, so the choice is a knapsack of
whole partitions. Removed brokers are emptied one by one, the cheapest first, then topics follow. The rest of the budget
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

# The ladder's levels: how far from its fair share each broker may be, in percent, if only the costly windows are
# loosened, and if all are. With the parts below they are about what a small cluster's sweep solves.
LEVELS_OF_COST = (5, 12, 20, 30, 50, 75)
LEVELS = (2, 8, 16, 25, 40, 50, 60, 75, 90)
# The part of its way, in percent, that each broker goes from what it holds today to its windows; and how many parts are
# tried, the largest that the budget may pay for. An empty broker needs the small parts: every level asks for at least a
# tenth of its share.
PARTS = (1, 1.3, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8, 10, 12.5, 16, 20, 25, 32, 40, 50, 63, 80)
PARTS_TRIED = 6
TERMS = ("bytes_moved", "replicas_moved", "leaders_changed")
_COUNTS = ("replicas", "leaders")
_TOPICS = ("topic_replicas", "topic_leaders")
# The windows whose cost a term limits. Even counts cost few bytes, because small partitions are moved to meet them.
_COSTLY = {"bytes_moved": BYTE_WINDOWS, "replicas_moved": ("replicas", *BYTE_WINDOWS), "leaders_changed": ("leaders",)}
_OPEN = Balance(*[NO_TOLERANCE] * 7)


def asked(budget: Budget) -> bool:
    """True if the budget limits anything."""
    return any(getattr(budget, term) is not None for term in TERMS)


def amounts(term: str, taken: int, allowed: int) -> tuple[str, str]:
    """How much of a term is taken, exactly, and how much is allowed, as written in the YAML."""
    return (exactly(taken), stated(allowed)) if term == "bytes_moved" else (str(taken), str(allowed))


def ladder(balance: Balance, budget: Budget, affordable: float = 1) -> tuple[Balance, ...]:
    """Balances from the one asked for to none at all, each looser than the one before.

    The windows of single topics go first, because they cost most for the evenness they give. Then the windows that cost
    what the budget limits are loosened. Then each broker goes part of its way to all windows, at most the `affordable`
    part. Then all windows are loosened. Last, if the budget limits leaders, all are loosened again without the windows
    of leaders. Leaders that the budget doesn't limit stay as even as asked, because they copy nothing.
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
    """An upper bound on the part of the brokers' way to the balance asked for that the budget may pay for: each limit
    divided by the least amount that must move. 1 if nothing is known.
    """
    held, wanted, most = held_today(problem), windows(problem, problem.balance), list[float]()
    for term, name in zip(TERMS, ("disk", "replicas", "leaders"), strict=True):
        limit, bounds = getattr(problem.budget, term), getattr(wanted, name)
        if limit is not None and bounds is not None:
            most += [limit / forced for forced in [int(beyond(bounds, held[name]).sum(axis=1).max())] if forced]
    return min(most, default=1.0)


def spread_out(balances: Sequence[Balance]) -> tuple[Balance, ...]:
    """A ladder reordered so that its first steps, however many, lie far apart: the ends, the middle, the quarters."""
    last = max(len(balances) - 1, 1)
    bits = last.bit_length()
    halves = (round(int(f"{at:0{bits}b}"[::-1], 2) * last / (1 << bits)) for at in range(1 << bits))
    order = dict.fromkeys([0, len(balances) - 1, *halves, *range(len(balances))])
    return tuple(balances[at] for at in order if at < len(balances))


def within(budget: Budget, spent: Mapping[str, int]) -> bool:
    """True if a candidate's row spends no more than the budget allows."""
    limits = [(getattr(budget, term), spent[term]) for term in TERMS]
    return all(limit is None or value <= limit for limit, value in limits)


def _ever_looser(balance: Balance, knobs: Sequence[str], levels: Sequence[int]) -> list[Balance]:
    """A balance with these windows at each level, then one without these windows."""
    looser = [replace(balance, **{knob: _looser(getattr(balance, knob), level) for knob in knobs}) for level in levels]
    return [*looser, _without(balance, knobs)]


def _without(balance: Balance, knobs: Sequence[str]) -> Balance:
    return replace(balance, **dict.fromkeys(knobs, NO_TOLERANCE))


def _looser(tolerance: Tolerance, level: int) -> Tolerance:
    """The tolerance, or `level` percent if that is looser; no tolerance stays no tolerance."""
    if tolerance.kind == "none" or (tolerance.kind == "percent" and tolerance.value >= level):
        return tolerance
    return Tolerance("percent", level)


def first_step(problem: Problem) -> Problem:
    """The problem unchanged if its budget pays for everything, or for none of the necessary changes. Else the
    partitions that wait are not movable and keep their number of replicas; they are `deferred` if they must change.
    """
    if not asked(problem.budget) or (costs := _costs(problem)) is None:
        return problem
    # A partition that isn't forced but copies does so for the rack rule. One that only changes its leader may wait.
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
    """(3, P): the minimum of each of TERMS that each partition takes, however uneven the plan; None without a plan."""
    try:
        roomy = replace(without(problem), disk_limit_bytes=np.full_like(problem.disk_limit_bytes, -1))
        chosen = optimum.solve(roomy, _OPEN).assignment
    except InfeasibleError:
        return None
    copies = adding(problem, chosen).sum(axis=1)
    elected = problem.may_lead_anew & ~problem.is_new & (problem.leaders != chosen[:, 0])
    return np.stack([copies * problem.size_bytes, copies, elected]).astype(np.int64)


def _affordable(problem: Problem, costs: LongArray, must: BoolArray) -> BoolArray:
    """(P,): the partitions that the budget pays for: first those that must change, then the others."""
    done: BoolArray = (costs == 0).all(axis=0)
    endless, limits = np.iinfo(np.int64).max, [getattr(problem.budget, term) for term in TERMS]
    left = np.array([endless if limit is None else limit for limit in limits], dtype=np.int64)
    for among in (must, ~must):
        # First whole groups that the rest of the budget pays for; then single partitions, each group's largest first.
        for whole in (True, False):
            for rows in _groups(problem, costs, among, done):
                for part in [rows] if whole else rows[np.argsort(-costs[0, rows], kind="stable")][:, None]:
                    price = costs[:, part].sum(axis=1)
                    if (price <= left).all():
                        done[part] = True
                        left -= price
    return done


def _groups(problem: Problem, costs: LongArray, among: BoolArray, done: BoolArray) -> Iterator[IntArray]:
    """Partitions of `among` that aren't done: by removed broker, the cheapest first, then by topic."""
    waiting = [(problem.replicas == broker).any(axis=1) for broker in np.flatnonzero(~problem.targets)]
    others = ~done & ~np.any([np.zeros_like(done), *waiting], axis=0)
    while waiting:
        # Two brokers may share partitions, so the price of one depends on what was done for the other.
        prices = [tuple(costs[:, each & ~done].sum(axis=1).tolist()) for each in waiting]
        yield np.flatnonzero(waiting.pop(prices.index(min(prices))) & among & ~done)
    rows = np.flatnonzero(others)
    topics = np.split(rows, np.flatnonzero(np.diff(problem.topic_of[rows])) + 1) if len(rows) else []
    for topic in sorted(topics, key=lambda each: tuple(costs[:, each].sum(axis=1).tolist())):
        yield topic[among[topic]]
