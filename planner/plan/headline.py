"""The first sentences of every output: whether a plan does all that is asked, and what it moves.

If a plan is only a first step, they say so first, with what is left and the least number of further steps. They never
claim that a first step moves the proven minimum, or that its balance is as asked.
"""

from collections.abc import Callable, Iterator, Sequence

from msgspec import structs

from planner.model.formats import as_stated, brokers, counted, first_lines, printable, size, words
from planner.model.spec import Budget
from planner.plan import bound_section
from planner.plan.document.plan_types import Plan
from planner.plan.document.request_types import UnfinishedSection

_BROKERS_NAMED = 3
_WINDOWS_NAMED = 4


def first_line(plan: Plan) -> str:
    """The first line of every output: that this is only a first step, or else the headline."""
    return first_step(plan) or headline(plan)


def first_step_lead(plan: Plan) -> str:
    """`FIRST STEP ONLY`, `FIRST STEP DONE` or `NOTHING FITS THE BUDGET`; empty for a complete plan."""
    if not plan.unfinished:
        return ""
    if plan.has_something_to_do:
        return "FIRST STEP ONLY"
    return "FIRST STEP DONE" if plan.resumes and plan.resumes.partitions_there else "NOTHING FITS THE BUDGET"


def first_step(plan: Plan) -> str:
    """`FIRST STEP ONLY (…). …` with the budget, what is left and how many more steps; empty for a complete plan."""
    undone = plan.unfinished
    if not undone:
        return ""
    budget_text, left_text = f"budget: at most {budget(undone.limits)}", "; ".join(_left_to_do(undone))
    limits = structs.asdict(undone.limits)
    by_limit = [
        -(-much // most) for term, most in limits.items() if most and (much := getattr(undone, term)) is not None
    ]
    least, estimate = undone.steps_at_least, max(by_limit, default=0)
    steps_text = f"{'about' if estimate > least else 'at least'} {counted(max(estimate, least), 'more step')}"
    lead = first_step_lead(plan)
    steps_text = steps_text if lead.startswith("FIRST STEP") else "no step was found"
    return f"{lead} ({budget_text}). {left_text[0].upper()}{left_text[1:]}; {steps_text}."


def first_sentences(plan: Plan) -> str:
    """The sentence on the first step, if the plan is one, and the headline."""
    return " ".join(filter(None, (first_step(plan), headline(plan))))


def headline(plan: Plan) -> str:
    """What the plan creates and moves, and how that compares with the least that any plan could move."""
    topics, dirs, creates, inside = plan.new_topics, plan.log_dirs, "", ""
    if topics:
        lists = [replicas for topic in topics for replicas in topic.replicas]
        created = sum(not topic.partitions_before for topic in topics)
        kinds = [(created, "new topic"), (len(topics) - created, "existing topic")]
        where = " and ".join(counted(count, kind) for count, kind in kinds if count)
        creates = f"Creates {counted(len(lists), 'partition')} ({counted(sum(map(len, lists)), 'replica')}) in {where}."
        if not plan.partitions:
            return f"{creates} Existing replicas don't move."
    if dirs and dirs.moves:
        moved = f"{size(dirs.bytes_moved)} ({counted(dirs.replicas_moved, 'replica')})"
        on_brokers = counted(len({move.broker for move in dirs.moves}), "broker")
        inside = f"Copies {moved} from one log dir to another on {on_brokers}, {bound_section.gap_to_least(dirs)}."
    return f"{creates} {_movement(plan)} {inside}".strip()


def budget(limits: Budget) -> str:
    """What may be spent: `40.0 MB copied, 20 replicas copied`."""
    writers: dict[str, Callable[[int], str]] = {
        "bytes_moved": lambda most: f"{as_stated(most)} copied",
        "replicas_moved": lambda most: f"{counted(most, 'replica')} copied",
        "leaders_changed": lambda most: f"{counted(most, 'leader')} changed",
    }
    return ", ".join(write(most) for term, write in writers.items() if (most := getattr(limits, term)) is not None)


def balance_met(plan: Plan) -> str:
    """Says that the balance targets are met, or met so far; empty if they aren't."""
    if plan.unfinished:
        return "" if plan.balance.missed else "balance targets met so far"
    if (
        bound_section.looser(plan)
        or plan.balance.relaxed
        or plan.changes.rebalance == "none"
        or not bound_section.asks_for_balance(plan)
    ):
        return ""
    return "leaders balanced" if plan.changes.rebalance == "leaders" else "balance targets met"


def balance_missed(plan: Plan) -> str:
    """Which balance targets aren't met, and whether `rebalance` is the reason; empty if all are met."""
    missed, relaxed = plan.balance.missed, len(plan.balance.relaxed)
    if plan.unfinished:
        later = "whether later steps can meet all targets is unknown"
        return f"not balanced yet: {_windows(missed)}; {later}" if missed else ""
    if relaxed and plan.changes.rebalance == "none":
        return f"nothing moves {'between brokers ' if plan.log_dirs else ''}for balance alone (rebalance: none)"
    if bound_section.looser(plan):
        return f"the balance is looser than asked: {_windows(missed)}"
    if not relaxed:
        return ""
    unmet = f"{counted(relaxed, 'balance target')} {'is' if relaxed == 1 else 'are'} not met"
    if plan.resumes:
        return unmet
    of_leaders = all(row.window.endswith("leaders") for row in plan.balance.relaxed)
    down_text = f"{brokers(plan.brokers_down)} can't lead now (in no ISR)" if plan.brokers_down and of_leaders else ""
    if plan.changes.rebalance == "all":
        excess = plan.bound.excess
        proven = excess and (excess.least_replicas or excess.least_loads)
        not_found = f"no plan tried meets all targets{_SURVIVES[plan.spec.survive]}"
        return f"{unmet}: {down_text or ('no plan can meet all targets (proven)' if proven else not_found)}"
    racks = "only replicas that must move or that break the rack rule are moved"
    moves = racks if plan.changes.rebalance == "racks" else "no replica moves for balance"
    return f"{unmet}, because {moves} (rebalance: {plan.changes.rebalance}){down_text and f', and {down_text}'}"


_SURVIVES = {"none": "", **dict.fromkeys(("broker", "rack"), " and survives as much (resilience.survive)")}


def racks(plan: Plan) -> Iterator[str]:
    """Says how many partitions stay spread over the racks less evenly than possible; nothing if none."""
    term = plan.terms_by_name.get("rack_spread_broken")
    if term and (broken := term.plan):
        mode = plan.changes.rebalance
        reason = f" (rebalance: {mode})" if mode in ("leaders", "none") else ""
        verb, state = ("isn't", "stays as it is") if broken == 1 else ("aren't", "stay as they are")
        state = f"{verb} repaired (rack_aware: as_today)" if plan.spec.racks_as_today else f"{state}{reason}"
        yield f"{counted(int(broken), 'partition')} could be spread over the racks more evenly and {state}"


def costs_more(plan: Plan) -> str:
    """Says that traffic between racks will cost more, by at least 1 % and 0.01 a month; empty if not, or if unknown."""
    traffic = plan.cross_rack
    today, later = (traffic.today.money_per_month, traffic.plan.money_per_month) if traffic else (None, None)
    if today is None or later is None or later - today < max(0.01, today / 100):
        return ""
    increase = round(later, 2) - round(today, 2)
    return f"traffic between racks will cost {increase:,.2f} more a month ({today:,.2f} today)"


def target_name(window: str) -> str:
    """The name of a balance target in the table of measures: `topic replicas`, `bytes` for `disk`."""
    return "bytes" if window == "disk" else words(window)


def all_clear(plan: Plan) -> bool:
    """True if nothing asks for a second look."""
    relaxed = plan.balance.relaxed and plan.changes.rebalance != "none"
    return not (plan.warnings or relaxed or plan.unfinished or [*racks(plan)] or costs_more(plan))


def _windows(names: Sequence[str]) -> str:
    shown = [target_name(name) for name in names[:_WINDOWS_NAMED]]
    return ", ".join([*shown, *(["…"] if len(names) > _WINDOWS_NAMED else [])])


def _left_to_do(unfinished: UnfinishedSection) -> Iterator[str]:
    """What is left to do: brokers to empty, partitions that wait, the balance."""
    if unfinished.brokers:
        shown = [
            f"broker {row.id} is NOT empty afterwards ({counted(row.replicas, 'replica')}"
            f"{'' if row.size_bytes is None else ', ' + size(row.size_bytes)})"
            for row in unfinished.brokers
        ]
        yield ", ".join(first_lines(shown, _BROKERS_NAMED, "broker"))
    if unfinished.partitions:
        yield f"left: {counted(unfinished.partitions, 'partition')} to change, {_cost(unfinished)}"
    elif unfinished.windows:
        yield f"left: {_cost(unfinished)}, for balance ({_windows(unfinished.windows)})"
    if unfinished.too_large:
        yield f"{counted(unfinished.too_large, 'partition')} larger than the whole budget: raise the budget"


def _cost(unfinished: UnfinishedSection) -> str:
    """What the rest would cost: replicas and bytes to copy, or leaders to change if nothing is copied."""
    if not unfinished.replicas_moved:
        return f"{counted(unfinished.leaders_changed, 'leader')} to change"
    copies = counted(unfinished.replicas_moved, "replica")
    if unfinished.bytes_moved is None:
        return f"{copies} to copy, sizes unknown"
    return f"{size(unfinished.bytes_moved)} to copy ({copies})"


_BETTER = {
    "most_even_within_bytes": "is more even than today",
    "lowest_worst_hour_within_bytes": "has a lower worst hour",
    "most_months_within_bytes": "has more months until a disk is full",
}


def _why_nothing(plan: Plan) -> str:
    if plan.adopted:
        return printable(f"all that {plan.adopted.file} names is as it wants it", 300)
    if plan.resumes:
        return "of the approved plan nothing is left to move or elect"
    if plan.unfinished:
        return "no plan tried is within the budget and more even than today; raise the budget, or try more --candidates"
    match plan.choice.rule:
        case "most_even_within_bytes" | "lowest_worst_hour_within_bytes" | "most_months_within_bytes" as rule:
            most, better = as_stated(plan.choice.value or 0), _BETTER[rule]
            return f"no plan tried that copies at most {most} {better}; allow more in sweep.choose"
        case "fewest_bytes_within_imbalance" | "fewest_bytes_within_worst_hour" | "fewest_bytes_lasting_months":
            return f"that is {choice_phrase(plan)}"
    full = any(row.crossed and row.key.startswith("capacity.") for row in plan.limits)
    reasons = [*(["no plan tried brings each broker within its caps"] if full else []), *racks(plan)]
    if plan.changes.rebalance == "none" and (reasons or plan.balance.relaxed):
        return "with rebalance: none, only replicas that must move are moved, and none must"
    if reasons or not plan.balance.relaxed:
        return reasons[0] if reasons else "the cluster is already as asked"
    mode = plan.changes.rebalance
    if mode == "racks":
        return "no partition breaks the rack rule"
    mode_text = f" (rebalance: {mode})" if mode != "all" else ""
    return f"no plan tried comes closer to the targets{_SURVIVES[plan.spec.survive]}{mode_text}"


def _movement(plan: Plan) -> str:
    if not plan.partitions:
        return f"Nothing to do: {_why_nothing(plan)}."
    moves = [len(row.added) for row in plan.partitions]
    elections = sum(len(batch.elect) for batch in plan.batches)
    elects = f"elects {counted(elections, 'leader')}" if elections else "elects no leaders"
    # Replicas that are deleted because of lower replication factors.
    deleted = [(max(0, len(row.replicas_before) - len(row.replicas)), row.size_bytes) for row in plan.partitions]
    removed = sum(replicas for replicas, _ in deleted)
    total = size(sum(replicas * size_bytes for replicas, size_bytes in deleted)) if plan.cluster.sizes_known else "all"
    removes = f"deletes {counted(removed, 'replica')} ({total} to copy back in a rollback)"
    joined = "; " if _against_bound(plan) or removed else " and "
    if not any(moves):
        lists = ((row.replicas_before, row.replicas) for row in plan.partitions)
        reordered = sum(before != after and len(before) == len(after) for before, after in lists)
        phrases = [removes] if removed else []
        phrases += [f"reorders {counted(reordered, 'replica list')}"] if reordered else []
        nothing = "Copies nothing between brokers" if plan.log_dirs and plan.log_dirs.moves else "Copies no data"
        return f"{nothing}; {', '.join(phrases)}{' and ' if phrases else ''}{elects}."
    copied = f"{counted(sum(moves), 'replica')} of {counted(sum(map(bool, moves)), 'partition')}"
    if not plan.cluster.sizes_known:
        return f"Copies {copied} (sizes unknown){joined}{f'{removes} and ' if removed else ''}{elects}."
    prefix = ""
    if unsized := plan.cluster.partitions_without_size:
        prefix, copied = "at least ", f"{copied}; {counted(unsized, 'partition')} without a size, counted as empty"
    copies = f"Copies {prefix}{size(plan.bound.bytes_moved)} ({copied}){_against_bound(plan)}"
    return f"{copies}{joined}{f'{removes} and ' if removed else ''}{elects}."


def _against_bound(plan: Plan) -> str:
    """How the bytes moved compare with the bound.

    Empty for a first step, because it spends its whole budget. Empty if sizes are missing, because partitions counted
    as empty may hold most of the bytes.
    """
    if plan.unfinished or plan.cluster.partitions_without_size:
        return ""
    if above := more_than_needed(plan):
        return f", {size(above)} more than needed for the same balance"
    made_for = bound_section.targets(plan)
    reached = " at this looser balance" if bound_section.looser(plan) else ""
    if plan.bound.excess and not plan.balance.relaxed:
        closest = bound_section.misses_scenarios(plan)
        phrase = f"come closest to {bound_section.SCENARIOS}" if closest else "exceed the disk limits least"
        reached = f" of the plans that {phrase}"
    elif made_for != "the targets":
        reached = f" for a balance this close to {made_for}" if plan.bound.excess else f" at {made_for}"
    reached += bound_section.split_phrase(plan)
    return f", {bound_section.gap_to_least(plan.bound, reached, plan.replicas_copied)}"


def more_than_needed(plan: Plan) -> int:
    """How many more bytes an adopted plan copies than another plan that is as even; 0 if none was found."""
    needed_bytes = plan.adopted.enough_bytes_moved if plan.adopted else None
    return 0 if needed_bytes is None else plan.bound.bytes_moved - needed_bytes


def choice_phrase(plan: Plan) -> str:
    """The rule that chose the plan, with its numbers."""
    choice = plan.choice
    variant = f"variant {choice.variant}: " if choice.variant != "changes" else ""
    return printable(f"{variant}{choice.why}", 300)


def repair_first(plan: Plan) -> str:
    """What to repair before the plan is applied, or before a better one is made; empty if nothing."""
    if down := plan.brokers_down:
        it, they = ("it", "it") if len(down) == 1 else ("them", "they")
        return (
            f"start {brokers(down)}, wait until all replicas are in sync, then preferably capture the state and plan "
            f"again, so that {they} can lead; or remove or replace {it} in changes and plan again"
        )
    of_brokers = plan.log_dirs.brokers if plan.log_dirs else ()
    failed = [(each.path, broker.id) for broker in of_brokers for each in broker.log_dirs if each.error]
    if not failed:
        waits = plan.risks.out_of_sync
        return f"wait until all replicas are in sync ({counted(waits, 'partition')} under-replicated)" if waits else ""
    others = f" and {counted(len(failed) - 1, 'other')}" if len(failed) > 1 else ""
    dir_of = f"log dir {printable(failed[0][0], 60)} of broker {failed[0][1]}"
    return f"better repair {dir_of}{others}, wait until all replicas are in sync, capture the state and plan again"
