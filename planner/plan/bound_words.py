"""What a plan's bound is about, in words: at which balance and by which rules no plan copies less."""

from collections.abc import Sequence

from msgspec import structs

from planner.model.cluster import LEADERS
from planner.model.formats import above_bound, gap_shown, size, words
from planner.plan.document.cluster_types import LogDirsSection
from planner.plan.document.comparison_types import BoundSection
from planner.plan.document.plan_types import Plan

# A ten-thousandth above the bound: percentages are shown with two digits.
_NEAR = 10_000
# Where a few bytes are asked for and a partition is copied, a percentage tells nothing.
_FAR = 10


def asks_for_balance(plan: Plan) -> bool:
    """False where every window is `none`, as where planner drain writes the spec."""
    return any(value != "none" for value in structs.asdict(plan.balance.asked).values()) or plan.log_dirs is not None


def looser(plan: Plan) -> bool:
    """True if the plan was chosen at looser windows than asked for, and misses some of those asked for."""
    of, picked = plan.balance, plan.choice.rule not in ("asked", "within_budget")
    return bool(of.missed) and (of.asked != of.wanted or picked)


def of_split(plan: Plan) -> str:
    """Where topics are apart and not every split was compared: that the least is that of one; of those who lead, it is
    that of all plans.
    """
    split = sorted({rule.by for rule in plan.spec.apart or () if not (rule.proven or rule.by.endswith(LEADERS))})
    return f" for this split of the {' and the '.join(f'{by}s' for by in split)}" if split else ""


def targets(plan: Plan) -> str:
    """The targets that the plan was made for: `the targets`, or where the sweep had others `the targets with disk 5%`.

    An adopted plan's are those that it reaches.
    """
    asked, made_for = structs.asdict(plan.balance.asked), structs.asdict(plan.balance.wanted)
    unlike = [f"{words(window)} {value}" for window, value in made_for.items() if value != asked[window]]
    return "the targets" + (f" with {', '.join(unlike)}" if unlike and not plan.adopted else "")


def bounded(plan: Plan) -> str:
    """What the plans do that the bound is about: `meets the targets and keeps placement`."""
    as_even = plan.unfinished or (looser(plan) and targets(plan) == "the targets")
    if plan.bound.excess:
        does = [f"comes as close to {targets(plan)}" if plan.balance.relaxed else "exceeds the disk limits by no more"]
    elif as_even:
        does = ["ends as even as this one"]
    elif plan.changes.rebalance != "all":
        does = ["makes these changes"]
        does += ["repairs what breaks the rack rule"] if plan.changes.rebalance == "racks" else []
    else:
        met = f"{'comes as close to' if plan.balance.relaxed else 'meets'} {targets(plan)}"
        does = [met] if asks_for_balance(plan) else []
    of = plan.spec
    if plan.changes.rebalance == "all" and plan.rack_aware and any(row.rack is not None for row in plan.brokers):
        does.append("spreads replicas over the racks")
    split = [rule for rule in of.apart or () if not rule.by.endswith(LEADERS)]
    capped = any({row.max_replicas, row.max_leaders, row.max_disk_bytes} != {None} for row in plan.brokers)
    rules = [*["placement"] * bool(of.placement), *["apart"] * bool(split), *["the caps"] * capped]
    does += [f"keeps {_and(rules)}"] if rules else []
    if plan.changes.rebalance == "all" and (of.topics.exclude or of.topics.include != ("*",)):
        does.append("leaves excluded topics where they are")
    return _and(does or ["makes these changes"])


def covered(plan: Plan) -> str:
    """Which plans the bound is about: ` of this step that ends as even as this one`."""
    return f"{' of this step' * bool(plan.unfinished)}{of_split(plan)} that {bounded(plan)}"


def _and(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def gap_to_least(bound: BoundSection | LogDirsSection, balance_reached: str = "") -> str:
    """How what is moved compares with the least that does.

    `the proven minimum`, or `at most 8.41 GB (0.51 %) above the proven minimum`.
    """
    method, excess = (bound.method, bound.excess) if isinstance(bound, BoundSection) else (None, None)
    if method == "none":
        return "the minimum is unknown"
    if method == "target":
        return "the rest of an approved plan"
    which = balance_reached or (" for a balance this close to the targets" if excess else "")
    if bound.bytes_moved <= bound.least_bytes_moved:
        return f"the proven minimum{which}"
    above, least = bound.bytes_moved - bound.least_bytes_moved, bound.least_bytes_moved
    telling = least and least // _NEAR <= above <= _FAR * least
    share = f" ({gap_shown(above_bound(bound.bytes_moved, least))})" if telling else ""
    return f"at most {size(above)}{share} above the proven minimum{which}"
