"""plan.json → the sections of report.md and report.html; the terminal shows the same tables in another order."""

from planner.model import formats
from planner.plan import headline
from planner.plan.bound_and_proof import LONGEST_PROOF
from planner.plan.document.plan_types import Plan
from planner.report import choice_tables, cluster_tables, next_steps, requested, sentences, summary, verdict
from planner.report.plot_movement import Movement
from planner.report.view import Facts, Joined, Lines, Name, Sentence, Value, ViewSection, told

# This file has everything that the plan's screens and reports leave out.
SOURCE = "plan.json"
_LONGEST_FACT = 1_000
_COMPARED = "Compared with doing nothing and with Kafka's own placement"
_NEW_PARTITIONS = (
    "They are created before anything is reassigned, and copy no data. ",
    " and the rollback playbook keep them: Kafka can't remove partitions, and deleting a topic deletes its data.",
)


def sections(plan: Plan, moved: Movement | None = None, folder: str | None = None) -> tuple[ViewSection, ...]:
    """Every section with content, except topics and partitions, in reading order.

    With `moved`, the numbers of the plots, also the movement sections. Without `folder`, the page itself is in the
    plan's folder; else it names `folder`.
    """
    return (summary.section(plan), *details(plan, moved, folder))


def details(plan: Plan, moved: Movement | None = None, folder: str | None = None) -> tuple[ViewSection, ...]:
    """The sections after the summary. Markdown folds those that a decision doesn't need."""
    stay = Lines((Joined((_NEW_PARTITIONS[0], Name("rollback.json"), _NEW_PARTITIONS[1])),), bulleted=False)
    made = (cluster_tables.new_partitions(plan), stay, choice_tables.placed_new(plan), cluster_tables.new_lists(plan))
    log_dirs = (cluster_tables.log_dirs(plan), cluster_tables.log_dir_moves(plan))
    scenarios = Lines(tuple(map(sentences.scenario, plan.scenarios)), "scenario")
    # With `rebalance: none`, missed targets don't matter for the decision: they are shown among the folded terms.
    hours = (cluster_tables.worst_hours(plan), cluster_tables.months_of_hours(plan))
    relaxed, kept = choice_tables.relaxed(plan), plan.changes.rebalance == "none"
    every = (
        ViewSection("Warnings", told(Lines(plan.warnings, "warning")), "warnings"),
        ViewSection("Limits and balance", told(choice_tables.limits(plan), *([] if kept else [relaxed])), "gates"),
        ViewSection("Risks", told(Lines(tuple(verdict.risks(plan)), "risk")), "risks"),
        ViewSection("How to apply and roll back", told(next_steps.commands(plan, folder)), "commands"),
        ViewSection("Racks", told(cluster_tables.racks(plan)), "racks", plot="racks", folded=True),
        ViewSection("Brokers", told(cluster_tables.brokers(plan)), "brokers", plot="brokers", folded=True),
        *_movement(plan, moved),
        ViewSection(
            "Alternatives that copy less or more", told(choice_tables.front(plan)), "front", plot="front", folded=True
        ),
        ViewSection("Variants", told(choice_tables.variants(plan)), "variants-and-plans"),
        ViewSection("Busiest hours", told(Lines(sentences.hours(plan))), "busiest-hours"),
        ViewSection("Worst hours", told(*hours), "hours", plot="hours", folded=True),
        ViewSection("Traffic between racks", told(Lines(verdict.cross_rack(plan))), "rack-traffic"),
        ViewSection("In the scenarios", told(scenarios), "scenarios"),
        ViewSection("New partitions", told(*made) if plan.new_topics else (), "new", folded=True),
        ViewSection("Log dirs", told(*log_dirs), "of-log-dirs", folded=True),
        ViewSection(_COMPARED, told(choice_tables.compared(plan)), "others", folded=True),
        ViewSection(
            "Every term", told(choice_tables.terms(plan), *([relaxed] if kept else [])), "every-term", folded=True
        ),
        ViewSection("How the plan was found", (_found(plan),), "found", folded=True),
    )
    return tuple(section for section in every if section.blocks)


def _movement(plan: Plan, moved: Movement | None) -> tuple[ViewSection, ...]:
    """The batches; if data is copied, also what each pair of brokers copies, and disk use over time."""
    batches = told(cluster_tables.batches(plan))
    if moved is None or not moved.copied.any():
        return (ViewSection("Batches", batches, "batches", folded=True),)
    return (
        ViewSection("Movement", told(cluster_tables.copied_pairs(plan, moved)), "movement", plot="movement"),
        ViewSection("Batches", (*batches, cluster_tables.copies(plan, moved)), "batches", plot="batches"),
        ViewSection("Disk use while the plan runs", told(cluster_tables.held(plan, moved)), "held", plot="held"),
    )


def _found(plan: Plan) -> Facts:
    """How the plan was found and chosen, as pairs of a label and a sentence."""
    derived = sentences.derived(plan)
    of_proof = "Proof, of this step alone" if headline.first_step(plan) else "Proof of the least"
    every: tuple[tuple[str, Value], ...] = (
        *requested.rules(plan, _LONGEST_FACT),
        ("By default", Sentence(derived, _LONGEST_FACT) if derived else ""),
        ("Chosen", headline.chosen(plan)),
        (of_proof, Sentence(plan.bound.proof.rstrip("."), LONGEST_PROOF)),
        ("Searched", sentences.searched(plan)),
        ("The winner", formats.printable(plan.candidates.rule.rstrip("."), _LONGEST_FACT)),
    )
    return Facts(tuple((label, value) for label, value in every if value))
