"""Makes the plan's section on its bound. Says in words what is proven, how, and for which plans."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec import structs

from planner.model.document_fields import LEADERS, Apart
from planner.model.file_reading import digest
from planner.model.formats import above_bound, brokers, counted, enumerated, gap_shown, size, words
from planner.model.problem import Problem
from planner.model.spec import Spec
from planner.plan import bound_json
from planner.plan.document.cluster_types import LogDirsSection
from planner.plan.document.comparison_types import BoundMethod, BoundSection, ExcessSection
from planner.plan.document.plan_types import Plan
from planner.strategies.lagrangian_bound import Certificate
from planner.strategies.optimum import Proposal
from planner.sweep.candidates import ADOPTED, PART
from planner.sweep.choice import Row

_WITHIN = {
    "flow": "no plan with these racks, replication factors and replica windows moves less",
    "prices": "no plan with these racks, replication factors and windows of replicas, bytes and traffic moves less",
    "branches": "in none of them does a plan with these racks, replication factors and windows move less",
}
_HOW = {
    "flow": "a min-cost flow's optimum",
    "prices": "a min-cost flow with a price on each broker's bytes",
    "branches": (
        "prices by cases: every way in which the largest partitions may lie on the brokers is one of the cases, and"
    ),
}
# No proof has more characters than this, so readers see all of it.
LONGEST_PROOF = 1_000
METHODS = {
    "none": "nothing moves",
    "forced": "only what the other changes force moves: every partition's cheapest choice, summed",
    **{name: f"{how}{'' if name == 'branches' else ':'} {_WITHIN[name]}" for name, how in _HOW.items()},
}


# Percentages have two decimals, so none is shown below a ten-thousandth of the bound.
_NEAR = 10_000
# Above ten times the bound, a percentage tells nothing: a few bytes were needed, and a whole partition is copied.
_FAR = 10


def section(spec: Spec, problem: Problem, winner: Row, proposal: Proposal, file: bytes | None) -> BoundSection:
    """The `bound` of plan.json: the least that any plan could move, proven by `file`. Doing nothing needs no proof."""
    certificate, moved, replicas = proposal.certificate, winner["bytes_moved"], winner["replicas_moved"]
    least, least_replicas = max(proposal.least_bytes, 0), proposal.least_replicas
    forced_only = problem.rebalance != "all"
    in_replicas = least_replicas >= 0 and not moved
    gap = gap_percent(replicas, least_replicas) if in_replicas else gap_percent(moved, least)
    unproven = {PART: UNPROVEN_PART, ADOPTED: UNPROVEN_ADOPTED}.get(winner["strategy"], UNPROVEN)
    text = unproven if (moved or replicas) and certificate is None else proof(certificate, forced_only, spec.apart)
    windows = (problem.balance.topic_replicas, problem.balance.replicas)
    starts_of_topics, starts = (each.kind == "spread" and each.value > 1 for each in windows)
    if certificate is not None and gap and not forced_only and starts_of_topics:
        text += SEARCHED
    if certificate is not None and proposal.widened_windows:
        names = enumerated([words(window) for window in proposal.widened_windows])
        text += f". The windows of {names} are wider than asked for, because a disk would otherwise be above its limit"
    if certificate is not None and replicas:
        # With other starts of the windows, a plan that copies as many bytes may be better by the later criteria.
        text += TIES[proposal.ties_proven and not (gap or starts_of_topics or starts)]
    return BoundSection(
        bytes_moved=moved,
        least_bytes_moved=least,
        least_replicas_moved=least_replicas if least_replicas >= 0 else None,
        gap_percent=gap,
        method=method(certificate, forced_only),
        proof=text,
        sha256=None if file is None else digest(file),
        excess=bound_json.excess(certificate),
    )


def recount(plan: Plan) -> Iterator[tuple[str, float, float]]:
    """Figures that follow from the plan's own partitions: the path of each, what the plan states, what is counted."""
    moved = sum(len(row.added) * row.size_bytes for row in plan.partitions)
    yield "bound.bytes_moved", plan.bound.bytes_moved, moved
    least, of_measure = plan.bound.least_bytes_moved, moved
    if not moved and plan.bound.least_replicas_moved is not None:
        least, of_measure = plan.bound.least_replicas_moved, plan.replicas_copied
    if plan.bound.sha256 is not None:
        yield "bound.gap_percent", plan.bound.gap_percent, gap_percent(of_measure, least)
    of_limits = {"limits.bytes_moved": moved, "limits.replicas_moved": plan.replicas_copied}
    for index, row in enumerate(plan.limits):
        if row.key in of_limits:
            yield f"limits[{index}].value", row.value, of_limits[row.key]


def gap_percent(moved: int, least: int) -> float:
    """How far `moved` is above `least`, in percent of `moved`, to three decimals, rounded up."""
    return -(-100_000 * (moved - least) // moved) / 1000 if moved else 0.0


def method(certificate: Certificate | None, forced_only: bool) -> BoundMethod:
    """Which of METHODS a certificate belongs to."""
    if certificate is None:
        return "none"
    if forced_only:
        return "forced"
    certificates = (certificate, *certificate.others)
    if any(each.parts for each in certificates):
        return "branches"
    return "prices" if any(table.size for each in certificates for table in each.prices.loads) else "flow"


UNPROVEN = "the minimum is unknown: the plan is one of Kafka's own placements, chosen from the front"
UNPROVEN_PART = (
    "the minimum is unknown for this step alone: it is a part of a plan for all that may move, the part that the "
    "budget pays for"
)
UNPROVEN_ADOPTED = "the minimum is unknown: the search for another plan found none that keeps every rule"
# The search over starts is a heuristic, and the text says so. The bound holds for all starts.
SEARCHED = (
    ". Where each topic's window begins was searched, without a proof: with other starts fewer bytes may move, down to "
    "this minimum"
)
# The key is True if the plan is also proven best by the criteria after bytes.
TIES = {
    True: ". Of the plans that copy as little, none takes fewer replicas from leaders, or as many and touches fewer "
    "partitions, or as many and spreads arrivals more evenly over brokers: proven by flows and integer programs",
    False: ". Of the plans that copy as little, this one isn't proven to be the best by other criteria",
}


def proof(certificate: Certificate | None, forced_only: bool, apart: Sequence[Apart] = ()) -> str:
    """A sentence: what is proven and how, and for which plans if windows don't hold or topics are apart."""
    name, split = method(certificate, forced_only), ""
    # Rules on leaders don't change the bound on copied bytes.
    apart = [rule for rule in apart if not rule.by.endswith(LEADERS)]
    if apart and certificate is not None:
        split = ", for every split of the brokers among topics that are apart that is as even as this one"
    if any(not rule.proven for rule in apart) and certificate is not None:
        split = ", for this split of the brokers among topics that are apart; with another one less may move"
    if certificate is None or certificate.outside is None:
        return f"{METHODS[name]}{split}"
    excess = bound_json.excess(certificate)
    assert excess is not None
    how = _HOW[name].removesuffix(", and")
    return (
        f"{how}; the windows can't all be shown to hold, so this is about all plans with these racks and replication "
        f"factors that are outside of them by no more than this one, whichever brokers carry it ({_outside(excess)}): "
        f"none of them moves less{split}"
    )


def _outside(excess: ExcessSection) -> str:
    """How far outside of the windows a bound's plans may be, and the least that any plan must be outside."""
    phrases = []
    if excess.replicas:
        phrases.append(
            f"replicas by a weight of {excess.replicas:,}{_at_least(excess.replicas, excess.least_replicas, str)}"
        )
    if excess.loads:
        worst = max((each.value for each in excess.furthest if each.window.startswith("disk")), default=0)
        on_worst = f", {size(worst)} on the worst broker" if worst else ""
        phrases.append(
            f"loads by {size(excess.loads)} in all{on_worst}{_at_least(excess.loads, excess.least_loads, size)}"
        )
    return "; ".join(phrases)


def _at_least(excess: int, least: int, write: Callable[[int], str]) -> str:
    return ", the least possible" if least >= excess else f", proven to be at least {write(least)}"


def is_part(plan: Plan) -> bool:
    """True if the plan is the part of the plan for the whole change that a budget pays for; it has no bound itself."""
    return plan.candidates.winner.strategy == PART


def asks_for_balance(plan: Plan) -> bool:
    """False if every window is `none` and log dirs aren't planned, as in the specs that planner drain writes."""
    return any(value != "none" for value in structs.asdict(plan.balance.asked).values()) or plan.log_dirs is not None


def looser(plan: Plan) -> bool:
    """True if the plan misses windows asked for, and was made for other windows or chosen by a rule of the front."""
    balance, picked = plan.balance, plan.choice.rule not in ("asked", "within_budget")
    return bool(balance.missed) and (balance.asked != balance.wanted or picked)


def split_phrase(plan: Plan) -> str:
    """Names the split that the bound is for, if not all were compared. Rules on leaders don't narrow the bound."""
    split = sorted({rule.by for rule in plan.spec.apart or () if not (rule.proven or rule.by.endswith(LEADERS))})
    return f" for this split of the {' and the '.join(f'{by}s' for by in split)}" if split else ""


def targets(plan: Plan) -> str:
    """The targets that the plan was made for: `the targets`, or `the targets with disk 5%` if the sweep had others.

    An adopted plan's targets are the balance that it reaches, so nothing is added to `the targets`.
    """
    unlike = [f"{words(window)} {value}" for window, value in plan.balance.wanted.unlike(plan.balance.asked).items()]
    return "the targets" + (f" with {', '.join(unlike)}" if unlike and not plan.adopted else "")


SCENARIOS = "the targets in the scenarios"


def misses_scenarios(plan: Plan) -> bool:
    """True if the plan was made for scenarios whose targets it can't meet."""
    return plan.candidates.winner.scenarios == "all" and not all(each.feasible for each in plan.scenarios)


def bounded(plan: Plan) -> str:
    """What a plan does if the bound applies to it: `meets the targets and keeps the placement rules`."""
    as_even = plan.unfinished or (looser(plan) and targets(plan) == "the targets")
    if plan.bound.excess:
        others = f"comes as close to {SCENARIOS}" if misses_scenarios(plan) else "exceeds the disk limits by no more"
        phrases = [f"comes as close to {targets(plan)}" if plan.balance.relaxed else others]
    elif as_even:
        phrases = ["ends as even as this one"]
    elif plan.changes.rebalance != "all":
        phrases = ["makes these changes"]
        phrases += ["repairs what breaks the rack rule"] if plan.changes.rebalance == "racks" else []
    else:
        met = f"{'comes as close to' if plan.balance.relaxed else 'meets'} {targets(plan)}"
        phrases = [met] if asks_for_balance(plan) else []
    spec = plan.spec
    if plan.changes.rebalance == "all" and plan.rack_aware and any(row.rack is not None for row in plan.brokers):
        as_today = spec.racks_as_today or (plan.adopted and plan.adopted.partitions_uneven)
        phrases.append(f"spreads replicas over the racks{' at least as evenly as today' if as_today else ''}")
    split = [rule for rule in spec.apart or () if not rule.by.endswith(LEADERS)]
    capped = any({row.max_replicas, row.max_leaders, row.max_disk_bytes} != {None} for row in plan.brokers)
    limited = not plan.bound.excess and any(row.disk_bytes for row in plan.brokers)
    kept_rules = ("placement rules", spec.placement), ("apart rules", split), ("together rules", spec.together)
    rules = [f"the {rule}" for rule, is_set in (*kept_rules, ("caps", capped), ("disk limits", limited)) if is_set]
    phrases += [f"keeps {enumerated(rules)}"] if rules else []
    if cordoned := [row.id for row in plan.brokers if row.cordoned]:
        phrases.append(f"copies nothing to the cordoned {brokers(cordoned)}")
    if plan.changes.rebalance == "all" and (spec.topics.exclude or spec.topics.include != ("*",)):
        phrases.append("leaves excluded topics where they are")
    if spec.topics.on_brokers:
        phrases.append(
            f"changes only partitions on {enumerated([f'broker {broker}' for broker in spec.topics.on_brokers])}"
        )
    if plan.unfinished and plan.unfinished.partitions:
        phrases.append(f"leaves the same {counted(plan.unfinished.partitions, 'partition')} for later")
    return enumerated(phrases or ["makes these changes"])


def covered(plan: Plan) -> str:
    """Which plans the bound applies to: ` of this step that ends as even as this one`."""
    return f"{' of this step' if plan.unfinished else ''}{split_phrase(plan)} that {bounded(plan)}"


def gap_to_least(bound: BoundSection | LogDirsSection, balance_reached: str = "", replicas: int = 0) -> str:
    """How what is copied compares with the bound: `the proven minimum`, `at most 8.41 GB (0.51 %) above …`.

    A plan that copies no bytes is compared by its `replicas`, as in `gap_percent`.
    """
    method, excess = (bound.method, bound.excess) if isinstance(bound, BoundSection) else (None, None)
    moved, least, write = bound.bytes_moved, bound.least_bytes_moved, size
    if isinstance(bound, BoundSection) and not moved and bound.least_replicas_moved is not None:
        moved, least, write = replicas, bound.least_replicas_moved, partial(counted, noun="replica")
    if method == "none" or 0 == least < moved:
        return "the minimum is unknown"
    if method == "target":
        return "the rest of an approved plan"
    suffix = balance_reached or (" for a balance this close to the targets" if excess else "")
    if moved <= least:
        return f"the proven minimum{suffix}"
    telling = least // _NEAR <= moved - least <= _FAR * least
    share = f" ({gap_shown(above_bound(moved, least))})" if telling else ""
    return f"at most {write(moved - least)}{share} above the proven minimum{suffix}"
